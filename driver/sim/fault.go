package sim

import (
	"math"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
)

// faults are the failures to come.
type faults struct {
	armed []fault
	above uint64 // largest request that may succeed
}

// fault is one failure: the call that brings left to 0 fails.
type fault struct {
	kind Kind // kinds stands for any
	left int
	err  error
}

func newFaults() faults { return faults{above: math.MaxUint64} }

// countCall counts a call of that kind and returns the error it is to fail with.
func (f *faults) countCall(kind Kind) error {
	if len(f.armed) == 0 {
		return nil
	}
	var err error
	f.armed = slices.DeleteFunc(f.armed, func(a fault) bool { return a.left <= 0 })
	for i := range f.armed {
		a := &f.armed[i]
		if a.kind != kind && a.kind != kinds {
			continue
		}
		if a.left--; a.left == 0 && err == nil {
			err = a.err
		}
	}
	return err
}

// FailNth makes the n-th driver call from now fail with err, whatever its
// kind; n is 1 for the next call. A nil err is [driver.ErrOutOfMemory].
// Failures add up.
func (d *Device) FailNth(n int, err error) { d.FailKind(kinds, n, err) }

// FailKind makes the n-th call of that kind from now fail with err.
func (d *Device) FailKind(kind Kind, n int, err error) {
	if err == nil {
		err = driver.ErrOutOfMemory
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.armed = append(d.faults.armed, fault{kind, n, err})
}

// FailAbove makes every Malloc and Map of more than that many bytes fail with
// [driver.ErrOutOfMemory].
func (d *Device) FailAbove(bytes uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.above = bytes
}

// Slow makes every call of that kind take at least so long. The device serves
// other calls meanwhile.
func (d *Device) Slow(kind Kind, delay time.Duration) { d.delays[kind].Store(int64(delay)) }

// Heal takes back every FailNth, FailKind, FailAbove and Slow.
func (d *Device) Heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = newFaults()
	for i := range d.delays {
		d.delays[i].Store(0)
	}
}

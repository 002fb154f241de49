package tier

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// remake frees a block and makes another one of its size where it lay.
func (r *rig) remake(addr, size uint64) {
	r.t.Helper()
	r.free(addr)
	if again := r.malloc(size); again != addr {
		r.t.Fatalf("the block is at %#x, not at %#x again", again, addr)
	}
}

// TestAgeOfRemade: a block is no older for lying where one of its size lay before, as gradients do from step to step.
func TestAgeOfRemade(t *testing.T) {
	r := newRig(t, 1000*mib, Options{Overflow: true, Alone: always})
	workspace, gradient := r.malloc(100*mib), r.malloc(300*mib)
	for range 4 {
		r.step()
		r.remake(gradient, 300*mib)
	}
	r.want("the request", r.malloc(640*mib), true)
	r.want("what has lived through four steps", workspace, false)
	r.want("what was made in this one", gradient, true)
}

// TestHintsOfRemade: nor does it have the hints of that one.
func TestHintsOfRemade(t *testing.T) {
	for name, hint := range map[string]func(sp *Space, addr uint64) bool{"pin": (*Space).Pin, "cold": (*Space).Cold} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 400*mib, Options{Overflow: true, Alone: always})
			block, settled := r.malloc(100*mib), r.malloc(100*mib)
			hint(r.sp, block)
			r.step()
			r.remake(block, 100*mib)
			for range 3 {
				r.step()
			}
			if name == "cold" {
				r.sp.Busy(block)
				r.malloc(240 * mib)
				r.want("what was not named", settled, false)
				r.want("what is busy", block, true)
				return
			}
			if report, err := r.sp.Park(true); err != nil || report.Pinned > 0 || report.Out != 200*mib {
				t.Errorf("parked: %+v, %v", report, err)
			}
		})
	}
}

// TestLastHint: what was frozen and is trained now is busy, and the other way round.
func TestLastHint(t *testing.T) {
	r := newRig(t, 400*mib, Options{Overflow: true, Alone: always})
	thawed, frozen := r.malloc(100*mib), r.malloc(100*mib)
	r.sp.Cold(thawed)
	r.sp.Busy(frozen)
	for range 3 {
		r.step()
	}
	r.sp.Busy(thawed)
	r.sp.Cold(frozen)
	r.malloc(240 * mib)
	r.want("what is trained now", thawed, true)
	r.want("what is frozen now", frozen, false)
}

// TestParkedPageServesOthers: a page that was parked and whose blocks have ended is like any other.
func TestParkedPageServesOthers(t *testing.T) {
	r := newRig(t, 400*mib, Options{Overflow: true, Alone: always, Budget: time.Hour})
	parked := r.malloc(100 * mib)
	if _, err := r.sp.ParkBlocks([]uint64{parked}); err != nil {
		t.Fatal(err)
	}
	r.free(parked)
	large := r.malloc(380 * mib)
	overflowed := r.malloc(90 * mib)
	r.want("the request", overflowed, false)
	r.free(large)
	if err := r.engine.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	for range 1 + leastPause {
		r.step()
	}
	r.want("what overflowed", overflowed, true)
}

// mapFails refuses to map handles at a range, with one error after the other.
type mapFails struct {
	*sim.Device
	addr, size uint64
	errs       []error
}

func (m *mapFails) MapPhysical(addr, size uint64, of []driver.Physical) error {
	if addr-m.addr < m.size && len(m.errs) > 0 {
		err := m.errs[0]
		m.errs = m.errs[1:]
		return err
	}
	return m.Device.MapPhysical(addr, size, of)
}

// TestOutOfReach: live memory that a move leaves out of reach is told of, also if there was too little room to begin with, and also if
// the move was part of a request.
func TestOutOfReach(t *testing.T) {
	for _, how := range []string{"step", "fetch", "request"} {
		t.Run(how, func(t *testing.T) {
			dev := &mapFails{Device: sim.New(sim.Config{TotalMemory: 400 * mib, HostMemory: 4000 * mib})}
			store, err := New(dev, Options{Host: 4000 * mib, Overflow: true, Budget: time.Hour, Alone: func() bool { return how == "request" }})
			if err != nil {
				t.Fatal(err)
			}
			r := &rig{t: t, dev: dev.Device, store: store}
			r.sp, r.engine = r.space("main")
			first := r.malloc(300 * mib)
			dev.errs = []error{driver.ErrOutOfMemory, errInjected}
			if how == "request" {
				r.sp.Cold(first)
				dev.addr, dev.size = first, 300*mib
				r.malloc(200 * mib)
			} else {
				second := r.malloc(200 * mib)
				r.free(first)
				if err := r.engine.EmptyCache(); err != nil {
					t.Fatal(err)
				}
				dev.addr, dev.size = second, 200*mib
				if how == "fetch" {
					_, err = r.sp.Fetch([]uint64{second})
				}
			}
			for i := 0; how != "fetch" && err == nil && i < 5; i++ {
				_, err = store.Step()
			}
			var oom *alloc.OutOfMemoryError
			if outOfReach(err) == nil || errors.Is(err, driver.ErrOutOfMemory) || errors.As(err, &oom) {
				t.Errorf("%v; %+v", err, store.Stats())
			}
			if len(dev.errs) > 0 {
				t.Error("the driver was not asked")
			}
		})
	}
}

// TestWithoutRoom: too little room for a move is no error, unless something is out of reach too.
func TestWithoutRoom(t *testing.T) {
	full, broken := fmt.Errorf("full: %w", driver.ErrOutOfMemory), &brokenError{cause: driver.ErrOutOfMemory}
	for _, x := range []struct{ err, want error }{
		{nil, nil}, {full, nil}, {errInjected, errInjected}, {broken, broken}, {errors.Join(broken, full), broken},
	} {
		if got := withoutRoom(x.err); !errors.Is(got, x.want) || (got == nil) != (x.want == nil) {
			t.Errorf("%v: %v", x.err, got)
		}
	}
}

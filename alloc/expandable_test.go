package alloc_test

import (
	"errors"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// reservations counts the ranges of addresses that a device has given.
type reservations struct {
	*sim.Device
	held int
}

func (d *reservations) Reserve(size, stream uint64) (uint64, error) {
	addr, err := d.Device.Reserve(size, stream)
	if err == nil {
		d.held++
	}
	return addr, err
}

func (d *reservations) Unreserve(addr, size uint64) error {
	d.held--
	return d.Device.Unreserve(addr, size)
}

// Requests that no reservation can hold do not take one after the other.
func TestReservationsStay(t *testing.T) {
	const total = 1 << 30
	for _, size := range []uint64{total, 2 * total, 100 * total} {
		dev := &reservations{Device: sim.New(sim.Config{TotalMemory: total})}
		a := alloc.New(dev, alloc.WithSettings(parse(t, "expandable_segments:True")))
		first := must(a.Malloc(30*mib, 0)) // the first reservation is in use
		for range 50 {
			if _, err := a.Malloc(size, 0); !errors.Is(err, driver.ErrOutOfMemory) {
				t.Fatalf("%d bytes of %d: %v", size, total, err)
			}
		}
		if dev.held > 2 {
			t.Errorf("%d reservations after 50 requests for %d bytes", dev.held, size)
		}
		// One that never held anything may stay; a next try would use it.
		check(a.Free(must(a.Malloc(900*mib, 0))))
		check(a.Free(first))
		check(a.EmptyCache())
		if u := a.Usage(); u.Reserved != 0 || dev.held > 1 {
			t.Errorf("%d bytes and %d reservations are left", u.Reserved, dev.held)
		}
		check(a.CheckInvariants())
	}
}

// A search among blocks of expandable segments reports the growable size that it went by.
func TestBestFitGrowableSize(t *testing.T) {
	const total = 1 << 30
	for conf, want := range map[string]uint64{"": 0, "expandable_segments:True": 58 * 20 * mib} { // 9/8 of it in whole granules
		var fit alloc.BestFit
		a := alloc.New(sim.New(sim.Config{TotalMemory: total}), alloc.WithSettings(parse(t, conf)),
			alloc.WithExplainer(func(d alloc.Decision) {
				if b, ok := d.(alloc.BestFit); ok {
					fit = b
				}
			}))
		check(a.Free(must(a.Malloc(30*mib, 0))))
		must(a.Malloc(30*mib, 0))
		if fit.Block.Size == 0 || fit.GrowableSize != want {
			t.Errorf("%q: %+v, want growable size %d", conf, fit, want)
		}
	}
}

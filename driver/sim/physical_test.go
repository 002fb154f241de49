package sim_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// TestPhysical: handles of both memories are counted until they are released and
// mapped nowhere, and misuse is refused.
func TestPhysical(t *testing.T) {
	const page = 2 << 20
	d := sim.New(sim.Config{TotalMemory: 8 * page, HostMemory: 4 * page})
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
	}
	held := func(device, host uint64) {
		t.Helper()
		if d.Held() != device || d.HostHeld() != host {
			t.Fatalf("%d and %d bytes held, want %d and %d", d.Held(), d.HostHeld(), device, host)
		}
	}
	addr, err := d.Reserve(64*page, 0)
	ok(err)
	main, stage := addr, addr+32*page
	dev, host := make([]driver.Physical, 2), make([]driver.Physical, 2)
	refused(d.CreatePhysical(5*page, dev), driver.ErrOutOfMemory)
	refused(d.CreateHostPhysical(3*page, host), driver.ErrOutOfMemory)
	ok(d.CreatePhysical(page, dev))
	ok(d.CreateHostPhysical(page, host))
	held(2*page, 2*page)
	ok(d.MapPhysical(main, page, dev))
	refused(d.MapPhysical(main+page, page, host), sim.ErrMisuse)
	ok(d.MapPhysical(stage, page, host))
	refused(d.CopyMapped(stage, main, 2*page), sim.ErrMisuse) // no access
	ok(d.SetAccess(main, 2*page))
	ok(d.SetAccess(stage, 2*page))
	before := d.Cost()
	ok(d.CopyMapped(stage, main, 2*page))
	if cost := d.Cost() - before; cost < 70*time.Microsecond || cost > 90*time.Microsecond {
		t.Errorf("copying 4 MiB costs %v", cost)
	}
	ok(d.UnmapPhysical(main, 2*page))
	ok(d.MapPhysical(main, page, host)) // at two addresses at once
	ok(d.SetAccess(main, 2*page))
	ok(d.ReleasePhysical(dev))
	held(0, 2*page)
	refused(d.ReleasePhysical(dev), sim.ErrMisuse)
	refused(d.Map(main+8*page, page, page), sim.ErrMisuse)
	refused(d.UnmapPhysical(main+page, 2*page), sim.ErrMisuse)
	refused(d.Unreserve(addr, 64*page), sim.ErrMisuse)
	ok(d.ReleasePhysical(host))
	ok(d.UnmapPhysical(stage, 2*page))
	held(0, 2*page)
	ok(d.UnmapPhysical(main, 2*page))
	held(0, 0)
	ok(d.Unreserve(addr, 64*page))
	d.FailKind(sim.SynchronizeDevice, 1, driver.ErrCapturing)
	refused(d.SynchronizeDevice(), driver.ErrCapturing)
}

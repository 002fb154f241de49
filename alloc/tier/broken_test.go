package tier

import (
	"errors"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// refuser is a device that refuses some calls, and remembers which streams were waited for.
type refuser struct {
	mapFails
	keep   bool // releases nothing
	waited []uint64
}

func (d *refuser) ReleasePhysical(of []driver.Physical) error {
	if d.keep {
		return errInjected
	}
	return d.Device.ReleasePhysical(of)
}

func (d *refuser) Synchronize(stream uint64) error {
	d.waited = append(d.waited, stream)
	return d.Device.Synchronize(stream)
}

func newRefuser(t *testing.T, o Options) (*rig, *refuser) {
	d := &refuser{mapFails: mapFails{Device: sim.New(sim.Config{TotalMemory: 400 * mib, HostMemory: 4000 * mib})}}
	o.Host = 4000 * mib
	store, err := New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dev: d.Device, store: store}
	r.sp, r.engine = r.space("main")
	return r, d
}

// TestBroken: a block of which a part could not be mapped back is not one that was dropped, and is like any other once it was.
func TestBroken(t *testing.T) {
	r, d := newRefuser(t, Options{Overflow: true, Alone: always, Budget: time.Hour})
	block, whole := r.malloc(200*mib), r.malloc(20*mib)
	d.addr, d.size, d.errs = block, 200*mib, []error{errInjected, errInjected} // the target, and what was there
	if report, err := r.sp.ParkBlocks([]uint64{block}); outOfReach(err) == nil {
		t.Fatalf("%+v, %v", report, err)
	}
	if r.sp.Dropped(block) || !r.sp.Broken(block) || r.sp.Broken(whole) || r.sp.Broken(1) || r.store.Stats().Broken == 0 {
		t.Errorf("dropped %v, broken %v: %+v", r.sp.Dropped(block), r.sp.Broken(block), r.store.Stats())
	}
	if _, err := r.sp.RestoreBlocks([]uint64{block}); err != nil || r.sp.Broken(block) {
		t.Fatal(err)
	}
	r.want("after a second try", block, true)
	r.sp.Cold(block)
	r.step()
	other := r.malloc(380 * mib)
	r.want("what overflowed", block, false)
	r.free(other)
	if err := r.engine.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	for range 1 + leastPause {
		r.step()
	}
	r.want("what is not parked any more", block, true)
}

// TestFreed: a report counts what the device has taken back.
func TestFreed(t *testing.T) {
	r, d := newRefuser(t, Options{})
	block := r.malloc(100 * mib)
	cached := r.malloc(100 * mib)
	r.free(cached)
	for _, keep := range []bool{true, false} {
		d.keep = keep
		before := d.Held()
		report, err := r.sp.Park(true)
		if err != nil || report.Out != 100*mib || report.Freed != before-d.Held() || (report.Freed == 0) != keep {
			t.Errorf("refuses %v: %+v, %v, %d MiB more", keep, report, err, (before-d.Held())/mib)
		}
		d.keep = false
		if _, err := r.sp.Restore(); err != nil { // with what could not be released
			t.Fatal(err)
		}
		r.free(r.malloc(100 * mib))
	}
	r.want("the block", block, true)
}

// TestEmptyCacheInCapture: in a capture no stream is waited for, whatever lies on the host.
func TestEmptyCacheInCapture(t *testing.T) {
	r, d := newRefuser(t, Options{})
	const stream = 7
	block, err := r.engine.Malloc(40*mib, stream)
	if err == nil {
		_, err = r.sp.Park(true)
	}
	r.free(block)
	capture, err2 := r.engine.BeginCapture(alloc.PoolID{}, func(s uint64) bool { return s == stream })
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	d.waited = nil
	if err := r.engine.EmptyCache(); err != nil || len(d.waited) > 0 {
		t.Errorf("%v, streams %v were waited for", err, d.waited)
	}
	var routed *alloc.RouteActiveError
	if _, err := r.sp.Park(true); !errors.As(err, &routed) || len(d.waited) > 0 {
		t.Errorf("%v, streams %v were waited for", err, d.waited)
	}
	if err := capture.End(); err != nil {
		t.Fatal(err)
	}
	if err := r.engine.EmptyCache(); err != nil || r.store.HostInUse() > 0 {
		t.Errorf("after the capture: %v, %d bytes on the host", err, r.store.HostInUse())
	}
}

// TestParkedLongAgo: a page is as parked as the oldest of its blocks, and forgets it with them.
func TestParkedLongAgo(t *testing.T) {
	r := newRig(t, 400*mib, Options{Overflow: true, Alone: always})
	parked := r.malloc(40 * mib)
	if _, err := r.sp.ParkBlocks([]uint64{parked}); err != nil {
		t.Fatal(err)
	}
	r.store.Mark()
	p := r.store.ledger.pages[parked]
	if !p.parked {
		t.Error("a page with its block is not parked")
	}
	r.free(parked)
	r.engine.SetLimit(10 * mib)
	if r.malloc(40*mib) != parked {
		t.Fatal("the request was not served where the block was")
	}
	r.store.Mark()
	if p.parked {
		t.Error("a page without the block is parked")
	}
}

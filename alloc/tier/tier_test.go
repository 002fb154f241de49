package tier

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// rig is a store over a simulated device with one space.
type rig struct {
	t      *testing.T
	dev    *sim.Device
	store  *Store
	sp     *Space
	engine *alloc.Allocator
}

func newRig(t *testing.T, device uint64, o Options) *rig {
	t.Helper()
	r := &rig{t: t, dev: sim.New(sim.Config{TotalMemory: device, HostMemory: 10 * device})}
	if o.Host == 0 {
		o.Host = 10 * device
	}
	var err error
	if r.store, err = New(r.dev, o); err != nil {
		t.Fatal(err)
	}
	r.sp, r.engine = r.space("main")
	return r
}

func (r *rig) space(name string) (*Space, *alloc.Allocator) {
	sp := r.store.Space(name)
	engine := alloc.New(sp.Driver(), alloc.WithSettings(expandable(r.t)))
	if err := sp.Attach(engine); err != nil {
		r.t.Fatal(err)
	}
	return sp, engine
}

func (r *rig) malloc(size uint64) uint64 {
	r.t.Helper()
	addr, err := r.engine.Malloc(size, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return addr
}

func (r *rig) free(addr uint64) {
	r.t.Helper()
	if err := r.engine.Free(addr); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) step() Report {
	r.t.Helper()
	report, err := r.store.Step()
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

// on reports whether a block lies wholly on the device.
func (r *rig) on(addr uint64) bool {
	_, far, dropped, ok := r.sp.Where(addr)
	return ok && far+dropped == 0
}

func (r *rig) want(what string, addr uint64, onDevice bool) {
	r.t.Helper()
	if r.on(addr) != onDevice {
		d, h, n, _ := r.sp.Where(addr)
		r.t.Errorf("%s: %d bytes on the device, %d on the host, %d nowhere", what, d, h, n)
	}
}

func always() bool { return true }

// TestPark: the device's memory is free while the space is parked, and the report says what was
// moved and what was not, and why.
func TestPark(t *testing.T) {
	r := newRig(t, 1000*mib, Options{})
	big := r.malloc(100 * mib)
	cached := r.malloc(40 * mib)
	r.free(cached)
	pinned := r.malloc(20 * mib)
	if !r.sp.Pin(pinned + 5) {
		t.Fatal("no block to pin")
	}
	capture, err := r.engine.BeginCapture(alloc.PoolID{}, func(s uint64) bool { return s == 7 })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.engine.Malloc(20*mib, 7); err != nil {
		t.Fatal(err)
	}
	if _, err := r.sp.Park(true); !errors.As(err, new(*alloc.RouteActiveError)) {
		t.Errorf("parked during a capture: %v", err)
	}
	if err := capture.End(); err != nil {
		t.Fatal(err)
	}
	report, err := r.sp.Park(true)
	if err != nil {
		t.Fatal(err)
	}
	if report.Out != 100*mib || report.Freed < 100*mib || report.Pinned != 20*mib || report.Private != 20*mib {
		t.Errorf("%+v", report)
	}
	if r.dev.Held() != 40*mib || r.dev.HostHeld() != 100*mib || r.engine.Usage().Reserved != 40*mib {
		t.Errorf("%d and %d bytes held", r.dev.Held(), r.dev.HostHeld())
	}
	r.want("parked", big, false)
	r.step()
	r.step()
	r.step()
	r.want("parked, and not to come home by itself", big, false)
	other := r.malloc(900 * mib) // it has the device's memory
	if _, err := r.sp.Restore(); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("restored without room: %v", err)
	}
	r.free(other) // cached, and released for the next
	if report, err = r.sp.Restore(); err != nil || report.In == 0 {
		t.Fatal(report, err)
	}
	r.want("restored", big, true)
	if st := r.store.Stats(); st.Host != 0 || st.Kept != 100*mib || r.store.Trim() != 100*mib || r.dev.HostHeld() != 0 {
		t.Errorf("%+v", st)
	}
	if report, err = r.sp.Park(false); err != nil || report.Dropped != 100*mib || !r.sp.Dropped(big) || r.dev.HostHeld() != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if report, err = r.sp.Restore(); err != nil || report.In != 100*mib || r.sp.Dropped(big) {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestParkBlocks: only handles all of whose blocks are named move.
func TestParkBlocks(t *testing.T) {
	r := newRig(t, 1000*mib, Options{})
	a, b, c := r.malloc(10*mib), r.malloc(10*mib), r.malloc(20*mib) // a and b share a handle
	report, err := r.sp.ParkBlocks([]uint64{a, c + 3})
	if err != nil || report.Out != 20*mib || report.Shared != 20*mib {
		t.Errorf("%+v, %v", report, err)
	}
	r.want("a", a, true)
	r.want("c", c, false)
	if report, err = r.sp.ParkBlocks([]uint64{a, b}); err != nil || report.Out != 20*mib {
		t.Errorf("%+v, %v", report, err)
	}
	r.want("a", a, false)
	r.free(b)
	if d := r.malloc(10 * mib); !r.on(d) {
		t.Error("a free rest of a handle on the host serves a request")
	}
	if report, err = r.sp.RestoreBlocks([]uint64{a}); err != nil || report.In != 20*mib {
		t.Errorf("%+v, %v", report, err)
	}
	r.want("a", a, true)
	if e := r.malloc(10 * mib); e != b {
		t.Errorf("the rest that came home serves no request: %#x, not %#x", e, b)
	}
}

// TestHostLimit: what the host's memory may be taken is bounded, and a park that finds no more keeps
// what it has done.
func TestHostLimit(t *testing.T) {
	r := newRig(t, 1000*mib, Options{Host: 200 * mib})
	addr := r.malloc(400 * mib)
	report, err := r.sp.Park(true)
	if !errors.Is(err, driver.ErrOutOfMemory) || report.Out == 0 || report.Out > 200*mib || r.dev.HostHeld() > 200*mib {
		t.Errorf("%+v, %v", report, err)
	}
	d, h, _, _ := r.sp.Where(addr)
	if d != 400*mib-report.Out || h != report.Out {
		t.Errorf("%d on the device, %d on the host, %+v", d, h, report)
	}
	r.store.SetHostLimit(400 * mib)
	if report, err := r.sp.Park(true); err != nil || report.Out != d {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestOverflow: a request that would fail is served. Without knowing that its thread is alone it lies on
// the host itself, and at the next mark cold memory makes room for its like.
func TestOverflow(t *testing.T) {
	var told []Overflow
	r := newRig(t, 400*mib, Options{Overflow: true, Overflowed: func(_ *Space, o Overflow) { told = append(told, o) }})
	weights := r.malloc(200 * mib)
	state := r.malloc(160 * mib)
	r.step()
	work := r.malloc(100 * mib)
	r.want("the new block", work, false)
	r.want("the weights", weights, true)
	if len(told) != 1 || told[0] != (Overflow{Size: 100 * mib}) {
		t.Errorf("%+v", told)
	}
	r.free(work)
	if report := r.step(); report.Out != 60*mib { // 40 MiB of the device were free
		t.Errorf("%+v", report)
	}
	r.want("the weights", weights, true)
	r.want("the optimizer's state, made last", state, false)
	for range 10 {
		work := r.malloc(100 * mib)
		r.want("the block of a later step", work, true)
		r.free(work)
		if report := r.step(); report.Out+report.In != 0 {
			t.Errorf("nothing has to move: %+v", report)
		}
	}
	if st := r.sp.Stats(); st.Overflows != 1 || st.Host != 60*mib || len(told) != 1 {
		t.Errorf("%+v, told %d times", st, len(told))
	}
	r.sp.SetOverflow(0)
	if _, err := r.engine.Malloc(300*mib, 0); !errors.As(err, new(*alloc.OutOfMemoryError)) {
		t.Errorf("overflow is off: %v", err)
	}
}

// TestOverflowAlone: a request of the only thread moves cold memory out of its way: what was
// named, then what lives longest, and none that is younger than the last mark.
func TestOverflowAlone(t *testing.T) {
	r := newRig(t, 400*mib, Options{Overflow: true, Alone: always})
	r.engine.SetLimit(400 * mib)
	young := r.malloc(100 * mib)
	if again := r.malloc(350 * mib); r.on(again) || !r.on(young) {
		t.Error("a block that has lived through no mark has moved")
	}
	r = newRig(t, 400*mib, Options{Overflow: true, Alone: always})
	r.engine.SetLimit(400 * mib)
	cold, warm := r.malloc(100*mib), r.malloc(200*mib)
	r.step()
	if !r.sp.Cold(cold) {
		t.Fatal("no such block")
	}
	r.want("the request", r.malloc(160*mib), true)
	r.want("what was named cold", cold, false)
	r.want("what was not", warm, true)
	if st := r.store.Stats(); st.Moves == 0 || r.engine.Usage().Reserved > 400*mib {
		t.Errorf("%+v", st)
	}
	r.want("more", r.malloc(150*mib), true)
	r.want("what lives long", warm, false)
}

// TestSpace: with overflow on, a request that the cache has room for gets what it lacks and a little more, not all of the
// cache, which the next requests would map again; under a limit as on a full device.
func TestSpace(t *testing.T) {
	for _, limit := range []uint64{0, 1000 * mib} {
		for _, overflow := range []uint64{0, 100 * mib} {
			r := newRig(t, max(limit, 500*mib)*2, Options{})
			if limit > 0 {
				r.engine.SetLimit(limit)
			}
			r.sp.SetOverflow(overflow)
			a, b := r.malloc(400*mib), r.malloc(600*mib)
			r.free(a)
			r.free(b)
			small := r.malloc(4096)
			u := r.engine.Usage()
			switch st := r.engine.Stats(); {
			case !r.on(small) || st.NumAllocRetries != 1:
				t.Errorf("limit %d, overflow %d: %d retries", limit, overflow, st.NumAllocRetries)
			case overflow == 0 && u.Reserved != 2*mib, overflow > 0 && u.Reserved != 742*mib: // 13 handles of 20 MiB are given back
				t.Errorf("limit %d, overflow %d: %s are reserved", limit, overflow, units.Size(u.Reserved))
			}
			c := r.malloc(900 * mib) // more than is cached in one piece
			r.want("a large request", c, true)
			if st := r.store.Stats(); st.Overflows != 0 || st.Host != 0 {
				t.Errorf("limit %d, overflow %d: %+v", limit, overflow, st)
			}
		}
	}
}

// TestOrder: what goes first is what was named cold, the latest made of it first, then what was made early in
// the step, then what lives long, and last what was named busy. At a mark nothing but what is cold goes.
func TestOrder(t *testing.T) {
	alone := true
	r := newRig(t, 1000*mib, Options{Overflow: true, Alone: func() bool { return alone }})
	frozen, trained, workspace := r.malloc(100*mib), r.malloc(100*mib), r.malloc(100*mib)
	r.step()
	state := r.malloc(100 * mib)
	for _, addr := range []uint64{frozen, state} {
		if !r.sp.Cold(addr) {
			t.Fatal("no such block")
		}
	}
	if !r.sp.Busy(trained) || r.sp.Busy(0) {
		t.Fatal("no such block")
	}
	r.step()
	r.step()
	first, second := r.malloc(100*mib), r.malloc(100*mib)
	work := make([]uint64, 4)
	for i := range work {
		work[i] = r.malloc(100 * mib)
	}
	names := map[uint64]string{frozen: "frozen", trained: "trained", workspace: "workspace", state: "state", first: "first", second: "second"}
	for i := range work {
		names[work[i]] = "work"
	}
	order := []uint64{state, frozen, first, second}
	for i := range order {
		next := r.malloc(100 * mib) // one more than there is room for
		names[next] = "work"
		r.want("the request before "+names[order[i]], next, true)
		for addr, name := range names {
			if name == "work" {
				r.want("what was made late", addr, true)
			}
		}
		// Later requests move more than they need.
		gone := 0
		for gone < len(order) && !r.on(order[gone]) {
			gone++
		}
		if gone <= i {
			t.Errorf("after %d requests %s is still on the device", i+1, names[order[gone]])
		}
		for _, stays := range order[gone:] {
			r.want(names[stays], stays, true)
		}
	}
	r.want("the parameters", trained, true)
	r.want("the workspace", workspace, true)
	alone = false
	more := r.malloc(200 * mib)
	r.want("the request of one thread of several", more, false)
	r.free(more)
	if report := r.step(); report.Out != 0 {
		t.Errorf("at a mark something went that nobody named: %+v", report)
	}
	r.want("the parameters", trained, true)
}

// TestComeHomeFromCache: memory that steps have not needed for a while counts as free, although the cache has it.
func TestComeHomeFromCache(t *testing.T) {
	r := newRig(t, 1000*mib, Options{Overflow: true, Alone: always, Budget: time.Hour})
	r.engine.SetLimit(1000 * mib)
	state := r.malloc(400 * mib)
	r.sp.Cold(state)
	r.step()
	large := r.malloc(900 * mib)
	r.want("the state", state, false)
	r.free(large)
	for i := range 6 {
		work := r.malloc(500 * mib) // out of the cache of 900
		r.free(work)
		r.step()
		if on := r.on(state); on && i < 2 {
			t.Errorf("home after %d steps", i+1)
		}
	}
	r.want("the state, which the cache has room for", state, true)
	if reserved := r.engine.Usage().Reserved; reserved > 1000*mib || reserved < 900*mib {
		t.Errorf("%d MiB are reserved", reserved/mib)
	}
	work := r.malloc(500 * mib)
	r.want("the work", work, true)
	if st := r.store.Stats(); st.Overflows != 1 {
		t.Errorf("%+v", st)
	}
	r.free(work)

	// With steps that need the cache nothing comes home.
	large = r.malloc(900 * mib)
	r.want("the state", state, false)
	r.free(large)
	for range 100 {
		r.free(r.malloc(850 * mib))
		r.step()
	}
	if _, far, _, _ := r.sp.Where(state); far < 300*mib || r.store.Stats().Overflows > 3 {
		t.Errorf("%d MiB are on the host, %+v", far/mib, r.store.Stats())
	}
}

// TestHighest: the most of some steps is forgotten after some more.
func TestHighest(t *testing.T) {
	var h highest
	h.note(10)
	for i := range 3 * window {
		h.note(5)
		if want := uint64(5 + 5*btoi(i < 2*window-1)); h.bytes() != want {
			t.Fatalf("%d after %d steps, not %d", h.bytes(), i, want)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestComeHome: memory comes home when nothing overflowed for some steps, hottest first, within
// the budget, and waits longer if that was too early.
func TestComeHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		clock := func() time.Time { return begin }
		r := newRig(t, 400*mib, Options{Overflow: true, Alone: always, Budget: time.Millisecond, Now: func() time.Time { return clock() }})
		clock = func() time.Time { return begin.Add(r.dev.Cost()) } // as long as the driver says
		a, b := r.malloc(160*mib), r.malloc(160*mib)
		r.step()
		r.sp.Cold(a)
		work := r.malloc(300 * mib)
		r.want("named", a, false)
		r.want("the other", b, false)
		r.free(work)
		if err := r.engine.EmptyCache(); err != nil {
			t.Fatal(err)
		}
		home := 0
		for i := range 100 {
			report := r.step()
			if report.In > 0 && i < 2 {
				t.Errorf("home at once: %+v", report)
			}
			if report.Time > 12*time.Millisecond { // a run takes 4, and the next has begun
				t.Errorf("a step of %v", report.Time)
			}
			if report.In > 0 && home == 0 && r.on(a) {
				t.Error("what was named cold comes home first")
			}
			home += int(report.In / mib)
		}
		if !r.on(a) || !r.on(b) || home == 0 {
			t.Errorf("%d MiB came home", home)
		}
		pause := r.store.rest.pause
		r.step()
		r.store.rest.home = 1
		r.malloc(300 * mib)
		r.step()
		if r.store.rest.pause != 2*pause {
			t.Errorf("a pause of %d steps after %d", r.store.rest.pause, pause)
		}
	})
}

// TestSpaces: a space gets what another one has parked, and the cap holds for both.
func TestSpaces(t *testing.T) {
	r := newRig(t, 1000*mib, Options{})
	r.store.SetDeviceLimit(300 * mib)
	_, other := r.space("other")
	r.malloc(200 * mib)
	if _, err := other.Malloc(200*mib, 0); !errors.As(err, new(*alloc.OutOfMemoryError)) {
		t.Errorf("above the cap: %v", err)
	}
	if _, err := r.sp.Park(true); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Malloc(200*mib, 0); err != nil {
		t.Error(err)
	}
	if err := r.sp.Attach(other); err == nil {
		t.Error("a second allocator was attached")
	}
	if _, err := r.store.Space("empty").Park(true); err == nil {
		t.Error("a space without an allocator was parked")
	}
	if _, err := New(struct{ driver.Driver }{r.dev}, Options{}); err == nil {
		t.Error("a driver that cannot map the host's memory was accepted")
	}
}

// TestConcurrent: requests, parks, steps and overflow of several goroutines.
func TestConcurrent(t *testing.T) {
	dev := sim.New(sim.Config{TotalMemory: 400 * mib, HostMemory: 4000 * mib})
	store, err := New(dev, Options{Host: 4000 * mib, Overflow: true, Alone: always})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for g := range 4 {
		sp := store.Space([]string{"a", "b"}[g%2])
		if g < 2 {
			if err := sp.Attach(alloc.New(sp.Driver(), alloc.WithSettings(expandable(t)))); err != nil {
				t.Fatal(err)
			}
		}
		engine := sp.attached()
		all.Go(func() {
			for i := range 150 {
				var addrs []uint64
				for j := range 4 {
					addr, err := engine.Malloc(uint64(1+(i*7+j*13)%60)*mib, uint64(g))
					if err != nil {
						t.Error(err)
						return
					}
					addrs = append(addrs, addr)
				}
				var err error
				switch i % 8 {
				case 1:
					_, err = sp.Park(true)
				case 3:
					_, err = sp.ParkBlocks(addrs[:2])
				case 4:
					sp.Cold(addrs[0])
				case 5:
					_, err = store.Step()
				case 6:
					_, err = sp.Restore()
				case 7:
					_, err = sp.Fetch(addrs)
				}
				if err != nil && !errors.Is(err, driver.ErrOutOfMemory) {
					t.Error(err)
				}
				for _, addr := range addrs {
					if err := engine.Free(addr); err != nil {
						t.Error(err)
					}
				}
				_, _ = store.Stats(), store.Moves()
			}
		})
	}
	all.Wait()
	for _, sp := range store.Spaces() {
		if err := sp.attached().EmptyCache(); err != nil {
			t.Error(err)
		}
	}
	store.Trim()
	if dev.Held() != 0 || dev.HostHeld() != 0 {
		t.Errorf("%d and %d bytes are left", dev.Held(), dev.HostHeld())
	}
}

// TestTenants: a tenant over a space counts what it has on the device, wherever its blocks
// were made and whither they went.
func TestTenants(t *testing.T) {
	r := newRig(t, 400*mib, Options{})
	group, err := tenant.New(r.dev, 400*mib, tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.sp = r.store.Space("tenant")
	one, err := group.Add("one", tenant.Terms{Driver: r.sp.Driver()}, alloc.WithSettings(expandable(t)))
	if err != nil {
		t.Fatal(err)
	}
	r.engine = one.Allocator()
	if err := r.sp.Attach(r.engine); err != nil {
		t.Fatal(err)
	}
	r.sp.SetOverflow(1000 * mib)
	same := func(what string) {
		t.Helper()
		reserved, engine, held := group.Usage().Reserved, r.engine.Usage().Reserved, r.dev.Held()
		if reserved != engine || engine != held {
			t.Errorf("%s: the group has %d bytes, the engine %d, the device %d", what, reserved, engine, held)
		}
	}
	a := r.malloc(300 * mib)
	b := r.malloc(200 * mib) // on the host
	same("overflowed")
	if _, err := r.sp.Park(true); err != nil {
		t.Fatal(err)
	}
	same("parked")
	r.free(b)
	if err := r.engine.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	same("freed on the host")
	if _, err := r.sp.Restore(); err != nil {
		t.Fatal(err)
	}
	same("restored")
	r.free(a)
	if err := r.engine.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	if same("freed"); r.dev.Held() != 0 {
		t.Errorf("%d bytes are held", r.dev.Held())
	}
}

// TestCalls: once the host's pages exist, a park copies, unmaps, maps and opens each run
// once, and stages nothing.
func TestCalls(t *testing.T) {
	r := newRig(t, 4000*mib, Options{})
	r.malloc(2400 * mib)
	for range 2 {
		if _, err := r.sp.Park(true); err != nil {
			t.Fatal(err)
		}
		if _, err := r.sp.Restore(); err != nil {
			t.Fatal(err)
		}
	}
	before := r.dev.Calls()
	if _, err := r.sp.Park(true); err != nil {
		t.Fatal(err)
	}
	const runs = 2400 / 20 // of one handle
	after := r.dev.Calls()
	for kind, want := range map[sim.Kind]int{
		sim.CopyMapped: runs, sim.UnmapPhysical: runs, sim.MapPhysical: runs, sim.SetAccess: runs,
		sim.CreateHostPhysical: 0, sim.Reserve: 0, sim.SynchronizeDevice: 1, sim.ReleasePhysical: runs,
	} {
		got := after[kind] - before[kind]
		if kind == sim.CopyMapped && got <= want+4 {
			continue // the homes of a run may lie in two ranges
		}
		if got != want {
			t.Errorf("%v: %d calls, want %d", kind, got, want)
		}
	}
}

// TestAhead: from the third of equal steps on, what a step has to move goes at its first overflows, and no more
// than in the steps before; small steps after large ones come to move less.
func TestAhead(t *testing.T) {
	r := newRig(t, 1000*mib, Options{Overflow: true, Alone: always})
	step := func(blocks int) (waits int, out uint64) {
		calls, before := r.dev.Calls()[sim.SynchronizeDevice], r.store.Stats().BytesOut
		var live []uint64
		for range blocks {
			live = append(live, r.malloc(60*mib))
		}
		waits, out = r.dev.Calls()[sim.SynchronizeDevice]-calls, r.store.Stats().BytesOut-before
		for _, addr := range live {
			r.free(addr)
		}
		r.step()
		return waits, out
	}
	step(24) // before the first mark nothing is known to be early
	first, out := step(24)
	second, _ := step(24)
	third, again := step(24)
	if first < 4 || second != first || third > 2 || again > out+2*quantum {
		t.Errorf("equal steps wait for the device %d, %d and %d times, and move %s and %s", first, second, third, units.Size(out), units.Size(again))
	}
	for range 5 {
		if waits, more := step(24); waits > third || more > again {
			t.Errorf("one more equal step waits %d times and moves %s, after %d and %s", waits, units.Size(more), third, units.Size(again))
		}
	}
	if _, less := step(18); less > out {
		t.Errorf("a step that needs less moves %s, the one before %s", units.Size(less), units.Size(out))
	}
	step(18)
	if waits, less := step(18); waits == 0 || less >= out {
		t.Errorf("after two small steps a third waits %d times and moves %s", waits, units.Size(less))
	}
}

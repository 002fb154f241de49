package tier

import (
	"errors"
	"sync"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// TestOverflowThatFails: a request that fails all the same is no overflow. The first that is served is told, with what it got.
func TestOverflowThatFails(t *testing.T) {
	var told []Overflow
	r := newRig(t, 400*mib, Options{Alone: always, Overflowed: func(_ *Space, o Overflow) { told = append(told, o) }})
	r.sp.SetOverflow(100 * mib)
	cold := r.malloc(200 * mib)
	r.step()
	r.sp.Cold(cold)
	if _, err := r.engine.Malloc(390*mib, 0); !errors.As(err, new(*alloc.OutOfMemoryError)) {
		t.Fatal(err)
	}
	if st := r.sp.Stats(); st.Overflows != 0 || len(told) != 0 {
		t.Errorf("%d overflows, told %+v: nothing was served", st.Overflows, told)
	}
	r.malloc(250 * mib)
	if st := r.sp.Stats(); st.Overflows != 1 || len(told) != 1 || told[0].Size != 250*mib || told[0].Moved < 50*mib {
		t.Errorf("%d overflows, told %+v", st.Overflows, told)
	}
}

// TestStock: host memory that is kept makes room for handles of another size if that suffices, and stays if it does not.
func TestStock(t *testing.T) {
	r := newRig(t, 1000*mib, Options{Host: 100 * mib})
	if err := r.store.stock(20*mib, 4); err != nil {
		t.Fatal(err)
	}
	if err := r.store.stock(60*mib, 2); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("120 MiB of 100: %v", err)
	}
	if kept := r.store.Stats().Kept; kept != 80*mib {
		t.Errorf("%d MiB are kept, the 80 would not have sufficed", kept/mib)
	}
	if err := r.store.stock(60*mib, 1); err != nil {
		t.Fatal(err)
	}
	if kept := r.store.Stats().Kept; kept != 100*mib || r.dev.HostHeld() != 100*mib {
		t.Errorf("%d MiB are kept, the device holds %d", kept/mib, r.dev.HostHeld()/mib)
	}
}

// TestStockTaken: spaces that need host memory at the same time take what others made, and none is refused while there is room.
func TestStockTaken(t *testing.T) {
	r := newRig(t, 1000*mib, Options{Host: 4000 * mib})
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		of := r.store.Space(name)
		all.Go(func() {
			for range 30000 {
				taken, err := r.store.takeHost(of, 2*mib, 1)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				r.store.giveBack(of, taken)
				r.store.dropKept()
			}
		})
	}
	all.Wait()
	if st := r.store.Stats(); st.Host != 0 || r.dev.HostHeld() != st.Kept {
		t.Errorf("%+v, the device holds %d MiB", st, r.dev.HostHeld()/mib)
	}
}

// TestStepWithoutHost: at a mark nobody has asked for a move, so one for which the host has no memory is no error, and the step after it tries again.
func TestStepWithoutHost(t *testing.T) {
	for _, alone := range []func() bool{nil, always} {
		r := newRig(t, 400*mib, Options{Overflow: true, Alone: alone})
		state := r.malloc(360 * mib)
		r.step()
		r.sp.Cold(state)
		r.sp.Pin(state) // it cannot make room: the new block overflows
		work := r.malloc(100 * mib)
		r.want("the new block", work, false)
		r.free(work)
		r.sp.Unpin(state)
		r.dev.FailKind(sim.CreateHostPhysical, 1, nil)
		if report := r.step(); report.Out != 0 {
			t.Errorf("%+v", report)
		}
		r.dev.Heal()
	}
}

// TestStreamThatIsGone: a move waits for the whole device, so it needs none of the streams on which blocks were freed; they may be gone.
func TestStreamThatIsGone(t *testing.T) {
	r := newRig(t, 1000*mib, Options{})
	kept := r.malloc(20 * mib)
	addr, err := r.engine.Malloc(20*mib, 7)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.sp.Park(true); err != nil {
		t.Fatal(err)
	}
	r.free(addr)
	r.dev.FailKind(sim.Synchronize, 1, errors.New("invalid resource handle"))
	if _, err := r.sp.RestoreBlocks([]uint64{kept}); err != nil {
		t.Error(err)
	}
	r.want("the other block", kept, true)
	if st := r.sp.Stats(); st.Host != 0 {
		t.Errorf("%+v: what lay behind the freed block is held still", st)
	}
}

// TestRestorePinned: what was pinned on the host, where others know it, does not move, and the report says so.
func TestRestorePinned(t *testing.T) {
	r := newRig(t, 1000*mib, Options{})
	known, other := r.malloc(40*mib), r.malloc(60*mib)
	if _, err := r.sp.Park(true); err != nil {
		t.Fatal(err)
	}
	r.sp.Pin(known)
	report, err := r.sp.Restore()
	if err != nil || report.Pinned != 40*mib || report.In != 60*mib {
		t.Errorf("%+v, %v", report, err)
	}
	r.want("the pinned block", known, false)
	r.want("the other", other, true)
	r.sp.Unpin(known)
	if report, err = r.sp.RestoreBlocks([]uint64{known}); err != nil || report.Pinned != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	r.want("the block", known, true)
}

// TestFreeUnattached: a space without an allocator has nothing.
func TestFreeUnattached(t *testing.T) {
	r := newRig(t, 1000*mib, Options{})
	if free := r.store.Space("empty").Free(); free != 0 {
		t.Errorf("%d bytes", free)
	}
}

// TestServedCounts: each request that the host's memory serves is counted.
func TestServedCounts(t *testing.T) {
	r := newRig(t, 40*mib, Options{Overflow: true, Alone: never})
	r.malloc(40 * mib)
	for n := uint64(1); n <= 5; n++ {
		r.free(r.malloc(20 * mib)) // the first maps, the others find it
		if st := r.sp.Stats(); st.Overflows != n {
			t.Errorf("after %d requests: %+v", n, st)
		}
	}
}

package tier

import (
	"errors"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// TestFetch: what is fetched comes home into free and cached memory, as far as there is any; nothing else moves, and it is
// the first to go again.
func TestFetch(t *testing.T) {
	quiet := 0
	r := newRig(t, 1000*mib, Options{Overflow: true, Alone: always, Quiet: func() (func(), error) { quiet++; return nil, nil }})
	fetch := func(addrs ...uint64) Report {
		t.Helper()
		report, err := r.sp.Fetch(addrs)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	weights, state, other := r.malloc(200*mib), r.malloc(200*mib), r.malloc(200*mib)
	r.sp.Busy(weights)
	r.sp.Cold(state)
	r.sp.Cold(other)
	r.step()

	untouched := func(what string, addr uint64) {
		t.Helper()
		calls, before := r.dev.Calls(), quiet
		if report := fetch(addr, 1); report != (Report{}) || quiet != before || calls != r.dev.Calls() {
			t.Errorf("%s: %+v, quiet %d times, calls %v", what, report, quiet-before, r.dev.Calls())
		}
	}
	untouched("with nothing on the host", state)
	work := r.malloc(800 * mib)
	r.want("the state", state, false)
	r.want("the other", other, false)
	untouched("what is on the device", weights)
	if report := fetch(state); report.In != 0 {
		t.Errorf("without room %+v", report)
	}

	r.free(work)
	half := r.malloc(400 * mib) // of the cache
	if report := fetch(state+5, weights); report.In != 200*mib || report.Out != 0 {
		t.Errorf("%+v", report)
	}
	r.want("the state", state, true)
	r.want("the other", other, false)
	if reserved := r.engine.Usage().Reserved; reserved > 1000*mib {
		t.Errorf("%s are reserved", units.Size(reserved))
	}
	more := r.malloc(120 * mib)
	if report := fetch(state, other); report.In != 80*mib {
		t.Errorf("with room for a part %+v", report)
	}
	if r.store.rest.home != 0 {
		t.Error("it counts as memory that came home by itself")
	}
	r.free(half)
	r.free(more)
	r.step()
	if !r.on(state) {
		t.Error("it has gone at a mark")
	}
	work = r.malloc(800 * mib)
	r.want("the state at the next overflow", state, false)
	r.want("the weights", weights, true)
	r.free(work)

	if _, err := r.sp.ParkBlocks([]uint64{state}); err != nil {
		t.Fatal(err)
	}
	r.sp.Pin(other)
	if report := fetch(state, other); report.In != 0 {
		t.Errorf("parked and pinned: %+v", report)
	}
	if report, err := r.store.Space("nobody").Fetch([]uint64{state}); err != nil || report != (Report{}) {
		t.Errorf("without an allocator %+v, %v", report, err)
	}
}

// TestFetchLeavesRoom: in steps that need memory after a Fetch, as an optimizer does for what it computes, less comes home, so that nothing of it
// goes again at once.
func TestFetchLeavesRoom(t *testing.T) {
	r := newRig(t, 1000*mib, Options{Overflow: true, Alone: always})
	state := make([]uint64, 20)
	for i := range state {
		state[i] = r.malloc(40 * mib)
		r.sp.Cold(state[i])
	}
	r.step()
	for i := range 8 {
		activations := r.malloc(600 * mib)
		r.free(activations)
		report, err := r.sp.Fetch(state)
		if err != nil {
			t.Fatal(err)
		}
		before := r.store.Stats().BytesOut
		r.free(r.malloc(300 * mib))
		again := r.store.Stats().BytesOut - before
		if i > 1 && (again > 0 || report.In < 200*mib) {
			t.Errorf("step %d: %s came home, %s went again", i, units.Size(report.In), units.Size(again))
		}
		if i == 0 && again == 0 {
			t.Error("the first step knows what it will need")
		}
		r.step()
	}
}

// TestFetchFailures: wherever the driver fails, once or for ever, every byte is there afterwards, and a lack of room is no error.
func TestFetchFailures(t *testing.T) {
	for _, cause := range []error{driver.ErrOutOfMemory, errInjected} {
		for _, forever := range []bool{false, true} {
			failures, home := 0, 0
			for n := 1; failures == n-1; n++ {
				m := newMachine(t, 1, true)
				m.store.options.Alone, m.store.options.Quiet = always, nil
				sp := m.spaces[0]
				sp.SetOverflow(80 * mib)
				m.store.SetDeviceLimit(40 * mib)
				request := func(size uint64) uint64 {
					t.Helper()
					if err := m.request(0, size, 0); err != nil || len(m.order) == 0 {
						t.Fatal(err)
					}
					return m.order[len(m.order)-1]
				}
				state := request(20 * mib)
				sp.Cold(state)
				if _, err := m.store.Step(); err != nil {
					t.Fatal(err)
				}
				m.free(request(40 * mib))
				m.dev.fail(n, forever, cause)
				report, err := sp.Fetch([]uint64{state})
				m.dev.heal()
				failures += min(m.dev.injected, 1)
				home += int(report.In / (20 * mib))
				if m.dev.injected == 0 && (err != nil || report.In != 20*mib) || errors.Is(err, driver.ErrOutOfMemory) {
					t.Errorf("call %d, %v: %+v, %v", n, cause, report, err)
				}
				if err := m.check(); err != nil {
					t.Errorf("call %d, %v: %v", n, cause, err)
				}
				if err := m.finish(); err != nil {
					t.Errorf("call %d, %v: %v", n, cause, err)
				}
				_ = m.real.Close()
			}
			if failures < 8 || home == 0 {
				t.Errorf("%d calls failed, %d times all came home", failures, home)
			}
		}
	}
}

package tier

import (
	"testing"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// training makes steps as training does: a forward pass that keeps activations, and a backward pass that frees them, the latest
// first.
type training struct {
	*rig
	weights uint64
}

func newTraining(t *testing.T) *training {
	tr := &training{rig: newRig(t, 1000*mib, Options{Overflow: true, Alone: always})}
	tr.weights = tr.malloc(100 * mib)
	tr.sp.Busy(tr.weights)
	tr.step()
	return tr
}

// work asks for small blocks and frees them, as kernels in between do.
func (tr *training) work() {
	tr.t.Helper()
	for range 70 {
		tr.free(tr.malloc(4096))
	}
}

// pass is a step with so many activations of 100 MiB: what of them lay on the host when the backward pass came to them, and what was moved.
func (tr *training) pass(activations int) (far, out, in uint64) {
	tr.t.Helper()
	before := tr.store.Stats()
	var live []uint64
	for range activations {
		live = append(live, tr.malloc(100*mib))
		tr.work()
	}
	for len(live) > 0 {
		last := live[len(live)-1]
		live = live[:len(live)-1]
		_, host, _, _ := tr.sp.Where(last)
		far += host
		tr.work()
		tr.free(last)
	}
	tr.step()
	after := tr.store.Stats()
	return far, after.BytesOut - before.BytesOut, after.BytesIn - before.BytesIn
}

// TestReturns: once steps are known, activations that were moved come home in the backward pass, before it comes to them, and none of
// them goes again.
func TestReturns(t *testing.T) {
	tr := newTraining(t)
	for range 3 {
		tr.pass(12)
	}
	for range 3 {
		far, out, in := tr.pass(12)
		if out < 300*mib || out > 500*mib || in < out-100*mib {
			t.Errorf("%s went, %s came home", units.Size(out), units.Size(in))
		}
		if far > 100*mib {
			t.Errorf("the backward pass found %s on the host", units.Size(far))
		}
	}
}

// TestReturnsLargerStep: a step of the same form that uses more than those before is foreseen to use more later on, too.
func TestReturnsLargerStep(t *testing.T) {
	tr := newTraining(t)
	var live []uint64
	up := func(n int, size uint64) {
		for range n {
			live = append(live, tr.malloc(size))
			tr.work()
		}
	}
	down := func(n int) {
		for range n {
			tr.work()
			tr.free(live[len(live)-1])
			live = live[:len(live)-1]
		}
	}
	for i, size := range []uint64{100 * mib, 100 * mib, 100 * mib, 160 * mib} { // two batches in a step
		up(8, size)
		down(6)
		up(6, size)
		down(8)
		tr.step()
		if st := tr.store.Stats(); i < 3 != (st.BytesOut == 0) || i == 3 && st.BytesIn == 0 || tr.sp.returns.wait > 0 {
			t.Errorf("step %d: %+v, nothing comes home for %d steps", i, st, tr.sp.returns.wait)
		}
	}
}

// TestReturnsTooEarly: where a step is not like those before and what came home has to go again, nothing comes home in the next steps.
func TestReturnsTooEarly(t *testing.T) {
	tr := newTraining(t)
	for range 3 {
		tr.pass(12)
	}
	// As the others up to the middle of the backward pass, and then a second forward pass.
	var live []uint64
	for range 12 {
		live = append(live, tr.malloc(100*mib))
		tr.work()
	}
	for range 8 {
		tr.work()
		tr.free(live[len(live)-1])
		live = live[:len(live)-1]
	}
	home := tr.store.Stats().BytesIn
	for range 9 {
		live = append(live, tr.malloc(100*mib))
		tr.work()
	}
	for _, addr := range live {
		tr.free(addr)
	}
	tr.step()
	if home == 0 || tr.sp.returns.wait == 0 {
		t.Fatalf("%s came home, and then nothing for %d steps", units.Size(home), tr.sp.returns.wait)
	}
	for waits := tr.sp.returns.wait; waits > 0; waits-- {
		if _, _, in := tr.pass(12); in > 0 {
			t.Errorf("%s came home", units.Size(in))
		}
	}
	tr.pass(12)
	if _, _, in := tr.pass(12); in == 0 {
		t.Error("nothing comes home ever again")
	}
}

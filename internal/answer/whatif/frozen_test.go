package whatif

import (
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// adapter is a job that trains some parameters beside others that stay as they are: one tensor of each size that is
// given, then steps with activations, the gradients of the trained ones and, in the first, their state.
type adapter struct {
	trained, still []uint64
	gradients      bool // the trained ones have some
	state          int  // tensors of state that each of the trained ones has

	category []findings.Category
	calls    []replay.Call
	begins   []int
}

func (a *adapter) alloc(size uint64, c findings.Category) int {
	a.category = append(a.category, c)
	a.calls = append(a.calls, replay.Call{Kind: replay.CallAlloc, Tensor: len(a.category) - 1, Size: size})
	return len(a.category) - 1
}

func (a *adapter) job(t *testing.T, steps int) *OverflowJob {
	t.Helper()
	for _, size := range slices.Concat(a.still, a.trained) {
		a.alloc(size, findings.Parameters)
	}
	for step := range steps {
		a.begins = append(a.begins, len(a.calls))
		var made []int
		for range 8 {
			made = append(made, a.alloc(50<<20, findings.Activations))
		}
		for _, size := range a.trained {
			if a.gradients {
				made = append(made, a.alloc(size, findings.Gradients))
			}
			for range a.state {
				if step == 0 {
					a.alloc(size, findings.OptimizerState)
				}
			}
		}
		for _, tensor := range made {
			a.calls = append(a.calls, replay.Call{Kind: replay.CallFree, Tensor: tensor})
		}
	}
	p, err := replay.NewProgram(settings.Default(), len(a.calls), func(i int) replay.Call { return a.calls[i] })
	if err != nil {
		t.Fatal(err)
	}
	return &OverflowJob{
		Program: p, Begins: a.begins, Category: func(tensor int) findings.Category { return a.category[tensor] },
		Site: func(int) string { return "" }, Counted: settledSteps, StepSeconds: 0.1,
	}
}

// TestFrozen: parameters are trained if their sizes have gradients, or as much state as others; the bytes of all others
// are told.
func TestFrozen(t *testing.T) {
	const a, b, c = 64 << 20, 96 << 20, 128 << 20
	for _, x := range []struct {
		name string
		job  adapter
		want uint64
	}{
		{"all are trained", adapter{trained: []uint64{a, a, b}, gradients: true, state: 2}, 0},
		{"gradients without state", adapter{trained: []uint64{a, a, b}, still: []uint64{c, c}, gradients: true}, 2 * c},
		{"an adapter", adapter{trained: []uint64{a, b}, still: []uint64{c, c, c}, gradients: true, state: 2}, 3 * c},
		{"some of a size", adapter{trained: []uint64{a, a}, still: []uint64{a}, gradients: true, state: 2}, 3 * a},
		{"inference", adapter{still: []uint64{a, b, c}}, 0},
	} {
		j := x.job.job(t, 4)
		is, bytes, _ := j.frozen()
		if bytes != x.want {
			t.Errorf("%s: %d bytes, want %d", x.name, bytes, x.want)
		}
		var sum uint64
		for _, call := range x.job.calls {
			if call.Kind == replay.CallAlloc && is(call.Tensor) {
				sum += call.Size
			}
		}
		if sum != bytes {
			t.Errorf("%s: %d bytes said of %d", x.name, bytes, sum)
		}
	}
}

// TestFrozenStateOnly: a parameter whose gradient was not told from other memory is known by its state.
func TestFrozenStateOnly(t *testing.T) {
	job := adapter{trained: []uint64{64 << 20, 96 << 20}, gradients: true, state: 2}
	j := job.job(t, 4)
	all := j.Category
	j.Category = func(tensor int) findings.Category {
		if c := all(tensor); c != findings.Gradients || job.calls[tensor].Size != 96<<20 {
			return c
		}
		return findings.Temporaries
	}
	if _, bytes, _ := j.frozen(); bytes != 0 {
		t.Errorf("%d bytes", bytes)
	}
}

// TestFrozenRange: where parameters may be frozen, the answer covers both what becomes of the run if they are named cold
// and if they are named busy.
func TestFrozenRange(t *testing.T) {
	const c = 128 << 20
	job := adapter{trained: []uint64{32 << 20, 48 << 20}, still: []uint64{c, c, c, c}, gradients: true, state: 2}
	j := job.job(t, 12)
	peak, _ := j.Program.PeakLive()
	for _, share := range []float64{0.9, 0.8, 0.7} {
		with := replay.Conditions{Settings: settings.Default(), Limit: uint64(share * float64(peak))}
		o, err := j.Ask(t.Context(), with, 4<<30)
		if err != nil || !o.Runs || o.Frozen != 4*c {
			t.Fatalf("%v: %+v, %v", share, o, err)
		}
		is, _, trains := j.frozen()
		for _, named := range []func(int) bool{is, func(int) bool { return false }} {
			one, err := j.ask(t.Context(), with, 4<<30, named, trains)
			if err != nil || !one.Runs {
				t.Fatalf("%v: %+v, %v", share, one, err)
			}
			if one.Slowdown.Low < o.Slowdown.Low || one.Slowdown.High > o.Slowdown.High || one.PeakHost > o.PeakHost ||
				one.ExtraSeconds.Low < o.ExtraSeconds.Low || one.ExtraSeconds.High > o.ExtraSeconds.High {
				t.Errorf("%v: %+v is outside of %+v", share, one, o)
			}
		}
		if !slices.ContainsFunc(o.Holders, func(h OverflowHolder) bool { return h.Category == findings.Parameters }) {
			t.Errorf("%v: %+v", share, o.Holders)
		}
	}
}

// TestFrozenTeacher: of a model and the teacher that it learns from, the teacher has no gradients.
func TestFrozenTeacher(t *testing.T) {
	r := program(t, "advice/teacher_fp32.pickle.gz")
	o, err := AskOverflow(t.Context(), r, question(r), 4<<30)
	if err != nil {
		t.Fatal(err)
	}
	const d, layers, vocabulary = 1280, 8, 8000
	weights := uint64(4 * (layers*12*d*d + 2*vocabulary*d)) // biases and norms are less than a hundredth of it
	if o.Frozen < weights || o.Frozen > weights+weights/100 {
		t.Errorf("%d bytes, the teacher has %d", o.Frozen, weights)
	}
}

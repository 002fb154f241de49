package findings

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

const mib = 1 << 20

// Frames as PyTorch's own files make them.
const (
	call    = "/usr/lib/python3/dist-packages/torch/nn/modules/module.py:1790 _call_impl"
	move    = "/usr/lib/python3/dist-packages/torch/nn/modules/module.py:1370 convert"
	adam    = "/usr/lib/python3/dist-packages/torch/optim/adam.py:178 _init_group"
	foreach = "/usr/lib/python3/dist-packages/torch/optim/adam.py:791 _multi_tensor_adam"
	main    = "train.py:99 <module>"
)

// program is a training program with known habits. Its step is: a batch,
// layers that keep activations, logits, a loss, a backward pass without Python
// frames, an optimizer, gradients given up.
type program struct {
	steps  int
	layers int
	width  func(step int) uint64 // bytes of one activation
	weight uint64                // bytes of one layer's parameters
	logits uint64                // bytes; 0 is none
	copies bool                  // the optimizer works on copies of all parameters
	micro  int                   // batches to a step; 0 is 1

	setup func(s *scenario.Scenario)
	// Called in each step: inside the forward pass, inside the backward pass
	// (which has no frames), and after the gradients are gone.
	forward, backward, after func(s *scenario.Scenario, step int)

	// optimizer marks the optimizer's steps as torch.optim does.
	optimizer bool
}

func fixed(bytes uint64) func(int) uint64 { return func(int) uint64 { return bytes } }

// varied gives every step another size, from one to three times as much.
func varied(bytes uint64) func(int) uint64 {
	return func(step int) uint64 { return bytes + bytes*uint64(step*7%11)/5 }
}

// healthy returns a program that nothing is wrong with.
func healthy() program {
	return program{steps: 10, layers: 4, width: fixed(8 * mib), weight: 6 * mib}
}

func (p program) run(s *scenario.Scenario) {
	s.Call(main, func() {
		for i := range p.layers {
			s.Alloc(fmt.Sprint("w", i), p.weight, 0, move, "train.py:5 build")
		}
		if p.setup != nil {
			p.setup(s)
		}
	})
	for step := range p.steps {
		s.Step(step)
		for micro := range max(1, p.micro) {
			p.batch(s, step, micro)
		}
		s.Call(main, func() { p.update(s, step) })
		if p.after != nil {
			s.Call(main, func() { p.after(s, step) })
		}
	}
}

func (p program) batch(s *scenario.Scenario, step, micro int) {
	width := p.width(step*max(1, p.micro) + micro)
	s.Call(main, func() {
		s.Alloc("x", width/64+512, 0, "train.py:20 train")
		for i := range p.layers {
			s.Alloc("t", width/2, 0, "layers.py:9 mix", call, "model.py:30 forward", call, "train.py:21 train")
			s.Alloc(fmt.Sprint("a", i), width, 0, "layers.py:12 linear", call, "model.py:30 forward", call, "train.py:21 train")
			s.Free("t")
		}
		if p.logits > 0 {
			s.Alloc("logits", p.logits, 0, "layers.py:40 head", call, "model.py:33 forward", call, "train.py:21 train")
		}
		if p.forward != nil {
			p.forward(s, step)
		}
		s.Alloc("loss", 512, 0, "train.py:22 train")
	})
	for i := p.layers - 1; i >= 0; i-- {
		s.Alloc("t", width, 0)
		if !s.Has(fmt.Sprint("g", i)) {
			s.Alloc(fmt.Sprint("g", i), p.weight, 0)
		}
		if s.Has(fmt.Sprint("a", i)) { // a program may have kept it
			s.Free(fmt.Sprint("a", i))
		}
		s.Free("t")
	}
	if p.backward != nil {
		p.backward(s, step)
	}
	if p.logits > 0 {
		s.Free("logits")
	}
	s.Free("loss", "x")
}

func (p program) update(s *scenario.Scenario, step int) {
	optimizer := func() {
		for i := range p.layers {
			if step == 0 {
				s.Alloc(fmt.Sprint("m", i), p.weight, 0, adam, "train.py:24 train")
			}
		}
		for i := range p.layers {
			if p.copies {
				s.Alloc(fmt.Sprint("c", i), 2*p.weight, 0, foreach, "train.py:24 train")
			} else {
				s.Alloc("c", p.weight, 0, foreach, "train.py:24 train")
				s.Free("c")
			}
		}
		for i := range p.layers {
			if p.copies {
				s.Free(fmt.Sprint("c", i))
			}
		}
	}
	if p.optimizer {
		s.Mark("Optimizer.step#AdamW.step", optimizer)
	} else {
		optimizer()
	}
	for i := range p.layers {
		s.Free(fmt.Sprint("g", i))
	}
}

// analyse runs a program and looks at its trace.
func analyse(t testing.TB, c scenario.Config, run func(*scenario.Scenario)) *Analysis {
	t.Helper()
	tr, err := scenario.Run(c, run)
	if err != nil {
		t.Fatal(err)
	}
	return observed(t, tr)
}

// analysisOf looks at a trace; v may be nil.
func analysisOf(tr *trace.Trace, v *verify.Verified) *Analysis {
	o := timeline.Options{}
	if v != nil {
		o = timeline.Options{Start: v.Start, Sizes: v.Sizes}
	}
	return New(timeline.NewLifetimes(timeline.New(tr, o)), timeline.NewAnnotations(tr))
}

func observed(t testing.TB, tr *trace.Trace) *Analysis {
	t.Helper()
	v, err := verify.Run(t.Context(), tr, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := analysisOf(tr, v)
	if a.Exact != v.Result.Identical {
		t.Fatalf("exact %v, but the replay was identical: %v, %v", a.Exact, v.Result.Identical, v.Result.First)
	}
	return a
}

// site returns the innermost frame of a stack.
func site(a *Analysis, id trace.StackID) string {
	f := timeline.Frames(a.Trace, id)
	if len(f) == 0 {
		return ""
	}
	return f[0].String()
}

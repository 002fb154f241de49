package explain_test

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
)

// mistake is a program with steps and the reason why it does not run.
type mistake struct {
	name, why string
	limit     uint64
	program   func(*scenario.Scenario)

	cause, trigger string
	line           string // of the cause
	need           uint64 // of the failing step
	first          string // the kind of the first fix
	carries        string // how far that carries
	settings       string // the first fix's, if it is some
}

const (
	adam    = "/usr/lib/python3/dist-packages/torch/optim/adam.py:"
	modules = "/usr/lib/python3/dist-packages/torch/nn/modules/"
)

// weights makes n tensors of 10 MiB.
func weights(s *scenario.Scenario, n int) {
	for i := range n {
		s.Alloc(fmt.Sprint("weight", i), 10*mib, 0, "model.py:8 __init__", "train.py:4 <module>")
	}
}

// step is one that leaves nothing behind; its size is that of the activations in
// MiB, and half of that.
func step(s *scenario.Scenario, n int, activations uint64) {
	s.Step(n)
	s.Alloc("act", activations*mib, 0, "model.py:12 forward", "train.py:20 <module>")
	s.Alloc("out", activations/2*mib, 0, "model.py:14 forward", "train.py:20 <module>")
	s.Free("out", "act")
}

func mistakes() []mistake {
	return []mistake{{
		name: "leak", why: "every step keeps 20 MiB of one tensor", limit: 300 * mib,
		cause: explain.Leak, trigger: explain.Fragmentation, line: "train.py:21 <module>", need: 250 * mib,
		first: explain.FixCPU, carries: prognosis.Steady,
		program: func(s *scenario.Scenario) {
			weights(s, 4)
			for n := range 20 {
				step(s, n, 60)
				s.Alloc(fmt.Sprint("kept", n), 20*mib, 0, "train.py:21 <module>")
			}
		},
	}, {
		name: "leak of a graph", why: "every step keeps what its operations save for the backward pass", limit: 300 * mib,
		cause: explain.Leak, trigger: explain.Fragmentation, line: "train.py:21 <module>", need: 290 * mib,
		first: explain.FixDetach, carries: prognosis.Steady,
		program: func(s *scenario.Scenario) {
			weights(s, 4)
			for n := range 20 {
				step(s, n, 60)
				for i, size := range []uint64{4, 10, 6} {
					s.Alloc(fmt.Sprint("saved", i, "in", n), size*mib, 0, modules+[]string{"linear.py:134", "activation.py:816", "normalization.py:229"}[i]+" forward", "train.py:21 <module>")
				}
			}
		},
	}, {
		name: "spike", why: "one step has twice the batch", limit: 200 * mib,
		cause: explain.Spike, trigger: explain.Capacity, line: "model.py:14 forward", need: 220 * mib,
		first: explain.FixMicroBatch, carries: prognosis.Steady,
		program: func(s *scenario.Scenario) {
			weights(s, 4)
			for n, size := range []uint64{60, 60, 60, 60, 120} {
				step(s, n, size)
			}
		},
	}, {
		name: "copy of the weights in a step", why: "the steps fit, but a copy of the weights beside them does not", limit: 160 * mib,
		cause: explain.Spike, trigger: explain.Capacity, line: "train.py:30 save", need: 200 * mib,
		first: explain.FixCPU, carries: prognosis.Unknown,
		program: func(s *scenario.Scenario) {
			weights(s, 10)
			for n := range 4 {
				step(s, n, 20)
			}
			s.Step(4)
			for i := range 10 {
				s.Alloc(fmt.Sprint("copy", i), 10*mib, 0, "train.py:30 save", "train.py:22 <module>")
			}
		},
	}, {
		name: "the optimizer's first step", why: "weights and gradients fit, the optimizer's two states for each do not", limit: 300 * mib,
		cause: explain.Capacity, trigger: explain.Capacity, line: "train.py:22 <module>", need: 400 * mib,
		first: explain.FixOptimizer, carries: prognosis.Unknown,
		program: func(s *scenario.Scenario) {
			weights(s, 10)
			s.Step(0)
			for i := range 10 {
				s.Alloc(fmt.Sprint("grad", i), 10*mib, 0)
			}
			for i := range 10 {
				s.Alloc(fmt.Sprint("avg", i), 10*mib, 0, adam+"170 _init_group", "train.py:22 <module>")
				s.Alloc(fmt.Sprint("sq", i), 10*mib, 0, adam+"174 _init_group", "train.py:22 <module>")
			}
		},
	}, {
		name: "a second model", why: "two models do not fit beside each other, and no step has begun", limit: 150 * mib,
		cause: explain.Capacity, trigger: explain.Capacity, line: "train.py:5 <module>", need: 200 * mib,
		first: explain.FixCPU, carries: prognosis.Unknown,
		program: func(s *scenario.Scenario) {
			weights(s, 10)
			s.Step(0)
			for i := range 10 {
				s.Alloc(fmt.Sprint("copy", i), 10*mib, 0, "/usr/lib/python3.11/copy.py:9 deepcopy", "train.py:5 <module>")
			}
		},
	}, {
		name: "absurd request", why: "a wrong shape asks for far more than anything before", limit: 200 * mib,
		cause: explain.AbsurdRequest, trigger: explain.Capacity, line: "train.py:23 <module>", need: 4040 * mib,
		first: explain.FixShape,
		program: func(s *scenario.Scenario) {
			weights(s, 4)
			for n := range 3 {
				step(s, n, 60)
			}
			s.Step(3)
			s.Alloc("mask", 4000*mib, 0, "train.py:23 <module>")
		},
	}, {
		name: "stranded", why: "a MemPool holds 90 MiB that nobody uses any more", limit: 200 * mib,
		cause: explain.Stranded, trigger: explain.Pools, line: "model.py:14 forward", need: 130 * mib,
		first: explain.FixDel,
		program: func(s *scenario.Scenario) {
			weights(s, 4)
			s.InPool("p", func() { used(s, 90*mib, 0) })
			for n := range 3 {
				step(s, n, 20)
			}
			step(s, 3, 60)
		},
	}, {
		name: "fragmentation", why: "what outlives the first step sits in a segment that the long batches need", limit: 150 * mib,
		cause: explain.Fragmentation, trigger: explain.Fragmentation, line: "model.py:14 forward", need: 142 * mib,
		first: explain.FixSetting, carries: prognosis.Steady, settings: "expandable_segments:True",
		program: func(s *scenario.Scenario) {
			weights(s, 4)
			step(s, 0, 60)
			s.Alloc("state", 12*mib, 0, "train.py:22 <module>")
			for n := range 3 {
				step(s, n+1, 30)
			}
			step(s, 4, 60)
		},
	}}
}

// Every mistake has its cause, the line where it shows, what the failing step
// needs, and a first fix that carries the run as far as it can.
func TestCauses(t *testing.T) {
	for _, m := range mistakes() {
		t.Run(m.name, func(t *testing.T) {
			tr, err := scenario.Run(scenario.Config{Limit: m.limit, Steps: scenario.Annotated}, m.program)
			if err != nil {
				t.Fatal(err)
			}
			r := explained(t, tr, explain.Input{Limit: m.limit})
			if r.Failure == nil || r.Prognosis == nil {
				t.Fatalf("failure %+v, prognosis %+v", r.Failure, r.Prognosis)
			}
			if r.Cause != m.cause || r.Trigger != m.trigger || !r.Capped {
				t.Errorf("%s, trigger %s, want %s, %s: %s; but %s", r.Cause, r.Trigger, m.cause, m.trigger, r.CauseText, m.why)
			}
			if r.Line == nil || r.Line.String() != m.line {
				t.Errorf("in %v, want %s", r.Line, m.line)
			}
			if r.Prognosis.Need != m.need {
				t.Errorf("the step needs %s, want %s", text(&r.Prognosis.Need), text(&m.need))
			}
			if len(r.Fixes) == 0 {
				t.Fatal("no fix")
			}
			f := &r.Fixes[0]
			carries := ""
			if f.Carries != nil {
				carries = f.Carries.Kind
			}
			if f.Kind != m.first || carries != m.carries || f.Settings != m.settings {
				t.Errorf("first %s %q, which carries %q: %s; want %s, which carries %q", f.Kind, f.Settings, carries, f.Detail, m.first, m.carries)
			}
		})
	}
}

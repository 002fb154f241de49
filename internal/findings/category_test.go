package findings

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// by returns what is held of each category, in MiB.
func by(h *Holders) map[Category]uint64 {
	out := map[Category]uint64{}
	for _, c := range h.Categories {
		if n := (c.Bytes + mib/2) / mib; n > 0 {
			out[c.Category] = n
		}
	}
	return out
}

// A program whose memory is known at every moment: four layers with parameters
// of 6 MiB and activations of 8 MiB, and a workspace that the first step makes.
func TestCategories(t *testing.T) {
	const last = 5
	type moment struct {
		name  string
		event int
		want  map[Category]uint64
	}
	for _, tt := range []struct {
		name  string
		c     scenario.Config
		opt   bool
		limit uint64
	}{
		{name: "profiler", c: scenario.Config{Steps: scenario.Annotated}},
		{name: "metadata", c: scenario.Config{Steps: scenario.Metadata}},
		{name: "optimizer", opt: true},
		{name: "hidden"},
		{name: "cut short, optimizer", opt: true, limit: 200 * mib},
		{name: "cut short, hidden", limit: 200 * mib},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var moments []moment
			note := func(s *scenario.Scenario, name string, step int, want map[Category]uint64) {
				if step == 0 && name != "after" {
					delete(want, OptimizerState) // it is made in the first update
				}
				if s.OOM() == nil {
					moments = append(moments, moment{fmt.Sprint(name, " step ", step), s.Events() - 1, want})
				}
			}
			p := healthy()
			p.steps, p.optimizer = last+1, tt.opt
			if tt.limit > 0 {
				p.steps = 100
			}
			p.setup = func(s *scenario.Scenario) { s.Alloc("table", 4*mib, 0, "train.py:7 build") }
			p.forward = func(s *scenario.Scenario, step int) {
				if step == 0 {
					s.Alloc("workspace", 9*mib, 0, "layers.py:12 linear", call, "model.py:30 forward", call, "train.py:21 train")
				}
				if tt.limit > 0 && step == last { // too much, in the middle of the step
					s.Alloc("too much", tt.limit, 0, "layers.py:90 attention", call, "train.py:21 train")
				}
				note(s, "in", step, map[Category]uint64{Parameters: 28, Activations: 32, Workspace: 9, OptimizerState: 24})
			}
			p.backward = func(s *scenario.Scenario, step int) {
				note(s, "behind", step, map[Category]uint64{Parameters: 28, Gradients: 24, Workspace: 9, OptimizerState: 24})
			}
			p.after = func(s *scenario.Scenario, step int) {
				note(s, "after", step, map[Category]uint64{Parameters: 28, Workspace: 9, OptimizerState: 24})
			}
			c := tt.c
			c.Limit = tt.limit
			tr, err := scenario.Run(c, p.run)
			if err != nil {
				t.Fatal(err)
			}
			a := analysisOf(tr, nil) // requested sizes, which are known
			if tt.limit > 0 {        // the moment of the failure
				moments = append(moments, moment{
					"at the end", tr.Events.Len() - 1,
					map[Category]uint64{Parameters: 28, Activations: 32, Workspace: 9, OptimizerState: 24},
				})
			}
			for _, m := range moments {
				h := a.Holders(m.event)
				if diff := cmp.Diff(m.want, by(h)); diff != "" {
					t.Errorf("%s: %s", m.name, diff)
				}
				for _, c := range h.Categories {
					if c.GuessBytes > mib {
						t.Errorf("%s: %d bytes of %s are a guess", m.name, c.GuessBytes, c.Category)
					}
				}
			}
			if len(moments) < 3*last {
				t.Errorf("%d moments", len(moments))
			}
		})
	}
}

// A trace that is cut in its first step has no step before it to go by.
func TestCategoriesOfOneStep(t *testing.T) {
	p := healthy()
	p.optimizer = true
	p.forward = func(s *scenario.Scenario, step int) {
		if step == 1 {
			s.Alloc("new", 5*mib, 0, "layers.py:77 extra", call, "train.py:21 train")
			s.Alloc("too much", 1<<40, 0, "layers.py:90 attention", call, "train.py:21 train")
		}
	}
	tr, err := scenario.Run(scenario.Config{}, p.run)
	if err != nil {
		t.Fatal(err)
	}
	h := analysisOf(tr, nil).Holders(tr.Events.Len() - 1)
	if diff := cmp.Diff(map[Category]uint64{Parameters: 24, Activations: 37, OptimizerState: 24}, by(h)); diff != "" {
		t.Error(diff)
	}
	for _, s := range h.Stacks {
		if site(&Analysis{Trace: tr}, s.Stack) == "layers.py:77 extra" && s.Confidence != Guess {
			t.Errorf("%+v", s)
		}
	}
}

// Without stacks the optimizer's marks and the lives of blocks are left.
func TestCategoriesWithoutStacks(t *testing.T) {
	tr := open(t, "..", "..", "testdata", "variety", "nocontext")
	a := analysisOf(tr, nil)
	var begins []int
	for _, r := range timeline.NewAnnotations(tr).Ranges {
		if r.Name == "Optimizer.step#AdamW.step" {
			begins = append(begins, after(tr, r.Begin)-1)
		}
	}
	got := by(a.Holders(begins[1]))
	if got[Parameters] != 475 || got[OptimizerState] != 949 || got[Gradients] != 475 || got[Unknown] != 0 {
		t.Errorf("%v", got)
	}
	for _, c := range a.Holders(begins[1]).Categories {
		if c.Category == Gradients && c.Confidence() != Guess || c.Category == OptimizerState && c.Confidence() != Certain {
			t.Errorf("%+v is %s", c, c.Confidence())
		}
	}
	if got := by(a.Holders(begins[0])); got[OptimizerState] != 0 {
		t.Errorf("before the first update %v", got)
	}
}

// What is older than the trace is unknown, unless the ring of events kept its
// stack.
func TestCategoriesOfOlder(t *testing.T) {
	run := func(c scenario.Config, record bool) map[Category]uint64 {
		p := healthy()
		p.after = func(s *scenario.Scenario, step int) {
			if record && step == 3 {
				s.Record()
			}
		}
		a := analyse(t, c, p.run)
		return by(a.Holders(a.Trace.Events.Len() - 1))
	}
	if diff := cmp.Diff(map[Category]uint64{Unknown: 48}, run(scenario.Config{}, true)); diff != "" {
		t.Error("mid-run:", diff)
	}
	if diff := cmp.Diff(map[Category]uint64{Parameters: 24, OptimizerState: 24}, run(scenario.Config{MaxEntries: 300}, false)); diff != "" {
		t.Error("ring:", diff)
	}
	if diff := cmp.Diff(map[Category]uint64{}, run(scenario.Config{MaxEntries: 1}, false)); diff == "" {
		t.Error("a ring of one event: nothing is held")
	}
}

// The sizes of blocks that are older than the trace show when they are freed.
// The level is right even before that.
func TestOlderSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var levels []int64 // allocated bytes after each event of the recording
	live := map[string]bool{}
	tr, err := scenario.Run(scenario.Config{}, func(s *scenario.Scenario) {
		op := func(n int) {
			for i := range n {
				name := fmt.Sprint(i % 40)
				if live[name] {
					s.Free(name)
				} else {
					s.Alloc(name, uint64(1+r.IntN(5<<20)), 0, "a.py:1 f") // no multiple of anything
				}
				live[name] = !live[name]
				for len(levels) < s.Events() {
					levels = append(levels, s.Stats().AllocatedBytes.All.Current)
				}
			}
		}
		op(100)
		s.Record()
		levels = nil
		op(200)
	})
	if err != nil {
		t.Fatal(err)
	}
	a := observed(t, tr)
	if !a.Exact || a.lives.older == 0 {
		t.Fatalf("exact %v, %d older blocks", a.Exact, a.lives.older)
	}
	for i := range tr.Events.Len() - 1 {
		if tr.Events.Time.At(i) == tr.Events.Time.At(i+1) {
			continue // in the middle of a call
		}
		if a.lives.live[i] != uint64(levels[i]) {
			t.Fatalf("after event %d %d bytes, want %d", i, a.lives.live[i], levels[i])
		}
	}
}

// In a long run steps are counted together; the slope stays one of steps.
func TestManySteps(t *testing.T) {
	p := program{steps: 2500, layers: 1, width: fixed(mib), weight: mib}
	p.after = func(s *scenario.Scenario, step int) { keep(s, "x", step, 1024, "log.py:3 append", "train.py:30 train") }
	a := analyse(t, scenario.Config{Steps: scenario.Annotated}, p.run)
	(truth{steps: 2500, leak: &kept{"log.py:3 append", 1024, 2500 * 1024, every(2500), Certain}}).check(t, a, a.Find())
	if tr := a.Transient(); tr == nil || tr.Steps != transientSteps || len(a.Leaks()[0].KeptIn) != 2500 {
		t.Errorf("%+v, %+v", tr, a.Leaks())
	}
}

// The kinds of stacks.
func TestStackKinds(t *testing.T) {
	const (
		step    = "/venv/lib/python3.12/site-packages/torch/optim/adam.py:220 step"
		wrapper = "/venv/lib/python3.12/site-packages/torch/optim/optimizer.py:493 wrapper"
		library = "/venv/lib/python3.12/site-packages/bitsandbytes/optim/optimizer.py:200 step"
		closure = "/venv/lib/python3.12/site-packages/pytorch_lightning/loops/optimization/closure.py:140 __call__"
		unpack  = "/venv/lib/python3.12/site-packages/torch/utils/checkpoint.py:1173 unpack_hook"
		apply   = "/venv/lib/python3.12/site-packages/torch/autograd/function.py:311 apply"
	)
	for _, tt := range []struct {
		name  string
		stack []string
		want  stackKind
	}{
		{"the program", []string{main}, stackPlain},
		{"a module", []string{"layers.py:3 f", call, main}, stackModule},
		{"an optimizer", []string{foreach, step, wrapper, main}, stackOptimizer},
		{"an optimizer of a library", []string{library, wrapper, main}, stackOptimizer},
		{"the user's own optimizer", []string{"sam.py:9 step", wrapper, main}, stackPlain},
		{"called back by an optimizer", []string{closure, step, wrapper, main}, stackPlain},
		{"a module called back by an optimizer", []string{"layers.py:3 f", call, closure, step, wrapper, main}, stackModule},
		{"gradients are given up", []string{"/x/torch/optim/optimizer.py:900 zero_grad", main}, stackPlain},
		{"backward", []string{"/x/torch/_tensor.py:630 backward", main}, stackBackward},
		{"a module run again", []string{"layers.py:3 f", call, unpack}, stackRecompute},
		{"a function of the user, forward", []string{"ops.py:4 forward", apply, "layers.py:3 f", call, main}, stackModule},
		{"a function of the user, backward", []string{"ops.py:9 backward", apply}, stackBackward},
		{"the engine", []string{"at::empty", "torch::autograd::Engine::thread_main(void)"}, stackBackward},
		{"no frames", nil, stackBackward},
	} {
		var tr *trace.Trace
		tr, err := scenario.Run(scenario.Config{}, func(s *scenario.Scenario) {
			s.Alloc("other", 1, 0, "b.py:1 g")
			s.Alloc("x", 1, 0, tt.stack...)
		})
		if err != nil {
			t.Fatal(err)
		}
		f := newStackFacts(tr)
		if got := f.kind(tr.Events.Stack.At(tr.Events.Len() - 1)); got != tt.want {
			t.Errorf("%s: kind %d, want %d", tt.name, got, tt.want)
		}
	}
}

// An optimizer is fused if frames of it show that, and none that several kernels do its work.
func TestFusedOptimizer(t *testing.T) {
	const file = "/venv/lib/python3.12/site-packages/torch/optim/adam.py:"
	for _, tt := range []struct {
		stack []string
		want  bool
	}{
		{[]string{file + "700 _fused_adam", file + "220 step", main}, true},
		{[]string{file + "500 _multi_tensor_adam", file + "220 step", main}, false},
		{[]string{file + "700 _fused_adam", file + "400 _single_tensor_adam", main}, false},
		{[]string{"mine.py:3 _fused_adam", main}, false},
		{[]string{main}, false},
	} {
		a := analyse(t, scenario.Config{}, func(s *scenario.Scenario) { s.Alloc("x", mib, 0, tt.stack...) })
		if got := a.FusedOptimizer(); got != tt.want {
			t.Errorf("%v: %v", tt.stack, got)
		}
	}
}

// The optimizer of a step begins with the first that it allocates.
func TestOptimizerAt(t *testing.T) {
	a := analyse(t, scenario.Config{Steps: scenario.Annotated}, healthy().run)
	for i, s := range a.Steps.List {
		event, ok := a.OptimizerAt(i)
		if !ok || event <= s.Begin || event >= s.End {
			t.Errorf("step %d from %d to %d: %d, %v", i, s.Begin, s.End, event, ok)
		}
	}
}

// Modules are seen by the calls of torch.nn.Module, whatever wraps them.
func TestModules(t *testing.T) {
	a := analyse(t, scenario.Config{}, func(s *scenario.Scenario) {
		wrapped := "/venv/lib/python3.12/site-packages/transformers/utils/generic.py:1068 wrapper"
		s.Alloc("x", 3*mib, 0, "f.py:1 linear", "linear.py:134 forward", call, "model.py:30 forward", wrapped, call, main)
		s.Alloc("y", 2*mib, 0, "linear.py:134 forward", call, "model.py:30 forward", wrapped, call, main)
		s.Alloc("z", mib, 0, "model.py:31 forward", call, main)
		s.Alloc("outside", mib, 0, main)
	})
	var got []string
	for _, m := range a.Holders(a.Trace.Events.Len() - 1).Modules {
		got = append(got, fmt.Sprint(m.Bytes/mib, m.Blocks, m.Path))
	}
	want := []string{"5 2 [linear.py:134 forward model.py:30 forward]", "1 1 [model.py:31 forward]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

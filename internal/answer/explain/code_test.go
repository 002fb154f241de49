package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/trace"
)

// job is a program in steps whose last one fails; a change of it may help.
type job struct {
	limit   uint64
	run     func(s *scenario.Scenario, changed bool)
	verdict string
}

// play runs a job and tells whether it fails.
func (j *job) play(t *testing.T, changed bool) (*trace.Trace, bool) {
	t.Helper()
	failed := false
	tr, err := scenario.Run(scenario.Config{Limit: j.limit, Steps: scenario.Annotated}, func(s *scenario.Scenario) {
		j.run(s, changed)
		failed = s.OOM() != nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr, failed
}

// codeOf explains a job and returns the changes of the program that begin with
// some words, after looking at their place among the fixes.
func (j *job) codeOf(t *testing.T, begin string) ([]explain.Fix, *explain.Report) {
	t.Helper()
	tr, failed := j.play(t, false)
	if !failed {
		t.Fatal("nothing fails")
	}
	r := explained(t, tr, explain.Input{Limit: j.limit})
	if r.Verdict != j.verdict {
		t.Errorf("%s, want %s: %s", r.Verdict, j.verdict, r.Summary)
	}
	var out []explain.Fix
	later := false
	for _, f := range r.Fixes {
		if f.Kind == explain.FixSetting || f.Kind == explain.FixMemory {
			later = true
		}
		if f.Kind == explain.FixCode && later {
			t.Errorf("after the settings: %s", f.Detail)
		}
		if f.Kind == explain.FixCode && strings.HasPrefix(f.Detail, begin) {
			if f.PassesFailure == nil || !*f.PassesFailure || f.UntilEvent == nil || *f.UntilEvent != *r.Failure.Event {
				t.Errorf("%+v", f)
			}
			out = append(out, f)
		}
	}
	return out, r
}

// What leaked is freed before the request, and that is enough or it is not.
func TestLeakFix(t *testing.T) {
	for _, tt := range []struct {
		request uint64
		helps   bool
	}{{60, true}, {115, true}, {125, false}} {
		t.Run(fmt.Sprint(tt.request), func(t *testing.T) {
			const steps = 8
			j := job{limit: 160 * mib, verdict: explain.Capacity, run: func(s *scenario.Scenario, changed bool) {
				s.Alloc("weights", 40*mib, 0, "train.py:5 build")
				for i := range steps {
					s.Step(i)
					s.Alloc("activation", 14*mib, 0, "train.py:20 forward")
					s.Alloc(fmt.Sprint("output", i), 12*mib, 0, "train.py:21 forward")
					s.Free("activation")
				}
				s.Step(steps)
				for i := range steps {
					if changed {
						s.Free(fmt.Sprint("output", i))
					}
				}
				s.Alloc("request", tt.request*mib, 0, "train.py:40 loss")
			}}
			fixes, r := j.codeOf(t, "free or detach what leaks")
			if _, failed := j.play(t, true); failed == tt.helps {
				t.Errorf("without the leak it fails: %v", failed)
			}
			i := slices.IndexFunc(r.Findings, func(f explain.Finding) bool { return f.Kind == explain.Leak })
			if i < 0 {
				t.Fatal("no leak")
			}
			const short = "at the failure it holds 96.00 MiB: with that freed the request still fails"
			if said := strings.Contains(r.Findings[i].Detail, short); said == tt.helps {
				t.Error(r.Findings[i].Detail)
			}
			if len(fixes) != 1 != !tt.helps || tt.helps && (*fixes[0].Bytes != 96*mib || !strings.Contains(fixes[0].Detail, "8 tensors") ||
				!strings.HasSuffix(fixes[0].Detail, "train.py:21 forward")) {
				t.Errorf("%+v", fixes)
			}
		})
	}
}

// State that is made among the activations of the first step pins the memory of
// one of them. Made first, it does not; and if there is one for each step that
// cannot be.
func TestOrderFix(t *testing.T) {
	for _, tt := range []struct {
		name    string
		every   int // steps after which the state is made again
		offered bool
	}{{"once", 100, true}, {"again and again", 2, false}} {
		t.Run(tt.name, func(t *testing.T) {
			j := job{limit: 65 * mib, verdict: explain.Fragmentation, run: func(s *scenario.Scenario, changed bool) {
				state := func() { s.Alloc("state", 12*mib, 0, "train.py:30 update") }
				if changed {
					state()
				}
				for i := range 6 {
					s.Step(i)
					s.Alloc("input", 12*mib, 0, "train.py:19 load")
					if i == 0 {
						s.Alloc("activation", 30*mib, 0, "train.py:20 forward")
						s.Free("activation")
						if !changed {
							state()
						}
					} else if i%tt.every == 0 {
						s.Free("state")
						state()
					}
					s.Alloc("work", 10*mib, 0, "train.py:21 backward")
					s.Free("work", "input")
				}
				s.Step(6)
				s.Alloc("request", 40*mib, 0, "train.py:40 loss")
			}}
			fixes, _ := j.codeOf(t, "allocate long-lived tensors before transient ones")
			if len(fixes) != 1 != !tt.offered || tt.offered && (*fixes[0].Bytes != 12*mib || !strings.Contains(fixes[0].Detail, "one tensor (12.00 MiB)") ||
				!strings.HasSuffix(fixes[0].Detail, "train.py:30 update")) {
				t.Errorf("%+v", fixes)
			}
			if _, failed := j.play(t, true); tt.offered && failed {
				t.Error("it fails too if the state is made first")
			}
		})
	}
}

const entropy = "/usr/lib/python3/dist-packages/torch/nn/functional.py:3504 cross_entropy"

// The last step asks for more at its loss than there is: so many parts of it,
// one after the other, are served, and fewer are not.
func TestChunkFix(t *testing.T) {
	for _, tt := range []struct {
		room  uint64 // for the loss
		parts uint64 // 0: not even an eighth is served
		stack []string
		says  string
	}{
		{100, 2, []string{entropy, "train.py:22 train"}, "chunk the loss in 2 parts"},
		{79, 4, []string{entropy, "train.py:22 train"}, "chunk the loss in 4 parts"},
		{30, 8, []string{"head.py:7 project", "train.py:22 train"}, "make the request in 8 parts"},
		{18, 0, []string{entropy, "train.py:22 train"}, ""},
	} {
		t.Run(fmt.Sprint(tt.room), func(t *testing.T) {
			last := uint64(160)
			j := job{limit: (20 + tt.room) * mib, verdict: explain.Capacity, run: func(s *scenario.Scenario, _ bool) {
				s.Alloc("weights", 20*mib, 0, "train.py:5 build")
				for i := range 5 {
					s.Step(i)
					s.Alloc("loss", 16*mib, 0, tt.stack...)
					s.Free("loss")
				}
				s.Step(5)
				s.Alloc("loss", last*mib, 0, tt.stack...)
			}}
			fixes, _ := j.codeOf(t, tt.says)
			if tt.parts == 0 {
				if len(fixes) > 0 {
					t.Errorf("%+v", fixes)
				}
				return
			}
			if len(fixes) != 1 || *fixes[0].Bytes != 160*mib-160*mib/tt.parts {
				t.Fatalf("%+v", fixes)
			}
			for parts, fails := range map[uint64]bool{tt.parts: false, tt.parts / 2: true} {
				last = 160 / parts
				if _, failed := j.play(t, false); failed != fails {
					t.Errorf("in %d parts it fails: %v", parts, failed)
				}
			}
		})
	}
}

// The request is small, but what the step holds for its loss is not.
func TestChunkFixOfLive(t *testing.T) {
	loss := uint64(100)
	j := job{limit: 140 * mib, verdict: explain.Capacity, run: func(s *scenario.Scenario, _ bool) {
		s.Alloc("weights", 20*mib, 0, "train.py:5 build")
		for i := range 6 {
			size := uint64(40)
			if i == 5 {
				size = loss
			}
			s.Step(i)
			s.Alloc("loss", size*mib, 0, entropy, "train.py:22 train")
			s.Alloc("gradient", 30*mib, 0)
			s.Free("loss", "gradient")
		}
	}}
	fixes, r := j.codeOf(t, "chunk the loss in 2 parts, one after the other: the request is served with 50.00 MiB instead of 100.00 MiB in one tensor")
	if len(fixes) != 1 || *fixes[0].Bytes != 50*mib {
		t.Fatalf("%+v", r.Fixes)
	}
	loss = 50
	if _, failed := j.play(t, false); failed {
		t.Error("it fails with half of it")
	}
}

// A layer's activations are asked for again by the layers that follow: to make
// one of them smaller proves nothing.
func TestNoChunkOfLayers(t *testing.T) {
	j := job{limit: 150 * mib, verdict: explain.Capacity, run: func(s *scenario.Scenario, _ bool) {
		for i := range 5 {
			s.Step(i)
			for k := range 4 {
				size := uint64(20)
				if i == 4 {
					size = 60
				}
				s.Alloc(fmt.Sprint("activation", k), size*mib, 0, "layers.py:12 linear", "train.py:20 train")
			}
			for k := range 4 {
				s.Free(fmt.Sprint("activation", k))
			}
		}
	}}
	if fixes, _ := j.codeOf(t, ""); len(fixes) > 0 {
		t.Errorf("%+v", fixes)
	}
}

package scenario_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

const mib = 1 << 20

func run(t *testing.T, c scenario.Config, program func(*scenario.Scenario)) *trace.Trace {
	t.Helper()
	tr, err := scenario.Run(c, program)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func training(s *scenario.Scenario) {
	s.Alloc("weights", 40*mib, 0, "model.py:8 __init__")
	for n := range 4 {
		s.Step(n)
		s.Call("train.py:20 step", func() {
			s.Mark("forward", func() { s.Alloc("x", uint64(n+1)*3*mib, 0, "model.py:12 forward") })
			s.Alloc("loss", 512, 0, "loss.py:3 loss")
			s.Free("x", "loss")
		})
	}
}

// Whatever a program does, its trace replays identically.
func TestReplays(t *testing.T) {
	for _, tt := range []struct {
		name    string
		config  scenario.Config
		program func(*scenario.Scenario)
		oom     bool
	}{
		{name: "nothing", program: func(*scenario.Scenario) {}},
		{name: "training", program: training},
		{name: "annotated", config: scenario.Config{Steps: scenario.Annotated}, program: training},
		{name: "metadata", config: scenario.Config{Steps: scenario.Metadata}, program: training},
		{name: "ring", config: scenario.Config{MaxEntries: 10}, program: training},
		{name: "ring that begins between a free and its completion", config: scenario.Config{MaxEntries: 9}, program: training},
		{name: "expandable", config: scenario.Config{Conf: "expandable_segments:True"}, program: training},
		{name: "settings", config: scenario.Config{Conf: "max_split_size_mb:32,roundup_power2_divisions:4"}, program: training},
		{name: "limit", config: scenario.Config{Limit: 48 * mib, Steps: scenario.Annotated}, program: training, oom: true},
		{name: "device", config: scenario.Config{TotalMemory: 100 * mib, Unusable: 52 * mib}, program: training, oom: true},
		{name: "others on the device", config: scenario.Config{TotalMemory: 200 * mib}, oom: true, program: func(s *scenario.Scenario) {
			s.Alloc("a", 100*mib, 0, "a.py:1 f")
			s.Others(80 * mib)
			s.Alloc("b", 30*mib, 0, "a.py:2 f")
		}},
		{name: "expandable limit", config: scenario.Config{Limit: 48 * mib, Conf: "expandable_segments:True"}, program: training, oom: true},
		{name: "on past failures", config: scenario.Config{Limit: 64 * mib, KeepGoing: true}, oom: true, program: func(s *scenario.Scenario) {
			for n := range 5 {
				s.Alloc(fmt.Sprint(n), 30*mib, 0, "a.py:1 f")
			}
			s.Free("1")
			s.Alloc("again", 20*mib, 0, "a.py:2 f")
		}},
		{name: "mid-run", program: func(s *scenario.Scenario) {
			s.Alloc("old", 30*mib, 0, "model.py:1 __init__")
			s.Alloc("older", mib/2, 0, "model.py:1 __init__")
			s.Record()
			training(s)
			s.Free("old")
		}},
		{name: "streams", program: func(s *scenario.Scenario) {
			s.Alloc("a", 5*mib, 0, "a.py:1 f")
			s.Alloc("b", 5*mib, 7, "a.py:2 f")
			s.RecordStream("a", 7)
			s.Free("a")
			s.Alloc("c", 5*mib, 0, "a.py:3 f")
			s.Complete(7)
			s.Alloc("d", 5*mib, 0, "a.py:4 f")
			s.Snapshot()
		}},
		{name: "empty cache", program: func(s *scenario.Scenario) {
			s.Alloc("a", 50*mib, 0, "a.py:1 f")
			s.Free("a")
			s.EmptyCache()
			s.Alloc("b", 30*mib, 0, "a.py:1 f")
		}},
		{name: "pools", program: func(s *scenario.Scenario) {
			s.Alloc("a", 5*mib, 0, "a.py:1 f")
			s.InPool("p", func() { s.Alloc("in", 6*mib, 0, "a.py:2 f") })
			s.Capture("g", []uint64{3}, func() { s.Alloc("graph", 7*mib, 3, "a.py:3 f") })
			s.Alloc("c", 8*mib, 0, "a.py:4 f")
			s.InPool("p", func() { s.Alloc("in2", 3*mib, 0, "a.py:5 f") })
		}},
		{name: "pool under a limit", config: scenario.Config{Limit: 60 * mib}, oom: true, program: func(s *scenario.Scenario) {
			s.Alloc("a", 40*mib, 0, "a.py:1 f")
			s.Free("a")
			s.InPool("p", func() { s.Alloc("in", 30*mib, 0, "a.py:2 f") })
		}},
		{name: "pools given up", program: func(s *scenario.Scenario) {
			s.InPool("p", func() { s.Alloc("in", 6*mib, 0, "a.py:2 f") })
			s.Capture("g", []uint64{3}, func() { s.Alloc("graph", 7*mib, 3, "a.py:3 f") })
			s.Free("graph")
			s.ReleaseCapture("g")
			s.Free("in")
			s.ClosePool("p")
			s.Alloc("a", mib, 0, "a.py:1 f")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := run(t, tt.config, tt.program)
			v, err := verify.Run(t.Context(), tr, verify.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := v.Result
			if !r.Identical {
				t.Errorf("not identical: %v", r.First)
			}
			ooms := 0
			for i := range tr.Events.Len() {
				if tr.Events.Action.At(i) == alloc.ActionOOM {
					ooms++
				}
			}
			if (ooms > 0) != tt.oom {
				t.Errorf("%d failures", ooms)
			}
			if tt.oom && !tt.config.KeepGoing && tr.Events.Action.At(tr.Events.Len()-1) != alloc.ActionOOM {
				t.Error("the trace goes on after the failure")
			}
			if tt.config.MaxEntries > 0 && tr.Events.Len() != tt.config.MaxEntries {
				t.Errorf("%d events", tr.Events.Len())
			}
		})
	}
}

// The same program with its steps shown in three ways makes the same events.
func TestSteps(t *testing.T) {
	hidden := run(t, scenario.Config{}, training)
	annotated := run(t, scenario.Config{Steps: scenario.Annotated}, training)
	metadata := run(t, scenario.Config{Steps: scenario.Metadata}, training)
	var metas []string
	for i := range hidden.Events.Len() {
		h, a, m := hidden.Events.At(i), annotated.Events.At(i), metadata.Events.At(i)
		if h.Addr != a.Addr || h.Action != m.Action || h.Size != a.Size {
			t.Fatalf("event %d: %+v, %+v, %+v", i, h, a, m)
		}
		if text := metadata.Strings.Text(m.Meta); !slices.Contains(metas, text) {
			metas = append(metas, text)
		}
	}
	if want := []string{"", "step 0", "step 1", "step 2", "step 3"}; !slices.Equal(metas, want) {
		t.Errorf("metadata %q", metas)
	}
	p := timeline.NewAnnotations(annotated)
	if len(p.Steps) != 4 || p.Complete() != 4 || len(timeline.NewAnnotations(hidden).Steps) != 0 {
		t.Errorf("%d steps, %d complete", len(p.Steps), p.Complete())
	}
	if at := p.At(annotated.Events.Time.At(annotated.Events.Len() - 1)); at.Step != 4 {
		t.Errorf("the last event is in step %d", at.Step)
	}
	// A run that dies does not end its step.
	p = timeline.NewAnnotations(run(t, scenario.Config{Limit: 48 * mib, Steps: scenario.Annotated}, training))
	if len(p.Steps) != p.Complete()+1 {
		t.Errorf("%d steps, %d complete", len(p.Steps), p.Complete())
	}
}

// Blocks and events carry the stacks they were given.
func TestStacks(t *testing.T) {
	tr := run(t, scenario.Config{}, func(s *scenario.Scenario) {
		s.Alloc("before", mib, 0, "a.py:9 g")
		s.Record()
		s.Call("train.py:2 main", func() {
			s.Call("train.py:7 step", func() { s.Alloc("x", 30*mib, 0, "at::empty(int)", "dir/a.py:1 f") })
		})
	})
	want := []timeline.Frame{{Name: "at::empty(int)", Filename: "??"}, {Name: "f", Filename: "dir/a.py", Line: 1}, {Name: "step", Filename: "train.py", Line: 7}, {Name: "main", Filename: "train.py", Line: 2}}
	if got := timeline.Frames(tr, tr.Events.Stack.At(tr.Events.Len()-1)); !slices.Equal(got, want) {
		t.Errorf("frames %v", got)
	}
	for _, seg := range tr.Segments {
		for _, b := range seg.Blocks {
			switch {
			case b.Size == 30*mib && !slices.Equal(timeline.Frames(tr, b.Stack), want):
				t.Errorf("block with %v", timeline.Frames(tr, b.Stack))
			case b.Size != 30*mib && b.Stack != trace.EmptyStack:
				t.Errorf("a free block, or one from before the recording, has a stack: %+v", b)
			}
		}
	}
}

// Mistakes in a program are errors, not traces.
func TestMistakes(t *testing.T) {
	for name, program := range map[string]func(*scenario.Scenario){
		"twice":     func(s *scenario.Scenario) { s.Alloc("a", 1, 0); s.Alloc("a", 1, 0) },
		"unknown":   func(s *scenario.Scenario) { s.Free("a") },
		"stream":    func(s *scenario.Scenario) { s.RecordStream("a", 1) },
		"pool":      func(s *scenario.Scenario) { s.ClosePool("a") },
		"capture":   func(s *scenario.Scenario) { s.ReleaseCapture("a") },
		"free used": func(s *scenario.Scenario) { s.Alloc("a", 1, 0); s.Free("a", "a") },
	} {
		if _, err := scenario.Run(scenario.Config{}, program); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := scenario.Run(scenario.Config{Conf: "nonsense:1"}, training); err == nil {
		t.Error("settings: no error")
	}
}

func ExampleRun() {
	tr, err := scenario.Run(scenario.Config{Limit: 70 * mib, Steps: scenario.Annotated}, func(s *scenario.Scenario) {
		s.Alloc("weights", 40*mib, 0, "model.py:8 __init__")
		for n := range 5 {
			s.Step(n)
			s.Call("train.py:20 step", func() {
				s.Alloc(fmt.Sprint("kept", n), 10*mib, 0, "model.py:12 forward")
			})
		}
	})
	if err != nil {
		panic(err)
	}
	last := tr.Events.At(tr.Events.Len() - 1)
	site, _ := timeline.SiteOf(tr, last.Stack)
	fmt.Println(last.Action, last.Size, "bytes at", site)
	fmt.Println("in step", timeline.NewAnnotations(tr).At(last.Time).Step)
	// Output:
	// oom 10485760 bytes at model.py:12 forward
	// in step 4
}

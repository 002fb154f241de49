package findings

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/scenario"
)

// keep allocates something that nobody ever frees.
func keep(s *scenario.Scenario, what string, step int, bytes uint64, stack ...string) {
	s.Alloc(fmt.Sprintf("%s of step %d", what, step), bytes, 0, stack...)
}

// flash allocates a row of blocks and frees them again.
func flash(s *scenario.Scenario, blocks int, bytes uint64, stack ...string) {
	for i := range blocks {
		s.Alloc(fmt.Sprint("flash", i), bytes, 0, stack...)
	}
	for i := range blocks {
		s.Free(fmt.Sprint("flash", i))
	}
}

// pile keeps the results of so many steps; the next one gives some of them back
// and asks for more than there is.
func pile(steps, back int) func(s *scenario.Scenario, step int) {
	return func(s *scenario.Scenario, step int) {
		if step < steps {
			keep(s, "output", step, 6*mib, "layers.py:40 head", call, "train.py:21 train")
			return
		}
		for i := range back {
			s.Free(fmt.Sprintf("output of step %d", i))
		}
		s.Alloc("all", 4096*mib, 0, "layers.py:90 gather", call, "train.py:21 train")
	}
}

func with(p program, change func(*program)) program {
	change(&p)
	return p
}

// truth is what is known about a scenario.
type truth struct {
	steps    int // complete ones
	leak     string
	perStep  uint64 // of the leak
	total    uint64 // of the leak; 0 is not looked at, nor are the next two then
	sure     Confidence
	keptIn   []int // nil is not looked at
	spikes   []string
	in       []int // steps of the spike
	every    int
	spikeMiB uint64
	top      string // of the transient; empty is not looked at
}

type scene struct {
	name  string
	p     program
	limit uint64
	truth truth
	// hidden says that the steps are to be found without any marks, too.
	hidden bool
}

var scenes = []scene{
	{
		name: "fixed", hidden: true, p: healthy(),
		truth: truth{steps: 10},
	},
	{
		name: "varied sizes", hidden: true,
		p:     with(healthy(), func(p *program) { p.steps, p.width = 14, varied(5*mib) }),
		truth: truth{steps: 14},
	},
	{
		name: "two layers, twenty steps", hidden: true,
		p:     with(healthy(), func(p *program) { p.steps, p.layers, p.width = 20, 2, varied(3*mib) }),
		truth: truth{steps: 20},
	},
	{
		name: "results are kept", hidden: true,
		p: with(healthy(), func(p *program) {
			p.forward = func(s *scenario.Scenario, step int) {
				keep(s, "output", step, 3*mib, "layers.py:40 head", call, "model.py:33 forward", call, "train.py:21 train")
			}
		}),
		truth: truth{steps: 10, leak: "layers.py:40 head", perStep: 3 * mib},
	},
	{
		name: "results of varied size are kept", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps, p.width = 16, varied(4*mib)
			p.forward = func(s *scenario.Scenario, step int) {
				keep(s, "output", step, varied(2*mib)(step), "layers.py:40 head", call, "train.py:21 train")
			}
		}),
		truth: truth{steps: 16, leak: "layers.py:40 head", perStep: 4 * mib},
	},
	{
		name: "results are kept now and then", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 24
			p.forward = func(s *scenario.Scenario, step int) {
				name := fmt.Sprintf("output of step %d", step)
				s.Alloc(name, 2*mib+uint64(step%3)*mib, 0, "layers.py:40 head", call, "train.py:21 train")
				if step*5%7 < 2 {
					s.Free(name)
				}
			}
		}),
		truth: truth{steps: 24, leak: "layers.py:40 head", perStep: 2 * mib},
	},
	{
		name: "every second step keeps something", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 14
			p.after = func(s *scenario.Scenario, step int) {
				if step%2 == 0 {
					keep(s, "log", step, 4*mib, "log.py:3 append", "train.py:30 train")
				}
			}
		}),
		truth: truth{steps: 14, leak: "log.py:3 append", perStep: 2 * mib},
	},
	{
		name: "the whole graph is kept", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 8
			p.forward = func(s *scenario.Scenario, step int) {
				for i := range 3 {
					keep(s, fmt.Sprint("graph", i), step, uint64(i+1)*mib, fmt.Sprintf("layers.py:%d linear", 50+i), call, "train.py:21 train")
				}
			}
		}),
		truth: truth{steps: 8, leak: "layers.py:52 linear", perStep: 6 * mib},
	},
	{
		name: "the backward pass keeps something", hidden: true,
		p: with(healthy(), func(p *program) {
			p.backward = func(s *scenario.Scenario, step int) { keep(s, "graph", step, 5*mib) }
		}),
		truth: truth{steps: 10, leak: "no frames", perStep: 5 * mib},
	},
	{
		name: "it leaks until memory is out", limit: 200 * mib, hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 100
			p.forward = func(s *scenario.Scenario, step int) {
				keep(s, "output", step, 6*mib, "layers.py:40 head", call, "train.py:21 train")
			}
		}),
		truth: truth{steps: 12, leak: "layers.py:40 head", perStep: 6 * mib},
	},
	{
		name: "results pile up and are given back before memory is out", limit: 500 * mib, hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 13
			p.forward = pile(12, 12)
		}),
		truth: truth{steps: 12},
	},
	{
		name: "most results are given back before memory is out", limit: 500 * mib, hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 13
			p.forward = pile(12, 9)
		}),
		truth: truth{steps: 12},
	},
	{
		name: "one result is given back before memory is out", limit: 500 * mib, hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 13
			p.forward = pile(12, 1)
		}),
		truth: truth{steps: 12, leak: "layers.py:40 head", perStep: 6 * mib, total: 66 * mib, sure: Likely},
	},
	{
		name: "every third step keeps something", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 15
			p.after = func(s *scenario.Scenario, step int) {
				if step%3 == 2 {
					keep(s, "log", step, 6*mib, "log.py:3 append", "train.py:30 train")
				}
			}
		}),
		truth: truth{
			steps: 15, leak: "log.py:3 append", perStep: 2 * mib, total: 30 * mib, sure: Likely,
			keptIn: []int{2, 5, 8, 11, 14},
		},
	},
	{
		name: "a cache fills and is full", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 16
			p.forward = func(s *scenario.Scenario, step int) {
				if step < 8 {
					keep(s, "cache", step, 4*mib, "cache.py:7 fetch", call, "train.py:21 train")
				}
			}
		}),
		truth: truth{steps: 16},
	},
	{
		name: "a cache fills ever more slowly", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 20
			p.forward = func(s *scenario.Scenario, step int) {
				if slices.Contains([]int{0, 1, 2, 4, 5, 8, 13}, step) {
					keep(s, "cache", step, 4*mib, "cache.py:7 fetch", call, "train.py:21 train")
				}
			}
		}),
		truth: truth{steps: 20},
	},
	{
		name: "a buffer is replaced by a larger one", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 12
			p.forward = func(s *scenario.Scenario, step int) {
				s.Alloc(fmt.Sprintf("buffer of step %d", step), uint64(step+1)*3*mib, 0, "cache.py:9 grow", call, "train.py:21 train")
				if step > 0 {
					s.Free(fmt.Sprintf("buffer of step %d", step-1))
				}
			}
		}),
		truth: truth{steps: 12},
	},
	{
		name: "the last five results are kept", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 15
			p.after = func(s *scenario.Scenario, step int) {
				keep(s, "result", step, 4*mib, "log.py:5 push", "train.py:30 train")
				if step >= 5 {
					s.Free(fmt.Sprintf("result of step %d", step-5))
				}
			}
		}),
		truth: truth{steps: 15},
	},
	{
		name: "results are kept and dropped every fourth step", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 16
			p.after = func(s *scenario.Scenario, step int) {
				keep(s, "result", step, mib/4, "log.py:5 push", "train.py:30 train")
				for i := 0; i < 4 && step%4 == 3; i++ {
					s.Free(fmt.Sprintf("result of step %d", step-i))
				}
			}
		}),
		truth: truth{steps: 16},
	},
	{
		name: "state is made when it is first needed", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 18
			p.after = func(s *scenario.Scenario, step int) {
				if step == 3 || step == 4 || step == 9 {
					keep(s, "expert", step, 8*mib, adam, "train.py:24 train")
				}
			}
		}),
		truth: truth{steps: 18},
	},
	{
		name: "numbers are kept", hidden: true,
		p: with(healthy(), func(p *program) {
			p.after = func(s *scenario.Scenario, step int) { keep(s, "loss", step, 4, "train.py:31 train") }
		}),
		truth: truth{steps: 10},
	},
	{
		name: "a checkpoint every third step", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 12
			p.after = func(s *scenario.Scenario, step int) {
				if step%3 == 2 {
					for i := range 4 {
						s.Alloc(fmt.Sprint("model", i), 6*mib, 0, "save.py:3 <dictcomp>", "train.py:40 train")
					}
					flash(s, 4, 12*mib, "save.py:4 <listcomp>", "train.py:41 train")
					for i := range 4 {
						s.Free(fmt.Sprint("model", i))
					}
				}
			}
		}),
		truth: truth{
			steps: 12, spikes: []string{"save.py:4 <listcomp>", "save.py:3 <dictcomp>"},
			in: []int{2, 5, 8, 11}, every: 3, spikeMiB: 72,
		},
	},
	{
		name: "an evaluation every fourth step, below the peak", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps, p.width = 16, varied(8*mib)
			p.after = func(s *scenario.Scenario, step int) {
				if step%4 == 3 {
					flash(s, 2, 5*mib, "layers.py:12 linear", call, "model.py:30 forward", call, "train.py:50 evaluate")
				}
			}
		}),
		truth: truth{
			steps: 16, spikes: []string{"layers.py:12 linear"},
			in: []int{3, 7, 11, 15}, every: 4, spikeMiB: 10,
		},
	},
	{
		name: "one step does more than the others", hidden: true,
		p: with(healthy(), func(p *program) {
			p.after = func(s *scenario.Scenario, step int) {
				if step == 6 {
					flash(s, 3, 10*mib, "report.py:4 histogram", "train.py:60 train")
				}
			}
		}),
		truth: truth{steps: 10, spikes: []string{"report.py:4 histogram"}, in: []int{6}, spikeMiB: 30},
	},
	{
		name: "a leak and a checkpoint", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 12
			p.after = func(s *scenario.Scenario, step int) {
				keep(s, "output", step, 3*mib, "log.py:3 append", "train.py:30 train")
				if step%5 == 1 {
					flash(s, 5, 9*mib, "save.py:4 <listcomp>", "train.py:41 train")
				}
			}
		}),
		truth: truth{
			steps: 12, leak: "log.py:3 append", perStep: 3 * mib,
			spikes: []string{"save.py:4 <listcomp>"}, in: []int{1, 6, 11}, every: 5, spikeMiB: 45,
		},
	},
	{
		name: "the first two steps warm up", hidden: true,
		p: with(healthy(), func(p *program) {
			p.after = func(s *scenario.Scenario, step int) {
				if step < 2 {
					flash(s, 3, 20*mib, "tune.py:8 benchmark", "train.py:19 train")
				}
			}
		}),
		truth: truth{steps: 10},
	},
	{
		name: "from some step on it does more", hidden: true,
		p: with(healthy(), func(p *program) {
			p.after = func(s *scenario.Scenario, step int) {
				if step >= 6 {
					flash(s, 3, 20*mib, "ema.py:8 update", "train.py:70 train")
				}
			}
		}),
		truth: truth{steps: 10},
	},
	{
		name: "every third step goes another way", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 12
			p.forward = func(s *scenario.Scenario, step int) {
				line := "layers.py:70 whole"
				if step%3 == 1 {
					line = "layers.py:80 chunked"
				}
				flash(s, 2, 12*mib, line, call, "train.py:21 train")
			}
		}),
		truth: truth{steps: 12},
	},
	{
		name: "logits", hidden: true,
		p: with(healthy(), func(p *program) {
			p.logits = 200 * mib
		}),
		truth: truth{steps: 10, top: "layers.py:40 head"},
	},
	{
		name: "the optimizer copies all parameters", hidden: true,
		p: with(healthy(), func(p *program) {
			p.layers, p.weight, p.width, p.copies = 3, 60*mib, fixed(4*mib), true
		}),
		truth: truth{steps: 10, top: "adam.py:791 _multi_tensor_adam"},
	},
	{
		name: "several batches to a step", hidden: true,
		p: with(healthy(), func(p *program) {
			p.micro, p.width = 2, varied(5*mib)
		}),
		truth: truth{steps: 10},
	},
	{
		name: "one step", hidden: false,
		p:     with(healthy(), func(p *program) { p.steps = 1 }),
		truth: truth{steps: 1},
	},
	{
		name: "recording starts in the middle", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 12
			p.after = func(s *scenario.Scenario, step int) {
				if step == 3 {
					s.Record()
				}
			}
		}),
		truth: truth{steps: 8},
	},
	{
		name: "recording starts in the middle of a leak", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 13
			p.after = func(s *scenario.Scenario, step int) {
				keep(s, "output", step, 3*mib, "log.py:3 append", "train.py:30 train")
				if step == 3 {
					s.Record()
				}
			}
		}),
		truth: truth{steps: 9, leak: "log.py:3 append", perStep: 3 * mib},
	},
}

// Whatever shows the steps, what was put into a program is found, and nothing
// else.
func TestScenes(t *testing.T) {
	marks := []struct {
		name string
		c    scenario.Config
		opt  bool
		from string
	}{
		{"profiler", scenario.Config{Steps: scenario.Annotated}, false, FromProfiler},
		{"metadata", scenario.Config{Steps: scenario.Metadata}, false, FromMetadata},
		{"optimizer", scenario.Config{}, true, FromOptimizer},
		{"hidden", scenario.Config{}, false, FromPeriod},
	}
	for _, sc := range scenes {
		for _, m := range marks {
			if m.from == FromPeriod && !sc.hidden {
				continue
			}
			t.Run(sc.name+"/"+m.name, func(t *testing.T) {
				p, c := sc.p, m.c
				p.optimizer, c.Limit = m.opt, sc.limit
				a := analyse(t, c, p.run)
				if !a.Exact {
					t.Fatal("the replay is not identical")
				}
				if a.Steps.Source != m.from && (sc.p.steps > 1 || m.from != FromMetadata) {
					t.Errorf("steps from %q: %s", a.Steps.Source, a.Steps.Detail)
				}
				sc.truth.check(t, a)
			})
		}
	}
}

func (want truth) check(t *testing.T, a *Analysis) {
	t.Helper()
	if got := a.Steps.Complete(); got != want.steps && (want.steps > 1 || a.Steps.Source != "") {
		t.Errorf("%d complete steps, want %d: %s", got, want.steps, a.Steps.Detail)
	}
	f := a.Find()
	want.checkLeaks(t, a, f.Leaks)
	want.checkSpikes(t, a, f.Spikes)
	checkTransient(t, f)
	if want.top != "" && (f.Transient == nil || site(a, f.Transient.Stack) != want.top) {
		t.Errorf("transient %+v", f.Transient)
	}
}

func (want truth) checkLeaks(t *testing.T, a *Analysis, got []Leak) {
	t.Helper()
	if want.leak == "" {
		for _, l := range got {
			t.Errorf("a leak at %s: %d bytes a step, in %d of %d steps", site(a, l.Stack), l.BytesPerStep, len(l.KeptIn), l.Steps)
		}
		return
	}
	if len(got) != 1 {
		t.Fatalf("%d leaks", len(got))
	}
	l := got[0]
	at := site(a, l.Stack)
	if at == "" {
		at = "no frames"
	}
	if at != want.leak {
		t.Errorf("a leak at %s", at)
	}
	if diff := float64(l.BytesPerStep) / float64(want.perStep); diff < 0.8 || diff > 1.25 {
		t.Errorf("%d bytes a step, want about %d", l.BytesPerStep, want.perStep)
	}
	if l.LeastPerStep > l.BytesPerStep || l.MostPerStep < l.BytesPerStep || l.Steps != a.Steps.Complete() {
		t.Errorf("%+v", l)
	}
	if want.total > 0 {
		in := want.keptIn
		if l.Bytes < want.total || l.Bytes > want.total*23/20 || l.Confidence != weaker(want.sure, a.Steps.Confidence) || in != nil && !slices.Equal(l.KeptIn, in) {
			t.Errorf("%d bytes, %s, from the steps %v", l.Bytes, l.Confidence, l.KeptIn)
		}
	}
	if a.Steps.Confidence == Guess || l.Confidence == Guess {
		t.Errorf("confidence %s, of the steps %s", l.Confidence, a.Steps.Confidence)
	}
}

// checkTransient looks whether the numbers of a step's peak agree.
func checkTransient(t *testing.T, f *Findings) {
	t.Helper()
	tr := f.Transient
	if tr == nil {
		return
	}
	sum := uint64(0)
	for _, p := range tr.Parts {
		sum += p.Bytes
	}
	if sum != tr.Bytes || tr.Bytes > tr.PeakBytes || tr.RestBytes > tr.PeakBytes {
		t.Errorf("%d bytes in parts, %+v", sum, tr)
	}
	for _, s := range f.Spikes {
		if s.OrdinaryBytes != tr.PeakBytes {
			t.Errorf("an ordinary step peaks at %d beside a spike and at %d elsewhere", s.OrdinaryBytes, tr.PeakBytes)
		}
	}
}

func (want truth) checkSpikes(t *testing.T, a *Analysis, got []Spike) {
	t.Helper()
	if want.spikes == nil {
		for _, s := range got {
			t.Errorf("a spike at %s: %d bytes in the steps %v", site(a, s.Stack), s.Bytes, s.Steps)
		}
		return
	}
	if len(got) != 1 {
		t.Fatalf("%d spikes", len(got))
	}
	s := got[0]
	var sites []string
	for _, p := range s.Parts {
		sites = append(sites, site(a, p.Stack))
	}
	if !slices.Equal(sites, want.spikes) || !slices.Equal(s.Steps, want.in) || s.Every != want.every {
		t.Errorf("parts %q in the steps %v, every %d", sites, s.Steps, s.Every)
	}
	if s.Bytes < want.spikeMiB*mib || s.Bytes > want.spikeMiB*mib*23/20 { // blocks may be larger than requests
		t.Errorf("%d bytes, want %d MiB", s.Bytes, want.spikeMiB)
	}
	if s.LevelBytes < s.RestBytes+s.Bytes || s.OrdinaryBytes <= s.RestBytes {
		t.Errorf("%+v", s)
	}
}

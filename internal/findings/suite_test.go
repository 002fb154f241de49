package findings

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/trace"
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

// truth is what a program was made to do, all of it: nothing else must be found.
type truth struct {
	steps int // complete ones
	leak  *kept
	spike *rise
}

// kept is a leak: where, how much, in which steps.
type kept struct {
	at             string
	perStep, total uint64
	in             []int
	sure           Confidence
}

// rise is a spike.
type rise struct {
	parts []string
	in    []int
	every int
	mib   uint64
}

// every lists so many steps.
func every(steps int) (all []int) {
	for i := range steps {
		all = append(all, i)
	}
	return all
}

const (
	linear   = "layers.py:12 linear" // what the layers of a program keep
	noFrames = "no frames"
)

type scene struct {
	name  string
	p     program
	limit uint64
	truth truth
	top   string // what most of a step's peak is
	// hidden says that the steps are to be found without any marks, too.
	hidden bool
}

var scenes = []scene{
	{
		name: "fixed", hidden: true, p: healthy(),
		truth: truth{steps: 10},
		top:   linear,
	},
	{
		name: "varied sizes", hidden: true,
		p:     with(healthy(), func(p *program) { p.steps, p.width = 14, varied(5*mib) }),
		truth: truth{steps: 14},
		top:   linear,
	},
	{
		name: "two layers, twenty steps", hidden: true,
		p:     with(healthy(), func(p *program) { p.steps, p.layers, p.width = 20, 2, varied(3*mib) }),
		truth: truth{steps: 20},
		top:   noFrames,
	},
	{
		name: "results are kept", hidden: true,
		p: with(healthy(), func(p *program) {
			p.forward = func(s *scenario.Scenario, step int) {
				keep(s, "output", step, 3*mib, "layers.py:40 head", call, "model.py:33 forward", call, "train.py:21 train")
			}
		}),
		truth: truth{steps: 10, leak: &kept{"layers.py:40 head", 3 * mib, 30 * mib, every(10), Certain}},
		top:   linear,
	},
	{
		name: "results of varied size are kept", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps, p.width = 16, varied(4*mib)
			p.forward = func(s *scenario.Scenario, step int) {
				keep(s, "output", step, varied(2*mib)(step), "layers.py:40 head", call, "train.py:21 train")
			}
		}),
		truth: truth{steps: 16, leak: &kept{"layers.py:40 head", 4 * mib, 66 * mib, every(16), Certain}},
		top:   linear,
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
		truth: truth{steps: 24, leak: &kept{"layers.py:40 head", 2 * mib, 56 * mib, []int{1, 2, 4, 5, 6, 8, 9, 11, 12, 13, 15, 16, 18, 19, 20, 22, 23}, Likely}},
		top:   linear,
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
		truth: truth{steps: 14, leak: &kept{"log.py:3 append", 2 * mib, 28 * mib, []int{0, 2, 4, 6, 8, 10, 12}, Likely}},
		top:   linear,
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
		truth: truth{steps: 8, leak: &kept{"layers.py:52 linear", 6 * mib, 48 * mib, every(8), Certain}},
		top:   linear,
	},
	{
		name: "the backward pass keeps something", hidden: true,
		p: with(healthy(), func(p *program) {
			p.backward = func(s *scenario.Scenario, step int) { keep(s, "graph", step, 5*mib) }
		}),
		truth: truth{steps: 10, leak: &kept{noFrames, 5 * mib, 50 * mib, every(10), Certain}},
		top:   linear,
	},
	{
		name: "it leaks until memory is out", limit: 200 * mib, hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 100
			p.forward = func(s *scenario.Scenario, step int) {
				keep(s, "output", step, 6*mib, "layers.py:40 head", call, "train.py:21 train")
			}
		}),
		truth: truth{steps: 12, leak: &kept{"layers.py:40 head", 6 * mib, 72 * mib, every(12), Certain}},
		top:   linear,
	},
	{
		name: "results pile up and are given back before memory is out", limit: 500 * mib, hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 13
			p.forward = pile(12, 12)
		}),
		truth: truth{steps: 12},
		top:   linear,
	},
	{
		name: "most results are given back before memory is out", limit: 500 * mib, hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 13
			p.forward = pile(12, 9)
		}),
		truth: truth{steps: 12},
		top:   linear,
	},
	{
		name: "one result is given back before memory is out", limit: 500 * mib, hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 13
			p.forward = pile(12, 1)
		}),
		truth: truth{steps: 12, leak: &kept{"layers.py:40 head", 6 * mib, 66 * mib, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, Likely}},
		top:   linear,
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
		truth: truth{steps: 15, leak: &kept{"log.py:3 append", 2 * mib, 30 * mib, []int{2, 5, 8, 11, 14}, Likely}},
		top:   linear,
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
		top:   linear,
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
		top:   linear,
	},
	{
		name: "a buffer is replaced by a larger one in every step", hidden: true,
		p: with(healthy(), func(p *program) {
			p.steps = 12
			p.forward = func(s *scenario.Scenario, step int) {
				s.Alloc(fmt.Sprintf("buffer of step %d", step), uint64(step+1)*3*mib, 0, "cache.py:9 grow", call, "train.py:21 train")
				if step > 0 {
					s.Free(fmt.Sprintf("buffer of step %d", step-1))
				}
			}
		}),
		// From 6 MiB after the second step to 33, in a block of 34, after the last but
		// one.
		truth: truth{steps: 12, leak: &kept{"cache.py:9 grow", 3 * mib, 28 * mib, every(12), Likely}},
		top:   linear,
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
		top:   linear,
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
		top:   linear,
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
		top:   linear,
	},
	{
		name: "numbers are kept", hidden: true,
		p: with(healthy(), func(p *program) {
			p.after = func(s *scenario.Scenario, step int) { keep(s, "loss", step, 4, "train.py:31 train") }
		}),
		truth: truth{steps: 10},
		top:   linear,
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
		truth: truth{steps: 12, spike: &rise{[]string{"save.py:4 <listcomp>", "save.py:3 <dictcomp>"}, []int{2, 5, 8, 11}, 3, 72}},
		top:   linear,
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
		truth: truth{steps: 16, spike: &rise{[]string{"layers.py:12 linear"}, []int{3, 7, 11, 15}, 4, 10}},
		top:   linear,
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
		truth: truth{steps: 10, spike: &rise{[]string{"report.py:4 histogram"}, []int{6}, 0, 30}},
		top:   linear,
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
			steps: 12,
			leak:  &kept{"log.py:3 append", 3 * mib, 36 * mib, every(12), Certain},
			spike: &rise{[]string{"save.py:4 <listcomp>"}, []int{1, 6, 11}, 5, 45},
		},
		top: linear,
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
		top:   linear,
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
		top:   linear,
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
		top:   linear,
	},
	{
		name: "logits", hidden: true,
		p: with(healthy(), func(p *program) {
			p.logits = 200 * mib
		}),
		truth: truth{steps: 10},
		top:   "layers.py:40 head",
	},
	{
		name: "the optimizer copies all parameters", hidden: true,
		p: with(healthy(), func(p *program) {
			p.layers, p.weight, p.width, p.copies = 3, 60*mib, fixed(4*mib), true
		}),
		truth: truth{steps: 10},
		top:   "adam.py:791 _multi_tensor_adam",
	},
	{
		name: "several batches to a step", hidden: true,
		p: with(healthy(), func(p *program) {
			p.micro, p.width = 2, varied(5*mib)
		}),
		truth: truth{steps: 10},
		top:   linear,
	},
	{
		name: "one step", hidden: false,
		p:     with(healthy(), func(p *program) { p.steps = 1 }),
		truth: truth{steps: 1},
		top:   noFrames,
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
		top:   linear,
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
		truth: truth{steps: 9, leak: &kept{"log.py:3 append", 3 * mib, 27 * mib, every(9), Certain}},
		top:   linear,
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
				f := a.Find()
				sc.truth.check(t, a, f)
				if a.Steps.Source == "" {
					return // the one step has no mark
				}
				if at := where(a, f.Transient.Stack); at != sc.top {
					t.Errorf("most of a step's peak is of %s", at)
				}
			})
		}
	}
}

// where names the line of a stack.
func where(a *Analysis, id trace.StackID) string { return cmp.Or(site(a, id), noFrames) }

func (want truth) check(t *testing.T, a *Analysis, f *Findings) {
	t.Helper()
	if got := a.Steps.Complete(); got != want.steps && (want.steps > 1 || a.Steps.Source != "") {
		t.Errorf("%d complete steps, want %d: %s", got, want.steps, a.Steps.Detail)
	}
	want.checkLeaks(t, a, f.Leaks)
	want.checkSpikes(t, a, f.Spikes)
	checkTransient(t, f)
}

func (want truth) checkLeaks(t *testing.T, a *Analysis, got []Leak) {
	t.Helper()
	if want.leak == nil {
		noLeaks(t, a, got)
		return
	}
	if len(got) != 1 {
		t.Fatalf("%d leaks", len(got))
	}
	l, w := got[0], want.leak
	if at := where(a, l.Stack); at != w.at {
		t.Errorf("a leak at %s", at)
	}
	if diff := float64(l.BytesPerStep) / float64(w.perStep); diff < 0.8 || diff > 1.25 {
		t.Errorf("%d bytes a step, want about %d", l.BytesPerStep, w.perStep)
	}
	if l.LeastPerStep > l.BytesPerStep || l.MostPerStep < l.BytesPerStep || l.Steps != a.Steps.Complete() {
		t.Errorf("%+v", l)
	}
	// Blocks may be larger than requests.
	if l.Bytes < w.total || l.Bytes > w.total*23/20 || l.Confidence != weaker(w.sure, a.Steps.Confidence) || !slices.Equal(l.KeptIn, w.in) {
		t.Errorf("%d bytes, %s, from the steps %v", l.Bytes, l.Confidence, l.KeptIn)
	}
	if a.Steps.Confidence == Guess || l.Confidence == Guess {
		t.Errorf("confidence %s, of the steps %s", l.Confidence, a.Steps.Confidence)
	}
}

func noLeaks(t *testing.T, a *Analysis, got []Leak) {
	t.Helper()
	for _, l := range got {
		t.Errorf("a leak at %s: %d bytes a step, in %d of %d steps", site(a, l.Stack), l.BytesPerStep, len(l.KeptIn), l.Steps)
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
	if want.spike == nil {
		noSpikes(t, a, got)
		return
	}
	if len(got) != 1 {
		t.Fatalf("%d spikes", len(got))
	}
	s, w := got[0], want.spike
	var sites []string
	for _, p := range s.Parts {
		sites = append(sites, site(a, p.Stack))
	}
	if !slices.Equal(sites, w.parts) || !slices.Equal(s.Steps, w.in) || s.Every != w.every {
		t.Errorf("parts %q in the steps %v, every %d", sites, s.Steps, s.Every)
	}
	if s.Bytes < w.mib*mib || s.Bytes > w.mib*mib*23/20 { // blocks may be larger than requests
		t.Errorf("%d bytes, want %d MiB", s.Bytes, w.mib)
	}
	if s.LevelBytes < s.RestBytes+s.Bytes || s.OrdinaryBytes <= s.RestBytes {
		t.Errorf("%+v", s)
	}
}

func noSpikes(t *testing.T, a *Analysis, got []Spike) {
	t.Helper()
	for _, s := range got {
		t.Errorf("a spike at %s: %d bytes in the steps %v", site(a, s.Stack), s.Bytes, s.Steps)
	}
}

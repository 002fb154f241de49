package findings

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func open(t testing.TB, path ...string) *trace.Trace {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join(path...)+".pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, _, err := f.Pick(-1)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// recordings are real runs with their number of complete steps, and what was
// put into them. What is not named must not be found.
var recordings = []struct {
	dir, name string
	truth
	least, most uint64 // MiB of the leak, a step
	atEnd       bool   // the leak goes with the program
	unmarked    string // the steps cannot be found without marks: why
}{
	{dir: "snapshots", name: "gpt2_fixed-default", truth: truth{steps: 5}},
	{dir: "snapshots", name: "gpt2_varlen-default", truth: truth{steps: 14}},
	{dir: "snapshots", name: "llama_ckpt-default", truth: truth{steps: 8, top: "no frames"}},
	{dir: "snapshots", name: "resnet_batches-default", truth: truth{steps: 11}},
	{dir: "snapshots", name: "unet_multires-default", truth: truth{steps: 16}},
	{dir: "snapshots", name: "streams_graphs-default", truth: truth{steps: 20}},
	{dir: "snapshots", name: "serve_generate-default", truth: truth{steps: 10, top: "linear.py:134 forward"}},
	{dir: "snapshots", name: "moe_train-default", truth: truth{steps: 8}},
	{dir: "snapshots", name: "leak_graph-default", truth: truth{steps: 12, leak: "linear.py:134 forward"}, least: 26, most: 49, atEnd: true},
	{
		dir: "snapshots", name: "ckpt_spike-default",
		truth: truth{steps: 9, spikes: []string{"train.py:243 w_ckpt_spike", "train.py:242 w_ckpt_spike"}, in: []int{2, 5, 8}, every: 3, spikeMiB: 1257},
	},
	{dir: "snapshots", name: "gpt2_fixed-tight-default", truth: truth{steps: 1}},
	{dir: "snapshots", name: "gpt2_varlen-tight-default", truth: truth{steps: 4}},
	{dir: "snapshots", name: "llama_ckpt-tight-default", truth: truth{steps: 4}},
	{dir: "snapshots", name: "resnet_batches-tight-default", truth: truth{steps: 11}},
	{dir: "snapshots", name: "unet_multires-tight-default", truth: truth{steps: 11}},
	{dir: "snapshots", name: "streams_graphs-tight-default", truth: truth{steps: 20}},
	{dir: "snapshots", name: "serve_generate-tight-default", truth: truth{steps: 9}},
	{dir: "snapshots", name: "moe_train-tight-default", truth: truth{steps: 4}},
	{dir: "snapshots", name: "leak_graph-tight-default", truth: truth{steps: 10, leak: "linear.py:134 forward"}, least: 26, most: 49},
	{dir: "snapshots", name: "ckpt_spike-tight-default", truth: truth{steps: 1}},

	{dir: "variety", name: "midrun", truth: truth{steps: 4}},
	{dir: "variety", name: "profiler", truth: truth{steps: 4}},
	{dir: "variety", name: "expand", truth: truth{steps: 6}},
	{dir: "variety", name: "expand_serve", truth: truth{steps: 4}},
	{dir: "variety", name: "nocontext", truth: truth{steps: 3}, unmarked: "the file has no stacks"},
	{dir: "variety", name: "ring", truth: truth{steps: 0}},
	{dir: "variety", name: "stateonly", truth: truth{steps: 0}},

	{name: "accum", truth: truth{steps: 6}},
	{name: "denoise", truth: truth{steps: 7}},
	{
		name: "evalloop",
		truth: truth{
			steps: 12, in: []int{3, 7, 11}, every: 4, spikeMiB: 588,
			spikes: []string{"functional.py:2159 softmax", "linear.py:134 forward"},
		},
	},
	{name: "gan", truth: truth{steps: 10}},
	{name: "graphleak", truth: truth{steps: 8, leak: "linear.py:134 forward"}, least: 92, most: 94},
	{
		name: "lightning",
		truth: truth{
			steps: 24, in: []int{7, 15, 23}, every: 8, spikeMiB: 293,
			spikes: []string{"functional.py:3504 cross_entropy", "linear.py:134 forward"},
		},
	},
	{name: "prefetch", truth: truth{steps: 15}},
	{name: "serveleak", truth: truth{steps: 9, leak: "findings_validate.py:101 serveleak"}, least: 3, most: 13},
}

// Real programs, with the marks of their files and without any.
func TestRecordings(t *testing.T) {
	for _, tt := range recordings {
		dir := "testdata"
		if tt.dir != "" {
			dir = filepath.Join("..", "..", "testdata", tt.dir)
		}
		t.Run(tt.name, func(t *testing.T) {
			tr := open(t, dir, tt.name)
			check := func(t *testing.T) {
				a := analysisOf(tr, nil) // requested sizes: a replay of all would take seconds
				if got := a.Steps.Complete(); got != tt.steps {
					t.Fatalf("%d complete steps, want %d: %s", got, tt.steps, a.Steps.Detail)
				}
				f := a.Find()
				if tt.leak == "" || len(f.Leaks) != 1 {
					tt.checkLeaks(t, a, f.Leaks)
				} else if l := f.Leaks[0]; site(a, l.Stack) != tt.leak || l.LeastPerStep < tt.least*mib || l.MostPerStep > tt.most*mib ||
					l.BytesPerStep < l.LeastPerStep || l.BytesPerStep > l.MostPerStep || l.AtEnd != tt.atEnd || len(l.KeptIn) != l.Steps {
					t.Errorf("a leak at %s: %+v", site(a, l.Stack), l)
				}
				if tt.spikes == nil || len(f.Spikes) != 1 {
					tt.checkSpikes(t, a, f.Spikes)
				} else {
					tt.checkSpike(t, a, &f.Spikes[0])
				}
				checkTransient(t, f)
				if tt.top != "" && site(a, f.Transient.Stack) != strings.TrimPrefix(tt.top, "no frames") {
					t.Errorf("the transient is at %q", site(a, f.Transient.Stack))
				}
				if (f.Transient == nil) != (tt.steps == 0) {
					t.Errorf("transient %+v", f.Transient)
				}
			}
			check(t)
			if len(tr.Annotations) > 0 && tt.unmarked == "" {
				tr.Annotations = nil
				t.Run("without marks", check)
			}
		})
	}
}

// checkSpike looks at the largest parts; others are a few bytes.
func (want truth) checkSpike(t *testing.T, a *Analysis, s *Spike) {
	t.Helper()
	var sites []string
	for _, p := range s.Parts[:len(want.spikes)] {
		sites = append(sites, site(a, p.Stack))
	}
	if !slices.Equal(sites, want.spikes) || !slices.Equal(s.Steps, want.in) || s.Every != want.every {
		t.Errorf("parts %q in the steps %v, every %d", sites, s.Steps, s.Every)
	}
	if low := want.spikeMiB * mib * 98 / 100; s.Bytes < low || s.Bytes > want.spikeMiB*mib*101/100 ||
		s.LevelBytes < s.RestBytes+low || s.LevelBytes > s.RestBytes+s.Bytes+mib {
		t.Errorf("%+v", s)
	}
}

// The model is known: GPT-2 small has 124,439,808 parameters of four bytes,
// AdamW keeps two numbers for each, and a backward pass leaves one.
func TestCategoriesOfGPT2(t *testing.T) {
	const parameters = 124_439_808 * 4
	tr := open(t, "..", "..", "testdata", "snapshots", "gpt2_fixed-default")
	a := analysisOf(tr, nil)
	program := timeline.NewAnnotations(tr)
	updates := 0
	for _, r := range program.Ranges {
		if !strings.HasPrefix(r.Name, "Optimizer.step#") {
			continue
		}
		updates++
		h := a.Holders(after(tr, r.Begin) - 1) // before the optimizer
		state := uint64(2 * parameters)
		if updates == 1 {
			state = 0 // it is made in there
		}
		want := map[Category]uint64{Parameters: parameters, Gradients: parameters, OptimizerState: state}
		for _, c := range h.Categories {
			if w, ok := want[c.Category]; ok && c.Bytes != w {
				t.Errorf("step %d: %s %d bytes, want %d", updates, c.Category, c.Bytes, w)
			}
			if c.Category == Parameters && c.Confidence() != Certain || c.Category == Unknown || c.GuessBytes > 0 {
				t.Errorf("step %d: %+v", updates, c)
			}
			delete(want, c.Category)
		}
		if len(want) > 1 || len(want) == 1 && updates > 1 {
			t.Errorf("step %d: nothing of %v", updates, want)
		}
	}
	if updates != 5 {
		t.Fatalf("%d updates", updates)
	}
	// At the peak the activations are most of it, and no gradient is there yet.
	h := a.Holders(a.PeakEvent())
	if h.Categories[0].Category != Activations || slices.ContainsFunc(h.Categories, func(c CategoryHolder) bool { return c.Category == Gradients }) {
		t.Errorf("at the peak %+v", h.Categories)
	}
}

// Other models: what the optimizer keeps is a multiple of the parameters that
// have gradients, and before it begins there is one gradient for each.
func TestCategoriesOfOthers(t *testing.T) {
	for _, tt := range []struct {
		path  []string
		state float64 // for each byte of gradients
	}{
		{[]string{"..", "..", "testdata", "snapshots", "llama_ckpt-default"}, 2},
		{[]string{"..", "..", "testdata", "snapshots", "moe_train-default"}, 2},
		{[]string{"..", "..", "testdata", "snapshots", "unet_multires-default"}, 2},
		{[]string{"..", "..", "testdata", "snapshots", "leak_graph-tight-default"}, 2},
		{[]string{"testdata", "accum"}, 2},
		{[]string{"testdata", "evalloop"}, 0},
	} {
		tr := open(t, tt.path...)
		a := analysisOf(tr, nil)
		n := 0
		for _, r := range timeline.NewAnnotations(tr).Ranges {
			if !strings.HasPrefix(r.Name, "Optimizer.step#") {
				continue
			}
			if n++; n == 1 {
				continue
			}
			got := map[Category]uint64{}
			for _, c := range a.Holders(after(tr, r.Begin) - 1).Categories {
				got[c.Category] = c.Bytes
			}
			if g := got[Gradients]; g == 0 || g > got[Parameters] || float64(g) < 0.99*float64(got[Parameters]) ||
				got[OptimizerState] != uint64(tt.state*float64(g)) || got[Unknown] > 0 {
				t.Errorf("%s, update %d: %v", tt.path[len(tt.path)-1], n, got)
			}
		}
		if n < 2 {
			t.Errorf("%s: %d updates", tt.path[len(tt.path)-1], n)
		}
	}
}

// Every way to add the holders up gives the active memory of the timeline.
func TestHoldersAddUp(t *testing.T) {
	for _, path := range [][]string{
		{"..", "..", "testdata", "snapshots", "streams_graphs-default"},
		{"..", "..", "testdata", "snapshots", "leak_graph-default"},
		{"..", "..", "testdata", "variety", "midrun"},
		{"..", "..", "testdata", "variety", "stateonly"},
		{"testdata", "prefetch"},
	} {
		tr := open(t, path...)
		a := observed(t, tr)
		line := timeline.New(tr, timeline.Options{})
		c := line.Cursor()
		check := func(event int, requested uint64, blocks int) {
			h := a.Holders(event)
			var stacks, lines, cats uint64
			for _, x := range h.Stacks {
				stacks += x.Bytes
			}
			for _, x := range h.Lines {
				lines += x.Bytes
			}
			for _, x := range h.Categories {
				cats += x.Bytes
				if x.CertainBytes+x.LikelyBytes+x.GuessBytes != x.Bytes {
					t.Errorf("%+v", x)
				}
			}
			if stacks != h.Bytes || lines != h.Bytes || cats != h.Bytes || h.Blocks != blocks || h.Bytes < requested || !a.Exact && h.Bytes != requested {
				t.Fatalf("%v, event %d: %d bytes in %d blocks; stacks %d, lines %d, categories %d; requested %d in %d blocks",
					path, event, h.Bytes, h.Blocks, stacks, lines, cats, requested, blocks)
			}
		}
		check(-1, line.Before().Requested, line.Before().Blocks)
		for c.Next() {
			if c.Index%97 == 0 {
				check(c.Index, c.Totals.Requested, c.Totals.Blocks)
			}
		}
	}
}

func BenchmarkServeGenerate(b *testing.B) {
	tr := open(b, "..", "..", "testdata", "snapshots", "serve_generate-default")
	b.ReportAllocs()
	for b.Loop() {
		a := analysisOf(tr, nil)
		a.Find()
		a.Holders(a.PeakEvent())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tr.Events.Len()), "ns/event")
}

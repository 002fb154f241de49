package findings

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
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

// growth is the leak of a real run.
type growth struct {
	at          string
	least, most uint64 // MiB a step
	atEnd       bool   // it goes with the program
}

// recordings are real runs with their number of complete steps, and what was
// put into them. What is not named must not be found.
var recordings = []struct {
	dir, name string
	steps     int
	top       string // what most of a step's peak is
	leak      *growth
	spike     *rise
	unmarked  string // the steps cannot be found without marks: why
}{
	{dir: "snapshots", name: "gpt2_fixed-default", steps: 5, top: "activations.py:66 forward"},
	{dir: "snapshots", name: "gpt2_varlen-default", steps: 14, top: "activations.py:66 forward"},
	{dir: "snapshots", name: "llama_ckpt-default", steps: 8, top: noFrames},
	{dir: "snapshots", name: "resnet_batches-default", steps: 11, top: "functional.py:2846 batch_norm"},
	{dir: "snapshots", name: "unet_multires-default", steps: 16, top: "conv.py:548 _conv_forward"},
	{dir: "snapshots", name: "streams_graphs-default", steps: 20, top: "linear.py:134 forward"},
	{dir: "snapshots", name: "serve_generate-default", steps: 10, top: "linear.py:134 forward"},
	{dir: "snapshots", name: "moe_train-default", steps: 8, top: noFrames},
	{dir: "snapshots", name: "leak_graph-default", steps: 12, top: "activations.py:66 forward", leak: &growth{"linear.py:134 forward", 26, 49, true}},
	{
		dir: "snapshots", name: "ckpt_spike-default", steps: 9, top: noFrames,
		spike: &rise{[]string{"train.py:243 w_ckpt_spike", "train.py:242 w_ckpt_spike"}, []int{2, 5, 8}, 3, 1257},
	},
	{dir: "snapshots", name: "gpt2_fixed-tight-default", steps: 1, top: "activations.py:66 forward"},
	{dir: "snapshots", name: "gpt2_varlen-tight-default", steps: 4, top: "activations.py:66 forward"},
	{dir: "snapshots", name: "llama_ckpt-tight-default", steps: 4, top: noFrames},
	{dir: "snapshots", name: "resnet_batches-tight-default", steps: 11, top: "functional.py:2846 batch_norm"},
	{dir: "snapshots", name: "unet_multires-tight-default", steps: 11, top: "conv.py:548 _conv_forward"},
	{dir: "snapshots", name: "streams_graphs-tight-default", steps: 20, top: "linear.py:134 forward"},
	{dir: "snapshots", name: "serve_generate-tight-default", steps: 9, top: "linear.py:134 forward"},
	{dir: "snapshots", name: "moe_train-tight-default", steps: 4, top: noFrames},
	{dir: "snapshots", name: "leak_graph-tight-default", steps: 10, top: "activations.py:66 forward", leak: &growth{"linear.py:134 forward", 26, 49, false}},
	{dir: "snapshots", name: "ckpt_spike-tight-default", steps: 1, top: noFrames},

	{dir: "variety", name: "midrun", steps: 4, top: "activations.py:66 forward"},
	{dir: "variety", name: "profiler", steps: 4, top: "activations.py:66 forward"},
	{dir: "variety", name: "expand", steps: 6, top: "activations.py:66 forward"},
	{dir: "variety", name: "expand_serve", steps: 4, top: "linear.py:134 forward"},
	{dir: "variety", name: "nocontext", steps: 3, top: noFrames, unmarked: "the file has no stacks"},
	{dir: "variety", name: "ring", steps: 0, top: ""},
	{dir: "variety", name: "stateonly", steps: 0, top: ""},

	{name: "accum", steps: 6, top: noFrames},
	{name: "denoise", steps: 7, top: "conv.py:548 _conv_forward"},
	{
		name: "evalloop", steps: 12, top: noFrames,
		spike: &rise{[]string{"functional.py:2159 softmax", "linear.py:134 forward"}, []int{3, 7, 11}, 4, 588},
	},
	{name: "gan", steps: 10, top: noFrames},
	{name: "graphleak", steps: 8, top: noFrames, leak: &growth{"linear.py:134 forward", 92, 94, false}},
	{
		name: "lightning", steps: 24, top: noFrames,
		spike: &rise{[]string{"functional.py:3504 cross_entropy", "linear.py:134 forward"}, []int{7, 15, 23}, 8, 293},
	},
	{name: "prefetch", steps: 15, top: noFrames},
	{name: "serveleak", steps: 9, top: "linear.py:134 forward", leak: &growth{"findings_validate.py:101 serveleak", 3, 13, false}},
}

// Real programs, with the marks of their files and without any.
func TestRecordings(t *testing.T) {
	for _, tt := range short.Some(recordings, 8) {
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
				tt.leak.check(t, a, f.Leaks)
				tt.spike.check(t, a, f.Spikes)
				checkTransient(t, f)
				top := ""
				if f.Transient != nil {
					top = where(a, f.Transient.Stack)
				}
				if top != tt.top {
					t.Errorf("most of a step's peak is of %q", top)
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

func (want *growth) check(t *testing.T, a *Analysis, got []Leak) {
	t.Helper()
	if want == nil {
		noLeaks(t, a, got)
		return
	}
	if len(got) != 1 {
		t.Fatalf("%d leaks", len(got))
	}
	if l := got[0]; site(a, l.Stack) != want.at || l.LeastPerStep < want.least*mib || l.MostPerStep > want.most*mib ||
		l.BytesPerStep < l.LeastPerStep || l.BytesPerStep > l.MostPerStep || l.AtEnd != want.atEnd || len(l.KeptIn) != l.Steps {
		t.Errorf("a leak at %s: %+v", site(a, l.Stack), l)
	}
}

// check looks at the largest parts; others are a few bytes.
func (want *rise) check(t *testing.T, a *Analysis, got []Spike) {
	t.Helper()
	if want == nil {
		noSpikes(t, a, got)
		return
	}
	if len(got) != 1 {
		t.Fatalf("%d spikes", len(got))
	}
	s := &got[0]
	var sites []string
	for _, p := range s.Parts[:len(want.parts)] {
		sites = append(sites, site(a, p.Stack))
	}
	if !slices.Equal(sites, want.parts) || !slices.Equal(s.Steps, want.in) || s.Every != want.every {
		t.Errorf("parts %q in the steps %v, every %d", sites, s.Steps, s.Every)
	}
	if low := want.mib * mib * 98 / 100; s.Bytes < low || s.Bytes > want.mib*mib*101/100 ||
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

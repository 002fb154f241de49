package explain

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/generate"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// killed puts a limit on a complete recording; nil if it passes.
func killed(t testing.TB, whole *run.Checked, limit uint64) *run.Checked {
	t.Helper()
	var buf bytes.Buffer
	if _, err := generate.Write(t.Context(), &buf, whole.Trace, generate.Options{Limit: limit}); err != nil {
		return nil
	}
	f, err := snapshot.Read(t.Context(), "generated", &buf, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := run.New(f.Traces[0], nil).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// judgeOf returns what decides about a recording, before it has looked for fixes; nil if nothing can be said.
func judgeOf(t testing.TB, in Input) *judge {
	t.Helper()
	check := whatif.NewSelfCheck(in.Run.Program)
	e := &explainer{Input: in, ctx: t.Context(), program: in.Run.Program, trace: in.Run.Trace, report: &Report{SelfCheck: &check}}
	work := e.startFindings()
	if err := e.explain(); err != nil {
		t.Fatal(err)
	}
	if err := work.join(e); err != nil {
		t.Fatal(err)
	}
	j := e.newJudge(work)
	if j != nil {
		j.decide()
	}
	return j
}

// wholeOverflow asks a complete recording, about the steps that are chosen.
func wholeOverflow(t testing.TB, whole *run.Checked, limit uint64, counted func([]replay.OverflowStep) []replay.OverflowStep) *whatif.Overflow {
	t.Helper()
	analysis, err := whole.Analysis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lives, err := whole.Lifetimes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known := whatif.KnownTensors(whole.Program, analysis, lives)
	job := &whatif.OverflowJob{
		Program: whole.Program, Category: known.Category, Site: known.Site, Counted: counted,
		StepSeconds: whatif.StepSeconds(whole.Trace, analysis.Steps.List),
	}
	for _, s := range analysis.Steps.List {
		job.Begins = append(job.Begins, s.Begin)
	}
	o, err := job.Ask(t.Context(), replay.Conditions{Settings: whole.Program.Settings, Limit: limit}, 64<<30)
	if err != nil || !o.Runs {
		t.Fatalf("%+v, %v", o, err)
	}
	return o
}

// TestOverflowOfDeaths: limits are put on complete recordings; what is said of one that ends in the failure agrees with
// what the complete one gives under the same limit.
func TestOverflowOfDeaths(t *testing.T) {
	asked, answered, right, tooLittle := 0, 0, 0, 0
	for _, file := range []string{
		"overflow/gpt2_fixed", "overflow/llama_ckpt", "overflow/moe_train", "overflow/resnet_batches",
		"snapshots/gpt2_varlen-default", "snapshots/unet_multires-default", "snapshots/ckpt_spike-default",
	} {
		whole := checked(t, file)
		peak, _ := whole.Program.PeakLive()
		for _, share := range []float64{0.97, 0.93, 0.85, 0.75, 0.7} {
			limit := uint64(share * float64(peak))
			c := killed(t, whole, limit)
			if c == nil {
				continue
			}
			j := judgeOf(t, Input{Run: c, Limit: limit})
			if j == nil || j.report.Cause != Capacity && j.report.Cause != Spike {
				continue
			}
			asked++
			jobs, restsOn := j.overflowJobs()
			if len(jobs) == 0 {
				continue
			}
			o, err := j.askOverflow(jobs)
			if err != nil {
				t.Fatal(err)
			}
			if o == nil {
				continue
			}
			answered++
			counted := func(steps []replay.OverflowStep) []replay.OverflowStep { return steps[min(3, len(steps)-1):] }
			if x := j.forecast.Continued(); x != nil && j.report.Cause == Spike {
				counted = func(steps []replay.OverflowStep) []replay.OverflowStep { return steps[x.Recorded : x.Recorded+1] }
			}
			truth := wholeOverflow(t, whole, limit, counted)
			said, is := o.ExtraSeconds, truth.ExtraSeconds
			if said.Low <= is.High && is.Low <= said.High {
				right++
			} else {
				t.Logf("%s under %.2f, %s: %+v, of the complete run %+v; %s", file, share, j.report.Cause, *said, *is, restsOn)
			}
			if all, err := whatif.AskOverflow(t.Context(), whole, whatif.Question{Limit: whatif.GivenLimit(whole, limit)}, o.HostBytes); err != nil || !all.Runs {
				t.Logf("%s under %.2f, %s: %d GiB is too little: %v", file, share, j.report.Cause, o.HostBytes>>30, err)
				tooLittle++
			}
		}
	}
	t.Logf("%d deaths, %d answered, %d right, %d with too little host memory", asked, answered, right, tooLittle)
	if 3*answered < 2*asked || 20*right < 17*answered || 20*tooLittle > answered {
		t.Error("the bars are two thirds, 85 % of these, and 5 % of these")
	}
}

// TestOverflowSentence: of all recordings with a failure some get the sentence, and those for a reason.
func TestOverflowSentence(t *testing.T) {
	var files []string
	for _, glob := range []string{"advice/*", "advice/*/*", "variety/*", "snapshots/*-tight-*"} {
		all, err := filepath.Glob("../../../testdata/" + glob + ".pickle.gz")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, all...)
	}
	var said []string
	for _, path := range short.Files(t, files, 40) {
		r := explainPath(t, path)
		at := slices.IndexFunc(r.Fixes, func(f Fix) bool { return f.Kind == FixOverflow })
		if at < 0 {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(path), ".pickle.gz")
		said = append(said, name)
		f, o := &r.Fixes[at], r.Fixes[at].Overflow
		switch {
		case r.Cause != Capacity && r.Cause != Spike || r.CauseConfidence == Open:
			t.Errorf("%s: %s, %s", name, r.Cause, r.CauseConfidence)
		case slices.ContainsFunc(slices.Concat(r.Fixes, r.AfterUpgrade), func(f Fix) bool {
			return f.Kind != FixOverflow && f.Kind != FixMemory && f.Carries != nil && f.Carries.Kind == prognosis.Steady
		}):
			t.Errorf("%s: something else carries it: %+v", name, r.Fixes)
		case at != 1 || !o.Runs || o.PeakHost == 0 || o.PeakHost > o.HostBytes || len(o.Holders) == 0 || o.ExtraSeconds == nil:
			t.Errorf("%s: fix %d, %+v", name, at, o)
		case f.Export != fmt.Sprintf("ASHLAR_CONF=overflow:%dGiB python -m ashlar_mem.ashlar_torch %s.py", o.HostBytes>>30, strings.Replace(name, "adam_first_step", "train", 1)):
			t.Errorf("%s: %s", name, f.Export)
		case o.Slowdown != nil && o.Slowdown.High > slowest || f.Carries == nil || f.Carries.Kind != prognosis.Steady || f.Carries.RestsOn == "":
			t.Errorf("%s: %+v, %+v", name, o, f.Carries)
		case !strings.HasPrefix(f.Detail, "with overflow this job runs, ") || !strings.Contains(f.Detail, f.Carries.RestsOn):
			t.Errorf("%s: %s", name, f.Detail)
		}
	}
	if want := []string{"adam_wide_mlp", "teacher_fp32", "crowd_image", "adam_first_step"}; !testing.Short() && !slices.Equal(said, want) {
		t.Errorf("%v, want %v", said, want)
	}
}

func explainPath(t testing.TB, path string) *Report {
	t.Helper()
	rel := strings.TrimSuffix(strings.TrimPrefix(path, "../../../testdata/"), ".pickle.gz")
	f, err := snapshot.Open(t.Context(), path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := NewCase(-1)
	if err := c.addSnapshot(t.Context(), f); err != nil {
		return &Report{} // nothing to explain
	}
	r, err := c.Explain(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", rel, err)
	}
	return r
}

// TestOverflowTooSlow: nobody waits for more than ten times as long, beside an ordinary step or, where none came to its
// end, beside the one that failed.
func TestOverflowTooSlow(t *testing.T) {
	for _, file := range []string{"advice/shared/adam_first_step", "advice/blind/crowd_image"} {
		j := judgeOf(t, Input{Run: checked(t, file)})
		step := j.ordinarySeconds()
		if first := strings.Contains(file, "first"); first != (step == 0) {
			t.Fatalf("%s: a step takes %v", file, step)
		} else if first {
			step = float64(j.trace.Events.Time.At(j.event)-j.trace.Events.Time.At(j.forecast.Event(j.forecast.Failing()))) / 1e6
		}
		for times, want := range map[float64]bool{1.5: false, 9.9: false, 10.1: true, 100: true} {
			if o := (&whatif.Overflow{ExtraSeconds: &whatif.Range{High: (times - 1) * step}}); j.tooSlow(o) != want {
				t.Errorf("%s: %v times as long is too slow: %v", file, times, !want)
			}
		}
	}
}

// TestOverflowHalfWay: what an optimizer still makes is known only if each of its tensors comes to what there are gradients.
func TestOverflowHalfWay(t *testing.T) {
	for file, want := range map[string]int{
		"advice/shared/adam_first_step": 2, // of two series, to their ends
		"advice/adam_wide_mlp":          2, // complete, and the request is another
		"advice/ddp_buckets":            0, // the sizes of buckets follow those of parameters, too
		"advice/shared/big_batch":       0, // not in the optimizer
	} {
		if got := judgeOf(t, Input{Run: checked(t, file)}).firstState(); len(got) != want {
			t.Errorf("%s: %d stacks make state, want %d", file, len(got), want)
		}
	}
}

// TestOverflowLine: settings of the recording stay, but for expandable segments, which the library has anyway.
func TestOverflowLine(t *testing.T) {
	j := judgeOf(t, Input{Run: checked(t, "advice/shared/adam_first_step")})
	for conf, want := range map[string]string{
		"":                          "ASHLAR_CONF=overflow:8GiB ",
		"expandable_segments:True":  "ASHLAR_CONF=overflow:8GiB ",
		"max_split_size_mb:128":     "ASHLAR_CONF=max_split_size_mb:128,overflow:8GiB ",
		"expandable_segments:False": "ASHLAR_CONF=overflow:8GiB ",
		"backend:cudaMallocAsync":   "ASHLAR_CONF=overflow:8GiB ",
		"pinned_num_register_threads:8,roundup_power2_divisions:[256:2,>:4],garbage_collection_threshold:0.5": `ASHLAR_CONF="garbage_collection_threshold:0.5,roundup_power2_divisions:[256:2,>:4],overflow:8GiB" `,
	} {
		p := *j.program
		var err error
		if p.Settings, err = settings.Parse(conf); err != nil {
			t.Fatal(err)
		}
		j.program = &p
		if got := j.overflowLine(8 << 30); got != want+"python -m ashlar_mem.ashlar_torch train.py" {
			t.Errorf("%s: %s", conf, got)
		}
	}
}

// TestOverflowOfLeaks: a job that leaves memory behind fills the host's, too, also where it died before its leak was clear.
func TestOverflowOfLeaks(t *testing.T) {
	whole := checked(t, "snapshots/leak_graph-default")
	peak, _ := whole.Program.PeakLive()
	for share := 0.7; share < 0.99; share += 0.05 {
		c := killed(t, whole, uint64(share*float64(peak)))
		if c == nil {
			continue
		}
		r, err := FromSnapshot(t.Context(), Input{Run: c})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Fixes {
			if f.Kind == FixOverflow {
				t.Errorf("under %.2f of its peak: %s, %s", share, r.Cause, f.Detail)
			}
		}
	}
}

package explain

import (
	"bytes"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/generate"
	"github.com/ashlar-mem/ashlar/internal/run"
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

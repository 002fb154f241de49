package whatif

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/run"
)

// TestOverflow: under limits below the live peak of measured workloads, runs pass with
// host memory, the slower the less there is, and what lies there begins with what is cold.
func TestOverflow(t *testing.T) {
	for _, name := range []string{"gpt2_fixed", "llama_ckpt", "moe_train", "resnet_batches"} {
		r := program(t, "snapshots/"+name+"-default.pickle.gz")
		peak, _ := r.Program.PeakLive()
		before := 1.0
		for _, share := range []float64{0.95, 0.9, 0.8, 0.7} {
			q := question(r)
			q.Limit = GivenLimit(r, uint64(share*float64(peak)))
			o, err := AskOverflow(t.Context(), r, q, 64<<30)
			if err != nil {
				t.Fatal(err)
			}
			s := o.Slowdown
			switch missing := uint64((1 - share) * float64(peak)); {
			case !o.Runs || o.PeakHost < missing || s == nil || o.ExtraSeconds.Low <= 0:
				t.Fatalf("%s under %v of its peak: %+v", name, share, o)
			case s.Low <= 1 || s.High < s.Low || s.High > 2.0001*s.Low || s.High < before:
				t.Errorf("%s under %v of its peak: %+v after %v", name, share, *s, before)
			}
			before = s.High
			state := false
			for _, h := range o.Holders {
				state = state || h.Category == findings.OptimizerState
			}
			if !state && name != "resnet_batches" { // SGD with little state
				t.Errorf("%s under %v of its peak: %+v", name, share, o.Holders)
			}
		}
		q := question(r)
		q.Limit = GivenLimit(r, peak/2)
		if o, err := AskOverflow(t.Context(), r, q, peak/100); err != nil || o.Runs || o.Failed == 0 || o.Slowdown != nil {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

// TestNothingOverflows: where everything fits no step takes longer, whatever hooks and marks take elsewhere.
func TestNothingOverflows(t *testing.T) {
	r := program(t, "snapshots/gpt2_fixed-default.pickle.gz")
	q := question(r)
	q.Limit = GivenLimit(r, 64<<30)
	o, err := AskOverflow(t.Context(), r, q, 64<<30)
	if err != nil || !o.Runs || o.PeakHost != 0 || *o.ExtraSeconds != (Range{}) || *o.Slowdown != (Range{1, 1}) {
		t.Errorf("%+v, %+v, %+v, %v", o, o.ExtraSeconds, o.Slowdown, err)
	}
}

// TestTriedRequest: a request that failed when it was recorded is used if the host serves it, so that less room is never faster.
func TestTriedRequest(t *testing.T) {
	r := program(t, "advice/perplexity_eval.pickle.gz")
	before := 0.0
	for _, limit := range []uint64{2160, 1960, 1767} {
		q := question(r)
		q.Limit = GivenLimit(r, limit<<20)
		o, err := AskOverflow(t.Context(), r, q, 64<<30)
		if err != nil || !o.Runs || len(o.Holders) == 0 {
			t.Fatalf("%d MiB: %+v, %v", limit, o, err)
		}
		if o.ExtraSeconds.Low < before {
			t.Errorf("%d MiB: %v more a step, and %v with more room", limit, o.ExtraSeconds.Low, before)
		}
		before = o.ExtraSeconds.Low
	}
}

// TestInferenceOverflow: where nothing trains nobody names parameters as busy, so they go, as what lives longest.
func TestInferenceOverflow(t *testing.T) {
	r := program(t, "snapshots/serve_generate-default.pickle.gz")
	peak, _ := r.Program.PeakLive()
	q := question(r)
	q.Limit = GivenLimit(r, peak*7/10)
	o, err := AskOverflow(t.Context(), r, q, 64<<30)
	if err != nil || !o.Runs || len(o.Holders) == 0 || o.Holders[0].Category != findings.Parameters {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestOverflowWithoutSteps: where no steps were found the answer is about the whole recording.
func TestOverflowWithoutSteps(t *testing.T) {
	for name, steps := range map[string]bool{"advice/side_stream.pickle.gz": false, "snapshots/gpt2_fixed-default.pickle.gz": true} {
		r := program(t, name)
		peak, _ := r.Program.PeakLive()
		q := question(r)
		q.Limit = GivenLimit(r, peak*8/10)
		o, err := AskOverflow(t.Context(), r, q, 64<<30)
		if err != nil || !o.Runs || o.Steps > 0 != steps || !steps && o.Slowdown != nil {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

// TestStateComesHome: state that is brought home before its optimizer is no traffic, is still named among what lies on the host, and
// costs less than if each kernel had to go for it.
func TestStateComesHome(t *testing.T) {
	r := program(t, "overflow/moe_train.pickle.gz")
	peak, _ := r.Program.PeakLive()
	q := question(r)
	q.Limit = GivenLimit(r, peak*9/10)
	job, err := overflowJob(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() *Overflow {
		o, err := job.Ask(t.Context(), q.conditions(recordedSetting(r.Program)), 64<<30)
		if err != nil || !o.Runs || len(o.Holders) == 0 || o.Holders[0].Category != findings.OptimizerState {
			t.Fatalf("%+v, %v", o, err)
		}
		return o
	}
	home := ask()
	if len(job.Fetches) != len(job.Begins) {
		t.Errorf("%d steps, %d times state comes home", len(job.Begins), len(job.Fetches))
	}
	job.Fetches = nil // as with a fused optimizer
	if stays := ask(); stays.ExtraSeconds.Low <= home.ExtraSeconds.Low || stays.ExtraSeconds.High <= home.ExtraSeconds.High || stays.Holders[0].Bytes <= home.Holders[0].Bytes {
		t.Errorf("%+v and %+v", stays, home)
	}
}

// TestMeasuredOverflow: what recordings without a limit predict holds the slowdowns that were
// measured on an H200.
func TestMeasuredOverflow(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "overflow", "measured.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Workload string
		Limit    uint64  `json:"limit_bytes"`
		Step     float64 `json:"step_seconds"`
		Slowdown float64
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	recordings, inside := map[string]*run.Checked{}, 0
	for _, c := range cases {
		r := recordings[c.Workload]
		if r == nil {
			r = program(t, "overflow/"+c.Workload+".pickle.gz")
			recordings[c.Workload] = r
		}
		q := question(r)
		q.Limit = GivenLimit(r, c.Limit)
		o, err := AskOverflow(t.Context(), r, q, 48<<30)
		if err != nil || !o.Runs {
			t.Fatalf("%+v: %+v, %v", c, o, err)
		}
		low, high := 1+o.ExtraSeconds.Low/c.Step, 1+o.ExtraSeconds.High/c.Step
		good := low <= c.Slowdown && c.Slowdown <= high && high <= 2*low
		if good {
			inside++
		}
		t.Logf("%s under %d: predicted %.2f to %.2f, measured %.2f, inside: %v", c.Workload, c.Limit, low, high, c.Slowdown, good)
	}
	if len(cases) != 32 || inside < 24 {
		t.Errorf("%d of %d are inside of what is predicted", inside, len(cases))
	}
}

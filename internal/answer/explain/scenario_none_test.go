package explain_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
)

// training makes steps that leave nothing behind: 40 MiB of weights, two
// activations of 30 and 20 MiB, a gradient of 40.
func training(steps int) func(*scenario.Scenario) {
	return func(s *scenario.Scenario) {
		s.Alloc("weights", 40*mib, 0, "model.py:8 __init__")
		for n := range steps {
			s.Step(n)
			s.Call("train.py:20 step", func() {
				s.Alloc("one", 30*mib, 0, "model.py:12 forward")
				s.Alloc("two", 20*mib, 0, "model.py:13 forward")
				s.Alloc("grad", 40*mib, 0, "train.py:30 backward")
				s.Free("two", "one", "grad")
			})
		}
		s.EndSteps()
	}
}

// Nothing fails, nothing grows: there is nothing to report but health.
func TestNone(t *testing.T) {
	for _, tt := range []struct {
		name      string
		config    scenario.Config
		program   func(*scenario.Scenario)
		allocated uint64 // at most
		reserved  uint64
		unused    float64 // of it, when it was highest
		retries   int64
		end       uint64 // live at the end
	}{
		{name: "training", program: training(8), allocated: 130 * mib, reserved: 130 * mib, end: 40 * mib},
		{name: "annotated", config: scenario.Config{Steps: scenario.Annotated}, program: training(8), allocated: 130 * mib, reserved: 130 * mib, end: 40 * mib},
		{name: "metadata", config: scenario.Config{Steps: scenario.Metadata}, program: training(8), allocated: 130 * mib, reserved: 130 * mib, end: 40 * mib},
		{name: "long", config: scenario.Config{Steps: scenario.Annotated}, program: training(200), allocated: 130 * mib, reserved: 130 * mib, end: 40 * mib},
		{name: "under a limit", config: scenario.Config{Limit: 150 * mib}, program: training(8), allocated: 130 * mib, reserved: 130 * mib, end: 40 * mib},
		{
			name: "expandable", config: scenario.Config{Conf: "expandable_segments:True", Limit: 150 * mib}, program: training(8),
			allocated: 130 * mib, reserved: 140 * mib, unused: 10. / 140, end: 40 * mib, // in granules of 20 MiB
		},
		{
			// All is reserved before the first event, when only the weights are live.
			name: "mid-run", allocated: 130 * mib, reserved: 130 * mib, unused: 90. / 130, end: 40 * mib,
			program: func(s *scenario.Scenario) {
				training(2)(s)
				s.Record()
				s.Free("weights")
				training(3)(s)
			},
		},
		{
			// 100 MiB are cached and make way for 120.
			name: "flushed in time", config: scenario.Config{Limit: 170 * mib}, allocated: 160 * mib, reserved: 160 * mib, retries: 1, end: 40 * mib,
			program: func(s *scenario.Scenario) {
				s.Alloc("weights", 40*mib, 0, "model.py:8 __init__")
				used(s, 100*mib, 0)
				used(s, 120*mib, 0)
			},
		},
		{
			// Two segments of 60 MiB are pinned by 2 each, and nobody minds.
			name: "fragmented", config: scenario.Config{Limit: 160 * mib}, allocated: 120 * mib, reserved: 120 * mib, end: 4 * mib,
			program: func(s *scenario.Scenario) { pin(s, 2, 60, 2, 0) },
		},
		{
			name: "streams and pools", allocated: 60 * mib, reserved: 110 * mib, unused: 50. / 110, end: 10 * mib,
			program: func(s *scenario.Scenario) {
				used(s, 20*mib, 0)
				used(s, 30*mib, 7)
				s.InPool("p", func() {
					s.Alloc("in", 10*mib, 0, "graph.py:4 load")
					used(s, 50*mib, 0)
				})
			},
		},
		{
			name: "pending", allocated: 40 * mib, reserved: 40 * mib,
			program: func(s *scenario.Scenario) {
				s.Alloc("a", 40*mib, 0, "train.py:3 f")
				s.RecordStream("a", 7)
				s.Free("a")
				s.Complete(7)
				used(s, 40*mib, 0)
			},
		},
		{name: "nothing", program: func(*scenario.Scenario) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr, err := scenario.Run(tt.config, tt.program)
			if err != nil {
				t.Fatal(err)
			}
			for _, limit := range slices.Compact([]uint64{0, tt.config.Limit}) {
				r := explained(t, tr, explain.Input{Limit: limit})
				want := explain.Certain
				if tr.Events.Len() == 0 {
					want = explain.Open // what failed was not recorded
				}
				if r.Cause != explain.None || r.CauseConfidence != want || r.Prognosis != nil || r.Line != nil {
					t.Errorf("cause %s %s in %v", r.Cause, r.CauseConfidence, r.Line)
				}
				if r.Trigger != explain.None || r.Confidence != want || r.Failure != nil || r.Capped || r.BreakEven != nil {
					t.Errorf("%s %s, failure %+v: %s", r.Trigger, r.Confidence, r.Failure, r.Summary)
				}
				if n := len(r.Fixes) + len(r.Pinners) + len(r.Alternatives); n > 0 {
					t.Errorf("fixes %+v, pinners %+v, alternatives %+v", r.Fixes, r.Pinners, r.Alternatives)
				}
				for _, f := range r.Findings {
					if f.Kind != explain.Transient { // what a step takes is no alarm
						t.Errorf("a false alarm: %s: %s", f.Kind, f.Detail)
					}
				}
				h := r.Health
				if h.PeakAllocated != tt.allocated || h.PeakReserved != tt.reserved || h.Retries != tt.retries || *r.Evidence.Live != tt.end {
					t.Errorf("at most %d allocated and %d reserved, %d retries, %d at the end", h.PeakAllocated, h.PeakReserved, h.Retries, *r.Evidence.Live)
				}
				if f := h.FragmentationPeak; tt.reserved > 0 && math.Abs(*f-tt.unused) > 1e-9 {
					t.Errorf("%v of the peak not allocated, want %v", *f, tt.unused)
				}
				if f := h.Fragmentation; tt.reserved > 0 && math.Abs(*f-(1-float64(tt.allocated)/float64(tt.reserved))) > 1e-9 {
					t.Errorf("fragmentation %v", *f)
				}
				if limit > 0 && (h.Headroom == nil || *h.Headroom != limit-tt.reserved) || limit == 0 && h.Headroom != nil {
					t.Errorf("headroom %s", text(h.Headroom))
				}
			}
		})
	}
}

// The file has the size of the failed request after rounding: it may be the
// rounding that is in the way, and the report says so without being sure.
func TestRoundedRequest(t *testing.T) {
	for _, tt := range []struct {
		name    string
		asked   uint64 // is rounded up to 80 MiB
		piece   uint64 // the free one, in a segment of 128 MiB
		setting bool   // 80 MiB may have been as little as 64 MiB and 512 bytes
	}{
		{"the piece would do", 65 * mib, 70 * mib, true},
		{"the piece might do", 79 * mib, 70 * mib, true},
		{"the piece is too small", 65 * mib, 60 * mib, false},
		{"no rounding helps", 65 * mib, 20 * mib, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := scenario.Config{Limit: 190 * mib, Conf: "roundup_power2_divisions:4"} // 62 MiB more than the segment
			tr, err := scenario.Run(c, func(s *scenario.Scenario) {
				used(s, 128*mib, 0)
				for left := 128*mib - tt.piece; left > 0; left -= 2 * mib { // 2 MiB are not rounded
					s.Alloc(fmt.Sprint("kept", left), 2*mib, 0, "train.py:5 keep")
				}
				asks(tt.asked, 0)(s)
			})
			if err != nil {
				t.Fatal(err)
			}
			r := explained(t, tr, explain.Input{Limit: c.Limit})
			confidence, alternatives := explain.Certain, []string{}
			if tt.setting {
				confidence, alternatives = explain.Open, []string{explain.Setting}
			}
			var got []string
			for _, a := range r.Alternatives {
				got = append(got, a.Verdict)
			}
			if r.Trigger != explain.Fragmentation || r.Confidence != confidence || !slices.Equal(got, alternatives) || *r.Evidence.Rounded != 80*mib {
				t.Errorf("%s %s, %v: %s", r.Trigger, r.Confidence, r.Alternatives, r.Summary)
			}
		})
	}
}

// Blocks from before the recording are there as the settings made them: whether
// others would have made them small enough cannot be replayed.
func TestRoundedBefore(t *testing.T) {
	for _, tt := range []struct {
		limit   uint64
		setting bool
	}{
		{3*65*mib + 64*mib + 512, true}, // the least that was asked for
		{3*65*mib + 64*mib, false},
	} {
		tr, err := scenario.Run(scenario.Config{Limit: tt.limit, Conf: "roundup_power2_divisions:4"}, func(s *scenario.Scenario) {
			held(s, 3, 65*mib)
			s.Record()
			asks(80*mib, 0)(s)
		})
		if err != nil {
			t.Fatal(err)
		}
		r := explained(t, tr, explain.Input{Limit: tt.limit})
		if strings.Contains(r.Summary, "No allocator setting helps") == tt.setting {
			t.Error(r.Summary)
		}
		if r.Trigger != explain.Capacity || (r.Confidence == explain.Open) != tt.setting || (len(r.Alternatives) == 1) != tt.setting {
			t.Errorf("%s %s, %v: %s", r.Trigger, r.Confidence, r.Alternatives, r.Summary)
		}
	}
}

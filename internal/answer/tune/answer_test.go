package tune

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

func TestAnswer(t *testing.T) {
	short.Skip(t)
	c := checked(t, "snapshots/ckpt_spike-tight-default")
	const limit = 2608 << 20
	r := quick(t, c, Options{Limit: limit})
	a := NewAnswer(c, r, whatif.GivenLimit(c, limit), whatif.GivenMemory(0))
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Goal      string
		SelfCheck struct {
			Events, Identical int
		} `json:"self_check"`
		Current, Recommended struct {
			Settings, Export, Reason string
			Smallest                 uint64 `json:"smallest_limit_bytes"`
			Value                    uint64
			Worst                    *struct {
				Variation string
				Value     uint64
				Recorded  uint64 `json:"recorded_value"`
			}
			Under struct {
				Fails bool
			} `json:"under_limit"`
		}
		Evaluated, Variations int
		CutOff                bool   `json:"cut_off"`
		Lower                 uint64 `json:"lower_bound_bytes"`
	}
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	best := back.Recommended
	if back.SelfCheck.Events != 2923 || back.SelfCheck.Identical != 2923 || !back.Current.Under.Fails || best.Under.Fails ||
		best.Smallest > limit || best.Smallest < back.Lower || best.Value >= back.Current.Value ||
		best.Export != "export PYTORCH_CUDA_ALLOC_CONF="+best.Settings || back.Evaluated < 2 || back.Goal != "limit" || back.CutOff {
		t.Errorf("%s", raw)
	}
	if w := best.Worst; w == nil || back.Variations < 3 || w.Value == 0 || w.Value > w.Recorded || !strings.Contains(best.Reason, w.Variation) {
		t.Errorf("%s", raw)
	}
}

// Sentences say what is gained, and where nothing is.
func TestReason(t *testing.T) {
	n := func(n uint64) *uint64 { return &n }
	recorded := &Choice{Recorded: true, Value: n(2 << 30)}
	for want, a := range map[string]*Answer{
		"the run reserves 1.00 GiB instead of 2.00 GiB, 50.0 % less; on the worst variation (sizes +3 %) 1.50 GiB instead of 2.00 GiB, 25.0 % less": {
			Goal: LeastReserved, Current: recorded,
			Recommended: &Choice{Value: n(1 << 30), Worst: &WorstChoice{"sizes +3 %", n(3 << 29), n(2 << 30)}},
		},
		"the run makes 1 driver call after the warm-up instead of 4 driver calls, 75.0 % less; on the worst variation (x) it fails": {
			Goal: FewestCalls, Current: &Choice{Value: n(4)}, Recommended: &Choice{Value: n(1), Worst: &WorstChoice{Variation: "x"}},
		},
		"the run passes with 1.00 GiB; with the recorded settings it fails": {
			Goal: SmallestLimit, Current: &Choice{}, Recommended: &Choice{Value: n(1 << 30)},
		},
		"the run reserves 2.00 GiB; no setting that was tried is better by more than 2 % on the recording and its variations": {
			Goal: LeastReserved, Current: recorded, Recommended: recorded,
		},
		"no setting lets the run pass on a device of this size": {Goal: LeastReserved, Current: &Choice{}, Recommended: &Choice{}},
	} {
		if got := a.reason(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What a mid-run recording needs is less than what it had cached when it began,
// and its figures say that they are of a start without that.
func TestMidRunNeed(t *testing.T) {
	of := checked(t, "variety/ring")
	p := of.Program
	lower, _ := p.PeakLive()
	c, err := Measure(t.Context(), of, p.Settings, 0, lower)
	if err != nil {
		t.Fatal(err)
	}
	start := p.Start.Reserved()
	if c.PeakReserved < start || c.Need >= start/2 || c.Need < lower || c.SmallestLimit > c.Need {
		t.Errorf("begun with %d, live at most %d: peak %d, need %d, smallest limit %d", start, lower, c.PeakReserved, c.Need, c.SmallestLimit)
	}
	cache, err := p.StartCache()
	if err != nil {
		t.Fatal(err)
	}
	if made := NewChoice(of, c); made.StartReleased != cache || cache == 0 {
		t.Errorf("%d released at the start, %d are cached there", made.StartReleased, cache)
	}
	r := &Result{Current: c, Recommended: c}
	a := NewAnswer(of, r, whatif.GivenLimit(of, 0), whatif.GivenMemory(0))
	if !slices.Contains(a.Notes, whatif.ReleasedAtStart(p, cache)) {
		t.Errorf("notes %q", a.Notes)
	}
}

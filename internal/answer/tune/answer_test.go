package tune

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

func TestAnswer(t *testing.T) {
	short.Skip(t)
	c := checked(t, "snapshots/ckpt_spike-tight-default")
	p := c.Program
	const limit = 2608 << 20
	r := quick(t, p, Options{Limit: limit})
	a := NewAnswer(c, r, whatif.GivenLimit(c, limit), whatif.GivenMemory(0))
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		SelfCheck struct {
			Events, Identical int
		} `json:"self_check"`
		Current, Recommended struct {
			Settings, Export, Reason string
			Smallest                 uint64 `json:"smallest_limit_bytes"`
			Under                    struct {
				Fails bool
			} `json:"under_limit"`
		}
		Front     []struct{ Settings string }
		Evaluated int
		Lower     uint64 `json:"lower_bound_bytes"`
	}
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if back.SelfCheck.Events != 2923 || back.SelfCheck.Identical != 2923 || !back.Current.Under.Fails || back.Recommended.Under.Fails ||
		back.Recommended.Smallest > limit || back.Recommended.Smallest < back.Lower || back.Recommended.Reason == "" ||
		back.Recommended.Export != "export PYTORCH_CUDA_ALLOC_CONF="+back.Recommended.Settings || len(back.Front) == 0 || back.Evaluated < 100 {
		t.Errorf("%s", raw)
	}
}

// What a mid-run recording needs is less than what it had cached when it began,
// and its figures say that they are of a start without that.
func TestMidRunNeed(t *testing.T) {
	of := checked(t, "variety/ring")
	p := of.Program
	lower, err := LowerBound(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Measure(t.Context(), p, p.Settings, 0, lower)
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

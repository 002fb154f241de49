package explain_test

import (
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
)

// The cache is emptied once before the steps, and after each: only the latter
// calls are counted and left out.
func TestEmptyCacheInSteps(t *testing.T) {
	for _, steps := range []scenario.Marks{scenario.Annotated, scenario.Metadata} {
		tr, err := scenario.Run(scenario.Config{Steps: steps}, func(s *scenario.Scenario) {
			s.Alloc("weights", 40*mib, 0, "model.py:8 __init__")
			used(s, 20*mib, 0)
			s.EmptyCache()
			for n := range 6 {
				s.Step(n)
				s.Call("train.py:20 step", func() {
					s.Alloc("one", 30*mib, 0, "model.py:12 forward")
					s.Free("one")
					s.EmptyCache()
					s.Alloc("two", 60*mib, 0, "model.py:13 forward")
					s.Free("two")
				})
			}
			s.EndSteps()
		})
		if err != nil {
			t.Fatal(err)
		}
		h := explained(t, tr, explain.Input{}).Health
		c := h.EmptyCache
		if c == nil || c.Calls != 6 || c.Steps != 6 || c.FailsWithout {
			t.Fatalf("%+v", c)
		}
		// With the calls the 30 and the 60 MiB are never reserved at once; the 20
		// are released in any case.
		if h.PeakReserved != 100*mib || c.PeakReservedWithout != 130*mib || *h.DriverMS <= c.DriverMSWithout {
			t.Errorf("%d reserved, without the calls %d; %v ms and %v", h.PeakReserved, c.PeakReservedWithout, *h.DriverMS, c.DriverMSWithout)
		}
		if *h.Releasable != 60*mib {
			t.Errorf("%d releasable", *h.Releasable)
		}
	}
	tr, err := scenario.Run(scenario.Config{}, training(8))
	if err != nil {
		t.Fatal(err)
	}
	if h := explained(t, tr, explain.Input{}).Health; h.EmptyCache != nil || *h.Releasable != 90*mib {
		t.Errorf("without calls: %+v, %d releasable", h.EmptyCache, *h.Releasable)
	}
}

// A request that found no room says who asked, and what was free.
func TestRetriedFor(t *testing.T) {
	tr, err := scenario.Run(scenario.Config{Limit: 200 * mib}, func(s *scenario.Scenario) {
		s.Alloc("weights", 40*mib, 0, "model.py:8 __init__")
		for i := range uint64(3) {
			s.Alloc("a", 60*mib, 0, "a.py:1 f")
			s.Alloc("b", 50*mib, 0, "b.py:1 f")
			s.Free("a", "b")
			s.Alloc("c", (120+10*i)*mib, 0, "c.py:1 f")
			s.Free("c")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	h := explained(t, tr, explain.Input{Limit: 200 * mib}).Health
	if h.Retries != 3 || len(h.RetriedFor) == 0 {
		t.Fatalf("%d retries, %+v", h.Retries, h.RetriedFor)
	}
	r, n := h.RetriedFor[0], 0
	for _, x := range h.RetriedFor {
		n += x.Count
	}
	if int64(n) != h.Retries || r.Request != 120*mib || r.Free != 110*mib || r.LargestFree != 60*mib || r.Site.String() != "c.py:1 f" || r.Event == nil {
		t.Errorf("%d of %d retries: %+v", n, h.Retries, r)
	}
}

// Settings are listed if they save more than a granule; several at once only if
// they save more than one of them alone.
func TestCouldBeSmaller(t *testing.T) {
	tr, err := scenario.Run(scenario.Config{}, func(s *scenario.Scenario) {
		for i := range uint64(8) { // each too large for what the ones before left
			used(s, (100+50*i)*mib, 0)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	h := explained(t, tr, explain.Input{}).Health
	if len(h.Smaller) == 0 || h.Smaller[0].Settings != "expandable_segments:True" || h.Smaller[0].PeakReserved != 460*mib ||
		h.Smaller[0].Saved != h.PeakReserved-460*mib || h.Smaller[0].Export != "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" {
		t.Fatalf("%d reserved now; %+v", h.PeakReserved, h.Smaller)
	}
	for _, x := range h.Smaller[1:] {
		if x.PeakReserved < h.Smaller[0].PeakReserved || x.PeakReserved+20*mib >= h.PeakReserved {
			t.Errorf("%+v, now %d", x, h.PeakReserved)
		}
	}
	tr, err = scenario.Run(scenario.Config{}, training(8))
	if err != nil {
		t.Fatal(err)
	}
	if h := explained(t, tr, explain.Input{}).Health; len(h.Smaller) > 0 {
		t.Errorf("all is allocated at the peak, yet %+v", h.Smaller)
	}
}

package explain_test

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// long is a program that goes on after failures. The last one is explained.
type long struct {
	name, why string
	room      uint64
	program   func(*scenario.Scenario) (served bool) // the request that is explained
	ooms      int
	caught    bool // the program goes on after the last one, too
	verdict   string
	live      uint64
	passes    uint64 // the limit with which it is served
	// What the file shows of the limit.
	low, high uint64
	open      bool // and that leaves capacity possible
	settings  bool // some setting helps
}

func longOnes() []long {
	try := func(s *scenario.Scenario, size uint64) bool {
		served := s.Alloc("try", size, 0, "search.py:5 fits")
		if served {
			s.Free("try")
		}
		return served
	}
	list := []long{{
		name: "too much was tried before",
		why:  "400 MiB never fit and were given up; then two pinned segments are in the way of 60",
		room: 160 * mib, ooms: 2, verdict: explain.Fragmentation, live: 4 * mib, passes: 180 * mib, low: 120 * mib, high: 180*mib - 1, settings: true,
		program: func(s *scenario.Scenario) bool {
			pin(s, 2, 60, 2, 0)
			try(s, 400*mib)
			return s.Alloc("request", 60*mib, 0, "train.py:40 loss")
		},
	}, {
		name: "pinned before, too much now",
		why:  "a request failed for pinned segments, which were then freed; the last one is more than there is",
		room: 160 * mib, ooms: 2, verdict: explain.Capacity, live: 100 * mib, passes: 164 * mib, low: 120 * mib, high: 164*mib - 1,
		program: func(s *scenario.Scenario) bool {
			pin(s, 2, 60, 2, 0)
			try(s, 60*mib)
			s.Free("pin0on0", "pin1on0")
			s.Alloc("weights", 100*mib, 0, "model.py:8 __init__")
			return s.Alloc("request", 64*mib, 0, "train.py:40 loss")
		},
	}, {
		name: "caught and smaller",
		why:  "64 MiB beside 100 are more than 160; then half of it does",
		room: 160 * mib, ooms: 1, caught: true, verdict: explain.Capacity, live: 100 * mib, passes: 164 * mib, low: 132 * mib, high: 164*mib - 1,
		program: func(s *scenario.Scenario) bool {
			s.Alloc("weights", 100*mib, 0, "model.py:8 __init__")
			served := s.Alloc("request", 64*mib, 0, "train.py:40 loss")
			if served {
				s.Free("request")
			}
			s.Alloc("half", 32*mib, 0, "train.py:41 loss")
			s.Free("half")
			return served
		},
	}, {
		name: "a flush that helped before",
		why:  "once a full cache was flushed in time; that decides which segment the 20 MiB pin now",
		room: 200 * mib, ooms: 1, verdict: explain.Fragmentation, live: 80 * mib, passes: 270 * mib, low: 170 * mib, high: 270*mib - 1, open: true, settings: true,
		program: func(s *scenario.Scenario) bool {
			s.Alloc("weights", 60*mib, 0, "model.py:8 __init__")
			used(s, 100*mib, 0)
			s.Alloc("act", 110*mib, 0, "train.py:11 forward")
			s.Free("act")
			s.Alloc("pin", 20*mib, 0, "train.py:100 cache")
			return s.Alloc("request", 100*mib, 0, "train.py:40 loss")
		},
	}}
	for n := 2; n <= 4; n++ {
		list = append(list, long{
			name: fmt.Sprintf("%d times the same", n),
			why:  "the same request is made again and again beside what is live",
			room: 100 * mib, ooms: n, verdict: explain.Capacity, live: 60 * mib, passes: 110 * mib, low: 60 * mib, high: 110*mib - 1,
			program: func(s *scenario.Scenario) bool {
				s.Alloc("weights", 60*mib, 0, "model.py:8 __init__")
				for range n - 1 {
					try(s, 50*mib)
				}
				return s.Alloc("request", 50*mib, 0, "train.py:40 loss")
			},
		})
	}
	return list
}

func TestSeveral(t *testing.T) {
	for _, l := range longOnes() {
		for _, w := range ways[:4] {
			t.Run(l.name+", "+w.name, func(t *testing.T) {
				run := func(room uint64, conf string, w way) (served bool, r *explain.Report) {
					c := (&story{available: room, conf: conf}).config(w)
					c.KeepGoing = true
					tr, err := scenario.Run(c, func(s *scenario.Scenario) { served = l.program(s) })
					if err != nil {
						t.Fatal(err)
					}
					if served || room != l.room || conf != "" {
						return served, nil
					}
					in := explain.Input{}
					if w.input != nil {
						w.input(&story{available: room}, &in)
					}
					return served, explained(t, tr, in)
				}
				served, r := run(l.room, "", w)
				if served {
					t.Fatal("nothing fails")
				}
				confidence := explain.Certain
				if l.open && w.source == "inferred" {
					confidence = explain.Open
				}
				if r.Trigger != l.verdict || r.Confidence != confidence || r.Capped == w.device || !r.SelfCheck.Complete {
					t.Errorf("%s %s, capped %v: %s; but %s", r.Trigger, r.Confidence, r.Capped, r.Summary, l.why)
				}
				if r.Failure.OOMs != l.ooms || r.Failure.Caught != l.caught || *r.Evidence.Live != l.live {
					t.Errorf("%d failures, survived %v, %s live; want %d, %v, %s", r.Failure.OOMs, r.Failure.Caught, text(r.Evidence.Live), l.ooms, l.caught, units.Size(l.live))
				}
				if w.source == "inferred" && (*r.Limit.Min != l.low || *r.Limit.Max != l.high) || r.Limit.Source != w.source {
					t.Errorf("limit %s to %s from %s", text(r.Limit.Min), text(r.Limit.Max), r.Limit.Source)
				}
				if w.source == "inferred" {
					return
				}
				settings := false
				for _, f := range r.Fixes {
					switch f.Kind {
					case explain.FixMemory:
						if *f.SmallestLimit != l.passes || *f.Bytes != l.passes-l.room {
							t.Errorf("more memory: %s, want %s", text(f.SmallestLimit), units.Size(l.passes))
						}
						if served, _ := run(l.passes, "", w); !served {
							t.Errorf("%s are not enough", units.Size(l.passes))
						}
						if served, _ := run(l.passes-1, "", w); served {
							t.Errorf("less than %s is enough", units.Size(l.passes))
						}
					case explain.FixSetting:
						settings = true
						if served, _ := run(l.room, f.Settings, w); !served {
							t.Errorf("with %s it fails too", f.Settings)
						}
						if served, _ := run(*f.SmallestLimit, f.Settings, way{}); !served {
							t.Errorf("with %s it fails under %s", f.Settings, text(f.SmallestLimit))
						}
					}
				}
				if settings != l.settings {
					t.Errorf("settings among the fixes: %v", settings)
				}
			})
		}
	}
}

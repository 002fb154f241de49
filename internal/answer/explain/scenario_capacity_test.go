package explain_test

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
)

// held allocates n blocks that stay.
func held(s *scenario.Scenario, n int, size uint64) {
	for i := range n {
		s.Alloc(fmt.Sprint("held", i, "of", size), size, 0, "model.py:8 __init__")
	}
}

// used allocates and frees a block: a cached segment stays.
func used(s *scenario.Scenario, size, stream uint64) {
	s.Alloc("used", size, stream, "train.py:30 step")
	s.Free("used")
}

func asks(size, stream uint64) func(*scenario.Scenario) {
	return func(s *scenario.Scenario) { s.Alloc("request", size, stream, "train.py:40 loss") }
}

func TestCapacity(t *testing.T) {
	var list []story
	for n := uint64(1); n <= 4; n++ {
		cause := ""
		if n == 1 {
			cause = explain.AbsurdRequest // more than all there was before
		}
		list = append(list, story{
			name:      fmt.Sprintf("%d blocks", n),
			why:       "all that is reserved is live, and the request is more than the rest",
			available: n*40*mib + 30*mib, setup: func(s *scenario.Scenario) { held(s, int(n), 40*mib) }, request: asks(50*mib, 0),
			truth: truth{
				verdict: explain.Capacity, cause: cause,
				live: n * 40 * mib, rounded: 50 * mib, segment: 50 * mib, reserved: n * 40 * mib,
				served: n * 40 * mib, passes: n*40*mib + 50*mib, pinned: []pinned{},
			},
		})
	}
	for _, cached := range []uint64{20, 44, 60} {
		list = append(list, story{
			name:      fmt.Sprintf("%d MiB cached", cached),
			why:       "the cache is flushed and still the live bytes and the request are more than there is",
			available: 200 * mib, request: asks(90*mib, 0),
			setup: func(s *scenario.Scenario) {
				held(s, 3, 40*mib)
				used(s, cached*mib, 0)
			},
			truth: truth{
				verdict: explain.Capacity, live: 120 * mib, rounded: 90 * mib, segment: 90 * mib, reserved: 120 * mib,
				served: (120 + cached) * mib, passes: 210 * mib, pinned: []pinned{},
			},
		})
	}
	list = append(list, story{
		name:      "split segment",
		why:       "105 MiB are live and 28 asked for, in 130; 15 MiB free beside a block of 5 do not count",
		available: 130 * mib, request: asks(28*mib, 0),
		setup: func(s *scenario.Scenario) {
			held(s, 1, 100*mib)
			held(s, 1, 5*mib)
		},
		truth: truth{
			verdict: explain.Capacity, live: 105 * mib, rounded: 28 * mib, segment: 28 * mib, reserved: 120 * mib,
			free: 15 * mib, usable: 15 * mib, largest: 15 * mib, served: 120 * mib, passes: 148 * mib,
			pinned: []pinned{{20 * mib, 15 * mib, []string{"5.00 MiB 1 model.py:8 __init__"}}},
		},
	}, story{
		name:      "small blocks",
		why:       "five small segments are full to the last byte",
		available: 10 * mib, setup: func(s *scenario.Scenario) { held(s, 10, mib) }, request: asks(3, 0),
		truth: truth{
			verdict: explain.Capacity, live: 10 * mib, rounded: 512, segment: 2 * mib, reserved: 10 * mib,
			served: 10 * mib, passes: 12 * mib, pinned: []pinned{},
		},
	}, story{
		name:      "expandable",
		why:       "what is mapped is live and the request is more than the rest, whatever the segments",
		available: 150 * mib, conf: "expandable_segments:True", request: asks(40*mib, 0),
		setup: func(s *scenario.Scenario) {
			held(s, 3, 40*mib)
			used(s, 20*mib, 0)
		},
		truth: truth{
			verdict: explain.Capacity, live: 120 * mib, rounded: 40 * mib, segment: 40 * mib, reserved: 120 * mib,
			served: 140 * mib, passes: 160 * mib, pinned: []pinned{},
		},
	}, story{
		name:      "with settings that do not matter",
		why:       "blocks of 64 to 128 MiB are not rounded up, so the settings cost nothing",
		available: 400 * mib, conf: "roundup_power2_divisions:[32:4,64:1,>:4],max_split_size_mb:256", request: asks(80*mib, 0),
		setup: func(s *scenario.Scenario) { held(s, 3, 112*mib) },
		truth: truth{
			verdict: explain.Capacity, live: 336 * mib, rounded: 80 * mib, segment: 80 * mib, reserved: 336 * mib,
			served: 336 * mib, passes: 416 * mib, pinned: []pinned{},
		},
	})
	check(t, list)
}

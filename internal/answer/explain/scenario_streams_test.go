package explain_test

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
)

// split leaves a segment of size MiB with a block of part MiB in front, and one
// of the rest.
func split(s *scenario.Scenario, size, part, stream uint64) {
	s.Alloc("whole", size*mib, stream, "train.py:10 warm")
	s.Free("whole")
	s.Alloc("front", part*mib, stream, "train.py:11 forward")
	s.Alloc("back", (size-part)*mib, stream, "train.py:12 forward")
}

// later puts a call between a free and the request: a free whose completion is
// the next event looks as if it was completed at once.
func later(s *scenario.Scenario, frees ...string) {
	s.Alloc("tmp", 20*mib, 0, "train.py:20 backward")
	for _, name := range frees {
		s.RecordStream(name, 7)
		s.Free(name)
	}
	s.Free("tmp")
}

// Blocks that another stream still uses come back too late: PyTorch waits for
// them when it flushes, but does not search again (spec 3).
func TestPending(t *testing.T) {
	var list []story
	for _, size := range []uint64{60, 65, 70} {
		list = append(list, story{
			name:      fmt.Sprintf("%d MiB pending", size),
			why:       "the block was freed and would have served the request, had the other stream been done with it",
			available: 130 * mib, request: asks(60*mib, 0), early: true,
			setup: func(s *scenario.Scenario) {
				split(s, 100, size, 0)
				later(s, "front")
			},
			truth: truth{
				verdict: explain.Pending, live: (100 - size) * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 100 * mib,
				free: size * mib, usable: size * mib, largest: size * mib, pending: size * mib, served: 120 * mib,
				passes: 160 * mib, empties: true, says: "PyTorch did wait when it released its cache, but it does not search again",
			},
		})
	}
	list = append(list, story{
		name:      "two that merge",
		why:       "two neighbours wait, each too small; together they would have served the request",
		available: 130 * mib, request: asks(60*mib, 0), early: true,
		setup: func(s *scenario.Scenario) {
			split(s, 100, 70, 0)
			s.Free("front")
			s.Alloc("one", 35*mib, 0, "train.py:13 forward")
			s.Alloc("two", 35*mib, 0, "train.py:14 forward")
			later(s, "one", "two")
		},
		truth: truth{
			verdict: explain.Pending, live: 30 * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 100 * mib,
			free: 70 * mib, usable: 70 * mib, largest: 70 * mib, pending: 70 * mib, served: 120 * mib, passes: 160 * mib, empties: true,
		},
	}, story{
		name:      "not enough",
		why:       "what waits for another stream is smaller than the request: it would have failed just the same",
		available: 130 * mib, request: asks(60*mib, 0), early: true,
		setup: func(s *scenario.Scenario) {
			split(s, 100, 50, 0)
			later(s, "front")
		},
		truth: truth{
			verdict: explain.Fragmentation, live: 50 * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 100 * mib,
			free: 50 * mib, usable: 50 * mib, largest: 50 * mib, pending: 50 * mib, served: 120 * mib, passes: 160 * mib,
			pinned: []pinned{{100 * mib, 50 * mib, []string{"50.00 MiB 1 train.py:12 forward"}}},
		},
	}, story{
		name:      "done in time",
		why:       "the other stream was done, so nothing waited: a piece of 50 MiB is too small",
		available: 130 * mib, request: asks(60*mib, 0),
		setup: func(s *scenario.Scenario) {
			split(s, 100, 50, 0)
			s.RecordStream("front", 7)
			s.Free("front")
			s.Complete(7)
			used(s, 2*mib, 0)
		},
		truth: truth{
			verdict: explain.Fragmentation, live: 50 * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 100 * mib,
			free: 50 * mib, usable: 50 * mib, largest: 50 * mib, served: 100 * mib, passes: 160 * mib,
			pinned: []pinned{{100 * mib, 50 * mib, []string{"50.00 MiB 1 train.py:12 forward"}}},
		},
	})
	check(t, list)
}

// A free block of another stream is never used, and its segment is not released
// as long as anything lives in it.
func TestStreams(t *testing.T) {
	var list []story
	for _, stream := range []uint64{7, 0x55d0c0ffee00} {
		for _, size := range []uint64{60, 80} {
			list = append(list, story{
				name:      fmt.Sprintf("%d MiB on stream %#x", size, stream),
				why:       "the free piece is large enough, but belongs to another stream",
				available: 130 * mib, request: asks(60*mib, 0),
				setup: func(s *scenario.Scenario) {
					split(s, 100, size, stream)
					s.Free("front")
				},
				truth: truth{
					verdict: explain.Streams, live: (100 - size) * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 100 * mib,
					free: size * mib, streams: size * mib, served: 100 * mib, passes: 160 * mib, best: "expandable_segments:True",
					says: "belongs to another stream",
				},
			})
		}
	}
	for n := uint64(3); n <= 5; n++ {
		cause := ""
		if n > 3 {
			cause = explain.Leak // from four rounds on it shows that each one keeps something
		}
		list = append(list, story{
			name:      fmt.Sprintf("one of %d streams", n),
			why:       "every stream has a free piece of its own, and only that of the last is large enough",
			available: n*60*mib + 30*mib, request: asks(50*mib, 0),
			setup: func(s *scenario.Scenario) {
				for i := range n {
					stream, part := i, 30+uint64(0)
					if i == n-1 {
						part = 50
					}
					s.Alloc("whole", 60*mib, stream, "train.py:10 warm")
					s.Free("whole")
					s.Alloc("part", part*mib, stream, "train.py:11 forward")
					s.Alloc(fmt.Sprint("kept", i), (60-part)*mib, stream, "train.py:12 forward")
					s.Free("part")
				}
			},
			truth: truth{
				verdict: explain.Streams, cause: cause, live: (n-1)*30*mib + 10*mib, rounded: 50 * mib, segment: 50 * mib, reserved: n * 60 * mib,
				free: (n-1)*30*mib + 50*mib, usable: 30 * mib, largest: 30 * mib, streams: (n-2)*30*mib + 50*mib,
				served: n * 60 * mib, passes: n*60*mib + 50*mib,
			},
		})
	}
	list = append(list, story{
		name:      "small request",
		why:       "what is free on the other stream is of the large kind, which serves no request of 512 KiB",
		available: 101 * mib, request: asks(mib/2, 0),
		setup: func(s *scenario.Scenario) {
			split(s, 100, 70, 7)
			s.Free("front")
		},
		truth: truth{
			verdict: explain.Fragmentation, live: 30 * mib, rounded: mib / 2, segment: 2 * mib, reserved: 100 * mib,
			free: 70 * mib, streams: 70 * mib, served: 100 * mib, passes: 102 * mib,
		},
	}, story{
		name:      "whole segment of another stream",
		why:       "a flush releases it, so it is not in the way; what is live and asked for is too much",
		available: 100 * mib, request: asks(60*mib, 0),
		setup: func(s *scenario.Scenario) {
			held(s, 1, 50*mib)
			used(s, 40*mib, 7)
		},
		truth: truth{
			verdict: explain.Capacity, cause: explain.AbsurdRequest, // if the recording begins just before it
			live: 50 * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 50 * mib,
			served: 90 * mib, passes: 110 * mib, pinned: []pinned{},
		},
	})
	check(t, list)
}

// Where several verdicts apply, the first one is given.
func TestOrder(t *testing.T) {
	list := []story{{
		name:      "pools before streams",
		why:       "70 MiB are free in a graph's pool, and 70 on another stream",
		available: 240 * mib, request: asks(60*mib, 0),
		setup: func(s *scenario.Scenario) {
			s.Capture("g", []uint64{3}, func() { split(s, 100, 70, 3) })
			s.Free("front")
			s.Alloc("whole", 100*mib, 7, "train.py:10 warm")
			s.Free("whole")
			s.Alloc("front", 70*mib, 7, "train.py:11 forward")
			s.Alloc("kept", 30*mib, 7, "train.py:12 forward")
			s.Free("front")
		},
		truth: truth{
			verdict: explain.Pools, live: 60 * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 200 * mib,
			free: 140 * mib, pools: 70 * mib, streams: 70 * mib, served: 200 * mib, passes: 260 * mib,
		},
	}, {
		name:      "pending before streams",
		why:       "70 MiB wait for another stream, and 70 are free on a third",
		available: 240 * mib, request: asks(60*mib, 0), early: true,
		setup: func(s *scenario.Scenario) {
			split(s, 100, 70, 3)
			s.Free("front")
			s.Alloc("whole", 100*mib, 0, "train.py:10 warm")
			s.Free("whole")
			s.Alloc("front", 70*mib, 0, "train.py:11 forward")
			s.Alloc("kept", 30*mib, 0, "train.py:12 forward")
			later(s, "front")
		},
		truth: truth{
			verdict: explain.Pending, live: 60 * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 200 * mib, pending: 70 * mib,
			free: 140 * mib, usable: 70 * mib, largest: 70 * mib, streams: 70 * mib, served: 220 * mib, passes: 260 * mib, empties: true,
		},
	}, {
		name:      "streams before a setting",
		why:       "15 MiB are free on another stream; without the setting a segment of 20 would fit as well",
		available: 130 * mib, conf: "large_segment_size_mb:100", request: asks(3*mib, 0),
		setup: func(s *scenario.Scenario) {
			split(s, 100, 15, 7)
			s.Free("front")
		},
		truth: truth{
			verdict: explain.Streams, live: 85 * mib, rounded: 3 * mib, segment: 100 * mib, reserved: 100 * mib,
			free: 15 * mib, streams: 15 * mib, served: 100 * mib, passes: 200 * mib,
		},
	}}
	check(t, list)
}

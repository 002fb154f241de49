package explain_test

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// pin makes n segments of size MiB with a live block of part MiB in front and
// the rest free: each is filled before the next one is begun.
func pin(s *scenario.Scenario, n int, size, part, stream uint64) {
	for i := range n {
		s.Alloc("whole", size*mib, stream, "train.py:10 warm")
		s.Free("whole")
		s.Alloc(fmt.Sprint("pin", i, "on", stream), part*mib, stream, fmt.Sprintf("train.py:%d cache", 100+i))
		s.Alloc(fmt.Sprint("fill", i), (size-part)*mib, stream, "train.py:11 forward")
	}
	for i := range n {
		s.Free(fmt.Sprint("fill", i))
	}
}

// by describes a pinner of pin.
func by(part uint64, i int) []string {
	return []string{fmt.Sprintf("%s 1 train.py:%d cache", units.Size(part*mib), 100+i)}
}

func TestFragmentation(t *testing.T) {
	var list []story
	// The segments are equal, so any of them is the first to free; the report
	// takes them in the order of their addresses, the newest first.
	for n := uint64(1); n <= 4; n++ {
		for _, part := range []uint64{2, 10} {
			var pins []pinned
			for i := range n {
				pins = append(pins, pinned{60 * mib, (60 - part) * mib, by(part, int(n-1-i))})
			}
			list = append(list, story{
				name:      fmt.Sprintf("%d segments pinned by %d MiB", n, part),
				why:       "every segment has a piece that is a little too small, and a block in front of it that keeps it from release",
				available: n*60*mib + 40*mib, request: asks(60*mib, 0), setup: func(s *scenario.Scenario) { pin(s, int(n), 60, part, 0) },
				truth: truth{
					verdict: explain.Fragmentation, live: n * part * mib, rounded: 60 * mib, segment: 60 * mib, reserved: n * 60 * mib,
					free: n * (60 - part) * mib, usable: n * (60 - part) * mib, largest: (60 - part) * mib,
					served: n * 60 * mib, passes: (n + 1) * 60 * mib, pinned: pins, best: "expandable_segments:True",
				},
			})
		}
	}
	list = append(list, story{
		name:      "ranked",
		why:       "segments of 40, 60 and 100 MiB are pinned by 10 MiB each: the largest gives back most for a byte",
		available: 220 * mib, request: asks(95*mib, 0),
		setup: func(s *scenario.Scenario) {
			for i, size := range []uint64{60, 100, 40} {
				s.Alloc("whole", size*mib, 0, "train.py:10 warm")
				s.Free("whole")
				s.Alloc(fmt.Sprint("pin", i), 6*mib, 0, fmt.Sprintf("train.py:%d cache", 100+i))
				s.Alloc(fmt.Sprint("also", i), 4*mib, 0, "train.py:200 log")
				s.Alloc(fmt.Sprint("fill", i), (size-10)*mib, 0, "train.py:11 forward")
			}
			s.Free("fill0", "fill1", "fill2")
		},
		truth: truth{
			verdict: explain.Fragmentation, live: 30 * mib, rounded: 95 * mib, segment: 96 * mib, reserved: 200 * mib,
			free: 170 * mib, usable: 170 * mib, largest: 90 * mib, served: 200 * mib, passes: 296 * mib,
			pinned: []pinned{
				{100 * mib, 90 * mib, []string{"6.00 MiB 1 train.py:101 cache", "4.00 MiB 1 train.py:200 log"}},
				{60 * mib, 50 * mib, []string{"6.00 MiB 1 train.py:100 cache", "4.00 MiB 1 train.py:200 log"}},
				{40 * mib, 30 * mib, []string{"6.00 MiB 1 train.py:102 cache", "4.00 MiB 1 train.py:200 log"}},
			},
		},
	}, story{
		name:      "one block in the middle",
		why:       "two halves of 49 MiB are free around a block of 2; with it gone there are 100 in one piece",
		available: 150 * mib, request: asks(60*mib, 0),
		setup: func(s *scenario.Scenario) {
			s.Alloc("whole", 100*mib, 0, "train.py:10 warm")
			s.Free("whole")
			s.Alloc("left", 49*mib, 0, "train.py:11 forward")
			s.Alloc("pin", 2*mib, 0, "train.py:100 cache")
			s.Alloc("right", 49*mib, 0, "train.py:12 forward")
			s.Free("left", "right")
		},
		truth: truth{
			verdict: explain.Fragmentation, live: 2 * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 100 * mib,
			free: 98 * mib, usable: 98 * mib, largest: 49 * mib, served: 100 * mib, passes: 160 * mib,
			pinned: []pinned{{100 * mib, 98 * mib, by(2, 0)}},
		},
	}, story{
		name:      "the smallest change",
		why:       "of two pinned segments the older one is pinned by less",
		available: 160 * mib, request: asks(60*mib, 0),
		setup: func(s *scenario.Scenario) {
			for i, part := range []uint64{2, 10} {
				s.Alloc("whole", 60*mib, 0, "train.py:10 warm")
				s.Free("whole")
				s.Alloc(fmt.Sprint("pin", i), part*mib, 0, fmt.Sprintf("train.py:%d cache", 100+i))
				s.Alloc(fmt.Sprint("fill", i), (60-part)*mib, 0, "train.py:11 forward")
			}
			s.Free("fill0", "fill1")
		},
		truth: truth{
			verdict: explain.Fragmentation, live: 12 * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 120 * mib,
			free: 108 * mib, usable: 108 * mib, largest: 58 * mib, served: 120 * mib, passes: 180 * mib,
			pinned: []pinned{{60 * mib, 58 * mib, by(2, 0)}, {60 * mib, 50 * mib, by(10, 1)}},
		},
	}, story{
		name:      "nothing is stuck",
		why:       "4 MiB are left, but a request for 3 asks for a segment of 20",
		available: 104 * mib, request: asks(3*mib, 0), setup: func(s *scenario.Scenario) { held(s, 1, 100*mib) },
		truth: truth{
			verdict: explain.Fragmentation, live: 100 * mib, rounded: 3 * mib, segment: 20 * mib, reserved: 100 * mib,
			served: 100 * mib, passes: 120 * mib, pinned: []pinned{},
		},
	})
	for n := uint64(1); n <= 3; n++ {
		list = append(list, story{
			name:      fmt.Sprintf("%d small segments", n),
			why:       "1 KiB in the middle of every small segment leaves two pieces that are 512 bytes too small",
			available: n*2*mib + mib + 512*2, request: asks(mib, 0),
			setup: func(s *scenario.Scenario) {
				for i := range n {
					s.Alloc(fmt.Sprint("left", i), mib-512, 0, "train.py:11 forward")
					s.Alloc(fmt.Sprint("pin", i), 1000, 0, "train.py:100 cache")
					s.Alloc(fmt.Sprint("right", i), mib-512, 0, "train.py:12 forward")
				}
				for i := range n {
					s.Free(fmt.Sprint("left", i), fmt.Sprint("right", i))
				}
			},
			truth: truth{
				verdict: explain.Fragmentation, live: n * 1024, rounded: mib, segment: 2 * mib, reserved: n * 2 * mib,
				free: n * (2*mib - 1024), usable: n * (2*mib - 1024), largest: mib - 512,
				served: n * 2 * mib, passes: n*2*mib + 2*mib,
			},
		})
	}
	check(t, list)
}

// Settings that are on and make no difference are not to blame.
func TestFragmentationUnderSettings(t *testing.T) {
	var list []story
	for _, conf := range []string{
		"garbage_collection_threshold:0.8", "garbage_collection_threshold:0.5", "max_split_size_mb:64",
		"max_split_size_mb:512,garbage_collection_threshold:0.6", "roundup_power2_divisions:[256:1,512:2,>:4]",
		"large_segment_size_mb:22", "max_split_size_mb:64,max_non_split_rounding_mb:100",
	} {
		list = append(list, story{
			name:      conf,
			why:       "two segments are pinned, with the setting and without it",
			available: 160 * mib, conf: conf, request: asks(60*mib, 0), setup: func(s *scenario.Scenario) { pin(s, 2, 60, 12, 0) },
			truth: truth{
				verdict: explain.Fragmentation, live: 24 * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 120 * mib,
				free: 96 * mib, usable: 96 * mib, largest: 48 * mib, served: 120 * mib, passes: 180 * mib,
				pinned: []pinned{{60 * mib, 48 * mib, by(12, 1)}, {60 * mib, 48 * mib, by(12, 0)}},
			},
		})
	}
	check(t, list)
}

// Segments of many streams hold each other's memory.
func TestFragmentationByStreams(t *testing.T) {
	var list []story
	for n := uint64(2); n <= 5; n++ {
		list = append(list, story{
			name:      fmt.Sprintf("%d streams", n),
			why:       "every stream keeps a segment of 20 MiB for 5, and no piece is large enough for anybody",
			available: n*20*mib + 20*mib, request: asks(30*mib, 0),
			setup: func(s *scenario.Scenario) {
				for i := range n {
					s.Alloc(fmt.Sprint("kept", i), 5*mib, i, "train.py:12 forward")
				}
			},
			truth: truth{
				verdict: explain.Fragmentation, live: n * 5 * mib, rounded: 30 * mib, segment: 30 * mib, reserved: n * 20 * mib,
				free: n * 15 * mib, usable: 15 * mib, largest: 15 * mib, streams: (n - 1) * 15 * mib,
				served: n * 20 * mib, passes: n*20*mib + 30*mib,
			},
		})
	}
	check(t, list)
}

// In expandable segments whole granules of 20 MiB are given back; what is left
// of the others is stuck.
func TestFragmentationExpandable(t *testing.T) {
	var list []story
	for n := uint64(2); n <= 4; n++ {
		list = append(list, story{
			name:      fmt.Sprintf("%d granules", n),
			why:       "a block of 4 MiB in every granule keeps 16 MiB mapped",
			available: n*20*mib + 18*mib, conf: "expandable_segments:True", request: asks(30*mib, 0),
			setup: func(s *scenario.Scenario) {
				for i := range n {
					s.Alloc(fmt.Sprint("pin", i), 4*mib, 0, "train.py:100 cache")
					s.Alloc(fmt.Sprint("fill", i), 16*mib, 0, "train.py:11 forward")
				}
				for i := range n {
					s.Free(fmt.Sprint("fill", i))
				}
			},
			truth: truth{
				verdict: explain.Fragmentation, live: n * 4 * mib, rounded: 30 * mib, segment: 30 * mib, reserved: n * 20 * mib,
				free: n * 16 * mib, usable: n * 16 * mib, largest: 16 * mib, served: n * 20 * mib,
				// The last piece of 16 MiB is extended by one granule.
				passes: n*20*mib + 30*mib, passesDevice: n*20*mib + 20*mib,
				pinned: []pinned{{n * 20 * mib, n * 16 * mib, []string{fmt.Sprintf("%s %d train.py:100 cache", units.Size(n*4*mib), n)}}},
			},
		})
	}
	check(t, list)
}

package explain_test

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
)

// With one setting at its default the same program passes in the same room.
func TestSetting(t *testing.T) {
	var list []story
	// 65 MiB are rounded up to 80: the next multiple of 64/4 MiB.
	for n := uint64(2); n <= 4; n++ {
		list = append(list, story{
			name:      fmt.Sprintf("%d blocks rounded up", n),
			why:       "every block is 15 MiB larger than its tensor; without the rounding there is room",
			available: (n+1)*80*mib - 20*mib, conf: "roundup_power2_divisions:4", request: asks(80*mib, 0), early: true,
			setup: func(s *scenario.Scenario) { held(s, int(n), 65*mib) },
			truth: truth{
				verdict: explain.Setting, live: n * 80 * mib, rounded: 80 * mib, segment: 80 * mib, reserved: n * 80 * mib,
				served: n * 80 * mib, passes: (n + 1) * 80 * mib, pinned: []pinned{},
				// Without the setting tensors of 65 MiB take segments of 66.
				even: n*66*mib + 80*mib, settings: []string{""}, says: "with roundup_power2_divisions off from the beginning",
			},
		})
	}
	for n := uint64(2); n <= 5; n++ {
		list = append(list, story{
			name:      fmt.Sprintf("%d oversize blocks", n),
			why:       "blocks of 100 MiB hold tensors of 81, and what is left of them is kept from smaller requests",
			available: n * 100 * mib, conf: "max_split_size_mb:40", request: asks(15*mib, 0), early: true,
			setup: func(s *scenario.Scenario) {
				for i := range n {
					s.Alloc(fmt.Sprint("warm", i), 100*mib, 0, "train.py:10 warm")
				}
				for i := range n {
					s.Free(fmt.Sprint("warm", i))
				}
				for i := range n {
					s.Alloc(fmt.Sprint("act", i), 81*mib, 0, "train.py:11 forward")
				}
			},
			truth: truth{
				verdict: explain.Setting, live: n * 100 * mib, rounded: 15 * mib, segment: 16 * mib, reserved: n * 100 * mib,
				served: n * 100 * mib, passes: n*100*mib + 16*mib, pinned: []pinned{}, even: n * 100 * mib,
				settings: []string{""}, says: "with max_split_size_mb off from the beginning",
			},
		})
	}
	for _, size := range []uint64{64, 128} {
		list = append(list, story{
			name:      fmt.Sprintf("segments of %d MiB", size),
			why:       "for 3 MiB a whole segment of that size is asked for; one of 20 MiB has room",
			available: 130 * mib, conf: fmt.Sprintf("large_segment_size_mb:%d", size), request: asks(3*mib, 0),
			setup: func(s *scenario.Scenario) { held(s, 1, 100*mib) },
			truth: truth{
				verdict: explain.Setting, live: 100 * mib, rounded: 3 * mib, segment: size * mib, reserved: 100 * mib,
				served: 100 * mib, passes: (100 + size) * mib, pinned: []pinned{}, even: 120 * mib, below: explain.Fragmentation,
				settings: []string{""}, says: "with large_segment_size_mb off at this request",
			},
		})
	}
	for n := uint64(4); n <= 8; n += 2 {
		list = append(list, story{
			name:      fmt.Sprintf("expandable with %d streams", n),
			why:       "every stream maps 20 MiB for a tensor of 10; plain segments of 10 MiB leave room",
			available: n*20*mib + 18*mib, conf: "expandable_segments:True", request: asks(30*mib, 0), early: true,
			setup: func(s *scenario.Scenario) {
				for i := range n {
					s.Alloc(fmt.Sprint("act", i), 10*mib, i, "train.py:11 forward")
				}
			},
			truth: truth{
				verdict: explain.Setting, live: n * 10 * mib, rounded: 30 * mib, segment: 30 * mib, reserved: n * 20 * mib,
				free: n * 10 * mib, usable: 10 * mib, largest: 10 * mib, streams: (n - 1) * 10 * mib,
				// The limit is compared with 30 MiB more, but only 20 are mapped.
				served: (n-1)*20*mib + 10*mib, passes: n*20*mib + 30*mib, passesDevice: n*20*mib + 20*mib,
				settings: []string{""}, says: "with expandable_segments off from the beginning",
			},
		})
	}
	list = append(list, story{
		name:      "oversize slack",
		why:       "a tensor of 120 MiB sits in a block of 300, which max_non_split_rounding_mb allows",
		available: 350 * mib, conf: "max_split_size_mb:40,max_non_split_rounding_mb:200", request: asks(100*mib, 0), early: true,
		setup: func(s *scenario.Scenario) {
			used(s, 300*mib, 0)
			held(s, 1, 120*mib)
		},
		truth: truth{
			verdict: explain.Setting, live: 300 * mib, rounded: 100 * mib, segment: 100 * mib, reserved: 300 * mib,
			served: 300 * mib, passes: 400 * mib, pinned: []pinned{}, even: 300 * mib,
			settings: []string{"max_non_split_rounding_mb:200"}, says: "with max_split_size_mb off from the beginning",
		},
	})
	check(t, list)
}

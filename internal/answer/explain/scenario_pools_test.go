package explain_test

import (
	"fmt"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
)

// routed asks for memory inside use_mem_pool.
func routed(size uint64) func(*scenario.Scenario) {
	return func(s *scenario.Scenario) { s.InPool("p", func() { asks(size, 0)(s) }) }
}

// captured asks for memory inside a graph capture on stream 3.
func captured(size uint64) func(*scenario.Scenario) {
	return func(s *scenario.Scenario) { s.Capture("g", []uint64{3}, func() { asks(size, 3)(s) }) }
}

// A request under a route gets no flush (spec 8.4).
func TestRoutedRequest(t *testing.T) {
	var list []story
	for name, request := range map[string]func(*scenario.Scenario){
		"MemPool": routed(80 * mib), "capture": captured(80 * mib),
		"beside a capture": func(s *scenario.Scenario) { s.Capture("g", []uint64{3}, func() { asks(80*mib, 0)(s) }) },
	} {
		for _, cached := range []uint64{30, 60, 78} {
			list = append(list, story{
				name:      fmt.Sprintf("%s, %d MiB cached", name, cached),
				why:       "a flush would have released the cache and made room, but under a route there is none",
				available: (40+cached)*mib + 70*mib, request: request,
				setup: func(s *scenario.Scenario) {
					held(s, 1, 40*mib)
					used(s, cached*mib, 0)
				},
				truth: truth{
					verdict: explain.Pools, live: 40 * mib, rounded: 80 * mib, segment: 80 * mib,
					reserved: (40 + cached) * mib, free: cached * mib, served: (40 + cached) * mib,
					passes: (40 + cached + 80) * mib, empties: true, pinned: []pinned{},
					says: "PyTorch does not release its cache",
				},
			})
		}
	}
	list = append(list, story{
		name:      "second time in the pool",
		why:       "the pool has a piece of 60 MiB beside a live block, which is too small; the cache outside of it would have made room",
		available: 200 * mib, request: routed(70 * mib), early: true,
		setup: func(s *scenario.Scenario) {
			s.InPool("p", func() {
				s.Alloc("whole", 80*mib, 0, "graph.py:4 warm")
				s.Free("whole")
				s.Alloc("weights", 20*mib, 0, "graph.py:5 load")
			})
			used(s, 100*mib, 0)
		},
		truth: truth{
			verdict: explain.Pools, live: 20 * mib, rounded: 70 * mib, segment: 70 * mib, reserved: 180 * mib, free: 160 * mib,
			usable: 60 * mib, largest: 60 * mib, served: 180 * mib, passes: 250 * mib, empties: true,
			pinned: []pinned{{80 * mib, 60 * mib, []string{"20.00 MiB 1 graph.py:5 load"}}},
		},
	})
	check(t, list)
}

// Free memory in private pools is not released by a flush.
func TestFreeInPools(t *testing.T) {
	var list []story
	for _, size := range []uint64{50, 60, 90} {
		list = append(list, story{
			name:      fmt.Sprintf("MemPool of %d MiB", size),
			why:       "all that is missing lies free in a MemPool, in one segment that holds nothing",
			available: (40 + size + 45) * mib, request: asks(50*mib, 0),
			setup: func(s *scenario.Scenario) {
				held(s, 1, 40*mib)
				s.InPool("p", func() { used(s, size*mib, 0) })
			},
			truth: truth{
				verdict: explain.Pools, live: 40 * mib, rounded: 50 * mib, segment: 50 * mib, reserved: (40 + size) * mib,
				free: size * mib, pools: size * mib, served: (40 + size) * mib, passes: (90 + size) * mib, pinned: []pinned{},
				cures: []cure{{func(s *scenario.Scenario) { s.ClosePool("p") }, size * mib, "delete the MemPools"}},
			},
		})
	}
	for n := uint64(2); n <= 4; n++ {
		list = append(list, story{
			name:      fmt.Sprintf("%d segments of a graph", n),
			why:       "no segment of the pool is large enough, but all of them are empty and would make room",
			available: n*30*mib + 10*mib, request: asks(n*30*mib, 0),
			setup: func(s *scenario.Scenario) {
				s.Capture("g", []uint64{3}, func() {
					for i := range n {
						s.Alloc(fmt.Sprint("act", i), 30*mib, 3, "graph.py:9 forward")
					}
				})
				for i := range n {
					s.Free(fmt.Sprint("act", i))
				}
			},
			truth: truth{
				verdict: explain.Pools, rounded: n * 30 * mib, segment: n * 30 * mib, reserved: n * 30 * mib,
				free: n * 30 * mib, pools: n * 30 * mib, served: n * 30 * mib, passes: n * 60 * mib, pinned: []pinned{},
				cures: []cure{{func(s *scenario.Scenario) { s.ReleaseCapture("g") }, n * 30 * mib, "delete the MemPools or graphs"}},
			},
		})
	}
	for _, piece := range []uint64{60, 70} {
		list = append(list, story{
			name:      fmt.Sprintf("%d MiB in a segment of a graph", piece),
			why:       "they are free beside the output of a graph: nobody else may use them",
			available: 150 * mib, request: asks(60*mib, 0),
			setup: func(s *scenario.Scenario) {
				s.Capture("g", []uint64{3}, func() { split(s, 100, piece, 3) })
				s.Free("front")
			},
			truth: truth{
				verdict: explain.Pools, live: (100 - piece) * mib, rounded: 60 * mib, segment: 60 * mib, reserved: 100 * mib,
				free: piece * mib, pools: piece * mib, served: 100 * mib, passes: 160 * mib, pinned: []pinned{},
			},
		})
	}
	list = append(list, story{
		name:      "part of a granule",
		why:       "giving up the pool would unmap 60 of its 70 free MiB, and 20 with the 80 asked for are more than 95",
		available: 95 * mib, conf: "expandable_segments:True", request: asks(80*mib, 0),
		setup: func(s *scenario.Scenario) {
			s.InPool("p", func() {
				s.Alloc("weights", 10*mib, 0, "graph.py:4 load")
				used(s, 60*mib, 0)
			})
		},
		truth: truth{
			verdict: explain.Fragmentation, live: 10 * mib, rounded: 80 * mib, segment: 80 * mib, reserved: 80 * mib,
			free: 70 * mib, pools: 70 * mib, served: 80 * mib, passes: 160 * mib, pinned: []pinned{},
			even: 100 * mib, below: explain.Fragmentation, beyond: explain.Pools,
		},
	}, story{
		name:      "small request",
		why:       "what is free in the pool is of the large kind, which serves no request of 512 KiB",
		available: 101 * mib, request: asks(mib/2, 0),
		setup: func(s *scenario.Scenario) {
			s.Capture("g", []uint64{3}, func() { split(s, 100, 70, 3) })
			s.Free("front")
		},
		truth: truth{
			verdict: explain.Fragmentation, live: 30 * mib, rounded: mib / 2, segment: 2 * mib, reserved: 100 * mib,
			free: 70 * mib, pools: 70 * mib, served: 100 * mib, passes: 102 * mib, pinned: []pinned{},
		},
	}, story{
		name:      "expandable",
		why:       "60 MiB are mapped and free in a MemPool, beside a live block that keeps one granule",
		available: 120 * mib, conf: "expandable_segments:True", request: asks(80*mib, 0),
		setup: func(s *scenario.Scenario) {
			s.InPool("p", func() {
				s.Alloc("weights", 20*mib, 0, "graph.py:4 load")
				used(s, 60*mib, 0)
			})
		},
		truth: truth{
			verdict: explain.Pools, live: 20 * mib, rounded: 80 * mib, segment: 80 * mib, reserved: 80 * mib,
			free: 60 * mib, pools: 60 * mib, served: 80 * mib, passes: 160 * mib, pinned: []pinned{},
			cures: []cure{{func(s *scenario.Scenario) { s.ClosePool("p") }, 60 * mib, "delete the MemPools"}},
		},
	})
	check(t, list)
}

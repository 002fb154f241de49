package alloc_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

// told runs operations and returns the decisions of the last one.
func told(t *testing.T, conf string, limit uint64, ops func(a *alloc.Allocator, d *sim.Device, last func())) []alloc.Decision {
	t.Helper()
	s, err := settings.Parse(conf)
	if err != nil {
		t.Fatal(err)
	}
	var got []alloc.Decision
	d := sim.New(sim.Config{TotalMemory: 1 << 30, Events: sim.Manual})
	a := alloc.New(d, alloc.WithSettings(s), alloc.WithExplainer(func(x alloc.Decision) { got = append(got, x) }))
	if limit > 0 {
		a.SetLimit(limit)
	}
	ops(a, d, func() { got = nil })
	return got
}

// TestExplainer: the decisions of one operation, in order, with the numbers
// that decided. Spans are offsets from the first block, or at a second one.
func TestExplainer(t *testing.T) {
	malloc := func(a *alloc.Allocator, size uint64) uint64 { return must(a.Malloc(size, 0)) }
	var base, second uint64
	at := func(offset, size uint64) alloc.Span { return alloc.Span{Addr: base + offset, Size: size} }
	large := func(rounded uint64) alloc.PoolChoice {
		return alloc.PoolChoice{Rounded: rounded, SmallMax: mib, Large: true}
	}
	exact := func(size uint64) alloc.Rounding {
		return alloc.Rounding{Request: size, Rounded: size, Unit: 512}
	}
	for _, test := range []struct {
		name, conf string
		limit      uint64
		ops        func(a *alloc.Allocator, d *sim.Device, last func())
		want       func() []alloc.Decision
	}{
		{
			"small, new segment", "", 0,
			func(a *alloc.Allocator, _ *sim.Device, _ func()) { base = malloc(a, 1000) },
			func() []alloc.Decision {
				return []alloc.Decision{
					alloc.Rounding{Request: 1000, Rounded: 1024, Unit: 512},
					alloc.PoolChoice{Rounded: 1024, SmallMax: mib},
					alloc.NoFit{Rounded: 1024, Reason: alloc.TooSmall},
					alloc.SegmentChoice{Rounded: 1024, Segment: 2 * mib, Rule: alloc.SmallSegments, To: mib + 512},
					alloc.NewSegment{at(0, 2*mib)},
					alloc.Splitting{Block: at(0, 2*mib), Rounded: 1024, Rest: 2*mib - 1024, Reason: alloc.RestIsBlock, Bound: 512},
				}
			},
		},
		{
			"best fit, split", "", 0,
			func(a *alloc.Allocator, _ *sim.Device, last func()) {
				base = malloc(a, 12*mib)
				check(a.Free(base))
				last()
				malloc(a, 3*mib)
			},
			func() []alloc.Decision {
				return []alloc.Decision{
					exact(3 * mib), large(3 * mib),
					alloc.BestFit{Rounded: 3 * mib, Block: at(0, 12*mib), Smallest: at(0, 12*mib)},
					alloc.Splitting{Block: at(0, 12*mib), Rounded: 3 * mib, Rest: 9 * mib, Reason: alloc.RestAboveBound, Bound: mib},
				}
			},
		},
		{
			"exactly 1 MiB remains", "", 0,
			func(a *alloc.Allocator, _ *sim.Device, last func()) {
				base = malloc(a, 12*mib)
				check(a.Free(base))
				last()
				malloc(a, 11*mib)
			},
			func() []alloc.Decision {
				return []alloc.Decision{
					exact(11 * mib), large(11 * mib),
					alloc.BestFit{Rounded: 11 * mib, Block: at(0, 12*mib), Smallest: at(0, 12*mib)},
					alloc.Splitting{Block: at(0, 12*mib), Rounded: 11 * mib, Rest: mib, Reason: alloc.RestNotAboveBound, Bound: mib},
				}
			},
		},
		{
			"divisions", "roundup_power2_divisions:4", 0,
			func(a *alloc.Allocator, _ *sim.Device, _ func()) { base = malloc(a, 33*mib) },
			func() []alloc.Decision {
				return []alloc.Decision{
					alloc.Rounding{Request: 33 * mib, Rounded: 40 * mib, Unit: 8 * mib, Divisions: 4},
					large(40 * mib),
					alloc.NoFit{Rounded: 40 * mib, Large: true, Reason: alloc.TooSmall},
					alloc.SegmentChoice{Rounded: 40 * mib, Segment: 40 * mib, Rule: alloc.OwnSegment, From: 10 * mib, Unit: 2 * mib},
					alloc.NewSegment{at(0, 40*mib)},
					alloc.Splitting{Block: at(0, 40*mib), Rounded: 40 * mib, Reason: alloc.RestNotAboveBound, Bound: mib},
				}
			},
		},
		{
			"kept for large requests", "max_split_size_mb:50", 0,
			func(a *alloc.Allocator, _ *sim.Device, last func()) {
				base = malloc(a, 100*mib)
				check(a.Free(base))
				last()
				second = malloc(a, 60*mib) // would waste 40 MiB, more than 20
			},
			func() []alloc.Decision {
				segment := alloc.Span{Addr: second, Size: 60 * mib}
				return []alloc.Decision{
					exact(60 * mib), large(60 * mib),
					alloc.NoFit{
						Rounded: 60 * mib, Large: true, Reason: alloc.TooMuchLarger, Refused: at(0, 100*mib), Bound: 80 * mib,
						Free: 100 * mib, Blocks: 1, Largest: 100 * mib,
					},
					alloc.SegmentChoice{Rounded: 60 * mib, Segment: 60 * mib, Rule: alloc.OwnSegment, From: 10 * mib, Unit: 2 * mib},
					alloc.NewSegment{segment},
					alloc.Splitting{Block: segment, Rounded: 60 * mib, Reason: alloc.RequestIsLarge, Bound: 50 * mib},
				}
			},
		},
		{
			"merge with both", "", 0,
			func(a *alloc.Allocator, _ *sim.Device, last func()) {
				base = malloc(a, 4*mib)
				b, c := malloc(a, 5*mib), malloc(a, 6*mib)
				check(a.Free(base))
				check(a.Free(c))
				last()
				check(a.Free(b))
			},
			func() []alloc.Decision {
				return []alloc.Decision{alloc.Return{Block: at(4*mib, 5*mib), Left: 4 * mib, Right: 11 * mib, Whole: true, Large: true}}
			},
		},
		{
			"another stream", "", 0,
			func(a *alloc.Allocator, d *sim.Device, last func()) {
				base = malloc(a, 12*mib)
				check(a.RecordStream(base, 7))
				check(a.Free(base))
				last()
				check(a.Free(malloc(a, 100)))
				d.Complete(7)
				second = malloc(a, 100)
			},
			func() []alloc.Decision {
				small := alloc.PoolChoice{Rounded: 512, SmallMax: mib}
				round := alloc.Rounding{Request: 100, Rounded: 512, Unit: 512}
				seg := alloc.Span{Addr: second, Size: 2 * mib}
				split := alloc.Splitting{Block: seg, Rounded: 512, Rest: 2*mib - 512, Reason: alloc.RestIsBlock, Bound: 512}
				return []alloc.Decision{
					alloc.StillPending{Block: at(0, 12*mib), Stream: 7},
					round, small,
					alloc.NoFit{Rounded: 512, Reason: alloc.TooSmall},
					alloc.SegmentChoice{Rounded: 512, Segment: 2 * mib, Rule: alloc.SmallSegments, To: mib + 512},
					alloc.NewSegment{seg},
					split,
					alloc.Return{Block: alloc.Span{Addr: seg.Addr, Size: 512}, Right: 2*mib - 512, Whole: true},
					alloc.Passed{Block: at(0, 12*mib)},
					alloc.Return{Block: at(0, 12*mib), Whole: true, Large: true},
					round, small,
					alloc.BestFit{Rounded: 512, Block: seg, Smallest: seg},
					split,
				}
			},
		},
		{
			"collection, limit, release, failure", "garbage_collection_threshold:0.5", 100 * mib,
			func(a *alloc.Allocator, _ *sim.Device, last func()) {
				base = malloc(a, 4*mib)
				second = malloc(a, 40*mib)
				check(a.Free(malloc(a, 4*mib)))
				check(a.Free(second))
				last()
				if _, err := a.Malloc(90*mib, 0); err == nil {
					panic("90 MiB fit")
				}
			},
			func() []alloc.Decision {
				segment := alloc.Span{Addr: second, Size: 40 * mib}
				refusal := alloc.LimitRefusal{Reserved: 20 * mib, Segment: 90 * mib, Limit: 100 * mib}
				return []alloc.Decision{
					exact(90 * mib), large(90 * mib),
					alloc.NoFit{Rounded: 90 * mib, Large: true, Reason: alloc.TooSmall, Free: 56 * mib, Blocks: 2, Largest: 40 * mib},
					alloc.Collection{Reserved: 60 * mib, Threshold: 50 * mib, Limit: 100 * mib, Candidates: 1},
					alloc.Aging{Segment: segment, Age: 1, Average: 1, Released: true},
					alloc.Released{segment},
					alloc.SegmentChoice{Rounded: 90 * mib, Segment: 90 * mib, Rule: alloc.OwnSegment, From: 10 * mib, Unit: 2 * mib, Limited: true},
					refusal,
					alloc.FullRelease{Retry: true},
					alloc.Pinned{Block: at(4*mib, 16*mib)},
					refusal,
				}
			},
		},
		{
			"mapping", "expandable_segments:True", 0,
			func(a *alloc.Allocator, _ *sim.Device, last func()) {
				base = malloc(a, 12*mib)
				check(a.Free(base))
				last()
				malloc(a, 30*mib)
			},
			func() []alloc.Decision {
				choice := large(30 * mib)
				choice.Expandable = true
				return []alloc.Decision{
					exact(30 * mib), choice,
					alloc.NoFit{Rounded: 30 * mib, Large: true, Reason: alloc.TooSmall, Free: 20 * mib, Blocks: 1, Largest: 20 * mib},
					alloc.SegmentChoice{Rounded: 30 * mib, Segment: 30 * mib, Rule: alloc.OwnSegment, From: 10 * mib, Unit: 2 * mib, Expandable: true},
					alloc.Growth{Addr: base, Free: 20 * mib, Rounded: 30 * mib},
					alloc.Mapping{Mapped: at(20*mib, 20*mib), Missing: 10 * mib, Granule: 20 * mib},
					alloc.Splitting{Block: at(0, 40*mib), Rounded: 30 * mib, Rest: 10 * mib, Reason: alloc.RestIsBlock, Bound: 512},
				}
			},
		},
		{
			"unmapping", "expandable_segments:True", 0,
			func(a *alloc.Allocator, _ *sim.Device, last func()) {
				base = malloc(a, 12*mib)
				check(a.Free(malloc(a, 25*mib)))
				last()
				check(a.EmptyCache())
			},
			func() []alloc.Decision {
				return []alloc.Decision{
					alloc.FullRelease{},
					alloc.Unmapping{Block: at(12*mib, 28*mib), Unmapped: at(20*mib, 20*mib), Granule: 20 * mib},
				}
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := told(t, test.conf, test.limit, test.ops)
			if d := cmp.Diff(test.want(), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestExplainerIsSilent: an allocator that explains itself does the same as one
// that does not, and what it says agrees with its events.
func TestExplainerIsSilent(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:40,garbage_collection_threshold:0.6", "roundup_power2_divisions:4"} {
		s, err := settings.Parse(conf)
		if err != nil {
			t.Fatal(err)
		}
		run := func(o ...alloc.Option) (events []alloc.Event, stats alloc.Stats) {
			o = append(o, alloc.WithSettings(s), alloc.WithObserver(func(e alloc.Event) { events = append(events, e) }))
			d := sim.New(sim.Config{TotalMemory: 1 << 30, Events: sim.Manual})
			a := alloc.New(d, o...)
			a.SetLimit(600 * mib)
			r := rand.New(rand.NewPCG(1, 2))
			var live []uint64
			for range 4000 {
				switch n := r.IntN(20); {
				case n < 10 || len(live) == 0:
					if addr, err := a.Malloc(1<<r.IntN(26)+uint64(r.IntN(5000)), uint64(r.IntN(3))); err == nil {
						live = append(live, addr)
					}
				case n < 18:
					i := r.IntN(len(live))
					check(a.Free(live[i]))
					live[i] = live[len(live)-1]
					live = live[:len(live)-1]
				case n == 18:
					check(a.RecordStream(live[r.IntN(len(live))], uint64(r.IntN(3))))
				default:
					d.Complete(uint64(r.IntN(3)))
					if r.IntN(4) == 0 {
						check(a.EmptyCache())
					}
				}
			}
			return events, a.Stats()
		}
		count := map[string]int{}
		want, wantStats := run()
		got, gotStats := run(alloc.WithExplainer(func(d alloc.Decision) {
			name := fmt.Sprintf("%T", d)
			if s, ok := d.(alloc.StreamUse); ok && s.Own {
				return
			}
			count[name]++
		}))
		if d := cmp.Diff(want, got); d != "" || wantStats != gotStats {
			t.Fatalf("%q: explaining changes what happens:\n%s", conf, d)
		}
		seen := map[alloc.Action]int{}
		for _, e := range got {
			seen[e.Action]++
		}
		for _, c := range []struct {
			what      string
			told, saw int
		}{
			{"requests", count["alloc.Rounding"], seen[alloc.ActionAlloc] + seen[alloc.ActionOOM]},
			{"searches", count["alloc.BestFit"] + count["alloc.NoFit"], count["alloc.PoolChoice"]},
			{"splits", count["alloc.Splitting"], seen[alloc.ActionAlloc]},
			{"segments", count["alloc.NewSegment"], seen[alloc.ActionSegmentAlloc]},
			{"mappings", count["alloc.Mapping"], seen[alloc.ActionSegmentMap]},
			{"releases", count["alloc.Released"], seen[alloc.ActionSegmentFree]},
			{"unmappings", count["alloc.Unmapping"], seen[alloc.ActionSegmentUnmap]},
			{"returns", count["alloc.Return"], seen[alloc.ActionFreeCompleted]},
		} {
			if c.told != c.saw {
				t.Errorf("%q: %d %s are told, %d happened", conf, c.told, c.what, c.saw)
			}
		}
		if seen[alloc.ActionOOM] == 0 || count["alloc.Pending"] == 0 || count["alloc.Passed"] == 0 {
			t.Errorf("%q: the run has no failure or no pending block: %v", conf, count)
		}
	}
}

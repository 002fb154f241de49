package export

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// Slices of one track must lie inside each other. What overlaps otherwise goes
// on tracks of its own, which Perfetto shows as one because they share their
// name.

// lanes are tracks for slices that come and go in any order, one at a time on
// each. The lowest free one is taken.
type lanes struct{ free laneHeap }

func (l *lanes) take(create func() (uint64, error)) (uint64, error) {
	if len(l.free) > 0 {
		return heap.Pop(&l.free).(uint64), nil
	}
	return create()
}

func (l *lanes) give(track uint64) { heap.Push(&l.free, track) }

type laneHeap []uint64

func (h laneHeap) Len() int           { return len(h) }
func (h laneHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h laneHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laneHeap) Push(x any)        { *h = append(*h, x.(uint64)) }
func (h *laneHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// nest distributes ranges over as few lanes as a simple search finds, so that
// those of one lane lie inside each other or apart.
func nest(ranges []timeline.Range) [][]timeline.Range {
	ranges = slices.Clone(ranges)
	slices.SortStableFunc(ranges, func(a, b timeline.Range) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(b.End, a.End))
	})
	var out [][]timeline.Range
	var open [][]int64 // for each lane the ends of the ranges around now
	for _, r := range ranges {
		lane := 0
		for ; lane < len(open); lane++ {
			o := open[lane]
			for len(o) > 0 && o[len(o)-1] <= r.Begin {
				o = o[:len(o)-1]
			}
			open[lane] = o
			if len(o) == 0 || r.End <= o[len(o)-1] {
				break
			}
		}
		if lane == len(open) {
			open, out = append(open, nil), append(out, nil)
		}
		open[lane] = append(open[lane], r.End)
		out[lane] = append(out[lane], r)
	}
	return out
}

// annotations writes the ranges of the program.
func (d *deviceWriter) annotations() error {
	if !d.times {
		return nil
	}
	for _, lane := range nest(d.run.Annotations().Ranges) {
		track, err := d.track(d.root, "annotations", rankAnnotations, false)
		if err != nil {
			return err
		}
		var open []int64
		end := func(until int64) error {
			for len(open) > 0 && open[len(open)-1] <= until {
				last := open[len(open)-1]
				open = open[:len(open)-1]
				if last == math.MaxInt64 {
					continue // the file does not show its end
				}
				if err := d.packetWriter.event(d.ns(last), endOf(track)); err != nil {
					return err
				}
			}
			return nil
		}
		for _, r := range lane {
			if err := end(r.Begin); err != nil {
				return err
			}
			begin := r.Begin
			if begin == math.MinInt64 { // it began before the recording
				begin = d.earliest
			}
			if err := d.packetWriter.event(d.ns(begin), d.newEvent(typeBegin, track, categoryAnnotation, r.Name)); err != nil {
				return err
			}
			open = append(open, r.End)
		}
		if err := end(math.MaxInt64); err != nil {
			return err
		}
	}
	return nil
}

package placement

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// planner places buffers one after the other. It numbers them by when they begin;
// time is counted in these numbers, so that a buffer lives from its own number until
// that of the first which begins when it has ended.
type planner struct {
	buffers []Buffer // by Lower
	ends    []int32  // number -> the number at which it has ended
	place   []int32  // number -> place in the problem; nil if they are the same
	lies    []span   // number -> where it lies, if it was placed
	taken   lifetimes
	gaps    gaps
}

// noBound is above every plan.
const noBound = math.MaxUint64

func newPlanner(buffers []Buffer) *planner {
	p := &planner{buffers: buffers}
	idle := func(b Buffer) bool { return b.Lower >= b.Upper || b.Size == 0 }
	if slices.ContainsFunc(buffers, idle) || !slices.IsSortedFunc(buffers, func(a, b Buffer) int { return cmp.Compare(a.Lower, b.Lower) }) {
		p.place = byTime(buffers, func(b *Buffer) int64 { return b.Lower })
		p.place = slices.DeleteFunc(p.place, func(i int32) bool { return idle(buffers[i]) })
		p.buffers = make([]Buffer, len(p.place))
		for i, at := range p.place {
			p.buffers[i] = buffers[at]
		}
	}
	p.lies = make([]span, len(p.buffers))
	p.ends = make([]int32, len(p.buffers))
	for i, b := range p.buffers {
		after, _ := slices.BinarySearchFunc(p.buffers[i:], b.Upper, func(c Buffer, upper int64) int { return cmp.Compare(c.Lower, upper) })
		p.ends[i] = int32(i + after)
	}
	p.taken.planner = p
	return p
}

// bySize is the order of the greedy plan: the largest first.
func (p *planner) bySize() []int32 {
	return p.order(func(b Buffer) float64 { return float64(b.Size) })
}

// order sorts the buffers by a weight, the heaviest first, of equals the one that lives
// longest, then the one that begins first.
func (p *planner) order(weight func(Buffer) float64) []int32 {
	out := make([]int32, len(p.buffers))
	weights := make([]float64, len(p.buffers))
	for i, b := range p.buffers {
		out[i], weights[i] = int32(i), weight(b)
	}
	slices.SortFunc(out, func(a, b int32) int {
		if weights[a] != weights[b] {
			return cmp.Compare(weights[b], weights[a])
		}
		x, y := &p.buffers[a], &p.buffers[b]
		return cmp.Or(cmp.Compare(y.Upper-y.Lower, x.Upper-x.Lower), cmp.Compare(a, b))
	})
	return out
}

// run places all buffers in an order, each as low as it can be. It gives up, and
// reports false, once the plan is as high as most.
func (p *planner) run(ctx context.Context, order []int32, most uint64) (height uint64, ok bool) {
	p.taken.reset(len(p.buffers))
	for n, i := range order {
		if n%256 == 255 && ctx.Err() != nil {
			return height, false
		}
		size := p.buffers[i].Size
		at := p.gaps.lowest(p.taken.during(i), size, height)
		p.lies[i] = span{at, at + size}
		p.taken.add(i)
		if height = max(height, at+size); height >= most {
			return height, false
		}
	}
	return height, true
}

// plan returns the offsets of the last run.
func (p *planner) plan(buffers int, height uint64) *Plan {
	out := &Plan{Offsets: make([]uint64, buffers), Height: height}
	for i, x := range p.lies {
		at := i
		if p.place != nil {
			at = int(p.place[i])
		}
		out.Offsets[at] = x.from
	}
	return out
}

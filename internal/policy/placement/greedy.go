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
	place   []int32  // number -> place in the problem
	offsets []uint64
	taken   lifetimes
}

// unplaced is the offset of a buffer without one.
const unplaced = math.MaxUint64

func newPlanner(buffers []Buffer) *planner {
	p := &planner{place: make([]int32, 0, len(buffers))}
	for i, b := range buffers {
		if b.Lower < b.Upper && b.Size > 0 {
			p.place = append(p.place, int32(i))
		}
	}
	slices.SortStableFunc(p.place, func(a, b int32) int { return cmp.Compare(buffers[a].Lower, buffers[b].Lower) })
	p.buffers = make([]Buffer, len(p.place))
	p.offsets = make([]uint64, len(p.place))
	p.ends = make([]int32, len(p.place))
	for i, at := range p.place {
		p.buffers[i] = buffers[at]
	}
	for i, b := range p.buffers {
		after, _ := slices.BinarySearchFunc(p.buffers[i:], b.Upper, func(c Buffer, upper int64) int { return cmp.Compare(c.Lower, upper) })
		p.ends[i] = int32(i + after)
	}
	p.taken.planner = p
	return p
}

// bySize is the order of the greedy plan: the largest first, of equals the one that
// lives longest.
func (p *planner) bySize() []int32 {
	return p.order(func(b Buffer) float64 { return float64(b.Size) })
}

// order sorts the buffers by a weight, the heaviest first.
func (p *planner) order(weight func(Buffer) float64) []int32 {
	out := make([]int32, len(p.buffers))
	weights := make([]float64, len(p.buffers))
	for i, b := range p.buffers {
		out[i], weights[i] = int32(i), weight(b)
	}
	slices.SortStableFunc(out, func(a, b int32) int {
		x, y := p.buffers[a], p.buffers[b]
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(y.Upper-y.Lower, x.Upper-x.Lower))
	})
	return out
}

// run places all buffers in an order, each as low as it can be. It gives up, and
// reports false, once the plan is as high as most.
func (p *planner) run(ctx context.Context, order []int32, most uint64) (height uint64, ok bool) {
	for i := range p.offsets {
		p.offsets[i] = unplaced
	}
	p.taken.reset(len(p.buffers))
	for n, i := range order {
		if n%256 == 255 && ctx.Err() != nil {
			return height, false
		}
		size := p.buffers[i].Size
		at := lowest(p.taken.during(i), size)
		p.offsets[i] = at
		p.taken.add(i)
		if height = max(height, at+size); height >= most {
			return height, false
		}
	}
	return height, true
}

// lowest returns the lowest offset at which there is room beside what is taken: it
// goes upwards through that until there is a gap.
func lowest(taken []span, size uint64) uint64 {
	slices.SortFunc(taken, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var at uint64
	for _, s := range taken {
		if s.from >= at+size {
			break
		}
		at = max(at, s.to)
	}
	return at
}

// plan returns the offsets of the last run.
func (p *planner) plan(buffers int, height uint64) *Plan {
	out := &Plan{Offsets: make([]uint64, buffers), Height: height}
	for i, at := range p.place {
		out.Offsets[at] = p.offsets[i]
	}
	return out
}

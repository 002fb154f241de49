package placement

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// planner places buffers one after the other. It numbers them by when they begin.
type planner struct {
	buffers []Buffer // by Lower
	place   []int32  // number -> place in the problem
	spread  int      // how many buffers lie between two checkpoints
	// live are for every spread-th buffer those that began before it and live when it
	// begins.
	live    [][]int32
	offsets []uint64
	near    []extent // scratch
}

// extent is memory that is taken.
type extent struct{ from, to uint64 }

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
	for i, at := range p.place {
		p.buffers[i] = buffers[at]
	}
	p.checkpoint()
	return p
}

// checkpoint notes what is live at every spread-th buffer.
func (p *planner) checkpoint() {
	p.spread = 128
	var live []int32
	for i, b := range p.buffers {
		if i%p.spread == 0 {
			live = slices.DeleteFunc(live, func(j int32) bool { return p.buffers[j].Upper <= b.Lower })
			p.live = append(p.live, slices.Clone(live))
		}
		live = append(live, int32(i))
	}
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
	for n, i := range order {
		if n%1024 == 1023 && ctx.Err() != nil {
			return height, false
		}
		at := p.lowest(i)
		p.offsets[i] = at
		if height = max(height, at+p.buffers[i].Size); height >= most {
			return height, false
		}
	}
	return height, true
}

// lowest returns the lowest offset at which a buffer overlaps none that is placed.
func (p *planner) lowest(i int32) uint64 {
	p.collect(i)
	slices.SortFunc(p.near, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	var at uint64
	size := p.buffers[i].Size
	for _, e := range p.near {
		if e.from >= at+size && e.from >= at {
			break
		}
		at = max(at, e.to)
	}
	return at
}

// collect finds the placed buffers that live at the same time as another one.
func (p *planner) collect(i int32) {
	p.near = p.near[:0]
	b := p.buffers[i]
	add := func(j int32) {
		if p.offsets[j] != unplaced {
			p.near = append(p.near, extent{p.offsets[j], p.offsets[j] + p.buffers[j].Size})
		}
	}
	check := int(i) / p.spread
	for _, j := range p.live[check] {
		if p.buffers[j].Upper > b.Lower {
			add(j)
		}
	}
	for j := check * p.spread; j < int(i); j++ {
		if p.buffers[j].Upper > b.Lower {
			add(int32(j))
		}
	}
	for j := int(i) + 1; j < len(p.buffers) && p.buffers[j].Lower < b.Upper; j++ {
		add(int32(j))
	}
}

// plan returns the offsets of the last run.
func (p *planner) plan(buffers int, height uint64) *Plan {
	out := &Plan{Offsets: make([]uint64, buffers), Height: height}
	for i, at := range p.place {
		out.Offsets[at] = p.offsets[i]
	}
	return out
}

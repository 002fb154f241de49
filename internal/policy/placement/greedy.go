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
	offsets []uint64
	// live are for every spread-th buffer those that are placed, began before it and
	// live when it begins, in the order of their offsets.
	live [][]int32
	near []int32 // scratch
}

// spread is how many buffers lie between two checkpoints.
const spread = 128

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
	p.live = make([][]int32, (len(p.buffers)+spread-1)/spread)
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
	for i := range p.live {
		p.live[i] = p.live[i][:0]
	}
	for n, i := range order {
		if n%256 == 255 && ctx.Err() != nil {
			return height, false
		}
		at := p.lowest(i)
		p.offsets[i] = at
		p.enter(i)
		if height = max(height, at+p.buffers[i].Size); height >= most {
			return height, false
		}
	}
	return height, true
}

// enter puts a placed buffer into the checkpoints of its life.
func (p *planner) enter(i int32) {
	for c := int(i)/spread + 1; c < len(p.live) && p.buffers[c*spread].Lower < p.buffers[i].Upper; c++ {
		at, _ := slices.BinarySearchFunc(p.live[c], i, p.byOffset)
		p.live[c] = slices.Insert(p.live[c], at, i)
	}
}

func (p *planner) byOffset(i, j int32) int {
	return cmp.Or(cmp.Compare(p.offsets[i], p.offsets[j]), cmp.Compare(i, j))
}

// lowest returns the lowest offset at which a buffer overlaps none that is placed:
// it goes upwards through those that live at the same time until there is a gap.
func (p *planner) lowest(i int32) uint64 {
	b := p.buffers[i]
	older, near := p.live[int(i)/spread], p.collect(i)
	var at uint64
	for len(older)+len(near) > 0 {
		var j int32
		if len(near) == 0 || len(older) > 0 && p.byOffset(older[0], near[0]) < 0 {
			j, older = older[0], older[1:]
			if p.buffers[j].Upper <= b.Lower {
				continue
			}
		} else {
			j, near = near[0], near[1:]
		}
		if p.offsets[j] >= at+b.Size {
			break
		}
		at = max(at, p.offsets[j]+p.buffers[j].Size)
	}
	return at
}

// collect returns the placed buffers that live at the same time as another one and
// began after its checkpoint, in the order of their offsets.
func (p *planner) collect(i int32) []int32 {
	b := p.buffers[i]
	p.near = p.near[:0]
	for j := i / spread * spread; j < i; j++ {
		if p.offsets[j] != unplaced && p.buffers[j].Upper > b.Lower {
			p.near = append(p.near, j)
		}
	}
	for j := i + 1; int(j) < len(p.buffers) && p.buffers[j].Lower < b.Upper; j++ {
		if p.offsets[j] != unplaced {
			p.near = append(p.near, j)
		}
	}
	slices.SortFunc(p.near, p.byOffset)
	return p.near
}

// plan returns the offsets of the last run.
func (p *planner) plan(buffers int, height uint64) *Plan {
	out := &Plan{Offsets: make([]uint64, buffers), Height: height}
	for i, at := range p.place {
		out.Offsets[at] = p.offsets[i]
	}
	return out
}

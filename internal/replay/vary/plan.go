package vary

import (
	"sort"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

// plan says of a program what belongs to which step. Parts are numbered: -1 is
// what comes before the first step, from 0 on the steps, then the rest.
type plan struct {
	program *replay.Program
	bounds  []int  // first call of each step, and of the rest
	fixed   []bool // steps that can neither move nor be left out
	tensors []tensor
	slots   int
}

// tensor is what becomes of a tensor.
type tensor struct {
	born, dead int32 // parts
	// slot is the place that it takes over from a tensor of an earlier step or
	// hands on to one of a later step; -1 if there is none.
	slot int32
	// heir: the step that frees it leaves another in its slot; heirOf: it is that
	// other one.
	heir, heirOf bool
}

const never = 1<<31 - 1

// kind is what tensors have in common that can take each other's place.
type kind struct {
	size, stream uint64
	pool         alloc.PoolID
}

func newPlan(p *replay.Program, steps [][2]int) *plan {
	pl := &plan{program: p, fixed: make([]bool, len(steps)), tensors: make([]tensor, p.Tensors())}
	for i, s := range steps {
		pl.bounds = append(pl.bounds, firstCall(p, s[0]))
		if i == len(steps)-1 {
			pl.bounds = append(pl.bounds, firstCall(p, s[1]))
		}
	}
	if len(steps) == 0 {
		pl.bounds = []int{0}
	}
	for i := range pl.tensors {
		pl.tensors[i] = tensor{born: -1, dead: never, slot: -1}
	}
	pl.lives()
	pl.handOn()
	return pl
}

// firstCall returns the first call at or after an event.
func firstCall(p *replay.Program, event int) int {
	return sort.Search(p.Len(), func(i int) bool { return p.Call(i).Event >= event })
}

// each calls f for the calls of each part, in order.
func (pl *plan) each(f func(part int32, c *replay.Call)) {
	part := int32(-1)
	for i := range pl.program.Len() {
		for int(part+1) < len(pl.bounds) && i >= pl.bounds[part+1] {
			part++
		}
		c := pl.program.Call(i)
		f(part, &c)
	}
}

// lives finds the parts in which tensors are born and die.
func (pl *plan) lives() {
	pl.each(func(part int32, c *replay.Call) {
		switch c.Kind {
		case replay.CallAlloc:
			pl.tensors[c.Tensor].born = part
		case replay.CallFree, replay.CallFreeLater:
			pl.tensors[c.Tensor].dead = part
		case replay.CallClosePool:
			if part >= 0 && int(part) < len(pl.fixed) {
				pl.fixed[part] = true
			}
		}
	})
}

// handOn pairs what a step frees of earlier parts with what it leaves behind: the
// first of a kind with the first, and so on.
func (pl *plan) handOn() {
	kinds := make([]kind, len(pl.tensors))
	n := 0
	for _, s := range pl.program.Start.Segments {
		for _, b := range s.Blocks {
			kinds[n] = kind{b.RequestedSize, s.Stream, s.Pool}
			n++
		}
	}
	old, left := map[kind][]int{}, map[kind][]int{}
	now := int32(-1)
	vacant := map[kind][]int32{} // slots whose last tensor was freed and not replaced
	pair := func() {
		for k, to := range left {
			from := old[k]
			for i, t := range to {
				y := &pl.tensors[t]
				if i >= len(from) {
					if n := len(vacant[k]); n > 0 {
						y.slot, vacant[k] = vacant[k][n-1], vacant[k][:n-1]
					}
					continue
				}
				x := &pl.tensors[from[i]]
				if x.slot < 0 {
					x.slot = int32(pl.slots)
					pl.slots++
				}
				x.heir, y.heirOf, y.slot = true, true, x.slot
			}
		}
		for k, from := range old {
			for _, t := range from[min(len(from), len(left[k])):] {
				if slot := pl.tensors[t].slot; slot >= 0 {
					vacant[k] = append(vacant[k], slot)
				}
			}
		}
		clear(old)
		clear(left)
	}
	pl.each(func(part int32, c *replay.Call) {
		if part != now {
			pair()
			now = part
		}
		if c.Kind == replay.CallAlloc {
			kinds[c.Tensor] = kind{c.Size, c.Stream, c.Pool}
		}
		if part < 0 || int(part) >= len(pl.fixed) {
			return
		}
		switch t := pl.tensors[max(c.Tensor, 0)]; {
		case c.Kind == replay.CallAlloc && t.dead > part:
			left[kinds[c.Tensor]] = append(left[kinds[c.Tensor]], c.Tensor)
		case (c.Kind == replay.CallFree || c.Kind == replay.CallFreeLater) && t.born < part:
			old[kinds[c.Tensor]] = append(old[kinds[c.Tensor]], c.Tensor)
		}
	})
	pair()
}

// scales reports whether a tensor's size depends on what the program works on:
// what is made before the first step or outlives its step does not. Without
// steps nothing is known, and all do.
func (pl *plan) scales(t int) bool {
	x := &pl.tensors[t]
	return len(pl.fixed) == 0 || int(x.born) == len(pl.fixed) || x.born >= 0 && x.born == x.dead
}

// lasting reports whether a call of the first step is one that the others rest
// on: it makes what stays, such as the optimizer's state, or frees what was made
// before the first step.
func (pl *plan) lasting(c *replay.Call) bool {
	if c.Tensor < 0 || c.Kind == replay.CallComplete {
		return false
	}
	t := &pl.tensors[c.Tensor]
	return t.slot < 0 && (t.born == 0 && t.dead > 0 || t.born < 0 && t.dead == 0)
}

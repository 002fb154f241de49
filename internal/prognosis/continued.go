package prognosis

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/replay"
)

// Continued is a recording with the steps that would have followed, for who asks more of them than how far they get.
type Continued struct {
	Program *replay.Program
	// Begins are the events with which steps begin. The first Recorded of them are in the recording; the last of
	// these is the step that failed.
	Begins   []int
	Recorded int
	RestsOn  string

	recorded int // tensors
	like     []int32
}

// Like returns the recorded tensor in whose place one is, itself if it is recorded; -1 if there is none.
func (c *Continued) Like(tensor int) int {
	if tensor < c.recorded {
		return tensor
	}
	return int(c.like[tensor-c.recorded])
}

// continuation returns a chain for others to see.
func (c *chain) continuation(restsOn string) *Continued {
	out := &Continued{Program: c.to.Program(), RestsOn: restsOn, recorded: c.h.program.Tensors(), like: c.like}
	for _, call := range c.h.begin {
		out.Begins = append(out.Begins, c.h.program.Call(call).Event)
	}
	out.Recorded = len(out.Begins)
	for _, end := range c.ends[:len(c.ends)-1] {
		out.Begins = append(out.Begins, end+1)
	}
	return out
}

// Continued returns the steps that follow; nil if no earlier one shows how the failing one goes on.
func (p *Prognosis) Continued() *Continued {
	if !p.Matched {
		return nil
	}
	return p.chain.continuation(p.restsOn())
}

// firstSteps is how often a first step is played again.
const firstSteps = 6

// ContinuedFirst continues a first step that failed while a series was made that stays, as the state of an optimizer
// does: the series goes on to its end, and the step comes again without it. What else the step has left is freed
// before, as gradients are. If passing is true, the optimizer makes a tensor for each one of a part of the series at the end of
// each step and frees it, as those of PyTorch do that are not fused. It is nil if there is no such series.
func (p *Prognosis) ContinuedFirst(passing bool) *Continued {
	h, s := p.history, p.Series
	if s == nil || p.Matched || h.failing() != 0 {
		return nil
	}
	ofSeries := func(i int) bool {
		return h.allocs[i].key.after == 0 && slices.Contains(s.Stacks, h.allocs[i].key.stack)
	}
	like, sizes := int32(-1), []uint64{}
	for i := h.sinceFailing(); i < len(h.allocs); i++ {
		if ofSeries(i) && h.allocs[i].freed < 0 {
			like = h.allocs[i].tensor
			if h.allocs[i].key.stack == h.wanted.stack {
				sizes = append(sizes, h.allocs[i].size)
			}
		}
	}
	sizes = append(append(sizes, h.request.Size), s.rest[slices.Index(s.Stacks, h.wanted.stack)]...)
	c := newChain(h, Edit{})
	c.request(like)
	for k := range slices.Max(lengths(s.rest)) {
		for _, rest := range s.rest {
			if k < len(rest) {
				c.add(replay.Call{Size: rest[k], Stream: h.request.Stream, Pool: h.request.Pool}, like)
			}
		}
	}
	through := func() {
		if passing {
			c.pass(sizes)
		}
	}
	through()
	for i := h.sinceFailing(); i < len(h.allocs); i++ {
		if !ofSeries(i) {
			c.free(h.allocs[i].tensor)
		}
	}
	c.end()
	// From here on: the recorded calls stay as they are.
	c.edit = Edit{
		Size: func(position int, size uint64) uint64 {
			if ofSeries(position) && h.allocs[position].freed < 0 {
				return 0
			}
			return size
		},
		Drop: func(position int) bool { return h.allocs[position].freed < 0 },
	}
	c.last = through
	for range firstSteps {
		c.play(0, h.begin[0], func(position int) uint64 { return h.allocs[position].size }, nil)
	}
	return c.continuation("the optimizer makes its state to the end, then the first step comes again")
}

// pass allocates some tensors and frees them.
func (c *chain) pass(sizes []uint64) {
	made := make([]int32, len(sizes))
	for i, size := range sizes {
		made[i] = c.add(replay.Call{Size: size, Stream: c.h.request.Stream, Pool: c.h.request.Pool}, -1)
	}
	for _, t := range made {
		c.free(t)
	}
}

func lengths(lists [][]uint64) (out []int) {
	for _, l := range lists {
		out = append(out, len(l))
	}
	return out
}

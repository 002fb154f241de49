package prognosis

import (
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/trace"
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

// ContinuedFirst continues a first step that failed in the optimizer. state are the stacks that make what stays there, a tensor
// for each parameter; if the request belongs to one, the series of sizes goes on to its end. Then the step comes again
// without them; what else it has left is freed before, as gradients are. If passing is true, the optimizer makes a tensor for
// each parameter at the end of each step and frees it, as those of PyTorch do that are not fused; so it does if it was
// at that when it failed. It is nil if this is no such step.
func (p *Prognosis) ContinuedFirst(state []trace.StackID, passing bool) *Continued {
	h, s := p.history, p.Series
	made := slices.Contains(state, h.wanted.stack) // the request is of the state
	if p.Matched || h.failing() != 0 || len(state) == 0 || h.wanted.after > 0 || made && s == nil {
		return nil
	}
	ofState := func(i int) bool {
		return h.allocs[i].key.after == 0 && h.allocs[i].freed < 0 && slices.Contains(state, h.allocs[i].key.stack)
	}
	one := state[0] // whose sizes are those of the parameters
	if made {
		one = h.wanted.stack
	}
	like, sizes, begun := int32(-1), []uint64{}, 0
	for i := h.sinceFailing(); i < len(h.allocs); i++ {
		switch a := &h.allocs[i]; {
		case ofState(i):
			like = a.tensor
			if a.key.stack == one {
				sizes = append(sizes, a.size)
			}
		case a.key == (key{stack: h.wanted.stack, nth: a.key.nth}) && a.freed < 0:
			begun++ // of those in passing
		}
	}
	c := newChain(h, Edit{})
	if made {
		c.request(like)
		c.finish(s, like)
		sizes = append(append(sizes, h.request.Size), s.rest[slices.Index(s.Stacks, one)]...)
	} else {
		c.request(-1)
	}
	through := func() { c.pass(sizes) }
	switch {
	case !made:
		c.pass(sizes[min(begun+1, len(sizes)):])
	case passing:
		through()
	}
	for _, t := range slices.Sorted(maps.Keys(c.live)) {
		if c.like[int(t)-h.program.Tensors()] < 0 {
			c.free(t) // the request, in passing
		}
	}
	for i := h.sinceFailing(); i < len(h.allocs); i++ {
		if !ofState(i) {
			c.free(h.allocs[i].tensor)
		}
	}
	c.end()
	// From here on, so that the recorded calls stay as they are.
	c.edit = Edit{
		Size: func(position int, size uint64) uint64 {
			if a := &h.allocs[position]; ofState(position) || a.key.stack == h.wanted.stack && a.key.after == 0 {
				return 0
			}
			return size
		},
		Drop: func(position int) bool { return h.allocs[position].freed < 0 },
	}
	if passing || !made {
		c.last = through
	}
	for range firstSteps {
		c.play(0, h.begin[0], func(position int) uint64 { return h.allocs[position].size }, nil)
	}
	return c.continuation("the optimizer ends its step, then the first step comes again")
}

// finish makes the rest of a series, in turn.
func (c *chain) finish(s *Series, like int32) {
	for k := range slices.Max(lengths(s.rest)) {
		for _, rest := range s.rest {
			if k < len(rest) {
				c.add(replay.Call{Size: rest[k], Stream: c.h.request.Stream, Pool: c.h.request.Pool}, like)
			}
		}
	}
}

// Total returns what a stack allocates in the failing step and leaves there: so far, the request if it is its own, and what is to
// come of its series.
func (p *Prognosis) Total(stack trace.StackID) (bytes uint64) {
	h := p.history
	for i := h.sinceFailing(); i < len(h.allocs); i++ {
		if a := &h.allocs[i]; a.key.stack == stack && a.key.after == 0 && a.freed < 0 {
			bytes += a.size
		}
	}
	if stack == h.wanted.stack {
		bytes += h.request.Size
	}
	if p.Series == nil {
		return bytes
	}
	if i := slices.Index(p.Series.Stacks, stack); i >= 0 {
		for _, size := range p.Series.rest[i] {
			bytes += size
		}
	}
	return bytes
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

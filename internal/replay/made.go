package replay

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// NewProgram makes a program of n calls that nobody recorded, such as those of
// a planned run: CallAlloc, CallFree and CallEmptyCache. Tensors are numbered
// from 0 on and each is allocated once. There is no trace behind it; the event
// of a call is its position.
func NewProgram(s settings.Settings, n int, call func(i int) Call) (*Program, error) {
	none := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()}
	b := NewBuilder(none, &start.State{Kind: start.Recorded}, s, n)
	sizes := make([]uint64, 0, n/2+1) // of tensors, most of which are freed
	var live, most uint64
	for i := range n {
		c := call(i)
		switch c.Kind {
		case CallAlloc:
			for len(sizes) <= c.Tensor {
				sizes = append(sizes, 0)
			}
			if c.Tensor >= 0 {
				sizes[c.Tensor] = c.Size
			}
			live += c.Size
			most = max(most, live)
		case CallFree:
			if c.Tensor >= len(sizes) {
				return nil, fmt.Errorf("call %d frees tensor %d, which is not there", i, c.Tensor)
			}
			if c.Tensor >= 0 {
				live -= sizes[c.Tensor]
			}
		case CallEmptyCache:
		default:
			return nil, fmt.Errorf("call %d is of kind %d, which a program without a trace cannot have", i, c.Kind)
		}
		if c.Kind != CallEmptyCache && c.Tensor < 0 {
			return nil, fmt.Errorf("call %d names tensor %d", i, c.Tensor)
		}
		c.Event, c.Pool = i, alloc.PoolID{}
		b.Add(c)
	}
	b.program.memory = madeMemory(most)
	return b.program, nil
}

// madeMemory returns the size of the device that a made program is run on when
// it may have what it wants: an expandable segment has addresses for a little
// more than the device's memory, and what is live must find room in one. Beyond
// the largest, several segments would no longer lie side by side.
func madeMemory(live uint64) uint64 {
	const usual, largest = 80 << 30, 12 << 40
	return min(max(usual, 2*min(live, largest)), largest)
}

// ExternalRange is memory that something beside the allocator takes before a
// call.
type ExternalRange struct {
	Call int
	sim.ExternalRange
}

// Started makes a program of NewProgram run in a process that has run a kernel
// before ([sim.Config]) and in which others take addresses too. The ranges are
// in the order of their calls.
func (p *Program) Started(external []ExternalRange) { p.started, p.external = true, external }

// Beside returns a copy of a program of NewProgram with one more tensor, the last
// by number, which is allocated before all others and stays. Calls and their
// events move back by one.
func (p *Program) Beside(size uint64) *Program {
	out := &Program{Trace: p.Trace, Start: p.Start, Settings: p.Settings, tensors: p.tensors + 1, started: p.started, memory: p.memory}
	for _, t := range p.external {
		out.external = append(out.external, ExternalRange{t.Call + 1, t.ExternalRange})
	}
	out.places = slices.Clone(p.places)
	at := slices.Index(out.places, place{})
	if at < 0 {
		at = len(out.places)
		out.places = append(out.places, place{})
	}
	first := packed{size: size, tensor: int32(p.tensors), where: uint32(at)<<kindBits | uint32(CallAlloc)}
	out.calls = append(append(make([]packed, 0, len(p.calls)+1), first), p.calls...)
	out.events = append(append(make([]int32, 0, len(p.events)+1), p.events...), int32(len(p.events)))
	return out
}

// Early returns the same program with some tensors allocated before everything
// else, in their order: what would have become of a program that makes the
// long-lived before the transient. Tensors of private pools, whose routes begin
// later, and those that are there before the first call stay where they are.
func (p *Program) Early(tensors map[int]bool) *Program {
	out := *p
	out.calls = make([]packed, 0, len(p.calls))
	out.events = make([]int32, 0, len(p.events))
	take := func(early bool) {
		for i, c := range p.calls {
			moves := c.kind() == CallAlloc && (i < p.early || tensors[int(c.tensor)] && p.places[c.placeOrStream()].pool == (alloc.PoolID{}))
			if moves == early {
				out.calls = append(out.calls, c)
				out.events = append(out.events, p.events[i])
			}
		}
	}
	take(true)
	out.early = len(out.calls)
	take(false)
	return &out
}

// time returns the time of an event, if there is a trace that has it.
func (p *Program) time(event int) int64 {
	if event >= p.Trace.Events.Len() {
		return trace.NoTime
	}
	return p.Trace.Events.Time.At(event)
}

// clock returns when a call was made, if that is known.
func (p *Program) clock(call int) (us int64, known bool) {
	if call < 0 || call >= len(p.events) {
		return 0, false
	}
	us = p.time(int(p.events[call]))
	return us, us != trace.NoTime
}

// stack returns the stack of an event, if there is a trace that has it.
func (p *Program) stack(event int) trace.StackID {
	if event >= p.Trace.Events.Len() {
		return trace.NoStack
	}
	return p.Trace.Events.Stack.At(event)
}

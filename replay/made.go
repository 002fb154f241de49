package replay

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// NewProgram makes a program of n calls that nobody recorded, such as those of
// a planned run: CallAlloc, CallFree and CallEmptyCache. Tensors are numbered
// from 0 on and each is allocated once. There is no trace behind it; the event
// of a call is its position.
func NewProgram(s settings.Settings, n int, call func(i int) Call) (*Program, error) {
	p := &Program{
		Trace:    &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()},
		Start:    &Start{Kind: StartRecorded},
		Settings: s,
		calls:    make([]packed, n),
		events:   make([]int32, n),
	}
	streams := map[uint64]uint32{}
	for i := range n {
		c := call(i)
		to := packed{size: c.Size, tensor: int32(c.Tensor), where: uint32(c.Kind)}
		switch c.Kind {
		case CallAlloc:
			at, ok := streams[c.Stream]
			if !ok {
				at = uint32(len(p.places))
				streams[c.Stream] = at
				p.places = append(p.places, place{stream: c.Stream})
			}
			to.where |= at << kindBits
			p.tensors = max(p.tensors, c.Tensor+1)
		case CallFree:
			if c.Tensor >= p.tensors {
				return nil, fmt.Errorf("call %d frees tensor %d, which is not there", i, c.Tensor)
			}
		case CallEmptyCache:
		default:
			return nil, fmt.Errorf("call %d is of kind %d, which a program without a trace cannot have", i, c.Kind)
		}
		if c.Kind != CallEmptyCache && c.Tensor < 0 {
			return nil, fmt.Errorf("call %d names tensor %d", i, c.Tensor)
		}
		p.calls[i], p.events[i] = to, int32(i)
	}
	return p, nil
}

// time is when an event was, if there is a trace that tells.
func (p *Program) time(event int) int64 {
	if event >= p.Trace.Events.Len() {
		return trace.NoTime
	}
	return p.Trace.Events.Time.At(event)
}

// stack is the stack of an event, if there is a trace that has it.
func (p *Program) stack(event int) trace.StackID {
	if event >= p.Trace.Events.Len() {
		return trace.NoStack
	}
	return p.Trace.Events.Stack.At(event)
}

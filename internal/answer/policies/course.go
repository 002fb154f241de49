package policies

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/policy"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

// What an op does.
const (
	opMalloc = iota
	opFree
	opFreeLater // another stream still uses the block
	opComplete  // that stream is done
	opTry       // a request that failed in the recording
	opTrim
	opSync // a step ends
)

// op is a call of a program, ready to be made.
type op struct {
	size   uint64
	tensor int32
	place  uint16 // of opMalloc and opTry
	kind   uint8
}

// course is a program as strategies get it: what is there before the first call is
// allocated first, in the order of its addresses.
type course struct {
	program *replay.Program // nil for a placement problem
	ops     []op
	calls   []int32 // op -> call; -1 before the first
	places  []policy.Place
	tensors int
	initial int // ops before the first call
	// exact: sizes are not rounded.
	exact bool
	// steps are the first call of each step and the one after its last.
	steps [][2]int
}

// newCourse reads the calls of a program. steps are ranges of events.
func newCourse(p *replay.Program, steps [][2]int) *course {
	c := &course{program: p, tensors: p.Tensors()}
	n := p.Len() + p.Initial() + len(steps)
	c.ops, c.calls = make([]op, 0, n), make([]int32, 0, n)
	pools := map[alloc.PoolID]uint64{{}: 0}
	places := map[policy.Place]uint16{}
	place := func(call replay.Call) uint16 {
		pool, ok := pools[call.Pool]
		if !ok {
			pool = uint64(len(pools))
			pools[call.Pool] = pool
		}
		at := policy.Place{Stream: call.Stream, Pool: pool}
		id, ok := places[at]
		if !ok {
			id = uint16(len(c.places))
			places[at] = id
			c.places = append(c.places, at)
		}
		return id
	}
	add := func(call int, o op) { c.ops, c.calls = append(c.ops, o), append(c.calls, int32(call)) }
	p.EachFirst(func(tensor int, call replay.Call) {
		add(-1, op{size: call.Size, tensor: int32(tensor), place: place(call), kind: opMalloc})
	})
	p.FreedBefore(func(tensor, stream int) { add(-1, op{size: uint64(stream), tensor: int32(tensor), kind: opFreeLater}) })
	c.initial = len(c.ops)
	step := 0
	for i := range p.Len() {
		call := p.Call(i)
		for step < len(steps) && call.Event >= steps[step][0] {
			if len(c.steps) == step {
				c.steps = append(c.steps, [2]int{i, p.Len()})
			}
			if call.Event < steps[step][1] {
				break
			}
			c.steps[step][1] = i
			add(i, op{kind: opSync})
			step++
		}
		o := op{size: call.Size, tensor: int32(call.Tensor)}
		switch call.Kind {
		case replay.CallAlloc:
			o.kind, o.place = opMalloc, place(call)
		case replay.CallTry:
			o.kind, o.place = opTry, place(call)
		case replay.CallFree:
			o.kind = opFree
		case replay.CallFreeLater:
			o.kind, o.size = opFreeLater, call.Stream
		case replay.CallComplete:
			o.kind, o.size = opComplete, call.Stream
		case replay.CallEmptyCache:
			o.kind = opTrim
		default:
			continue
		}
		add(i, o)
	}
	if step < len(steps) && len(c.steps) > step {
		add(p.Len()-1, op{kind: opSync})
	}
	return c
}

// event returns the event of an op, -1 before the first.
func (c *course) event(at int) int {
	if at < 0 || at >= len(c.calls) || c.calls[at] < 0 {
		return -1
	}
	if c.program == nil {
		return int(c.calls[at])
	}
	return c.program.Call(int(c.calls[at])).Event
}

package generate

import (
	"errors"
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/replay"
	"github.com/ashlar-mem/ashlar/trace"
)

// opKind is what a program does.
type opKind uint8

const (
	opAlloc opKind = iota
	opFree
	opFreeLater // another stream still uses the memory
	opComplete  // it does not any more
	opEmptyCache
	opSnapshot
)

// op is one call of the allocator.
type op struct {
	kind    opKind
	once    bool // not repeated: it is about memory that stays
	tensor  int32
	size    uint64
	stream  uint64
	time    int64 // since the program began
	stack   trace.StackID
	meta    trace.StringID
	compile trace.StringID
}

// program is what a trace shows of the calls that were made.
type program struct {
	ops     []op
	tensors int
	timed   bool
	begin   int64 // microseconds since the Unix epoch
	span    int64 // from the first event or annotation to the last
	repeats bool  // some op is not once
	peak    uint64
}

// reader turns events into a program.
type reader struct {
	program
	t       *trace.Trace
	live    map[uint64]int32 // address -> tensor
	pending map[uint64]int32 // freed, not completed
	made    []int            // tensor -> its opAlloc
	freed   []bool           // tensor -> its free is part of the trace
	size    uint64           // requested and live
}

var errNoEvents = errors.New("it has no events that could be repeated: record with torch.cuda.memory._record_memory_history()")

func readProgram(t *trace.Trace) (*program, error) {
	r := &reader{t: t, live: map[uint64]int32{}, pending: map[uint64]int32{}}
	if t.Events.Len() == 0 {
		return nil, errNoEvents
	}
	r.times()
	r.start()
	initial := len(r.made)
	for i := 0; i < t.Events.Len(); {
		i = r.call(i)
	}
	r.tensors = len(r.made)
	if r.tensors == 0 {
		return nil, errNoEvents
	}
	for i := range r.ops {
		o := &r.ops[i]
		switch o.kind {
		case opAlloc, opFree, opFreeLater, opComplete:
			o.once = int(o.tensor) < initial || !r.freed[o.tensor]
			r.repeats = r.repeats || !o.once
		}
	}
	return &r.program, nil
}

// times finds out when the program begins and ends.
func (r *reader) times() {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	note := func(t int64) {
		if t != trace.NoTime {
			first, last = min(first, t), max(last, t)
		}
	}
	for i := range r.t.Events.Len() {
		note(r.t.Events.Time.At(i))
	}
	if r.timed = first <= last; !r.timed {
		return
	}
	for _, a := range r.t.Annotations {
		note(a.Time)
	}
	r.begin, r.span = first, last-first
}

// start allocates what was live before the first event.
func (r *reader) start() {
	// The final state knows the stacks of those blocks that never went.
	stacks := map[uint64]trace.StackID{}
	for i := range r.t.Segments {
		for _, b := range r.t.Segments[i].Blocks {
			stacks[b.Address] = b.Stack
		}
	}
	ev := r.t.Events.At(0)
	for _, s := range replay.Begin(r.t).Segments {
		for _, b := range s.Blocks {
			o := op{size: b.RequestedSize, stream: s.Stream, meta: ev.Meta, compile: ev.Compile}
			if b.Size > 0 {
				o.stack = stacks[b.Address]
			}
			if ev.Stack == trace.NoStack {
				o.stack = trace.NoStack
			} else if o.stack == trace.NoStack {
				o.stack = trace.EmptyStack
			}
			r.alloc(b.Address, o)
		}
	}
}

// call reads the call whose first event is i and returns the event behind it.
func (r *reader) call(i int) int {
	events := &r.t.Events
	end := i
	released := -1
	for ; end < events.Len(); end++ {
		a := events.Action.At(end)
		if a == alloc.ActionSegmentFree || a == alloc.ActionSegmentUnmap {
			released = end
		}
		if isCall(a) || a >= trace.FirstOther {
			break
		}
		if a == alloc.ActionFreeCompleted {
			r.complete(events.At(end))
		}
	}
	if released >= 0 && !r.inside(released, end) {
		r.add(op{kind: opEmptyCache}, events.At(released))
	}
	if end == events.Len() {
		return end
	}
	ev := events.At(end)
	switch ev.Action {
	case alloc.ActionAlloc:
		if ev.Size > 0 {
			r.alloc(ev.Addr, r.filled(op{size: ev.Size, stream: ev.Stream}, ev))
		}
	case alloc.ActionFreeRequested:
		return r.free(end, ev)
	case alloc.ActionSnapshot:
		r.add(op{kind: opSnapshot}, ev)
	}
	return end + 1 // an oom and events of unknown kinds are left out
}

func isCall(a alloc.Action) bool {
	switch a {
	case alloc.ActionAlloc, alloc.ActionOOM, alloc.ActionFreeRequested, alloc.ActionSnapshot:
		return true
	}
	return false
}

// inside tells whether the memory released at event i was released by the
// allocation at event end: then it has its stack (spec 16).
func (r *reader) inside(i, end int) bool {
	events := &r.t.Events
	if end == events.Len() {
		return false
	}
	if a := events.Action.At(end); a != alloc.ActionAlloc && a != alloc.ActionOOM {
		return false
	}
	return events.Stack.At(i) == events.Stack.At(end)
}

func (r *reader) alloc(addr uint64, o op) {
	o.kind, o.tensor = opAlloc, int32(len(r.made))
	r.live[addr] = o.tensor
	r.made = append(r.made, len(r.ops))
	r.freed = append(r.freed, false)
	r.ops = append(r.ops, o)
	r.size += o.size
	r.peak = max(r.peak, r.size)
}

// free reads a free and, if it follows at once, its completion.
func (r *reader) free(i int, ev trace.Event) int {
	tensor, ok := r.live[ev.Addr]
	if !ok {
		return i + 1 // the file contradicts itself
	}
	delete(r.live, ev.Addr)
	r.freed[tensor] = true
	r.size -= r.ops[r.made[tensor]].size
	if next := i + 1; next < r.t.Events.Len() {
		if e := r.t.Events.At(next); e.Action == alloc.ActionFreeCompleted && e.Addr == ev.Addr {
			r.add(op{kind: opFree, tensor: tensor}, ev)
			return next + 1
		}
	}
	r.pending[ev.Addr] = tensor
	r.add(op{kind: opFreeLater, tensor: tensor}, ev)
	return i + 1
}

// complete reads the end of a pending free. One that was pending before the
// first event is freed here.
func (r *reader) complete(ev trace.Event) {
	if tensor, ok := r.pending[ev.Addr]; ok {
		delete(r.pending, ev.Addr)
		r.add(op{kind: opComplete, tensor: tensor}, ev)
		return
	}
	if tensor, ok := r.live[ev.Addr]; ok {
		delete(r.live, ev.Addr)
		r.freed[tensor] = true
		r.size -= r.ops[r.made[tensor]].size
		r.add(op{kind: opFree, tensor: tensor}, ev)
	}
}

func (r *reader) add(o op, ev trace.Event) { r.ops = append(r.ops, r.filled(o, ev)) }

// filled adds what an event tells about its call.
func (r *reader) filled(o op, ev trace.Event) op {
	o.stack, o.meta, o.compile = ev.Stack, ev.Meta, ev.Compile
	if ev.Time != trace.NoTime {
		o.time = ev.Time - r.begin
	} else if n := len(r.ops); n > 0 {
		o.time = r.ops[n-1].time
	}
	return o
}

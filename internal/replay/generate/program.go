package generate

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/trace"
)

// op is one call of the allocator.
type op struct {
	kind    replay.CallKind
	once    bool // not repeated: it is about memory that stays
	tensor  int32
	size    uint64
	stream  uint64
	pool    alloc.PoolID
	time    int64 // since the program began
	stack   trace.StackID
	meta    trace.StringID
	compile trace.StringID
}

// program is what a trace shows of the calls that were made.
type program struct {
	ops        []op
	tensors    int
	timed      bool
	begin      int64 // microseconds since the Unix epoch
	span       int64 // from the first event or annotation to the last
	repeats    bool  // some op is not once
	peak       uint64
	finalPools []alloc.PoolID // private ones that are there when the recording ends
}

// reader adds what the events show to the calls of a trace.
type reader struct {
	program
	trace *trace.Trace
	calls *replay.Program
}

var errNoEvents = errors.New("it has no events that could be repeated: record with torch.cuda.memory._record_memory_history()")

func readProgram(ctx context.Context, t *trace.Trace) (*program, error) {
	if t.Events.Len() == 0 {
		return nil, errNoEvents
	}
	v, err := verify.Run(ctx, t, verify.Options{})
	if err != nil {
		return nil, err
	}
	r := &reader{trace: t, calls: v.Program()}
	if r.tensors = r.calls.Tensors(); r.tensors == 0 {
		return nil, errNoEvents
	}
	blocks := 0
	for _, s := range r.calls.Start.Segments {
		blocks += len(s.Blocks)
	}
	r.ops = make([]op, 0, blocks+r.calls.Len())
	r.times()
	r.start()
	for i := range r.calls.Len() {
		r.call(r.calls.Call(i))
	}
	r.repetition()
	r.listPools()
	p := r.program // without the reader, which has the calls
	return &p, nil
}

// resize changes the sizes of requests.
func (p *program) resize(to func(stack trace.StackID, size uint64) uint64) {
	if to == nil {
		return
	}
	for i := range p.ops {
		if o := &p.ops[i]; o.kind == replay.CallAlloc {
			before := o.size
			o.size = to(o.stack, o.size)
			p.peak += max(o.size, before) - before // at least what may be live
		}
	}
}

// listPools lists the private pools of the final state. The file has their
// names; the names of others are made up.
func (r *reader) listPools() {
	for i := range r.trace.Segments {
		if id := r.trace.Segments[i].Pool; id != (alloc.PoolID{}) && !slices.Contains(r.finalPools, id) {
			r.finalPools = append(r.finalPools, id)
		}
	}
}

// times finds out when the program begins and ends.
func (r *reader) times() {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	note := func(t int64) {
		if t != trace.NoTime {
			first, last = min(first, t), max(last, t)
		}
	}
	for i := range r.trace.Events.Len() {
		note(r.trace.Events.Time.At(i))
	}
	if r.timed = first <= last; !r.timed {
		return
	}
	for _, a := range r.trace.Annotations {
		note(a.Time)
	}
	r.begin, r.span = first, last-first
}

// start allocates what was live before the first event.
func (r *reader) start() {
	// The final state knows the stacks of those blocks that never went.
	stacks := map[uint64]trace.StackID{}
	for i := range r.trace.Segments {
		for _, b := range r.trace.Segments[i].Blocks {
			stacks[b.Address] = b.Stack
		}
	}
	ev := r.trace.Events.At(0)
	for _, s := range r.calls.Start.Segments {
		for _, b := range s.Blocks {
			o := op{
				kind: replay.CallAlloc, tensor: int32(len(r.ops)), size: b.RequestedSize, stream: s.Stream, pool: s.Pool,
				meta: ev.Meta, compile: ev.Compile,
			}
			if b.Size > 0 {
				o.stack = stacks[b.Address]
			}
			if ev.Stack == trace.NoStack {
				o.stack = trace.NoStack
			} else if o.stack == trace.NoStack {
				o.stack = trace.EmptyStack
			}
			r.ops = append(r.ops, o)
		}
	}
}

// call adds a call, except requests that failed.
func (r *reader) call(c replay.Call) {
	if c.Kind == replay.CallTry {
		return
	}
	ev := r.trace.Events.At(c.Event)
	o := op{
		kind: c.Kind, tensor: int32(c.Tensor), size: c.Size, stream: c.Stream, pool: c.Pool,
		stack: ev.Stack, meta: ev.Meta, compile: ev.Compile,
	}
	if ev.Time != trace.NoTime {
		o.time = ev.Time - r.begin
	} else if n := len(r.ops); n > 0 {
		o.time = r.ops[n-1].time
	}
	r.ops = append(r.ops, o)
}

// repetition finds out which ops can be repeated, and how much memory is live.
func (r *reader) repetition() {
	freed := make([]bool, r.tensors)
	sizes := make([]uint64, r.tensors)
	var size uint64
	for i := range r.ops {
		switch o := &r.ops[i]; o.kind {
		case replay.CallAlloc:
			sizes[o.tensor] = o.size
			size += o.size
			r.peak = max(r.peak, size)
		case replay.CallFree, replay.CallFreeLater:
			freed[o.tensor] = true
			size -= sizes[o.tensor]
		}
	}
	for i := range r.ops {
		o := &r.ops[i]
		switch o.kind {
		case replay.CallAlloc, replay.CallFree, replay.CallFreeLater, replay.CallComplete:
			o.once = int(o.tensor) < r.calls.Initial() || !freed[o.tensor]
			r.repeats = r.repeats || !o.once
		}
	}
}

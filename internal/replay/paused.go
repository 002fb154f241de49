package replay

import (
	"context"
	"fmt"
	"sort"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Paused is a run of a program held just before one of its calls, to look at
// the allocator's state there and to try what would have happened.
type Paused struct {
	run  *simulation
	call int
}

// Hold runs a program under some conditions up to the call that an event
// stands for, or to its end if event is the number of events. Requests that
// fail before are left out.
func (p *Program) Hold(ctx context.Context, c Conditions, event int) (*Paused, error) {
	return p.hold(ctx, c, p.callAt(event))
}

// HoldAfter runs a program up to and with the last call that the trace has at or
// before an event; -1 is before the first one. If the last request failed, that
// is the state in which it did.
func (p *Program) HoldAfter(ctx context.Context, c Conditions, event int) (*Paused, error) {
	call := p.early + sort.Search(len(p.events)-p.early, func(i int) bool { return int(p.events[p.early+i]) > event })
	return p.hold(ctx, c, call)
}

// hold runs a program up to a call.
func (p *Program) hold(ctx context.Context, c Conditions, call int) (*Paused, error) {
	c.SkipOOM, c.Points = true, 0
	r, err := p.simulate(c)
	if err != nil {
		return nil, err
	}
	for r.outcome.Calls < call {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := r.makeCalls(r.outcome.Calls, min(r.outcome.Calls+stride, call)); err != nil {
			return nil, err
		}
	}
	return &Paused{run: r, call: call}, nil
}

// callAt is the first call at or after an event.
func (p *Program) callAt(event int) int {
	low, high := p.early, len(p.events)
	for low < high {
		if m := (low + high) / 2; int(p.events[m]) < event {
			low = m + 1
		} else {
			high = m
		}
	}
	// Frees completed in the same call come before it under the same event.
	for low < len(p.events) && int(p.events[low]) == event && p.calls[low].kind() == CallComplete {
		low++
	}
	return low
}

// Call is the call that comes next; false at the end.
func (m *Paused) Call() (Call, bool) {
	if m.call == m.run.Len() {
		return Call{}, false
	}
	return m.run.Call(m.call), true
}

// First is the first request that failed before; nil if none did.
func (m *Paused) First() *Failure { return m.run.outcome.First }

// Totals are the sums of bytes.
func (m *Paused) Totals() alloc.Totals { return m.run.serial.Totals() }

// PeakReserved is the most that was reserved so far.
func (m *Paused) PeakReserved() uint64 { return uint64(m.run.allocator.Stats().ReservedBytes.All.Peak) }

// Segments is the allocator's state.
func (m *Paused) Segments() []alloc.Segment { return m.run.allocator.Segments() }

// WouldFit reports whether a cached block would serve a request.
func (m *Paused) WouldFit(c Call) bool { return m.run.allocator.Fits(c.Pool, c.Size, c.Stream) }

// Releasable is what an empty_cache would give back.
func (m *Paused) Releasable() uint64 { return m.run.allocator.Releasable() }

// EmptyCache releases what is cached, as torch.cuda.empty_cache() does.
func (m *Paused) EmptyCache() error { return m.run.allocator.EmptyCache() }

// CompleteAll finishes the work of all streams: frees that wait for them are
// completed by the next allocation.
func (m *Paused) CompleteAll() { m.run.device.CompleteAll() }

// Use switches to other settings.
func (m *Paused) Use(s settings.Settings) { m.run.allocator.Use(s) }

// SetLimit switches to another limit; 0 is none.
func (m *Paused) SetLimit(bytes uint64) {
	if bytes == 0 {
		bytes = 1 << 62
	}
	m.run.allocator.SetLimit(bytes)
}

// SetDeviceMemory changes what the device has for the allocator.
func (m *Paused) SetDeviceMemory(bytes uint64) { m.run.device.SetUsable(bytes) }

// Free frees the live block at an address before the next call.
func (m *Paused) Free(addr uint64) error { return m.run.allocator.Free(addr) }

// Request makes a request, under the route to its pool if that is a private
// one, and reports why it failed: an *[alloc.OutOfMemoryError], or nil if it was
// served.
func (m *Paused) Request(c Call) error {
	_, err := m.run.routed(c.Size, &place{c.Stream, c.Pool})
	return err
}

// Live is a tensor that is allocated at a moment.
type Live struct {
	Address, Size uint64 // of its block
	Requested     uint64
	Event         int // at which it was allocated; -1: before the first one
	// Recorded is where its block was in the recording, if it was there before
	// the first event.
	Recorded uint64
	Stack    trace.StackID
}

// Live lists what is allocated, in the order of allocation.
func (m *Paused) Live() []Live {
	p := m.run.Program
	var out []Live
	add := func(tensor int, l Live) {
		if h := m.run.handles[tensor]; h != 0 {
			l.Address, l.Size = m.run.serial.Address(h), m.run.serial.Size(h)
			out = append(out, l)
		}
	}
	stacks := p.finalStacks()
	n := 0
	for i := range p.Start.Segments {
		for _, b := range p.Start.Segments[i].Blocks {
			add(n, Live{Event: -1, Recorded: b.Address, Requested: b.RequestedSize, Stack: stacks[b.Address]})
			n++
		}
	}
	for i, c := range p.calls[:m.call] {
		if c.kind() == CallAlloc {
			event := int(p.events[i])
			add(int(c.tensor), Live{Event: event, Requested: c.size, Stack: p.Trace.Events.Stack.At(event)})
		}
	}
	return out
}

// finalStacks are the stacks of the blocks that are there at the end: those of
// blocks older than the first event are known from nowhere else.
func (p *Program) finalStacks() map[uint64]trace.StackID {
	out := map[uint64]trace.StackID{}
	if p.Start.Kind != start.Rebuilt {
		return out
	}
	for i := range p.Trace.Segments {
		for _, b := range p.Trace.Segments[i].Blocks {
			if b.State == alloc.ActiveAllocated {
				out[b.Address] = b.Stack
			}
		}
	}
	// An address that was allocated again has another block's stack.
	for i := range p.Trace.Events.Len() {
		if p.Trace.Events.Action.At(i) == alloc.ActionAlloc {
			delete(out, p.Trace.Events.Addr.At(i))
		}
	}
	return out
}

// String says where the moment is.
func (m *Paused) String() string { return fmt.Sprintf("before call %d of %d", m.call, m.run.Len()) }

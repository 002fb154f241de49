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

// Paused is a run of a program that stopped just before one of its calls, to
// show the allocator's state and to try what would have happened.
type Paused struct {
	run  *simulation
	call int
}

// Hold runs a program up to the call of an event, or to the end if event is the
// number of events. It skips requests that fail before.
func (p *Program) Hold(ctx context.Context, c Conditions, event int) (*Paused, error) {
	return p.hold(ctx, c, p.callAt(event))
}

// HoldAfter runs a program up to and including the last call at or before an
// event; -1 is before the first. If that call is a request that failed, the
// state is the one in which it failed.
func (p *Program) HoldAfter(ctx context.Context, c Conditions, event int) (*Paused, error) {
	call := p.early + sort.Search(len(p.events)-p.early, func(i int) bool { return int(p.events[p.early+i]) > event })
	return p.hold(ctx, c, call)
}

// hold runs a program up to a call.
func (p *Program) hold(ctx context.Context, c Conditions, call int) (*Paused, error) {
	c.SkipOOM, c.Points = true, 0
	r, err := p.simulate(c, nil)
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

// callAt returns the first call at or after an event.
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

// Call returns the next call; false at the end.
func (m *Paused) Call() (Call, bool) {
	if m.call == m.run.Len() {
		return Call{}, false
	}
	return m.run.Call(m.call), true
}

// First returns the first request that failed so far, or nil.
func (m *Paused) First() *Failure { return m.run.outcome.First }

// Totals returns the allocator's totals.
func (m *Paused) Totals() alloc.Totals { return m.run.serial.Totals() }

// LargestFree returns the size of the largest free block, of whatever pool.
func (m *Paused) LargestFree() uint64 { return m.run.serial.LargestFree() }

// PeakReserved returns the peak of reserved bytes so far.
func (m *Paused) PeakReserved() uint64 { return uint64(m.run.allocator.Stats().ReservedBytes.All.Peak) }

// Segments returns the allocator's segments.
func (m *Paused) Segments() []alloc.Segment { return m.run.allocator.Segments() }

// WouldFit reports whether a cached block would serve a request.
func (m *Paused) WouldFit(c Call) bool { return m.run.allocator.Fits(c.Pool, c.Size, c.Stream) }

// Releasable returns the bytes that empty_cache would release.
func (m *Paused) Releasable() uint64 { return m.run.allocator.Releasable() }

// EmptyCache releases free memory, as torch.cuda.empty_cache() does.
func (m *Paused) EmptyCache() error { return m.run.allocator.EmptyCache() }

// CompleteAll finishes the work of all streams: the next allocation completes
// the frees that wait for them.
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

// Live is an allocated tensor.
type Live struct {
	Address, Size uint64 // of its block
	Requested     uint64
	Event         int // at which it was allocated; -1: before the first one
	// Recorded is the address of its block in the recording, if that is older
	// than the first event.
	Recorded uint64
	Stack    trace.StackID
}

// Live lists the allocated tensors in the order of allocation.
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

// finalStacks returns the stacks of the blocks in the final segments: the only
// source for blocks older than the first event.
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

// String says where the run is paused.
func (m *Paused) String() string { return fmt.Sprintf("before call %d of %d", m.call, m.run.Len()) }

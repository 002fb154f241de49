package verify

import (
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// Sizes are the sizes of blocks, which a trace gives only as requested.
type Sizes struct {
	// AllocatedBytes and ActiveBytes are the sums of block sizes before the first
	// event.
	AllocatedBytes, ActiveBytes uint64

	events *trace.Events
	extra  trace.Column[uint32] // what a block has more than was requested
	more   map[int]uint64       // event -> extra bytes, where these are many
}

// At returns the size of the block that an event allocates or frees, 0 for an
// event that does neither.
func (s *Sizes) At(event int) uint64 {
	switch s.events.Action.At(event) {
	case alloc.ActionAlloc, alloc.ActionFreeRequested, alloc.ActionFreeCompleted:
	default:
		return 0
	}
	extra := uint64(s.extra.At(event))
	if extra == math.MaxUint32 {
		extra = s.more[event]
	}
	return s.events.Size.At(event) + extra
}

// add notes how much larger than requested an event's block is. Events in
// between were not replayed.
func (s *Sizes) add(event int, extra uint64) {
	s.upTo(event)
	if extra >= math.MaxUint32 {
		if s.more == nil {
			s.more = map[int]uint64{}
		}
		s.more[event] = extra
		extra = math.MaxUint32
	}
	s.extra.Append(uint32(extra))
}

// upTo fills the column up to an event.
func (s *Sizes) upTo(event int) {
	for s.extra.Len() < event {
		s.extra.Append(0)
	}
}

// FreeAtOOM is the free memory in segments when a request failed.
type FreeAtOOM struct {
	Event        int
	FreeBytes    uint64
	LargestBytes uint64 // the largest free block, whatever its pool and stream
}

// freeNow returns what is free in an allocator.
func freeNow(a *alloc.Allocator, event int) FreeAtOOM {
	s := a.Serial()
	t := s.Totals()
	return FreeAtOOM{Event: event, FreeBytes: t.Reserved - t.Active, LargestBytes: s.LargestFree()}
}

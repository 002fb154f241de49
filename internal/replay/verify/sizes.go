package verify

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// Sizes are the sizes of blocks, which a trace gives only as requested.
type Sizes struct {
	// Block has for each alloc, free_requested and free_completed event of the
	// trace the size of its block, and 0 for the other events.
	Block trace.Column[uint64]
	// AllocatedBytes and ActiveBytes are the sums of block sizes before the first
	// event.
	AllocatedBytes, ActiveBytes uint64
}

// add notes the size of an event's block. Events in between were not replayed.
func (s *Sizes) add(event int, bytes uint64) {
	s.upTo(event)
	s.Block.Append(bytes)
}

// upTo fills the column up to an event.
func (s *Sizes) upTo(event int) {
	for s.Block.Len() < event {
		s.Block.Append(0)
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

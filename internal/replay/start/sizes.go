package start

import (
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/ordered"
	"github.com/ashlar-mem/ashlar/trace"
)

// A block of the large pool may be larger than its request: a rest of up to
// 1 MiB is not split off. No event has the size of a block older than the first
// event, but later allocations show it. Free neighbours are always merged, so one
// free block follows a live block, and allocations take a free block from its
// beginning: the first one after a live block begins where that block ends.

// olderSizes finds the sizes of blocks in the start state.
type olderSizes struct {
	trace *trace.Trace
	sizes map[uint64]*uint64    // by address: of those not found yet
	live  ordered.Map[struct{}] // all live blocks, by address
}

// findSizes fills in the sizes that the events show. Others stay 0, or what
// they are.
func findSizes(t *trace.Trace, segments []alloc.Segment) {
	o := &olderSizes{trace: t, sizes: map[uint64]*uint64{}}
	for i := range segments {
		s := &segments[i]
		for j := range s.Blocks {
			b := &s.Blocks[j]
			o.live.Set(b.Address, struct{}{})
			if b.Size == 0 && s.Large && !s.Expandable {
				o.sizes[b.Address] = &b.Size
			}
		}
	}
	for i := 0; i < t.Events.Len() && len(o.sizes) > 0; i++ {
		o.event(i, segments)
	}
}

func (o *olderSizes) event(i int, segments []alloc.Segment) {
	addr := o.trace.Events.Addr.At(i)
	switch o.trace.Events.Action.At(i) {
	case alloc.ActionAlloc:
		if below, some := o.live.Before(addr); some != nil {
			if below == addr {
				return // the file contradicts itself
			}
			if size := o.sizes[below]; size != nil && sameSegment(segments, below, addr) {
				*size = addr - below
				delete(o.sizes, below)
			}
		}
		o.live.Set(addr, struct{}{})
	case alloc.ActionFreeCompleted:
		o.live.Delete(addr)
		delete(o.sizes, addr)
	}
}

// sameSegment reports whether two addresses lie in one of the segments.
func sameSegment(segments []alloc.Segment, x, y uint64) bool {
	i, found := slices.BinarySearchFunc(segments, x, func(s alloc.Segment, a uint64) int {
		switch {
		case a < s.Address:
			return 1
		case a-s.Address >= s.TotalSize:
			return -1
		}
		return 0
	})
	return found && y-segments[i].Address < segments[i].TotalSize
}

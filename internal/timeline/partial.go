package timeline

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// leastBefore returns the least that was allocated before the events, if only
// the events are known: what they free but did not allocate. more reports whether
// there was anything, and so perhaps more than that.
func leastBefore(events *trace.Events) (least Totals, more bool) {
	b := before{pending: map[uint64]bool{}}
	for i := range events.Len() {
		e := events.At(i)
		b.event(&e)
	}
	b.Reserved += uint64(-b.lowest)
	return b.Totals, b.more || b.Totals != Totals{}
}

// before infers from events what was allocated before the first.
type before struct {
	Totals
	more bool

	pending  map[uint64]bool // active blocks, and whether they are freed
	segments []extent        // by address
	mapped   int64
	lowest   int64 // of mapped
}

// extent is memory that an event brought.
type extent struct{ addr, size uint64 }

func (b *before) event(e *trace.Event) {
	switch e.Action {
	case alloc.ActionAlloc:
		b.pending[e.Addr] = false
		b.more = b.more || !b.inside(e.Addr)
	case alloc.ActionFreeRequested:
		if _, ok := b.pending[e.Addr]; !ok {
			b.Requested += e.Size
			b.Blocks++
		}
		b.pending[e.Addr] = true
	case alloc.ActionFreeCompleted:
		if _, ok := b.pending[e.Addr]; !ok {
			b.Requested += e.Size
			b.Blocks++
			b.Pending += e.Size
			b.PendingBlocks++
		}
		delete(b.pending, e.Addr)
	case alloc.ActionSegmentAlloc:
		b.insert(e)
	case alloc.ActionSegmentFree:
		if i, found := b.find(e.Addr); found {
			b.segments = slices.Delete(b.segments, i, i+1)
		} else {
			b.Reserved += e.Size
		}
	case alloc.ActionSegmentMap:
		b.insert(e)
		b.mapped += int64(e.Size)
	case alloc.ActionSegmentUnmap:
		b.mapped -= int64(e.Size)
		b.lowest = min(b.lowest, b.mapped)
	}
}

func (b *before) find(addr uint64) (int, bool) {
	return slices.BinarySearchFunc(b.segments, addr, func(x extent, a uint64) int { return cmp.Compare(x.addr, a) })
}

func (b *before) insert(e *trace.Event) {
	i, found := b.find(e.Addr)
	if found {
		b.segments[i].size = max(b.segments[i].size, e.Size)
		return
	}
	b.segments = slices.Insert(b.segments, i, extent{e.Addr, e.Size})
}

// inside reports whether an event brought the memory at an address.
func (b *before) inside(addr uint64) bool {
	i, found := b.find(addr)
	return found || i > 0 && addr-b.segments[i-1].addr < b.segments[i-1].size
}

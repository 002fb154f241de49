package timeline

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/ordered"
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

	pending  map[uint64]bool     // active blocks, and whether they are freed
	segments ordered.Map[uint64] // sizes of what events have brought, by address
	mapped   int64
	lowest   int64 // of mapped
}

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
		if !b.segments.Delete(e.Addr) {
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

func (b *before) insert(e *trace.Event) {
	size := e.Size
	if known := b.segments.Get(e.Addr); known != nil {
		size = max(size, *known)
	}
	b.segments.Set(e.Addr, size)
}

// inside reports whether an event brought the memory at an address.
func (b *before) inside(addr uint64) bool {
	at, size := b.segments.Before(addr)
	return size != nil && (at == addr || addr-at < *size)
}

package timeline

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/ordered"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/trace"
)

// Events of PyTorch 2.11 do not have their pool, but the segments at the end
// do. A segment that exists at the end had its pool since its segment_alloc,
// and everything inside it belongs to that pool. The reservation of an expandable
// segment belongs to one pool for good, so the runs mapped at the end decide for
// their addresses at any time.

// poolIndex knows which segments have a known pool.
type poolIndex struct {
	start ordered.Map[poolSpan] // before the first event
	runs  ordered.Map[poolSpan] // of expandable segments at the end
	born  map[int]poolSpan      // by segment_alloc event: segments that stay to the end
	any   bool
}

type poolSpan struct {
	addr, size uint64
	pool       alloc.PoolID
}

func newPoolIndex(t *trace.Trace, begin *start.State) *poolIndex {
	x := &poolIndex{born: map[int]poolSpan{}}
	final := map[uint64]poolSpan{}
	for i := range t.Segments {
		s := &t.Segments[i]
		if !s.HasPool {
			continue
		}
		span := poolSpan{s.Address, s.TotalSize, s.Pool}
		if s.Expandable {
			x.runs.Set(span.addr, span)
		} else {
			final[s.Address] = span
		}
		x.any = true
	}
	if !x.any {
		return x
	}
	last := map[uint64]int{} // segment at the end -> its segment_alloc
	for i := range t.Events.Len() {
		switch t.Events.Action.At(i) {
		case alloc.ActionSegmentAlloc:
			if _, ok := final[t.Events.Addr.At(i)]; ok {
				last[t.Events.Addr.At(i)] = i
			}
		case alloc.ActionSegmentFree:
			delete(last, t.Events.Addr.At(i))
		}
	}
	for addr, i := range last {
		x.born[i] = final[addr]
		delete(final, addr)
	}
	for i := range begin.Segments {
		if span, ok := final[begin.Segments[i].Address]; ok && !begin.Segments[i].Expandable {
			x.start.Set(span.addr, span)
		}
	}
	return x
}

// walk returns the state before the first event.
func (x *poolIndex) walk() poolWalk {
	return poolWalk{index: x, live: x.start.Clone()}
}

// poolWalk holds the segments of known pool at one event.
type poolWalk struct {
	index *poolIndex
	live  ordered.Map[poolSpan] // plain segments
}

func (w *poolWalk) apply(i int, e *trace.Event) {
	if e.Action != alloc.ActionSegmentAlloc || !w.index.any {
		return
	}
	if span, ok := w.index.born[i]; ok {
		w.live.Set(span.addr, span)
	}
}

func (w *poolWalk) poolOf(e *trace.Event, events *trace.Events) (alloc.PoolID, bool) {
	if e.Pool != trace.NoPool {
		return events.Pools[e.Pool], true
	}
	if e.Action == alloc.ActionOOM || e.Action == alloc.ActionSnapshot || !w.index.any {
		return alloc.PoolID{}, false
	}
	for _, spans := range [2]*ordered.Map[poolSpan]{&w.live, &w.index.runs} {
		if addr, span := spans.Before(e.Addr); span != nil && e.Addr-addr < span.size {
			return span.pool, true
		}
	}
	return alloc.PoolID{}, false
}

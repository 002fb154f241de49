package timeline

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
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
	start []poolSpan       // before the first event, by address
	runs  []poolSpan       // of expandable segments at the end, by address
	born  map[int]poolSpan // by segment_alloc event: segments that stay to the end
	any   bool
}

type poolSpan struct {
	addr, size uint64
	pool       alloc.PoolID
}

func byAddr(s poolSpan, addr uint64) int { return cmp.Compare(s.addr, addr) }

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
			x.runs = append(x.runs, span)
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
			x.start = append(x.start, span)
		}
	}
	if t.Events.Len() == 0 {
		return x
	}
	slices.SortFunc(x.start, func(a, b poolSpan) int { return cmp.Compare(a.addr, b.addr) })
	slices.SortFunc(x.runs, func(a, b poolSpan) int { return cmp.Compare(a.addr, b.addr) })
	return x
}

// walk returns the state before the first event.
func (x *poolIndex) walk() poolWalk {
	return poolWalk{index: x, live: slices.Clone(x.start)}
}

// poolWalk holds the segments of known pool at one event.
type poolWalk struct {
	index *poolIndex
	live  []poolSpan // plain segments, by address
}

func (w *poolWalk) apply(i int, e *trace.Event) {
	if e.Action != alloc.ActionSegmentAlloc || !w.index.any {
		return
	}
	if span, ok := w.index.born[i]; ok {
		at, _ := slices.BinarySearchFunc(w.live, span.addr, byAddr)
		w.live = slices.Insert(w.live, at, span)
	}
}

func (w *poolWalk) poolOf(e *trace.Event, events *trace.Events) (alloc.PoolID, bool) {
	if e.Pool != trace.NoPool {
		return events.Pools[e.Pool], true
	}
	if e.Action == alloc.ActionOOM || e.Action == alloc.ActionSnapshot || !w.index.any {
		return alloc.PoolID{}, false
	}
	for _, spans := range [2][]poolSpan{w.live, w.index.runs} {
		i, found := slices.BinarySearchFunc(spans, e.Addr, byAddr)
		if !found {
			i--
		}
		if i >= 0 && e.Addr-spans[i].addr < spans[i].size {
			return spans[i].pool, true
		}
	}
	return alloc.PoolID{}, false
}

package timeline

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// Live is the active memory at one moment, by the stack that allocated it.
type Live struct {
	Event   int    // the moment is after it; -1: before the first one
	Totals  Totals // at that moment
	Holders []LiveHolder
	// Sized reports whether Holders have block sizes.
	Sized bool
}

// LiveHolder is a call stack and its active blocks at one moment.
type LiveHolder struct {
	Stack     trace.StackID // trace.NoStack if the file does not say
	Size      uint64        // of the blocks; 0 unless Live.Sized
	Requested uint64
	Blocks    int
}

// LiveAt returns who holds the memory after each of the given events, -1 being
// the moment before the first one, in one walk. Holders come with the largest
// first.
//
// Blocks older than the first event have a stack only if they still exist at the
// end: nothing else in a file has it.
func (l *Timeline) LiveAt(events ...int) []*Live {
	order := make([]int, len(events))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(events[x], events[y]) })
	out := make([]*Live, len(events))
	w := newLiveWalk(l)
	c := l.Cursor()
	for _, i := range order {
		for c.Index < events[i] && c.Next() {
			w.event(c.Index, &c.Event)
		}
		out[i] = &Live{Event: c.Index, Totals: c.Totals, Holders: w.holders(), Sized: l.Exact}
	}
	return out
}

// LiveAtEnd returns who holds the memory in the state that the file shows. In a
// partial trace that is a later moment than the last event.
func (l *Timeline) LiveAtEnd() *Live {
	if len(l.Trace.Segments) == 0 {
		return l.LiveAt(l.Trace.Events.Len() - 1)[0]
	}
	s := NewState(l.Trace)
	out := &Live{Event: l.Trace.Events.Len() - 1, Sized: true, Totals: Totals{
		Reserved: s.Reserved, Allocated: s.Allocated, Active: s.Active,
		Requested: s.Requested, Pending: s.Requested - s.requestedAllocated, Blocks: s.Blocks,
	}}
	sums := liveSums{}
	for i := range l.Trace.Segments {
		seg := &l.Trace.Segments[i]
		if len(seg.Blocks) == 0 && seg.ActiveSize > 0 { // some files leave the blocks out
			sums.add(liveBlock{size: seg.ActiveSize, requested: seg.RequestedSize}, 0)
		}
		for j := range seg.Blocks {
			b := &seg.Blocks[j]
			switch b.State {
			case alloc.Inactive:
				continue
			case alloc.ActiveAllocated:
			default:
				out.Totals.PendingBlocks++
			}
			sums.add(liveBlock{b.Stack, b.Size, b.RequestedSize}, 1)
		}
	}
	out.Holders = sums.sorted()
	return out
}

// liveBlock is one active block.
type liveBlock struct {
	stack           trace.StackID
	size, requested uint64
}

// liveWalk keeps the active blocks while a cursor moves on.
type liveWalk struct {
	line   *Timeline
	blocks map[uint64]liveBlock // by address
	stays  map[uint64]lasting   // what is there at the end, by address
}

// lasting is a block that is there at the end, and the event that allocated it;
// -1 if it is older than the first one.
type lasting struct {
	born  int
	stack trace.StackID
	size  uint64
}

func newLiveWalk(l *Timeline) *liveWalk {
	w := &liveWalk{line: l, blocks: map[uint64]liveBlock{}, stays: map[uint64]lasting{}}
	w.findLasting()
	for i := range l.Start.Segments {
		for _, b := range l.Start.Segments[i].Blocks {
			if b.State != alloc.Inactive {
				w.blocks[b.Address] = liveBlock{size: b.Size, requested: b.RequestedSize}
			}
		}
	}
	for addr, s := range w.stays {
		if b, ok := w.blocks[addr]; ok && s.born < 0 {
			b.stack, b.size = s.stack, s.size
			w.blocks[addr] = b
		}
	}
	if len(w.blocks) > 0 || l.Trace.Partial {
		w.addFreed()
	}
	return w
}

// findLasting finds the blocks of the final state and their alloc events.
func (w *liveWalk) findLasting() {
	t := w.line.Trace
	if t.Partial { // the final state belongs to a later moment
		return
	}
	for i := range t.Segments {
		at := t.Segments[i].Address
		for j := range t.Segments[i].Blocks {
			b := &t.Segments[i].Blocks[j]
			if b.Address != 0 { // old files do not say
				at = b.Address
			}
			if b.State != alloc.Inactive {
				w.stays[at] = lasting{-1, b.Stack, b.Size}
			}
			at += b.Size
		}
	}
	for i := range t.Events.Len() {
		if t.Events.Action.At(i) != alloc.ActionAlloc {
			continue
		}
		if s, ok := w.stays[t.Events.Addr.At(i)]; ok {
			s.born = i
			w.stays[t.Events.Addr.At(i)] = s
		}
	}
}

// addFreed reads blocks older than the first event off the events that free
// them: their sizes and, in partial traces, that they existed.
func (w *liveWalk) addFreed() {
	events := &w.line.Trace.Events
	seen := map[uint64]bool{}
	for i := range events.Len() {
		switch events.Action.At(i) {
		case alloc.ActionAlloc:
			seen[events.Addr.At(i)] = true
		case alloc.ActionFreeRequested, alloc.ActionFreeCompleted:
			addr := events.Addr.At(i)
			if seen[addr] {
				continue
			}
			seen[addr] = true
			b, ok := w.blocks[addr]
			if !ok && !w.line.Trace.Partial {
				continue // a contradiction, which the totals ignore too
			}
			b.requested = events.Size.At(i)
			if w.line.Exact {
				b.size = w.line.sizes.At(i)
			}
			w.blocks[addr] = b
		}
	}
}

func (w *liveWalk) event(i int, e *trace.Event) {
	switch e.Action {
	case alloc.ActionAlloc:
		b := liveBlock{stack: e.Stack, requested: e.Size}
		if w.line.Exact {
			b.size = w.line.sizes.At(i)
		}
		// Recorded with context="state" only blocks have stacks.
		if s, ok := w.stays[e.Addr]; ok && s.born == i && b.stack <= trace.EmptyStack {
			b.stack = s.stack
		}
		w.blocks[e.Addr] = b
	case alloc.ActionFreeCompleted:
		delete(w.blocks, e.Addr)
	}
}

func (w *liveWalk) holders() []LiveHolder {
	sums := liveSums{}
	for _, b := range w.blocks {
		sums.add(b, 1)
	}
	return sums.sorted()
}

// liveSums sums up blocks by stack.
type liveSums map[trace.StackID]LiveHolder

func (s liveSums) add(b liveBlock, n int) {
	if b.stack == trace.EmptyStack {
		b.stack = trace.NoStack // nobody knows either way
	}
	h := s[b.stack]
	h.Stack = b.stack
	h.Size += b.size
	h.Requested += b.requested
	h.Blocks += n
	s[b.stack] = h
}

func (s liveSums) sorted() []LiveHolder {
	out := make([]LiveHolder, 0, len(s))
	for _, h := range s {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b LiveHolder) int {
		if a.Size == 0 && b.Size == 0 {
			return cmp.Or(cmp.Compare(b.Requested, a.Requested), cmp.Compare(a.Stack, b.Stack))
		}
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Stack, b.Stack))
	})
	return out
}

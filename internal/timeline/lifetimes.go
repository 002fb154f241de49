package timeline

import (
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// Lifetimes has all blocks of a trace, by column: blocks older than the trace
// first, then one for each alloc event, in order. A block is named by its
// position.
//
// A block is born with its alloc, freed with its free_requested and gone with
// its free_completed. Its Size is the block's if Exact, otherwise the requested
// size. [TotalsIndex] has the sums.
type Lifetimes struct {
	Spans
	Trace *trace.Trace
	Exact bool
	// Older is how many blocks are older than the trace. The last Found of them
	// are known only from the events that free them: the trace is partial.
	Older, Found int

	// Pools are the pools that the file names.
	Pools []alloc.PoolID

	older    []olderBlock
	pools    []uint16 // block -> position in Pools; nil if no pool is known
	byEvent  []int32  // event -> block, -1 if it is about none
	replaced map[int32]int32
	stacks   []trace.StackID
}

// olderBlock is what is known of a block that no alloc event shows.
type olderBlock struct{ addr, requested, stream uint64 }

// NoPoolKnown stands for the pool of a block if the file does not name it.
const NoPoolKnown = math.MaxUint16

// NewLifetimes goes through the events of a timeline once.
func NewLifetimes(l *Timeline) *Lifetimes {
	n := l.Trace.Events.Len()
	w := lifeWalk{
		Lifetimes: &Lifetimes{Trace: l.Trace, Exact: l.Exact, byEvent: make([]int32, n), replaced: map[int32]int32{}},
		timeline:  l, byAddress: make(map[uint64]int32, 1024), pools: l.pools.walk(), poolIDs: map[alloc.PoolID]uint16{},
	}
	// Without events the state is all there is, and it has the sizes.
	w.Exact = w.Exact || n == 0 && !l.Trace.Partial
	events := &l.Trace.Events
	w.grow(events)
	w.begin()
	for i := range n {
		w.event(int32(i), events)
	}
	w.finish()
	return w.Lifetimes
}

// lifeWalk is the state of NewLives.
type lifeWalk struct {
	*Lifetimes
	timeline  *Timeline
	byAddress map[uint64]int32 // address -> active block
	pools     poolWalk
	poolIDs   map[alloc.PoolID]uint16
}

// grow allocates columns for the blocks that the events allocate.
func (w *lifeWalk) grow(events *trace.Events) {
	begin := 0
	for i := range events.Len() {
		if events.Action.At(i) == alloc.ActionAlloc {
			begin++
		}
	}
	w.Spans.grow(begin)
	w.stacks = make([]trace.StackID, 0, begin)
	w.Lifetimes.pools = make([]uint16, 0, begin)
}

// begin adds the blocks that are older than the trace.
func (w *lifeWalk) begin() {
	for i := range w.timeline.Start.Segments {
		s := &w.timeline.Start.Segments[i]
		for _, b := range s.Blocks {
			if b.State == alloc.Inactive {
				continue
			}
			size, freed := b.RequestedSize, int32(Never)
			if b.Size > 0 && (w.Exact || size == 0) {
				size = b.Size
			}
			if b.State == alloc.ActivePendingFree {
				freed = -1
			}
			w.addOlder(olderBlock{addr: b.Address, requested: b.RequestedSize, stream: s.Stream}, size, freed)
		}
	}
	if w.Trace.Partial {
		w.beginPartial()
	}
}

func (w *lifeWalk) addOlder(b olderBlock, size uint64, freed int32) {
	w.byAddress[b.addr] = int32(len(w.Born))
	w.older = append(w.older, b)
	w.Lifetimes.Older++
	w.Lifetimes.pools = append(w.Lifetimes.pools, NoPoolKnown)
	w.stacks = append(w.stacks, trace.NoStack)
	w.add(-1, freed, Never, size)
}

// beginPartial adds blocks that the events free but did not allocate.
func (w *lifeWalk) beginPartial() {
	events := &w.Trace.Events
	seen := map[uint64]bool{}
	for i := range events.Len() {
		a := events.Action.At(i)
		if a != alloc.ActionAlloc && a != alloc.ActionFreeRequested && a != alloc.ActionFreeCompleted {
			continue
		}
		e := events.At(i)
		if seen[e.Addr] {
			continue
		}
		seen[e.Addr] = true
		if _, ok := w.byAddress[e.Addr]; ok || a == alloc.ActionAlloc {
			continue
		}
		freed := int32(Never)
		if a == alloc.ActionFreeCompleted {
			freed = -1
		}
		w.addOlder(olderBlock{addr: e.Addr, requested: e.Size, stream: e.Stream}, e.Size, freed)
		w.Lifetimes.Found++
	}
}

func (w *lifeWalk) event(i int32, events *trace.Events) {
	w.byEvent[i] = -1
	switch a := events.Action.At(int(i)); a {
	case alloc.ActionAlloc:
		w.alloc(i, events)
	case alloc.ActionFreeRequested, alloc.ActionFreeCompleted:
		addr := events.Addr.At(int(i))
		id, ok := w.byAddress[addr]
		if !ok {
			return // a contradiction
		}
		w.byEvent[i] = id
		w.Freed[id] = min(w.Freed[id], i)
		if int(id) < w.Lifetimes.Older && w.Exact {
			// The events have the sizes of blocks older than the trace.
			if size := w.timeline.sizes.At(int(i)); size > 0 {
				w.Size[id] = size
			}
		}
		if a == alloc.ActionFreeCompleted {
			w.Gone[id] = i
			delete(w.byAddress, addr)
		}
	case alloc.ActionSegmentAlloc:
		e := events.At(int(i))
		w.pools.apply(int(i), &e)
	}
}

func (w *lifeWalk) alloc(i int32, events *trace.Events) {
	e := events.At(int(i))
	if old, ok := w.byAddress[e.Addr]; ok { // the file lacks its free
		w.Freed[old] = min(w.Freed[old], i)
		w.Gone[old] = i
		w.replaced[i] = old
	}
	id := int32(len(w.Born))
	w.byAddress[e.Addr], w.byEvent[i] = id, id
	size := e.Size
	if w.Exact {
		size = w.timeline.sizes.At(int(i))
	}
	w.add(i, Never, Never, size)
	w.stacks = append(w.stacks, e.Stack)
	pool := uint16(NoPoolKnown)
	if p, ok := w.pools.poolOf(&e, events); ok {
		pool = w.poolID(p)
	}
	w.Lifetimes.pools = append(w.Lifetimes.pools, pool)
}

func (w *lifeWalk) poolID(p alloc.PoolID) uint16 {
	id, ok := w.poolIDs[p]
	if !ok {
		if len(w.Lifetimes.Pools) >= NoPoolKnown {
			return NoPoolKnown
		}
		id = uint16(len(w.Lifetimes.Pools))
		w.Lifetimes.Pools = append(w.Lifetimes.Pools, p)
		w.poolIDs[p] = id
	}
	return id
}

// finish adds what the final segments show, and the index.
func (w *lifeWalk) finish() {
	if !w.Trace.Partial {
		for i := range w.Trace.Segments {
			w.final(&w.Trace.Segments[i])
		}
	}
	if len(w.Lifetimes.Pools) == 0 {
		w.Lifetimes.pools = nil
	}
	w.index()
}

// final takes stacks that only the final segments have: those of older blocks,
// and all of them if recording kept stacks of blocks only.
func (w *lifeWalk) final(s *trace.Segment) {
	at := s.Address
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if b.Address != 0 { // old files do not say
			at = b.Address
		}
		id, ok := w.byAddress[at]
		at += b.Size
		if !ok || b.State == alloc.Inactive {
			continue
		}
		switch {
		case int(id) < w.Lifetimes.Older:
			w.stacks[id] = b.Stack
			if s.HasPool {
				w.Lifetimes.pools[id] = w.poolID(s.Pool)
			}
		case w.stacks[id] <= trace.EmptyStack && b.Stack > trace.EmptyStack:
			w.stacks[id] = b.Stack
		}
	}
}

// Events returns the number of events of the trace.
func (l *Lifetimes) Events() int { return len(l.byEvent) }

// LifeOf returns the block that an event is about, or -1.
func (l *Lifetimes) BlockOf(event int) int { return int(l.byEvent[event]) }

// Replaced returns the block whose address an alloc event takes: the file lacks
// its free.
func (l *Lifetimes) Replaced(event int) (block int, ok bool) {
	old, ok := l.replaced[int32(event)]
	return int(old), ok
}

// Address returns the address of block i.
func (l *Lifetimes) Address(i int) uint64 {
	if i < l.Older {
		return l.older[i].addr
	}
	return l.Trace.Events.Addr.At(int(l.Born[i]))
}

// Requested returns the requested size of block i.
func (l *Lifetimes) Requested(i int) uint64 {
	if i < l.Older {
		return l.older[i].requested
	}
	return l.Trace.Events.Size.At(int(l.Born[i]))
}

// Stream returns the stream of block i.
func (l *Lifetimes) Stream(i int) uint64 {
	if i < l.Older {
		return l.older[i].stream
	}
	return l.Trace.Events.Streams[l.Trace.Events.Stream.At(int(l.Born[i]))]
}

// Stack returns the stack that allocated block i, trace.NoStack if unknown.
func (l *Lifetimes) Stack(i int) trace.StackID { return l.stacks[i] }

// Pool returns the position in Pools of the pool of block i, or NoPoolKnown.
func (l *Lifetimes) Pool(i int) int {
	if l.pools == nil {
		return NoPoolKnown
	}
	return int(l.pools[i])
}

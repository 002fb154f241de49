package timeline

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/ordered"
	"github.com/ashlar-mem/ashlar/trace"
)

// Layout has the allocator's map after every event: its segments, and where each
// block lay in them. It does not replay: segments have lifetimes like blocks, and
// the map of a moment is assembled by address from what exists then.
type Layout struct {
	// Spaces are the lifetimes of plain segments, and of pieces of expandable
	// ones from their mapping on. When a part of a piece is unmapped, the rest
	// becomes a new piece.
	Spaces Spans

	lifetimes *Lifetimes
	spaces    []space // as Spaces
	// ranges are the reservations of expandable segments: everything mapped in
	// one belongs together.
	ranges []addressRange
}

// space is memory from the driver: a plain segment, or a mapped piece of an
// expandable one.
type space struct {
	addr, size uint64
	born, gone int32
	made       int32 // the event that brought the memory: born, but for what is left of a piece
	stream     uint64
	stack      trace.StackID
	pool       alloc.PoolID
	hasPool    bool
	kind       SpaceKind
	in         int32 // position in ranges; -1 for a plain segment
}

// SpaceKind says which of the two pools a segment belongs to.
type SpaceKind uint8

// The kinds. A file that ends early does not always tell.
const (
	KindUnknown SpaceKind = iota
	KindSmall
	KindLarge
)

func (k SpaceKind) String() string {
	switch k {
	case KindSmall:
		return "small"
	case KindLarge:
		return "large"
	}
	return ""
}

type addressRange struct{ begin, end uint64 }

// Map is the allocator's map at one moment.
type Map struct {
	Event       int
	Segments    []MapSegment // by address
	Free        uint64       // in all free blocks
	LargestFree uint64
}

// MapSegment is memory from the driver. All mapped runs of one reservation of an
// expandable segment are one MapSegment.
type MapSegment struct {
	Address    uint64
	Size       uint64 // mapped
	Span       uint64 // to the end of what was mapped so far
	Stream     uint64
	Pool       alloc.PoolID
	HasPool    bool
	Kind       SpaceKind
	Expandable bool
	Blocks     []MapBlock // by address; they fill the span
}

// BlockState is what a piece of a segment is at a moment.
type BlockState uint8

// The states.
const (
	BlockFree BlockState = iota
	BlockAllocated
	BlockPending
	BlockUnmapped
)

// MapBlock is a piece of a segment.
type MapBlock struct {
	Address, Size uint64
	State         BlockState
	Life          int32 // -1 if free or unmapped
}

// apart is the distance from which memory of expandable segments cannot be of
// one reservation: a reservation is an eighth larger than the device, so at least
// that much is unmapped at its end.
const apart = 512 << 20

// NewLayout walks the events of a timeline once.
func NewLayout(l *Timeline, lives *Lifetimes) *Layout {
	w := layoutWalk{
		Layout: &Layout{lifetimes: lives}, line: l, rules: alloc.RulesOf(l.Trace.Settings.Parsed, l.Trace.Writer.Assumed()), pools: l.pools.walk(), plain: map[uint64]int32{},
	}
	for i := range l.Start.Segments {
		w.start(&l.Start.Segments[i])
	}
	events := &l.Trace.Events
	for i := range events.Len() {
		switch events.Action.At(i) {
		case alloc.ActionSegmentAlloc, alloc.ActionSegmentFree, alloc.ActionSegmentMap, alloc.ActionSegmentUnmap:
			w.event(int32(i), events)
		}
	}
	w.findRanges()
	w.finalSpaces()
	for i := range w.spaces {
		p := &w.spaces[i]
		w.Spaces.add(p.born, p.gone, p.gone, p.size)
	}
	w.Spaces.index()
	return w.Layout
}

// layoutWalk is the state of NewLayout.
type layoutWalk struct {
	*Layout
	line   *Timeline
	rules  alloc.Rules
	pools  poolWalk
	plain  map[uint64]int32   // address -> space
	mapped ordered.Map[int32] // spaces, by address
}

func (w *layoutWalk) start(s *alloc.Segment) {
	p := space{addr: s.Address, size: s.TotalSize, born: -1, made: -1, gone: Never, stream: s.Stream, kind: KindSmall, in: -1}
	if s.Large {
		p.kind = KindLarge
	}
	e := trace.Event{Action: alloc.ActionSegmentFree, Addr: s.Address} // asks by address
	p.pool, p.hasPool = w.pools.poolOf(&e, &w.line.Trace.Events)
	if s.Expandable {
		w.addMapped(p)
	} else {
		w.plain[p.addr] = w.add(p)
	}
}

func (w *layoutWalk) add(p space) int32 {
	w.spaces = append(w.spaces, p)
	return int32(len(w.spaces) - 1)
}

func (w *layoutWalk) event(i int32, events *trace.Events) {
	e := events.At(int(i))
	w.pools.apply(int(i), &e)
	switch e.Action {
	case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
		p := space{addr: e.Addr, size: e.Size, born: i, made: i, gone: Never, stream: e.Stream, stack: e.Stack, kind: KindSmall, in: -1}
		if w.rules.LargeSegment(e.Size) {
			p.kind = KindLarge
		}
		p.pool, p.hasPool = w.pools.poolOf(&e, events)
		if e.Action == alloc.ActionSegmentMap {
			w.addMapped(p)
			return
		}
		if old, ok := w.plain[e.Addr]; ok { // the file lacks its end
			w.spaces[old].gone = i
		}
		w.plain[e.Addr] = w.add(p)
	case alloc.ActionSegmentFree:
		if id, ok := w.plain[e.Addr]; ok {
			w.spaces[id].gone = i
			delete(w.plain, e.Addr)
		}
	case alloc.ActionSegmentUnmap:
		w.unmap(i, e.Addr, e.Addr+e.Size)
	}
}

// addMapped adds a piece of an expandable segment.
func (w *layoutWalk) addMapped(p space) {
	p.in = 0                                     // until the ranges are known
	if old := w.mapped.Get(p.addr); old != nil { // the file lacks its end
		w.spaces[*old].gone = p.born
	}
	w.mapped.Set(p.addr, w.add(p))
}

// unmap ends the pieces in a range of addresses. The rest of a piece becomes a
// new one.
func (w *layoutWalk) unmap(i int32, from, to uint64) {
	var cut []int32
	if addr, id := w.mapped.Before(from); id != nil && addr < from && from-addr < w.spaces[*id].size {
		cut = append(cut, *id)
	}
	for addr, id := range w.mapped.From(from) {
		if addr >= to {
			break
		}
		cut = append(cut, *id)
	}
	for _, id := range cut {
		p := w.spaces[id]
		end := p.addr + p.size
		w.spaces[id].gone = i
		w.mapped.Delete(p.addr)
		p.born = i
		if p.addr < from {
			front := p
			front.size = from - p.addr
			w.mapped.Set(front.addr, w.add(front))
		}
		if end > to {
			back := p
			back.addr, back.size = to, end-to
			w.mapped.Set(back.addr, w.add(back))
		}
	}
}

// finalSpaces takes what the file says of the segments at the end: their kind,
// and the stack of those that are older than the trace.
func (w *layoutWalk) finalSpaces() {
	if w.line.Trace.Partial { // they are those of a later moment
		return
	}
	for i := range w.line.Trace.Segments {
		s := &w.line.Trace.Segments[i]
		id, ok := w.plain[s.Address]
		if !ok || s.Expandable {
			continue
		}
		p := &w.spaces[id]
		switch s.Type {
		case "small":
			p.kind = KindSmall
		case "large":
			p.kind = KindLarge
		}
		if p.stack <= trace.EmptyStack {
			p.stack = s.Stack
		}
	}
}

// findRanges joins the pieces that lie near each other to reservations.
func (w *layoutWalk) findRanges() {
	var order []int32
	for i := range w.spaces {
		if w.spaces[i].in >= 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(x, y int32) int { return cmp.Compare(w.spaces[x].addr, w.spaces[y].addr) })
	last := -1 // the space before
	for _, id := range order {
		p := &w.spaces[id]
		n := len(w.ranges)
		if last < 0 || w.spaces[last].stream != p.stream || w.spaces[last].kind != p.kind ||
			p.addr > w.ranges[n-1].end && p.addr-w.ranges[n-1].end > apart {
			w.ranges = append(w.ranges, addressRange{p.addr, p.addr + p.size})
			n++
		}
		w.ranges[n-1].end = max(w.ranges[n-1].end, p.addr+p.size)
		p.in, last = int32(n-1), int(id)
	}
}

// At returns the map after an event; -1 is before the first.
func (y *Layout) At(event int) *Map {
	b := mapBuilder{Map: &Map{Event: event}, layout: y, exact: y.lifetimes.Exact}
	b.segments(y.alive(event))
	b.blocks(event)
	for i := range b.Segments {
		b.close(&b.Segments[i])
	}
	return b.Map
}

// alive lists the spaces that exist after an event, by address, and how far each
// reservation was mapped until then.
func (y *Layout) alive(event int) (alive []*space, mapped []addressRange) {
	mapped = make([]addressRange, len(y.ranges))
	for i := range y.spaces {
		p := &y.spaces[i]
		if int(p.born) > event {
			break
		}
		if p.in >= 0 {
			r := &mapped[p.in]
			if r.end == 0 {
				r.begin = p.addr
			}
			r.begin, r.end = min(r.begin, p.addr), max(r.end, p.addr+p.size)
		}
		if int(p.gone) > event {
			alive = append(alive, p)
		}
	}
	slices.SortFunc(alive, func(x, y *space) int { return cmp.Compare(x.addr, y.addr) })
	return alive, mapped
}

// Space is what is known of a segment beside its lifetime.
type Space struct {
	Made    int // the event that brought the memory; -1 if older than the trace
	Stream  uint64
	Stack   trace.StackID
	Pool    alloc.PoolID
	HasPool bool
}

// Space returns what is known of one of Spaces.
func (y *Layout) Space(i int) Space {
	p := &y.spaces[i]
	return Space{int(p.made), p.stream, p.stack, p.pool, p.hasPool}
}

// SegmentOf returns the address and size of the segment, or the mapped run, in
// which a block is allocated; false if the file does not show it.
func (y *Layout) SegmentOf(life int) (addr, size uint64, ok bool) {
	at, event := y.lifetimes.Address(life), int(y.lifetimes.Born[life])
	alive, _ := y.alive(event)
	for i := 0; i < len(alive); i++ {
		p := alive[i]
		addr, end := p.addr, p.addr+p.size
		for ; p.in >= 0 && i+1 < len(alive) && alive[i+1].in == p.in && alive[i+1].addr == end; i++ {
			end += alive[i+1].size
		}
		if at >= addr && at < end {
			return addr, end - addr, true
		}
	}
	return 0, 0, false
}

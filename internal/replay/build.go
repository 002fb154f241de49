package replay

import (
	"cmp"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Builder makes the [Program] of a trace, call by call. Package verify reads the
// calls off the events.
type Builder struct {
	program  *Program
	placeIDs map[place]int
	last     int // place of the last call that had one
}

// NewBuilder begins a program of about n calls. The tensors of the start state
// are numbered from 0 on, in the order of their addresses.
func NewBuilder(t *trace.Trace, begin *start.State, s settings.Settings, n int) *Builder {
	p := &Program{Trace: t, Start: begin, Settings: s, Version: t.Writer.Assumed(), calls: make([]packed, 0, n), events: make([]int32, 0, n)}
	for i := range begin.Segments {
		p.tensors += len(begin.Segments[i].Blocks)
	}
	return &Builder{program: p, placeIDs: map[place]int{}}
}

// FreedBefore adds a free that was requested before the first call: it waits
// for a made-up stream.
func (b *Builder) FreedBefore(tensor, stream int) {
	b.program.freed = append(b.program.freed, wait{int32(tensor), stream})
	b.program.waits = max(b.program.waits, stream+1)
}

// Add adds a call.
func (b *Builder) Add(c Call) {
	at := 0
	switch c.Kind {
	case CallAlloc:
		b.program.tensors = max(b.program.tensors, c.Tensor+1)
		at = b.place(place{c.Stream, c.Pool})
	case CallTry, CallClosePool:
		at = b.place(place{c.Stream, c.Pool})
	case CallFreeLater, CallComplete:
		at = int(c.Stream)
		b.program.waits = max(b.program.waits, at+1)
	}
	b.program.calls = append(b.program.calls, packed{size: c.Size, tensor: int32(c.Tensor), where: uint32(at)<<kindBits | uint32(c.Kind)})
	b.program.events = append(b.program.events, int32(c.Event))
}

// place returns the number of a stream and a pool.
func (b *Builder) place(at place) int {
	if b.last < len(b.program.places) && b.program.places[b.last] == at {
		return b.last
	}
	id, ok := b.placeIDs[at]
	if !ok {
		id = min(len(b.program.places), maxPlaces-1)
		if id == len(b.program.places) {
			b.program.places = append(b.program.places, at)
		}
		b.placeIDs[at] = id
	}
	b.last = id
	return id
}

// Device is where the recorded run had its memory.
type Device struct {
	Memory   uint64          // of the device, as far as it shows
	Reserved []alloc.Span    // the addresses of expandable segments at the start
	Segments []sim.Placement // the plain segments that were obtained and given back, in order
	// Order has, by address, the order in which the objects of the start state were
	// made, if it is known; see [alloc.WithStartOrder].
	Order map[uint64]uint32
}

// Program returns the program of the calls so far. It moves all addresses to
// where driver/sim has its own.
func (b *Builder) Program(d Device) *Program {
	p := b.program
	p.memory, p.follow = d.Memory, d.Segments
	plain, mapped := span{low: math.MaxUint64}, span{low: math.MaxUint64}
	for i := range p.Start.Segments {
		s := &p.Start.Segments[i]
		if s.Expandable {
			mapped.add(s.Address, s.TotalSize)
		} else {
			plain.add(s.Address, s.TotalSize)
		}
	}
	for _, r := range d.Reserved {
		mapped.add(r.Addr, r.Size)
	}
	for _, s := range d.Segments {
		plain.add(s.Addr, s.Size)
	}
	const unit = 32 << 20
	move := sim.SegmentsEnd - (plain.high+unit-1)/unit*unit
	for i := range p.follow {
		p.follow[i].Addr += move
	}
	moveMapped := uint64(0)
	if mapped.low < sim.RangesBegin || mapped.high > sim.RangesEnd {
		moveMapped = sim.RangesBegin - mapped.low
	}
	p.reserved = slices.Clone(d.Reserved)
	for i := range p.reserved {
		p.reserved[i].Addr += moveMapped
	}
	p.setOrder(d.Order, move, moveMapped)
	for _, s := range p.Start.Segments {
		by := move
		if s.Expandable {
			by = moveMapped
		}
		blocks := make([]alloc.Block, len(s.Blocks))
		for i, block := range s.Blocks {
			block.Address += by
			blocks[i] = block
			p.first = append(p.first, block.Address)
		}
		s.Address += by
		s.Blocks = blocks
		p.initial = append(p.initial, s)
	}
	return p
}

// setOrder moves the objects of the start state: those of plain segments, and those
// of reservations, mapped or not.
func (p *Program) setOrder(order map[uint64]uint32, plain, mapped uint64) {
	if order == nil {
		return
	}
	p.order = make(map[uint64]uint32, len(order))
	for addr, n := range order {
		i, found := slices.BinarySearchFunc(p.Start.Segments, addr, func(s alloc.Segment, addr uint64) int { return cmp.Compare(s.Address, addr) })
		if !found {
			i--
		}
		by := mapped
		if i >= 0 && !p.Start.Segments[i].Expandable && addr-p.Start.Segments[i].Address < p.Start.Segments[i].TotalSize {
			by = plain
		}
		p.order[addr+by] = n
	}
}

// span is the range that addresses lie in.
type span struct{ low, high uint64 }

func (s *span) add(addr, size uint64) {
	s.low, s.high = min(s.low, addr), max(s.high, addr+size)
}

// Extend begins a program with the first n calls of another one, to which calls
// may be added. Their events come after those of the trace.
func (p *Program) Extend(n int) *Extension {
	out := *p
	out.calls = append(make([]packed, 0, n+n/4), p.calls[:n]...)
	out.events = append(make([]int32, 0, n+n/4), p.events[:n]...)
	out.places = slices.Clone(p.places)
	b := &Builder{program: &out, placeIDs: map[place]int{}}
	for i, at := range out.places {
		b.placeIDs[at] = i
	}
	return &Extension{builder: b, next: p.Trace.Events.Len()}
}

// Extension adds calls to a program.
type Extension struct {
	builder *Builder
	next    int // event
}

// Add adds a call and returns its event. Tensor -1 is a new one if the call
// allocates; its number is returned.
func (e *Extension) Add(c Call) (event, tensor int) {
	c.Event = e.next
	e.next++
	if c.Kind == CallAlloc && c.Tensor < 0 {
		c.Tensor = e.builder.program.tensors
	}
	e.builder.Add(c)
	return c.Event, c.Tensor
}

// Repeat adds a call of the program itself, with its event and its tensor.
func (e *Extension) Repeat(c Call) { e.builder.Add(c) }

// Program returns the program of the calls so far.
func (e *Extension) Program() *Program { return e.builder.program }

// Rebuild returns a program of other calls that begins as p does, in the same
// state and on the same device. create adds its calls, about n. Tensors keep their
// numbers; each is allocated at most once, and freed at most once after that.
func (p *Program) Rebuild(n int, create func(add func(Call))) *Program {
	out := *p
	out.calls, out.events, out.early = make([]packed, 0, n), make([]int32, 0, n), 0
	out.places = slices.Clone(p.places)
	b := &Builder{program: &out, placeIDs: make(map[place]int, len(p.places))}
	for id, at := range out.places {
		b.placeIDs[at] = id
	}
	create(b.Add)
	return &out
}

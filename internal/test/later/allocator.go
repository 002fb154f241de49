package later

import (
	"cmp"
	"slices"
)

const (
	mib          = 1 << 20
	leastBlock   = 512
	smallMost    = mib
	smallSegment = 2 * mib
	largeSegment = 20 * mib
	ownSegment   = 10 * mib
	reservation  = 64 << 30
)

// Allocator is one device's.
type Allocator struct {
	BySegment  bool // the order of 2.13; otherwise that of 2.12
	Expandable bool
	Events     []Event
	Segments   []*Segment

	pools   map[Pool]*[2]*pool
	counter int // blocks made in 2.12, segments in 2.13
	plain   uint64
	ranges  uint64
	flush   bool
	waiting []*Block // freed, another stream uses them
	done    []*Block // of these, where the stream is done
}

// Pool is the id of a pool.
type Pool struct{ First, Second uint64 }

// Event is an entry of the trace.
type Event struct {
	Action             string
	Addr, Size, Stream uint64
	Pool               Pool
	Flush              bool // by empty_cache(), or the end of a pool
}

// Segment is a plain segment, or a reservation of addresses.
type Segment struct {
	Addr, Size uint64
	Stream     uint64
	Pool       Pool
	Small      bool
	Expandable bool
	First      *Block
}

// Block is a piece of a segment.
type Block struct {
	Addr, Size, Request uint64
	Free, Mapped        bool
	Waits               bool // freed, but in use on another stream
	Next                *Block

	prev   *Block
	number int // what PyTorch calls the registration counter
	seg    *Segment
	pool   *pool
	stream uint64
}

type pool struct {
	id     Pool
	small  bool
	blocks []*Block // free ones, in no order
	holes  []*Block // unmapped ones
}

// New returns an allocator whose driver hands out segments from high addresses to
// low ones, so that their order is not that of their addresses.
func New(bySegment, expandable bool) *Allocator {
	return &Allocator{
		BySegment: bySegment, Expandable: expandable,
		pools: map[Pool]*[2]*pool{}, plain: 0x7f8000000000, ranges: 0x500000000000,
	}
}

func (a *Allocator) note(action string, addr, size, stream uint64, p *pool) {
	a.Events = append(a.Events, Event{action, addr, size, stream, p.id, a.flush})
}

// newBlock makes a block object. In 2.12 each has a number of its own; in 2.13 it
// has its segment's.
func (a *Allocator) newBlock(b Block) *Block {
	if a.BySegment {
		if b.number == 0 {
			a.counter++
			b.number = a.counter
		}
		return &b
	}
	a.counter++
	b.number = a.counter
	return &b
}

func (a *Allocator) pool(id Pool, small bool) *pool {
	pair := a.pools[id]
	if pair == nil {
		pair = &[2]*pool{{id: id, small: true}, {id: id}}
		a.pools[id] = pair
	}
	if small {
		return pair[0]
	}
	return pair[1]
}

func (a *Allocator) before(x, y *Block) int {
	c := cmp.Or(cmp.Compare(x.stream, y.stream), cmp.Compare(x.Size, y.Size), cmp.Compare(x.number, y.number))
	if a.BySegment {
		c = cmp.Or(c, cmp.Compare(x.Addr, y.Addr))
	}
	return c
}

// Malloc serves a request and returns the block.
func (a *Allocator) Malloc(request, stream uint64, id Pool) *Block {
	if id == (Pool{}) || a.BySegment && id.First == 0 { // otherwise a route is active
		a.processEvents()
	}
	size := max(leastBlock, (request+leastBlock-1)/leastBlock*leastBlock)
	p := a.pool(id, size <= smallMost)
	b := a.search(p, size, stream)
	switch {
	case b != nil:
		p.blocks = without(p.blocks, b)
	case a.Expandable:
		b = a.grow(p, size, stream)
	default:
		b = a.segment(p, size, stream)
	}
	rest := b.Size - size
	if (p.small || a.Expandable) && rest >= leastBlock || !p.small && !a.Expandable && rest > mib {
		b = a.split(b, size)
	}
	b.Free, b.Request = false, request
	a.note("alloc", b.Addr, request, stream, p)
	return b
}

// search returns the first block in order that is large enough; among expandable
// ones it goes on while the next has less room to grow.
func (a *Allocator) search(p *pool, size, stream uint64) *Block {
	var fit []*Block
	for _, b := range p.blocks {
		if b.stream == stream && b.Size >= size {
			fit = append(fit, b)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	if !a.Expandable {
		return slices.MinFunc(fit, a.before)
	}
	slices.SortFunc(fit, a.before)
	room := func(b *Block) uint64 {
		if b.Next != nil && !b.Next.Mapped {
			return b.Size + b.Next.Size
		}
		return b.Size
	}
	i := 0
	for i+1 < len(fit) && room(fit[i+1]) < room(fit[i]) {
		i++
	}
	return fit[i]
}

func (a *Allocator) segment(p *pool, size, stream uint64) *Block {
	want := uint64(largeSegment)
	switch {
	case p.small:
		want = smallSegment
	case size >= ownSegment:
		want = (size + 2*mib - 1) / (2 * mib) * (2 * mib)
	}
	a.plain -= want
	s := &Segment{Addr: a.plain, Size: want, Stream: stream, Pool: p.id, Small: p.small}
	s.First = a.newBlock(Block{Addr: s.Addr, Size: want, Mapped: true, seg: s, pool: p, stream: stream})
	a.Segments = append(a.Segments, s)
	a.note("segment_alloc", s.Addr, want, stream, p)
	return s.First
}

// split cuts the front off a block: the front is the new object.
func (a *Allocator) split(rest *Block, size uint64) *Block {
	front := a.newBlock(Block{Addr: rest.Addr, Size: size, Mapped: true, seg: rest.seg, pool: rest.pool, stream: rest.stream, number: rest.number})
	insertBefore(rest, front)
	rest.Addr += size
	rest.Size -= size
	rest.Free = true
	rest.pool.blocks = append(rest.pool.blocks, rest)
	return front
}

func insertBefore(b, front *Block) {
	front.prev, front.Next = b.prev, b
	if b.prev != nil {
		b.prev.Next = front
	} else {
		b.seg.First = front
	}
	b.prev = front
}

// Free frees a block; if another stream uses it, it comes back after [Allocator.Done].
func (a *Allocator) Free(b *Block, waits bool) {
	a.note("free_requested", b.Addr, b.Request, b.stream, b.pool)
	if waits {
		b.Waits = true
		a.waiting = append(a.waiting, b)
		return
	}
	a.giveBack(b)
}

// Done says that the other stream no longer uses a freed block.
func (a *Allocator) Done(b *Block) {
	if b.Waits {
		a.done = append(a.done, b)
	}
}

func (a *Allocator) processEvents() {
	for _, b := range a.done {
		a.complete(b)
	}
	a.done = nil
}

func (a *Allocator) complete(b *Block) {
	if b.Waits {
		b.Waits = false
		a.waiting = without(a.waiting, b)
		a.giveBack(b)
	}
}

func (a *Allocator) giveBack(b *Block) {
	a.note("free_completed", b.Addr, b.Request, b.stream, b.pool)
	b.Free = true
	a.merge(b)
	b.pool.blocks = append(b.pool.blocks, b)
}

// merge has a block swallow its neighbours of the same state.
func (a *Allocator) merge(b *Block) {
	for _, n := range []*Block{b.prev, b.Next} {
		if n == nil || !n.Free || n.Mapped != b.Mapped {
			continue
		}
		b.pool.blocks, b.pool.holes = without(b.pool.blocks, n), without(b.pool.holes, n)
		b.Addr = min(b.Addr, n.Addr)
		b.Size += n.Size
		if n == b.prev {
			if b.prev = n.prev; n.prev != nil {
				n.prev.Next = b
			} else {
				b.seg.First = b
			}
		} else if b.Next = n.Next; n.Next != nil {
			n.Next.prev = b
		}
	}
}

// EmptyCache is torch.cuda.empty_cache().
func (a *Allocator) EmptyCache() {
	a.flush = true
	a.processEvents()
	for len(a.waiting) > 0 {
		a.complete(a.waiting[0])
	}
	a.release(a.pool(Pool{}, false))
	a.release(a.pool(Pool{}, true))
	a.flush = false
}

// DeletePool gives a private pool up and releases its memory.
func (a *Allocator) DeletePool(id Pool) {
	a.flush = true
	a.release(a.pool(id, true))
	a.release(a.pool(id, false))
	a.flush = false
}

func (a *Allocator) release(p *pool) {
	slices.SortFunc(p.blocks, a.before)
	for _, b := range slices.Clone(p.blocks) {
		if !b.seg.Expandable && b.prev == nil && b.Next == nil {
			a.note("segment_free", b.Addr, b.Size, b.stream, p)
			p.blocks = without(p.blocks, b)
			a.Segments = without(a.Segments, b.seg)
		}
	}
	for _, b := range slices.Clone(p.blocks) {
		if b.seg.Expandable {
			a.unmap(b)
		}
	}
}

func without[T comparable](list []T, x T) []T {
	if i := slices.Index(list, x); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

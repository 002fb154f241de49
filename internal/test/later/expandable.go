package later

import (
	"cmp"
	"slices"
)

func (p *pool) granule() uint64 {
	if p.small {
		return smallSegment
	}
	return largeSegment
}

// grow maps memory for a size into an expandable segment.
func (a *Allocator) grow(p *pool, size, stream uint64) *Block {
	b := a.findRoom(p, size, stream)
	if !b.Mapped {
		a.mapFront(b, min(b.Size, size))
	}
	for b.Size < size {
		next := b.Next
		a.mapFront(next, min(size-b.Size, next.Size))
		b = next // it swallowed b
	}
	p.blocks = without(p.blocks, b)
	return b
}

// findRoom returns the lowest place with enough addresses that nobody uses.
func (a *Allocator) findRoom(p *pool, size, stream uint64) *Block {
	slices.SortFunc(p.holes, func(x, y *Block) int { return cmp.Or(cmp.Compare(x.stream, y.stream), cmp.Compare(x.Addr, y.Addr)) })
	for _, b := range p.holes {
		if b.stream != stream {
			continue
		}
		if b.prev != nil && b.prev.Free {
			b = b.prev
		}
		room := uint64(0)
		for c := b; c != nil && c.Free && room < size; c = c.Next {
			room += c.Size
		}
		if room >= size {
			return b
		}
	}
	s := &Segment{Addr: a.ranges, Size: reservation, Stream: stream, Pool: p.id, Small: p.small, Expandable: true}
	a.ranges += 2 * reservation
	s.First = a.newBlock(Block{Addr: s.Addr, Size: s.Size, Free: true, seg: s, pool: p, stream: stream})
	a.Segments = append(a.Segments, s)
	p.holes = append(p.holes, s.First)
	return s.First
}

func (a *Allocator) mapFront(b *Block, size uint64) {
	p := b.pool
	size = (size + p.granule() - 1) / p.granule() * p.granule()
	addr := b.Addr
	p.holes = without(p.holes, b)
	b.Mapped = true
	if size < b.Size {
		rest := a.newBlock(Block{Addr: addr + size, Size: b.Size - size, Free: true, seg: b.seg, pool: p, stream: b.stream, number: b.number})
		rest.prev, rest.Next = b, b.Next
		if b.Next != nil {
			b.Next.prev = rest
		}
		b.Next, b.Size = rest, size
		p.holes = append(p.holes, rest)
	}
	a.merge(b)
	p.blocks = append(p.blocks, b)
	a.note("segment_map", addr, size, b.stream, p)
}

// unmap takes the whole granules out of a free block.
func (a *Allocator) unmap(b *Block) {
	p, s := b.pool, b.seg
	g := p.granule()
	from := s.Addr + (b.Addr-s.Addr+g-1)/g*g
	to := s.Addr + (b.Addr+b.Size-s.Addr)/g*g
	if from >= to {
		return
	}
	p.blocks = without(p.blocks, b)
	if n := from - b.Addr; n > 0 {
		front := a.newBlock(Block{Addr: b.Addr, Size: n, Free: true, Mapped: true, seg: s, pool: p, stream: b.stream, number: b.number})
		insertBefore(b, front)
		p.blocks = append(p.blocks, front)
	}
	if n := b.Addr + b.Size - to; n > 0 {
		back := a.newBlock(Block{Addr: to, Size: n, Free: true, Mapped: true, seg: s, pool: p, stream: b.stream, number: b.number})
		back.prev, back.Next = b, b.Next
		if b.Next != nil {
			b.Next.prev = back
		}
		b.Next = back
		p.blocks = append(p.blocks, back)
	}
	b.Addr, b.Size, b.Mapped = from, to-from, false
	a.merge(b)
	p.holes = append(p.holes, b)
	a.note("segment_unmap", from, to-from, b.stream, p)
	if b.prev == nil && b.Next == nil {
		p.holes = without(p.holes, b)
		a.Segments = without(a.Segments, s)
	}
}

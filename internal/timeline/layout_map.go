package timeline

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
)

// mapBuilder assembles the map of one moment.
type mapBuilder struct {
	*Map
	layout *Layout
	exact  bool
}

// segments makes the segments without blocks. The pieces of one reservation are
// one segment, with the unmapped ranges between them.
func (b *mapBuilder) segments(alive []*space, mapped []addressRange) {
	byRange := map[int32]int{}
	for _, p := range alive {
		if p.in < 0 {
			b.Segments = append(b.Segments, MapSegment{
				Address: p.addr, Size: p.size, Span: p.size, Stream: p.stream, Pool: p.pool, HasPool: p.hasPool, Kind: p.kind,
			})
			continue
		}
		i, ok := byRange[p.in]
		if !ok {
			i = len(b.Segments)
			byRange[p.in] = i
			r := mapped[p.in]
			b.Segments = append(b.Segments, MapSegment{
				Address: r.begin, Span: r.end - r.begin, Stream: p.stream, Pool: p.pool, HasPool: p.hasPool, Kind: p.kind, Expandable: true,
			})
		}
		s := &b.Segments[i]
		s.Size += p.size
		if end := s.filled(); p.addr > end {
			s.Blocks = append(s.Blocks, MapBlock{end, p.addr - end, BlockUnmapped, -1})
		}
		// A mapped run is one free block until the blocks are known.
		if n := len(s.Blocks); n > 0 && s.Blocks[n-1].State == BlockFree {
			s.Blocks[n-1].Size += p.size
		} else {
			s.Blocks = append(s.Blocks, MapBlock{p.addr, p.size, BlockFree, -1})
		}
	}
	for i := range b.Segments {
		s := &b.Segments[i]
		if !s.Expandable {
			s.Blocks = append(s.Blocks, MapBlock{s.Address, s.Size, BlockFree, -1})
		} else if end := s.filled(); end < s.Address+s.Span {
			s.Blocks = append(s.Blocks, MapBlock{end, s.Address + s.Span - end, BlockUnmapped, -1})
		}
	}
	slices.SortFunc(b.Segments, func(x, y MapSegment) int { return cmp.Compare(x.Address, y.Address) })
}

// filled returns where the blocks of a segment end so far.
func (s *MapSegment) filled() uint64 {
	if n := len(s.Blocks); n > 0 {
		return s.Blocks[n-1].Address + s.Blocks[n-1].Size
	}
	return s.Address
}

// blocks puts the active blocks into the free ones. A block that lies in no
// known segment, as in a file that ends early, makes one of its own.
func (b *mapBuilder) blocks(event int) {
	lives := b.layout.lifetimes
	alive := lives.Alive(nil, event)
	used := make([]MapBlock, len(alive))
	for i, life := range alive {
		used[i] = MapBlock{lives.Address(int(life)), lives.Size[life], BlockAllocated, life}
		if lives.Pending(int(life), event) {
			used[i].State = BlockPending
		}
	}
	slices.SortFunc(used, func(x, y MapBlock) int { return cmp.Compare(x.Address, y.Address) })
	var homeless []MapSegment
	at := 0
	for i := range b.Segments {
		s := &b.Segments[i]
		for ; at < len(used) && used[at].Address < s.Address; at++ {
			homeless = append(homeless, b.homeless(used[at]))
		}
		begin := at
		for at < len(used) && used[at].Address-s.Address < s.Span {
			at++
		}
		if at > begin {
			s.Blocks = b.place(s.Blocks, used[begin:at])
		}
	}
	for ; at < len(used); at++ {
		homeless = append(homeless, b.homeless(used[at]))
	}
	if len(homeless) > 0 {
		b.Segments = append(b.Segments, homeless...)
		slices.SortFunc(b.Segments, func(x, y MapSegment) int { return cmp.Compare(x.Address, y.Address) })
	}
}

func (b *mapBuilder) homeless(u MapBlock) MapSegment {
	return MapSegment{
		Address: u.Address, Size: u.Size, Span: u.Size, Stream: b.layout.lifetimes.Stream(int(u.Life)), Blocks: []MapBlock{u},
	}
}

// place returns the free and unmapped pieces of a segment with the used blocks
// in them.
func (b *mapBuilder) place(pieces, used []MapBlock) []MapBlock {
	out := make([]MapBlock, 0, len(pieces)+2*len(used))
	end := uint64(0) // of the last used block
	for _, p := range pieces {
		from := max(p.Address, end)
		for len(used) > 0 && used[0].Address < p.Address+p.Size {
			u := used[0]
			used = used[1:]
			out = b.gap(out, p.State, from, u.Address)
			// In files that contradict themselves blocks overlap.
			if from > u.Address {
				cut := min(from-u.Address, u.Size)
				u.Address, u.Size = u.Address+cut, u.Size-cut
			}
			out = append(out, u)
			from = max(from, u.Address+u.Size)
			end = from
		}
		out = b.gap(out, p.State, from, p.Address+p.Size)
	}
	return out
}

// gap adds what lies between two used blocks. If only requested sizes are known,
// a gap too small for a block is the end of the block before it.
func (b *mapBuilder) gap(out []MapBlock, state BlockState, from, to uint64) []MapBlock {
	if from >= to {
		return out
	}
	if n := len(out); !b.exact && to-from < alloc.MinBlock && n > 0 && out[n-1].Life >= 0 {
		out[n-1].Size += to - from
		return out
	}
	return append(out, MapBlock{from, to - from, state, -1})
}

// close sums up a segment.
func (b *mapBuilder) close(s *MapSegment) {
	for i := range s.Blocks {
		if s.Blocks[i].State == BlockFree {
			b.Free += s.Blocks[i].Size
			b.LargestFree = max(b.LargestFree, s.Blocks[i].Size)
		}
	}
}

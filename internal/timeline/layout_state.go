package timeline

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
)

// NewMap returns the map of an allocator whose state is known, such as a replay's.
// life returns the block of the [Lifetimes] at an address, -1 if unknown. Mapped
// runs that are near each other are taken for one reservation, and so for one
// expandable segment.
func NewMap(event int, state []alloc.Segment, life func(address uint64) int32) *Map {
	m := &Map{Event: event}
	runs := slices.Clone(state)
	slices.SortFunc(runs, func(x, y alloc.Segment) int { return cmp.Compare(x.Address, y.Address) })
	for i := range runs {
		s := &runs[i]
		last := len(m.Segments) - 1
		if last < 0 || !m.Segments[last].continues(s) {
			kind := KindSmall
			if s.Large {
				kind = KindLarge
			}
			m.Segments = append(m.Segments, MapSegment{
				Address: s.Address, Stream: s.Stream, Pool: s.Pool, HasPool: true, Kind: kind, Expandable: s.Expandable,
			})
			last++
		}
		to := &m.Segments[last]
		if end := to.filled(); s.Address > end {
			to.Blocks = append(to.Blocks, MapBlock{end, s.Address - end, BlockUnmapped, -1})
		}
		for _, b := range s.Blocks {
			block := MapBlock{b.Address, b.Size, BlockFree, -1}
			switch b.State {
			case alloc.ActiveAllocated:
				block.State, block.Life = BlockAllocated, life(b.Address)
			case alloc.ActivePendingFree:
				block.State = BlockPending
			default:
				m.Free += b.Size
				m.LargestFree = max(m.LargestFree, b.Size)
			}
			to.Blocks = append(to.Blocks, block)
		}
		to.Size += s.TotalSize
		to.Span = to.filled() - to.Address
	}
	return m
}

// continues reports whether a run of mapped blocks is of the same reservation.
func (s *MapSegment) continues(run *alloc.Segment) bool {
	kind := KindSmall
	if run.Large {
		kind = KindLarge
	}
	return s.Expandable && run.Expandable && s.Stream == run.Stream && s.Pool == run.Pool && s.Kind == kind && run.Address-s.filled() < apart
}

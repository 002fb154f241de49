package main

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
)

// compareLayout compares the segments and blocks at the end with those that
// PyTorch listed, place by place.
func (l *lockstep) compareLayout() *difference {
	n := len(l.rec.Ops)
	got := map[uint64]alloc.Segment{}
	for _, s := range l.dev.allocator.Segments() {
		if !s.Lost {
			got[s.Address] = s
		}
	}
	for _, want := range l.rec.Segments {
		at, ok := l.match.toDev(want.Address)
		have, found := got[at]
		if !ok || !found {
			return l.differ(n, "a segment is missing at the end", fmt.Sprintf("segment of %d bytes at %#x", want.TotalSize, want.Address), "")
		}
		delete(got, at)
		if d := l.compareSegment(&want, &have); d != nil {
			return d
		}
	}
	for _, s := range got {
		return l.differ(n, "a segment too many at the end", "", fmt.Sprintf("segment of %d bytes at %#x", s.TotalSize, s.Address))
	}
	return nil
}

// compareSegment compares all there is to a segment but its address.
func (l *lockstep) compareSegment(want, have *alloc.Segment) *difference {
	n := len(l.rec.Ops)
	head := func(s *alloc.Segment, stream uint64) string {
		return fmt.Sprintf("%s segment of %d bytes, allocated %d, active %d, requested %d, stream %#x, pool %v, expandable %v, %d blocks", s.Type(),
			s.TotalSize, s.AllocatedSize, s.ActiveSize, s.RequestedSize, stream, s.Pool, s.Expandable, len(s.Blocks))
	}
	if a, b := head(want, l.streams[want.Stream]), head(have, have.Stream); a != b {
		return l.differ(n, fmt.Sprintf("segment %#x differs at the end", want.Address), a, b)
	}
	for i := range want.Blocks {
		a, b := l.relative(want, i), l.relative(have, i)
		if a != b {
			return l.differ(n, fmt.Sprintf("block %d of segment %#x differs at the end", i, want.Address), blockText(a), blockText(b))
		}
	}
	return nil
}

// relative is a block with its offset for an address. A free block still names
// the request that used it last, which says nothing any more once free
// segments have been exchanged.
func (l *lockstep) relative(s *alloc.Segment, i int) alloc.Block {
	b := s.Blocks[i]
	b.Address -= s.Address
	if b.State == alloc.Inactive && len(l.ties) > 0 {
		b.RequestedSize = 0
	}
	return b
}

func blockText(b alloc.Block) string {
	return fmt.Sprintf("%s, %d bytes at offset %d, requested %d", b.State, b.Size, b.Address, b.RequestedSize)
}

package verify

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
)

// Mismatch is the first thing that differs between two lists of segments.
type Mismatch struct {
	What, Want, Got string
	Addrs           []uint64 // it is about
}

// CompareSegments compares all fields of all segments and blocks. With stale
// set the requested size of free blocks that were not used since the beginning
// is not compared: it is a remainder of a use before.
func CompareSegments(want, got []alloc.Segment, stale bool) *Mismatch {
	for i := range min(len(want), len(got)) {
		if d := compareSegment(&want[i], &got[i], stale); d != nil {
			return d
		}
	}
	number := fmt.Sprintf("%d segments at the end instead of %d", len(got), len(want))
	switch {
	case len(got) < len(want):
		s := &want[len(got)]
		return &Mismatch{number, segmentText(s), "no further segment", []uint64{s.Address}}
	case len(got) > len(want):
		s := &got[len(want)]
		return &Mismatch{number, "no further segment", segmentText(s), []uint64{s.Address}}
	}
	return nil
}

func compareSegment(want, got *alloc.Segment, stale bool) *Mismatch {
	for _, f := range []struct {
		name      string
		want, got any
	}{
		{"address", want.Address, got.Address},
		{"device", want.Device, got.Device},
		{"total_size", want.TotalSize, got.TotalSize},
		{"allocated_size", want.AllocatedSize, got.AllocatedSize},
		{"active_size", want.ActiveSize, got.ActiveSize},
		{"requested_size", want.RequestedSize, got.RequestedSize},
		{"stream", want.Stream, got.Stream},
		{"segment_type", want.Type(), got.Type()},
		{"segment_pool_id", want.Pool, got.Pool},
		{"is_expandable", want.Expandable, got.Expandable},
		{"number of blocks", len(want.Blocks), len(got.Blocks)},
	} {
		if f.want != f.got {
			return &Mismatch{
				fmt.Sprintf("at the end, segment %#x: %s", want.Address, f.name),
				fmt.Sprintf("%v in %s", f.want, segmentText(want)), fmt.Sprintf("%v in %s", f.got, segmentText(got)),
				[]uint64{want.Address, got.Address},
			}
		}
	}
	for i := range want.Blocks {
		w, g := want.Blocks[i], got.Blocks[i]
		if stale && g.State == alloc.Inactive && g.RequestedSize == 0 {
			g.RequestedSize = w.RequestedSize
		}
		if w != g {
			return &Mismatch{
				fmt.Sprintf("at the end, block %d of segment %#x", i, want.Address),
				blockText(w), blockText(g),
				[]uint64{w.Address, g.Address},
			}
		}
	}
	return nil
}

func segmentText(s *alloc.Segment) string {
	return fmt.Sprintf("%s segment %#x of %d bytes, allocated %d, active %d, stream %d, pool %v", s.Type(), s.Address, s.TotalSize,
		s.AllocatedSize, s.ActiveSize, s.Stream, s.Pool)
}

func blockText(b alloc.Block) string {
	return fmt.Sprintf("%#x %s, size %d, requested %d", b.Address, b.State, b.Size, b.RequestedSize)
}

package alloc

import (
	"cmp"
	"slices"
)

type segmentID uint32

// segment is memory obtained from the driver: a plain segment in one piece, or
// an expandable one, a range of addresses into which memory is mapped as
// needed. Its blocks tile it from head on.
type segment struct {
	base, size uint64
	granule    uint64 // of the mappings; 0 in a plain segment
	place      uint64 // in the order BySegment
	head       blockID
	streamPool streamPoolID
}

func (s *segment) expandable() bool { return s.granule != 0 }

func (a *Allocator) newSegment(s segment) segmentID {
	if a.rules.Order == BySegment {
		s.place = a.nextPlace(s.size)
	}
	if n := len(a.spareSegs); n > 0 {
		id := a.spareSegs[n-1]
		a.spareSegs = a.spareSegs[:n-1]
		a.segments[id] = s
		return id
	}
	a.segments = append(a.segments, s)
	return segmentID(len(a.segments) - 1)
}

func (a *Allocator) dropSegment(id segmentID) {
	a.segments[id] = segment{}
	a.spareSegs = append(a.spareSegs, id)
}

// segmentsByPlace lists the segments in the order BySegment.
func (a *Allocator) segmentsByPlace() []segmentID {
	var out []segmentID
	for id := range a.segments {
		if a.segments[id].size != 0 {
			out = append(out, segmentID(id))
		}
	}
	slices.SortFunc(out, func(x, y segmentID) int { return cmp.Compare(a.segments[x].place, a.segments[y].place) })
	return out
}

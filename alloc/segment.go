package alloc

type segmentID uint32

// segment is memory obtained from the driver: a plain segment in one piece, or
// an expandable one, a range of addresses into which memory is mapped as
// needed. Its blocks tile it from head on.
type segment struct {
	base, size uint64
	granule    uint64 // of the mappings; 0 in a plain segment
	head       blockID
	streamPool streamPoolID
}

func (s *segment) expandable() bool { return s.granule != 0 }

func (a *Allocator) newSegment(s segment) segmentID {
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

package timeline

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// State is the memory that segments show: how much of it is used, by what, and
// how the free part is scattered.
type State struct {
	Segments  int
	Reserved  uint64
	Allocated uint64 // block sizes
	Active    uint64 // block sizes, with Pending
	Requested uint64 // asked for in active blocks
	Blocks    int    // active
	Pending   uint64 // block sizes
	Free      uint64
	// InactiveSplit is the free memory in plain segments that are partly in
	// use, which cannot be given back to the driver: inactive_split_bytes.
	InactiveSplit uint64
	LargestFree   uint64

	// RequestedKnown is false if the file lists active blocks without what was
	// asked for in them.
	RequestedKnown bool
	// requestedAllocated is Requested without pending blocks.
	requestedAllocated uint64
}

// Group is the part of a State in segments of one kind.
type Group struct {
	Pool       alloc.PoolID
	HasPool    bool
	Stream     uint64
	Type       string // "small", "large", or empty
	Expandable bool
	State
}

// NewState sums up the segments of a trace.
func NewState(t *trace.Trace) *State {
	s := &State{}
	for i := range t.Segments {
		s.add(&t.Segments[i])
	}
	s.RequestedKnown = s.Requested > 0 || s.Active == 0
	return s
}

// Groups sums up the segments of a trace by pool, stream and kind, the largest
// group first.
func Groups(t *trace.Trace) []Group {
	type key struct {
		pool       alloc.PoolID
		hasPool    bool
		stream     uint64
		kind       string
		expandable bool
	}
	at := map[key]int{}
	var out []Group
	for i := range t.Segments {
		s := &t.Segments[i]
		k := key{s.Pool, s.HasPool, s.Stream, s.Type, s.Expandable}
		j, ok := at[k]
		if !ok {
			j = len(out)
			at[k] = j
			out = append(out, Group{Pool: s.Pool, HasPool: s.HasPool, Stream: s.Stream, Type: s.Type, Expandable: s.Expandable})
		}
		out[j].add(s)
	}
	slices.SortStableFunc(out, func(a, b Group) int { return cmp.Compare(b.Reserved, a.Reserved) })
	return out
}

func (s *State) add(seg *trace.Segment) {
	s.Segments++
	s.Reserved += seg.TotalSize
	for i := range seg.Blocks {
		b := &seg.Blocks[i]
		if b.State == alloc.Inactive {
			s.Free += b.Size
			s.LargestFree = max(s.LargestFree, b.Size)
			if !seg.Expandable && len(seg.Blocks) > 1 {
				s.InactiveSplit += b.Size
			}
			continue
		}
		s.Active += b.Size
		s.Requested += b.RequestedSize
		s.Blocks++
		if b.State == alloc.ActiveAllocated {
			s.Allocated += b.Size
			s.requestedAllocated += b.RequestedSize
		} else {
			s.Pending += b.Size
		}
	}
	if len(seg.Blocks) == 0 { // some files leave the blocks out
		s.Allocated += seg.AllocatedSize
		s.Active += seg.ActiveSize
		s.Requested += seg.RequestedSize
		s.requestedAllocated += seg.RequestedSize
		s.Pending += less(seg.ActiveSize, seg.AllocatedSize)
		s.Free += less(seg.TotalSize, seg.ActiveSize)
	}
}

// Fragmentation holds the usual measures of fragmentation; each is from
// 0 to 1, or -1 if there is nothing to divide by or the file does not say.
type Fragmentation struct {
	Cached        float64 // (reserved - allocated) / reserved
	InactiveSplit float64 // inactive_split / reserved
	Internal      float64 // (allocated - requested) / allocated
	External      float64 // 1 - largest free block / free
}

// Fragmentation returns the fractions of a state.
func (s *State) Fragmentation() Fragmentation {
	f := Fragmentation{
		Cached:        Fraction(less(s.Reserved, s.Allocated), s.Reserved),
		InactiveSplit: Fraction(s.InactiveSplit, s.Reserved),
		Internal:      -1,
		External:      Fraction(less(s.Free, s.LargestFree), s.Free),
	}
	if s.RequestedKnown {
		f.Internal = Fraction(less(s.Allocated, s.requestedAllocated), s.Allocated)
	}
	return f
}

// PeakFragmentation returns the fragmentation of a run: 1 - peak allocated / peak
// reserved, nil if nothing was reserved. It takes no moment, whose share of
// unallocated memory jumps from one event to the next.
func PeakFragmentation(reserved, allocated uint64) *float64 {
	if reserved == 0 {
		return nil
	}
	f := Fraction(less(reserved, allocated), reserved)
	return &f
}

// Fraction returns a / b, -1 if b is 0.
func Fraction(a, b uint64) float64 {
	if b == 0 {
		return -1
	}
	return float64(a) / float64(b)
}

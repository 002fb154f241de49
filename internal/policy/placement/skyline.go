package placement

import (
	"context"
	"slices"
)

// skyline builds a plan from below: over time the plan so far has a height, and the
// lowest stretch gets the buffer of the highest rank that lives within it. A stretch
// in which none does is filled up to its lower neighbour.
type skyline struct {
	*planner
	stretches []stretch
	open      []int32 // buffers to be placed, by rank
}

// stretch is a time in which the skyline is level.
type stretch struct {
	from, to int64
	height   uint64
}

// run places all buffers by rank, the highest first. It gives up, and reports false,
// once the plan is as high as most.
func (s *skyline) run(ctx context.Context, rank []int32, most uint64) (height uint64, ok bool) {
	s.open = append(s.open[:0], rank...)
	s.stretches = append(s.stretches[:0], stretch{s.first(), s.last(), 0})
	for len(s.open) > 0 {
		if ctx.Err() != nil {
			return height, false
		}
		at := s.lowestStretch()
		low := s.stretches[at]
		n := slices.IndexFunc(s.open, func(i int32) bool { return s.buffers[i].Lower >= low.from && s.buffers[i].Upper <= low.to })
		if n < 0 {
			s.fill(at)
			continue
		}
		i := s.open[n]
		s.open = slices.Delete(s.open, n, n+1)
		b := s.buffers[i]
		s.lies[i] = span{low.height, low.height + b.Size}
		if height = max(height, low.height+b.Size); height >= most {
			return height, false
		}
		s.cover(at, b)
	}
	return height, true
}

func (s *skyline) first() int64 { return s.buffers[0].Lower }

func (s *skyline) last() (end int64) {
	for _, b := range s.buffers {
		end = max(end, b.Upper)
	}
	return end
}

func (s *skyline) lowestStretch() int {
	at := 0
	for i := range s.stretches {
		if s.stretches[i].height < s.stretches[at].height {
			at = i
		}
	}
	return at
}

// fill raises a stretch to its lower neighbour and joins them.
func (s *skyline) fill(at int) {
	all := s.stretches
	left, right := uint64(noBound), uint64(noBound)
	if at > 0 {
		left = all[at-1].height
	}
	if at+1 < len(all) {
		right = all[at+1].height
	}
	all[at].height = min(left, right)
	s.merge(at)
}

// merge joins a stretch with neighbours of the same height.
func (s *skyline) merge(at int) {
	if at+1 < len(s.stretches) && s.stretches[at+1].height == s.stretches[at].height {
		s.stretches[at].to = s.stretches[at+1].to
		s.stretches = slices.Delete(s.stretches, at+1, at+2)
	}
	if at > 0 && s.stretches[at-1].height == s.stretches[at].height {
		s.stretches[at-1].to = s.stretches[at].to
		s.stretches = slices.Delete(s.stretches, at, at+1)
	}
}

// cover raises the part of a stretch in which a buffer lives.
func (s *skyline) cover(at int, b Buffer) {
	low := s.stretches[at]
	var room [3]stretch
	parts := room[:0]
	if low.from < b.Lower {
		parts = append(parts, stretch{low.from, b.Lower, low.height})
	}
	middle := at + len(parts)
	parts = append(parts, stretch{b.Lower, b.Upper, low.height + b.Size})
	if b.Upper < low.to {
		parts = append(parts, stretch{b.Upper, low.to, low.height})
	}
	s.stretches = slices.Replace(s.stretches, at, at+1, parts...)
	s.merge(middle)
}

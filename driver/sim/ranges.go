package sim

import "github.com/ashlar-mem/ashlar/internal/ordered"

// ranges is a set of address ranges that do not overlap.
type ranges struct {
	ends ordered.Map[uint64] // by start
}

func (r *ranges) add(start, end uint64) { r.ends.Set(start, end) }

func (r *ranges) remove(start uint64) { r.ends.Delete(start) }

func (r *ranges) endingAt(end uint64) (start uint64, ok bool) {
	start, at := r.ends.Before(end - 1)
	return start, at != nil && *at == end
}

func (r *ranges) beginningAt(start uint64) (end uint64, ok bool) {
	if at := r.ends.Get(start); at != nil {
		return *at, true
	}
	return 0, false
}

// around returns the range that has all of another one.
func (r *ranges) around(start, end uint64) (from, to uint64, ok bool) {
	from, at := r.ends.Before(start)
	if at == nil || end > *at {
		return 0, 0, false
	}
	return from, *at, true
}

// in returns the ranges that have a part of another one.
func (r *ranges) in(start, end uint64) (all [][2]uint64) {
	if from, to := r.ends.Before(start); to != nil && from < start && *to > start {
		all = append(all, [2]uint64{from, *to})
	}
	for from, to := range r.ends.From(start) {
		if from >= end {
			break
		}
		all = append(all, [2]uint64{from, *to})
	}
	return all
}

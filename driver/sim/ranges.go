package sim

// ranges is a set of address ranges that can be found by either end.
type ranges struct {
	ends   map[uint64]uint64 // by start
	starts map[uint64]uint64 // by end
}

func newRanges() ranges { return ranges{map[uint64]uint64{}, map[uint64]uint64{}} }

func (r *ranges) add(start, end uint64) { r.ends[start], r.starts[end] = end, start }

func (r *ranges) remove(start, end uint64) {
	delete(r.ends, start)
	delete(r.starts, end)
}

func (r *ranges) endingAt(end uint64) (start uint64, ok bool) {
	start, ok = r.starts[end]
	return start, ok
}

func (r *ranges) beginningAt(start uint64) (end uint64, ok bool) {
	end, ok = r.ends[start]
	return end, ok
}

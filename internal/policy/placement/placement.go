package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// Buffer is a piece of memory that is live in [Lower, Upper).
type Buffer struct {
	Lower, Upper int64
	Size         uint64
}

// Plan is where buffers lie. Height is the memory that they need.
type Plan struct {
	Offsets []uint64
	Height  uint64
}

// edge is the begin or the end of a buffer.
type edge struct {
	time   int64
	buffer int32
	begins bool
}

// edges returns all begins and ends in the order of time, ends first; of several at
// one time in the order of the buffers.
func edges(buffers []Buffer) []edge {
	all := make([]edge, 0, 2*len(buffers))
	for i, b := range buffers {
		if b.Lower < b.Upper {
			all = append(all, edge{b.Lower, int32(i), true}, edge{b.Upper, int32(i), false})
		}
	}
	slices.SortFunc(all, func(a, b edge) int {
		if c := cmp.Compare(a.time, b.time); c != 0 {
			return c
		}
		if a.begins != b.begins {
			if b.begins {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.buffer, b.buffer)
	})
	return all
}

// Each calls f for every begin and end of a buffer in the order in which an
// allocator sees them.
func Each(buffers []Buffer, f func(buffer int, begins bool)) {
	for _, e := range edges(buffers) {
		f(int(e.buffer), e.begins)
	}
}

// MaxLoad returns the most bytes that are live at a time.
func MaxLoad(buffers []Buffer) uint64 {
	var live, most uint64
	Each(buffers, func(i int, begins bool) {
		if begins {
			live += buffers[i].Size
			most = max(most, live)
		} else {
			live -= buffers[i].Size
		}
	})
	return most
}

// Check returns an error if two buffers that live at the same time overlap, or one
// lies beyond the height of the plan. It goes through time with the live buffers
// in the order of their offsets.
func Check(buffers []Buffer, p *Plan) error {
	if len(p.Offsets) != len(buffers) {
		return fmt.Errorf("placement: a plan of %d buffers for %d", len(p.Offsets), len(buffers))
	}
	var live []int32
	find := func(i int32) int {
		at, _ := slices.BinarySearchFunc(live, i, func(a, b int32) int {
			return cmp.Or(cmp.Compare(p.Offsets[a], p.Offsets[b]), cmp.Compare(a, b))
		})
		return at
	}
	for _, e := range edges(buffers) {
		at := find(e.buffer)
		if !e.begins {
			live = slices.Delete(live, at, at+1)
			continue
		}
		end := p.Offsets[e.buffer] + buffers[e.buffer].Size
		if end > p.Height || end < p.Offsets[e.buffer] {
			return fmt.Errorf("placement: buffer %d ends at %d, the plan at %d", e.buffer, end, p.Height)
		}
		if buffers[e.buffer].Size > 0 {
			if at > 0 && p.Offsets[live[at-1]]+buffers[live[at-1]].Size > p.Offsets[e.buffer] {
				return fmt.Errorf("placement: buffers %d and %d overlap", live[at-1], e.buffer)
			}
			if at < len(live) && end > p.Offsets[live[at]] && buffers[live[at]].Size > 0 {
				return fmt.Errorf("placement: buffers %d and %d overlap", e.buffer, live[at])
			}
		}
		live = slices.Insert(live, at, e.buffer)
	}
	return nil
}

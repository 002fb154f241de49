package placement

import (
	"cmp"
	"fmt"
	"iter"
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

// byTime returns the places of the buffers that are ever live in the order of their
// begins or of their ends; of several at one time the earlier comes first.
func byTime(buffers []Buffer, time func(*Buffer) int64) []int32 {
	order := make([]int32, 0, len(buffers))
	for i := range buffers {
		if buffers[i].Lower < buffers[i].Upper {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(time(&buffers[a]), time(&buffers[b])), cmp.Compare(a, b))
	})
	return order
}

// Each goes through the begins and ends of buffers in the order in which an allocator
// sees them: of several at one time ends come first.
func Each(buffers []Buffer) iter.Seq2[int, bool] {
	return func(yield func(buffer int, begins bool) bool) {
		begins := byTime(buffers, func(b *Buffer) int64 { return b.Lower })
		ends := byTime(buffers, func(b *Buffer) int64 { return b.Upper })
		for len(ends) > 0 { // none ends before it begins
			begin := len(begins) > 0 && buffers[begins[0]].Lower < buffers[ends[0]].Upper
			next := &ends
			if begin {
				next = &begins
			}
			if !yield(int((*next)[0]), begin) {
				return
			}
			*next = (*next)[1:]
		}
	}
}

// MaxLoad returns the most bytes that are live at a time.
func MaxLoad(buffers []Buffer) uint64 {
	var live, most uint64
	for i, begins := range Each(buffers) {
		if begins {
			live += buffers[i].Size
			most = max(most, live)
		} else {
			live -= buffers[i].Size
		}
	}
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
	for i, begins := range Each(buffers) {
		at := find(int32(i))
		if !begins {
			live = slices.Delete(live, at, at+1)
			continue
		}
		end := p.Offsets[i] + buffers[i].Size
		if end > p.Height || end < p.Offsets[i] {
			return fmt.Errorf("placement: buffer %d ends at %d, the plan at %d", i, end, p.Height)
		}
		if buffers[i].Size > 0 {
			if at > 0 && p.Offsets[live[at-1]]+buffers[live[at-1]].Size > p.Offsets[i] {
				return fmt.Errorf("placement: buffers %d and %d overlap", live[at-1], i)
			}
			if at < len(live) && end > p.Offsets[live[at]] && buffers[live[at]].Size > 0 {
				return fmt.Errorf("placement: buffers %d and %d overlap", i, live[at])
			}
		}
		live = slices.Insert(live, at, int32(i))
	}
	return nil
}

package prognosis

import (
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/trace"
)

// A step that no earlier one shows may still repeat something: the optimizer's
// first step makes a tensor for each parameter, a copy of the weights one for
// each of them. The sizes asked at one line then follow the sizes of older blocks
// in their order, and go on to the end of these.

// Series is a run of requests that repeats the sizes of older blocks.
type Series struct {
	Stacks []trace.StackID // that make it, in turn
	Made   uint64          // bytes so far
	ToCome uint64          // bytes, the failed request excluded
	Blocks int             // made so far

	rest [][]uint64 // sizes to come, of each stack
}

// seriesLength is how many blocks must follow others to be a series: two may
// agree by chance.
const seriesLength = 3

// findSeries looks for the series that the failed request belongs to.
func (h *history) findSeries() *Series {
	if h.wanted.after > 0 || h.wanted.stack <= trace.EmptyStack {
		return nil
	}
	older := h.lasting()
	at, length := h.follow(h.wanted.stack, older, true)
	if length < seriesLength {
		return nil
	}
	s := &Series{}
	for _, stack := range slices.Sorted(maps.Keys(h.stacksSince(h.wanted.stack))) {
		end, n := at, length
		if stack != h.wanted.stack {
			if end, n = h.follow(stack, older, false); n < seriesLength || n+2 < length || n > length+2 {
				continue
			}
		}
		s.Stacks = append(s.Stacks, stack)
		s.rest = append(s.rest, older[end:])
		for _, size := range older[end:] {
			s.ToCome += tight.Round(size)
		}
		s.Blocks += n
	}
	for i := h.sinceFailing(); i < len(h.allocs); i++ {
		for _, stack := range s.Stacks {
			if h.allocs[i].key.stack == stack && h.allocs[i].key.after == 0 {
				s.Made += tight.Round(h.allocs[i].size)
			}
		}
	}
	return s
}

// sinceFailing returns the first allocation of the failing step; the first of all
// if there are no steps.
func (h *history) sinceFailing() int {
	if q := h.failing(); q >= 0 {
		return h.first[q]
	}
	return 0
}

// lasting returns the sizes of the blocks from before the failing step that are
// still there.
func (h *history) lasting() (sizes []uint64) {
	for i := range h.sinceFailing() {
		if a := &h.allocs[i]; a.freed < 0 && (a.step < 0 || a.step == 0) {
			sizes = append(sizes, a.size)
		}
	}
	return sizes
}

// follow matches the sizes asked at a stack in the failing step with older ones,
// in order. It returns where in these it stands, and how many it matched; 0 if one
// does not follow.
func (h *history) follow(stack trace.StackID, older []uint64, request bool) (at, length int) {
	match := func(size uint64) bool {
		for at < len(older) && older[at] != size {
			at++
		}
		if at == len(older) {
			return false
		}
		at++
		length++
		return true
	}
	for i := h.sinceFailing(); i < len(h.allocs); i++ {
		if a := &h.allocs[i]; a.key.stack == stack && a.key.after == 0 && a.freed < 0 && !match(a.size) {
			return at, 0
		}
	}
	if request && !match(h.request.Size) {
		return at, 0
	}
	return at, length
}

// stacksSince returns the stacks that allocate in the failing step after the first
// allocation of one of them.
func (h *history) stacksSince(first trace.StackID) map[trace.StackID]bool {
	out := map[trace.StackID]bool{first: true}
	begun := false
	for i := h.sinceFailing(); i < len(h.allocs); i++ {
		a := &h.allocs[i]
		begun = begun || a.key.stack == first
		if begun && a.key.after == 0 && a.freed < 0 {
			out[a.key.stack] = true
		}
	}
	return out
}

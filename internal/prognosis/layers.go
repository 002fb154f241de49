package prognosis

import "github.com/ashlar-mem/ashlar/trace"

// The first forward pass through a model of equal layers goes on as it began: each
// layer that is left keeps as much as the one before. How many layers there are
// shows in the weights: their sizes occur once a layer.

// Layers is what a first forward pass through equal layers still needs.
type Layers struct {
	Done, All int
	ToCome    uint64 // bytes, for the layers that are left
	first     int    // the allocations of the last layer that is done
	last      int
}

// findLayers looks for the loop over layers that the failed request is in. A line
// may allocate several times in a row: each row is a layer.
func (h *history) findLayers() *Layers {
	if h.failing() != 0 || h.wanted.after > 0 || h.wanted.stack <= trace.EmptyStack {
		return nil
	}
	var begin []int
	within := false
	for i := h.first[0]; i < h.first[1]; i++ {
		same := h.allocs[i].key.stack == h.wanted.stack
		if same && !within {
			begin = append(begin, i)
		}
		within = same
	}
	if !within {
		begin = append(begin, h.first[1])
	}
	l := &Layers{Done: len(begin) - 1, All: h.layers()}
	if l.Done < 1 || l.Done >= l.All {
		return nil
	}
	l.first, l.last = begin[l.Done-1], begin[l.Done]
	l.ToCome = l.toCome(h, &Edit{})
	return l
}

// toCome returns what the layers that are left keep, the one that failed included.
func (l *Layers) toCome(h *history, edit *Edit) (bytes uint64) {
	for i := l.first; i < l.last; i++ {
		if a := &h.allocs[i]; a.freed < 0 {
			if size := edit.size(i, a.size); size > 0 {
				bytes += tight.Round(size)
			}
		}
	}
	return bytes * uint64(l.All-l.Done)
}

// layers returns how often most sizes of weights occur.
func (h *history) layers() int {
	counts := map[uint64]int{}
	for i := range h.first[0] {
		if h.allocs[i].freed < 0 {
			counts[h.allocs[i].size]++
		}
	}
	often := map[int]int{} // count -> sizes
	for _, n := range counts {
		if n > 1 {
			often[n]++
		}
	}
	best := 0
	for n, sizes := range often {
		if sizes > often[best] || sizes == often[best] && n < best {
			best = n
		}
	}
	if often[best] < 2 {
		return 0 // chance
	}
	return best
}

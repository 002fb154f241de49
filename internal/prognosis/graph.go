package prognosis

import "github.com/ashlar-mem/ashlar/internal/replay"

// Released reports whether the backward pass freed blocks that a step made among
// some others: then it released the graph, and it is not the graph that keeps
// those.
func (p *Prognosis) Released(others func(position int) bool) bool {
	h := p.history
	for s := range h.failing() {
		first, last := -1, -1
		for i := h.first[s]; i < h.first[s+1]; i++ {
			if !others(i) {
				continue
			}
			if first < 0 {
				first = i
			}
			last = i
		}
		for i := first; i >= 0 && i < last; i++ {
			a := &h.allocs[i]
			if a.freed > h.allocs[last].call && a.key.after == 0 && !others(i) && h.stepOf(int(a.freed)) == s && h.inBackward(int(a.freed)) {
				return true
			}
		}
	}
	return false
}

// Passing reports whether an allocation of the failing step, or the request if the
// position is negative, is gone before a backward pass begins: its counterpart was.
func (p *Prognosis) Passing(position int) bool {
	h := p.history
	if !p.Matched {
		return false
	}
	then, ok := 0, false
	if position < 0 {
		then, ok = h.find(p.Template, h.wanted)
	} else if position >= p.Failing() {
		then, ok = h.twin(position, p.Template)
	}
	if !ok || h.age(then) != 0 {
		return false
	}
	for i := then + 1; i < h.first[p.Template+1] && h.allocs[i].call < h.allocs[then].freed; i++ {
		if h.allocs[i].key.after > 0 {
			return false
		}
	}
	return true
}

// inBackward reports whether a call lies between allocations of the backward pass,
// which have no call stack.
func (h *history) inBackward(call int) bool {
	return h.backwardNext(call, -1) && h.backwardNext(call, 1)
}

func (h *history) backwardNext(call, by int) bool {
	for i := call + by; i >= 0 && i < h.cut; i += by {
		if c := h.program.Call(i); c.Kind == replay.CallAlloc {
			return h.allocs[h.at[c.Tensor]].key.after > 0
		}
	}
	return false
}

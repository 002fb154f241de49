package ledger

import (
	"cmp"
	"slices"
)

// Repeat appends the last step once more, as the step after it: once a
// program has all its state, one step is like the next. Every tensor of the step
// gets a copy. What the step frees of the step before it, such as outputs that
// were held, the copy frees of the step itself; that must be as many tensors of
// the same sizes, in the order of their deaths and of their births. If they are
// not, the steps are not alike: nothing is done, and the result is false.
func (l *Ledger) Repeat() bool {
	if len(l.Phases) == 0 {
		return false
	}
	step := l.Phases[len(l.Phases)-1].Step
	first := len(l.Phases)
	for first > 0 && l.Phases[first-1].Step == step {
		first--
	}
	if step == 0 || first == len(l.Phases) {
		return false
	}
	begin, end := l.Phases[first].First, len(l.Events)
	heirs, ok := l.heirs(begin, end)
	if !ok {
		return false
	}
	copies := make([]int32, 0, end-begin)
	from := int32(-1) // the first tensor of the step
	next := first
	last := len(l.Phases)
	for i := begin; i < end; i++ {
		for ; next < last && l.Phases[next].First <= i; next++ {
			l.Begin(l.Phases[next].Name, step+1)
		}
		e := l.Events[i]
		if e == EmptyCache {
			l.EmptyCache()
			continue
		}
		if e >= 0 {
			if from < 0 {
				from = e
			}
			copies = append(copies, l.Alloc(l.Tensors[e]))
			continue
		}
		id := ^e
		if heir, old := heirs[id]; old {
			l.Free(heir)
		} else {
			l.Free(copies[id-from])
		}
	}
	for ; next < last; next++ { // phases without events
		l.Begin(l.Phases[next].Name, step+1)
	}
	return true
}

// heirs pairs what a step frees of the time before it with what it leaves.
func (l *Ledger) heirs(begin, end int) (map[int32]int32, bool) {
	var old, left []int32
	for i := begin; i < end; i++ {
		e := l.Events[i]
		switch {
		case e >= 0 && l.Tensors[e].Death == Lives:
			left = append(left, e)
		case e < 0 && e != EmptyCache && int(l.Tensors[^e].Birth) < begin:
			old = append(old, ^e)
		}
	}
	if len(old) != len(left) {
		return nil, false
	}
	if len(old) == 0 {
		return nil, true
	}
	// Their births are in the same order if the step before made them alike.
	order := make([]int32, len(old))
	copy(order, old)
	sortByBirth(l, order)
	out := make(map[int32]int32, len(old))
	for i, id := range order {
		if l.Tensors[id].Bytes != l.Tensors[left[i]].Bytes || l.Tensors[id].Op != l.Tensors[left[i]].Op {
			return nil, false
		}
		out[id] = left[i]
	}
	return out, true
}

func sortByBirth(l *Ledger, ids []int32) {
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Compare(l.Tensors[a].Birth, l.Tensors[b].Birth) })
}

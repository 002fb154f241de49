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
	s, ok := l.lastStep()
	if !ok {
		return false
	}
	heirs, ok := l.heirs(s.begin, s.end)
	if ok {
		l.repeat(s, heirs, false)
	}
	return ok
}

// RepeatFirst is Repeat for a first step, which makes what all steps have: the
// optimizer's state and workspaces. The copy does not make them again. A step that
// leaves anything else, or frees what is older than itself, is not repeated.
func (l *Ledger) RepeatFirst() bool {
	s, ok := l.lastStep()
	if !ok {
		return false
	}
	for _, e := range l.Events[s.begin:s.end] {
		switch {
		case e == EmptyCache:
		case e < 0 && int(l.Tensors[^e].Birth) < s.begin:
			return false
		case e >= 0 && l.Tensors[e].Death == Lives && l.Tensors[e].Kind != Optimizer && l.Tensors[e].Kind != Workspace:
			return false
		}
	}
	l.repeat(s, nil, true)
	return true
}

// step is a step of a ledger: its first phase, and its events.
type step struct{ phase, begin, end int }

// lastStep returns the last step; false if there is none.
func (l *Ledger) lastStep() (step, bool) {
	if len(l.Phases) == 0 {
		return step{}, false
	}
	number := l.Phases[len(l.Phases)-1].Step
	first := len(l.Phases)
	for first > 0 && l.Phases[first-1].Step == number {
		first--
	}
	if number == 0 || first == len(l.Phases) {
		return step{}, false
	}
	return step{first, l.Phases[first].First, len(l.Events)}, true
}

// repeat appends a step once more. Of what is older it frees the heirs. With once
// it leaves out what the step leaves.
func (l *Ledger) repeat(s step, heirs map[int32]int32, once bool) {
	number := l.Phases[s.phase].Step + 1
	l.Expect(s.begin, 1)
	copies := make([]int32, 0, s.end-s.begin)
	from := int32(-1) // the first tensor of the step
	next, last := s.phase, len(l.Phases)
	for i := s.begin; i < s.end; i++ {
		for ; next < last && l.Phases[next].First <= i; next++ {
			l.Begin(l.Phases[next].Name, number)
		}
		e := l.Events[i]
		switch {
		case e == EmptyCache:
			l.EmptyCache()
		case e >= 0:
			if from < 0 {
				from = e
			}
			id := int32(-1)
			if !once || l.Tensors[e].Death != Lives {
				id = l.Alloc(l.Tensors[e])
			}
			copies = append(copies, id)
		default:
			if heir, old := heirs[^e]; old {
				l.Free(heir)
			} else {
				l.Free(copies[^e-from])
			}
		}
	}
	for ; next < last; next++ { // phases without events
		l.Begin(l.Phases[next].Name, number)
	}
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

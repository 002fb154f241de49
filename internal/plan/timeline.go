package plan

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

// Timeline is the course of the part whose peaks are reported, in pieces of
// equally many allocations and frees.
type Timeline struct {
	Phases    []Span   `json:"phases"`
	Allocated []uint64 `json:"allocated_bytes"` // highest of each piece
	Reserved  []uint64 `json:"reserved_bytes"`
	Requested []uint64 `json:"requested_bytes"`
	// Components are what is allocated when that is highest in each piece, by
	// purpose: they sum to Allocated.
	Components []Course `json:"components"`
}

// Course is a component over the pieces of a timeline.
type Course struct {
	Name  string   `json:"name"`
	Bytes []uint64 `json:"bytes"`
}

// Span is where in a timeline a phase lies: from a piece up to another, which
// is not part of it. Phases of one name that follow each other are one.
type Span struct {
	Name  string `json:"name"`
	Step  int    `json:"step"`
	Begin int    `json:"begin"`
	End   int    `json:"end"`
}

func newTimeline(l *ledger.Ledger, curve []replay.Point, sizes []uint64) *Timeline {
	t := &Timeline{Phases: []Span{}, Components: courses(l, len(curve), sizes)}
	for _, p := range curve {
		t.Allocated = append(t.Allocated, p.Allocated)
		t.Reserved = append(t.Reserved, p.Reserved)
		t.Requested = append(t.Requested, p.Requested)
	}
	from, n, pieces := l.Scored(), len(l.Events), len(curve)
	piece := func(event int) int { return (event - from) * pieces / max(n-from, 1) }
	for i, p := range l.Phases {
		end := n
		if i+1 < len(l.Phases) {
			end = l.Phases[i+1].First
		}
		if p.First < from || end == p.First {
			continue
		}
		s := Span{Name: p.Name, Step: p.Step, Begin: piece(p.First), End: piece(end)}
		if k := len(t.Phases); k > 0 && t.Phases[k-1].Name == s.Name { // of all tokens together
			t.Phases[k-1].End = s.End
			continue
		}
		t.Phases = append(t.Phases, s)
	}
	return t
}

// courses adds up what is live by purpose, in as many pieces as the curve has. A
// piece begins with what the one before it left.
func courses(l *ledger.Ledger, pieces int, sizes []uint64) []Course {
	kinds := len(ledger.Kinds())
	purposes := l.Purposes()
	now := make([]uint64, kinds+1) // the last is rounding
	var live, most uint64
	all := make([][]uint64, kinds+1)
	for k := range all {
		all[k] = make([]uint64, pieces)
	}
	step := func(e int32) {
		if e == ledger.EmptyCache {
			return
		}
		born := e >= 0
		if !born {
			e = ^e
		}
		asked, block := uint64(l.Tensors[e].Bytes), sizes[e]
		if block == 0 {
			return
		}
		if born {
			now[purposes[e]] += asked
			now[kinds] += block - asked
			live += block
		} else {
			now[purposes[e]] -= asked
			now[kinds] -= block - asked
			live -= block
		}
	}
	keep := func(piece int) {
		most = live
		for k, n := range now {
			all[k][piece] = n
		}
	}
	from, n := l.Scored(), len(l.Events)
	for _, e := range l.Events[:from] {
		step(e)
	}
	at := from
	for piece := range pieces {
		keep(piece)
		for end := from + int(int64(n-from)*int64(piece+1)/int64(pieces)); at < end; at++ {
			step(l.Events[at])
			if live > most {
				keep(piece)
			}
		}
	}
	out := []Course{}
	for k, bytes := range all {
		if slices.Max(bytes) == 0 {
			continue
		}
		name := rounding
		if k < kinds {
			name = ledger.Kind(k).String()
		}
		out = append(out, Course{name, bytes})
	}
	return out
}

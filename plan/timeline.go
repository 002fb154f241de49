package plan

import (
	"github.com/ashlar-mem/ashlar/plan/ledger"
	"github.com/ashlar-mem/ashlar/replay"
)

// Timeline is the course of the part whose peaks are reported, in pieces of
// equally many allocations and frees.
type Timeline struct {
	Phases    []Span   `json:"phases"`
	Allocated []uint64 `json:"allocated_bytes"` // highest of each piece
	Reserved  []uint64 `json:"reserved_bytes"`
	Requested []uint64 `json:"requested_bytes"`
}

// Span is where in a timeline a phase lies: from a piece up to another, which
// is not part of it. Phases of one name that follow each other are one.
type Span struct {
	Name  string `json:"name"`
	Step  int    `json:"step"`
	Begin int    `json:"begin"`
	End   int    `json:"end"`
}

func newTimeline(l *ledger.Ledger, curve []replay.Point) *Timeline {
	t := &Timeline{Phases: []Span{}}
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

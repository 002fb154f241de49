package plancompare

import (
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Mark says on which side a row of a [Diff] is.
type Mark byte

// The marks. A death is Moved if its tensor is on both sides but dies at
// another moment: the row is then on one side only.
const (
	Equal   Mark = '='
	Missing Mark = '-' // recorded only
	Extra   Mark = '+' // planned only
	MovedR  Mark = '<' // the recorded death of a tensor that the plan frees elsewhere
	MovedP  Mark = '>' // the planned death of a tensor that was freed elsewhere
)

// Row is an event of one side or of both. The side that lacks it has -1.
type Row struct {
	Mark              Mark
	Planned, Recorded int32 // events
}

// Diff aligns a plan with a recording.
type Diff struct {
	Planned *ledger.Ledger
	Run     *Run
	Phases  []PhaseDiff
	// Match is for each recorded tensor the planned one, or -1; Back the other
	// way round.
	Match, Back []int32
	// RowOfPlanned and RowOfRecorded are for each event its place in the rows
	// of all phases.
	RowOfPlanned, RowOfRecorded []int32
	// PhaseOfPlanned and PhaseOfRecorded are for each event its phase.
	PhaseOfPlanned, PhaseOfRecorded []int16
}

// PhaseDiff is one phase.
type PhaseDiff struct {
	Label             string
	Planned, Recorded Span // empty where the side lacks the phase
	Rows              []Row
}

// Compare aligns a plan with a recording.
func Compare(planned *ledger.Ledger, run *Run) *Diff {
	d := &Diff{Planned: planned, Run: run, Match: nones(len(run.Ledger.Tensors)), Back: nones(len(planned.Tensors))}
	recorded := Spans(run.Ledger)
	d.Phases = pair(unmarked(Spans(planned), recorded), recorded)
	for i := range d.Phases {
		d.births(&d.Phases[i])
	}
	d.RowOfPlanned, d.RowOfRecorded = make([]int32, len(planned.Events)), make([]int32, len(run.Ledger.Events))
	d.PhaseOfPlanned, d.PhaseOfRecorded = make([]int16, len(planned.Events)), make([]int16, len(run.Ledger.Events))
	row := int32(0)
	for i := range d.Phases {
		p := &d.Phases[i]
		d.rows(p)
		for _, r := range p.Rows {
			if r.Planned >= 0 {
				d.RowOfPlanned[r.Planned], d.PhaseOfPlanned[r.Planned] = row, int16(i)
			}
			if r.Recorded >= 0 {
				d.RowOfRecorded[r.Recorded], d.PhaseOfRecorded[r.Recorded] = row, int16(i)
			}
			row++
		}
	}
	return d
}

// unmarked joins decoding to the prompt if the recording does not say where it
// begins: generate() makes no marks.
func unmarked(planned, recorded []Span) []Span {
	decodes := func(s Span) bool { return strings.HasPrefix(s.Label, ledger.Decode) }
	if slices.ContainsFunc(recorded, decodes) {
		return planned
	}
	var out []Span
	for _, s := range planned {
		if n := len(out); n > 0 && decodes(s) {
			out[n-1].Last = s.Last
			continue
		}
		out = append(out, s)
	}
	return out
}

func nones(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = -1
	}
	return out
}

// pair puts the phases of both sides beside each other: the n-th forward0 of
// the one with the n-th of the other. Phases of the plan alone come after the
// phase that they follow there.
func pair(planned, recorded []Span) []PhaseDiff {
	type key struct {
		label string
		nth   int
	}
	number := func(spans []Span) []key {
		seen := map[string]int{}
		out := make([]key, len(spans))
		for i, s := range spans {
			out[i] = key{s.Label, seen[s.Label]}
			seen[s.Label]++
		}
		return out
	}
	pk, rk := number(planned), number(recorded)
	where := map[key]int{}
	for i, k := range rk {
		where[k] = i
	}
	after := make([][]PhaseDiff, len(recorded)+1)
	out := make([]PhaseDiff, len(recorded))
	for i, s := range recorded {
		out[i] = PhaseDiff{Label: s.Label, Recorded: s}
	}
	last := 0
	for i, k := range pk {
		if j, ok := where[k]; ok {
			out[j].Planned, last = planned[i], j+1
		} else {
			after[last] = append(after[last], PhaseDiff{Label: k.label, Planned: planned[i]})
		}
	}
	all := after[0]
	for i, p := range out {
		all = append(append(all, p), after[i+1]...)
	}
	return all
}

// births pairs the tensors that are born in a phase, by size and order.
func (d *Diff) births(p *PhaseDiff) {
	rec := d.Run.Ledger
	pb := births(d.Planned, p.Planned, 0)
	rb := births(rec, p.Recorded, 0)
	for i, j := range ledger.Common(sizes(rec, rb), sizes(d.Planned, pb)) {
		if j >= 0 {
			d.Match[rb[i]], d.Back[pb[j]] = pb[j], rb[i]
		}
	}
}

// rows aligns all events of a phase. Paired births are where both sides meet;
// between two of them the deaths are aligned by the tensors that they end.
func (d *Diff) rows(p *PhaseDiff) {
	rec := d.Run.Ledger
	i, j := p.Recorded.First, p.Planned.First
	for i < p.Recorded.Last || j < p.Planned.Last {
		i1, j1 := i, j
		for i1 < p.Recorded.Last && (rec.Events[i1] < 0 || d.Match[rec.Events[i1]] < 0) {
			i1++
		}
		for j1 < p.Planned.Last && (d.Planned.Events[j1] < 0 || d.Back[d.Planned.Events[j1]] < 0) {
			j1++
		}
		d.between(p, i, i1, j, j1)
		if i1 < p.Recorded.Last {
			p.Rows = append(p.Rows, Row{Equal, int32(j1), int32(i1)})
		}
		i, j = i1+1, j1+1
	}
}

// between aligns what lies between two paired births.
func (d *Diff) between(p *PhaseDiff, i, i1, j, j1 int) {
	const birth = -1 // like nothing on the other side
	var rk, pk []int64
	for _, e := range d.Run.Ledger.Events[i:i1] {
		if e < 0 && d.Match[^e] >= 0 {
			rk = append(rk, int64(^e))
		} else {
			rk = append(rk, birth)
		}
	}
	for _, e := range d.Planned.Events[j:j1] {
		if e < 0 && d.Back[^e] >= 0 {
			pk = append(pk, int64(d.Back[^e]))
		} else {
			pk = append(pk, birth-1)
		}
	}
	extra := func(to int) {
		for ; j < to; j++ {
			p.Rows = append(p.Rows, Row{d.extraMark(j), int32(j), -1})
		}
	}
	first := j
	for k, m := range ledger.Common(rk, pk) {
		if m < 0 {
			p.Rows = append(p.Rows, Row{d.missingMark(i + k), -1, int32(i + k)})
			continue
		}
		extra(first + int(m))
		p.Rows = append(p.Rows, Row{Equal, int32(j), int32(i + k)})
		j++
	}
	extra(j1)
}

func (d *Diff) extraMark(event int) Mark {
	if e := d.Planned.Events[event]; e < 0 && d.Back[^e] >= 0 {
		return MovedP
	}
	return Extra
}

func (d *Diff) missingMark(event int) Mark {
	if e := d.Run.Ledger.Events[event]; e < 0 && d.Match[^e] >= 0 {
		return MovedR
	}
	return Missing
}

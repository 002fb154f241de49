package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
)

// ExplainRanks writes the verdict over several files. The title says what was
// read.
func ExplainRanks(w io.Writer, title string, v *explain.Ranks, skipped []diff.Skipped, o ExplainOptions, style Style) error {
	p := &explainedRanks{page: page{w: w, style: style}, Ranks: v, full: o.Full}
	p.name("", title)
	p.printf("\n")
	p.wrapped("  ", v.Summary)
	p.table()
	p.odd()
	if len(skipped) > 0 {
		p.heading("Left out", ": these could not be read")
		for _, s := range skipped {
			p.wrapped("  - ", s.Error)
		}
	}
	p.page.notes(v.Notes, o.Full)
	return p.err
}

type explainedRanks struct {
	page
	*explain.Ranks
	full bool
}

const (
	explainedRow     = "%-*s %-13s %11s %11s %9s  "
	explainedNumbers = 50 // the width of a row without its first and its last column
	leastLine        = 28 // what is left for the last one on a page of 100 columns
	leastName        = 12
)

// mostFiles is how many files the table lists if not all are asked for.
const mostFiles = 12

func (p *explainedRanks) table() {
	names := make([]string, len(p.Files))
	for i, e := range p.Files {
		names[i] = e.Name
	}
	names, room := shortNames(names, max(leastName, p.columns()-explainedNumbers-leastLine))
	p.heading(fmt.Sprintf("%-*s", room, plural(len(p.Files), "file", "files")),
		fmt.Sprintf(strings.TrimPrefix(explainedRow, "%-*s"), "outcome", "allocated", "reserved", "after")+"requested at")
	listed := 0
	for i := range p.Files {
		e := &p.Files[i]
		stands := p.First != nil && *p.First == i
		if !p.full && !stands && listed >= mostFiles {
			continue
		}
		listed++
		outcome, line := "no failure", ""
		if e.Failed {
			outcome = strings.ReplaceAll(Clean(e.Cause), "_", " ")
		}
		if e.Line != nil {
			line = *e.Line
		}
		p.fitted(fmt.Sprintf(explainedRow, room, names[i], outcome, sizeOr(e.PeakAllocated), sizeOr(e.PeakReserved), p.after(i)), Clean(line))
	}
	if more := len(p.Files) - listed; more > 0 {
		p.printf("and %s more: --full lists them\n", countText(more))
	}
	p.wrapped("  ", "allocated and reserved are peaks, of a message those at the failure; after is the time since the first failure")
}

// after says how long after the first a file failed.
func (p *explainedRanks) after(i int) string {
	e := &p.Files[i]
	switch {
	case p.First == nil || !e.Failed || e.FailedAt == nil:
		return "-"
	case *p.First == i:
		return "first"
	}
	return secondsText(*e.FailedAt - *p.Files[*p.First].FailedAt)
}

// odd says whose memory is unlike the others', and how.
func (p *explainedRanks) odd() {
	if len(p.Odd) == 0 {
		return
	}
	p.heading("Odd", ": whose memory is unlike the others'")
	var order []int
	said := map[int][]string{}
	for _, o := range p.Odd {
		if said[o.Rank] == nil {
			order = append(order, o.Rank)
		}
		said[o.Rank] = append(said[o.Rank], oddText(&o))
	}
	for i, rank := range order {
		if i == shortOdd && !p.full && len(order) > i+1 {
			p.printf("  and %s more: --full lists them\n", countText(len(order)-i))
			break
		}
		p.wrapped("  ", p.Files[rank].Name+": "+strings.Join(said[rank], ", "))
	}
}

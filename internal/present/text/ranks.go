package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// shortOdd and shortBranches are how many a ticket gets to see; leastRanks is
// how many rows of the table it gets in any case.
const (
	shortOdd      = 4
	shortBranches = 3
	leastRanks    = 6
)

// Ranks writes the comparison of ranks. The title says what was read.
func Ranks(w io.Writer, title string, rs *diff.Ranks, o DiffOptions) error {
	var tail strings.Builder
	p := &page{w: &tail, style: o.Style}
	r := &rankPage{page: p, Ranks: rs, full: o.Full}
	names := make([]string, len(rs.Ranks))
	for i, r := range rs.Ranks {
		names[i] = r.Name
	}
	r.short, r.room = shortNames(names, p.columns()-rankNumbers)
	r.odd()
	r.divergence()
	p.notes(rs.Notes, o.Full)

	const around = 8 // lines of the table that are no rows
	rows := len(rs.Ranks)
	if !o.Full {
		rows = min(rows, max(leastRanks, shortLines-around-strings.Count(tail.String(), "\n")))
	}
	p.w = w
	p.name("", title)
	r.table(rows)
	p.printf("%s", tail.String())
	return p.err
}

type rankPage struct {
	*page
	*diff.Ranks
	full  bool
	short []string // names for the table
	room  int      // width of their column
}

// rankNumbers is the width of the other columns; usualName is how wide the first
// one is at least.
const (
	rankNumbers = 58
	usualName   = 22
)

const rankRow = "%-*s %11s %11s %7s %4s %10s %9s"

func (p *rankPage) table(n int) {
	used := "allocated"
	if p.Sizes == diff.RequestedSizes {
		used = "requested"
	}
	p.heading(fmt.Sprintf("%-*s", p.room, plural(len(p.Ranks.Ranks), "rank", "ranks")),
		fmt.Sprintf(strings.TrimPrefix(rankRow, "%-*s"), used, "reserved", "fragm.", "OOMs", "events", "diverges"))
	rows := p.rows(n)
	for _, i := range rows {
		r := p.Ranks.Ranks[i]
		peak := r.PeakAllocated
		if p.Sizes == diff.RequestedSizes {
			peak = r.PeakRequested
		}
		parts := "-"
		if r.Parts != nil {
			parts = countText(*r.Parts)
		}
		p.line(rankRow, p.room, p.short[i], sizeOr(peak), units.Size(r.PeakReserved),
			percentText(r.Fragmentation), countText(r.OOMs), countText(r.Events), parts)
	}
	if more := len(p.Ranks.Ranks) - len(rows); more > 0 {
		p.printf("and %s more: --full lists them\n", countText(more))
	}
	p.medians()
	p.wrapped("  ", used+" and reserved are peaks; fragm. is the fragmentation, 1 - "+used+" / reserved;"+
		" diverges is the first event with another call than the majority's")
}

// rows chooses the n ranks that are listed: those that stand out, and the first
// of the others.
func (p *rankPage) rows(n int) []int {
	stands := map[int]bool{}
	for _, o := range p.Odd {
		stands[o.Rank] = true
	}
	others := n - len(stands)
	var out []int
	for i := range p.Ranks.Ranks {
		if !stands[i] {
			if others--; others < 0 {
				continue
			}
		}
		if out = append(out, i); len(out) == n {
			break
		}
	}
	return out
}

func (p *rankPage) medians() {
	cells := map[string]string{}
	for _, m := range p.Measures {
		if m.MedianBytes != nil {
			cells[m.Name] = units.Size(*m.MedianBytes)
		} else {
			cells[m.Name] = countText(*m.MedianCount)
		}
	}
	used := cells[diff.MeasureAllocated]
	if p.Sizes == diff.RequestedSizes {
		used = cells[diff.MeasureRequested]
	}
	p.line(rankRow, p.room, "median", used, cells[diff.MeasureReserved], "",
		cells[diff.MeasureOOMs], cells[diff.MeasureEvents], "")
}

// shortNames leaves out what the names of all files end with, as far as that is
// whole words, and shortens what is longer than most. It also says how wide they
// are.
func shortNames(names []string, most int) (short []string, room int) {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = Clean(name)
	}
	end := commonEnd(out)
	for i, name := range out {
		out[i] = middle(strings.TrimSuffix(name, end), most) // names of ranks differ at their ends
		room = max(room, width(out[i]))
	}
	return out, max(room, min(most, usualName))
}

// commonEnd returns the ending that all names have, from a dot on.
func commonEnd(names []string) string {
	dot := strings.Index(names[0], ".")
	for dot >= 0 {
		end := names[0][dot:]
		all := true
		for _, n := range names {
			all = all && strings.HasSuffix(n, end) && len(n) > len(end)
		}
		if all {
			return end
		}
		next := strings.Index(names[0][dot+1:], ".")
		if next < 0 {
			break
		}
		dot += 1 + next
	}
	return ""
}

// measureNames says what ranks are compared by.
var measureNames = map[string]string{
	diff.MeasureAllocated: "peak allocated", diff.MeasureRequested: "peak requested", diff.MeasureReserved: "peak reserved",
	diff.MeasureFragmentation: "fragmentation", diff.MeasureOOMs: "OOMs", diff.MeasureEvents: "events",
}

func (p *rankPage) odd() {
	rule := fmt.Sprintf("more than %.0f %% and %d standard deviations off the median (deviations estimated by the median one)",
		100*diff.OddShare, diff.OddDeviations)
	p.heading("Odd", ": "+"which rank is unlike the others")
	switch {
	case len(p.Ranks.Ranks) == 2:
		p.wrapped("  ", "with two ranks neither is odd; ashlar diff A B compares them by call stack")
		return
	case len(p.Odd) == 0:
		p.wrapped("  ", "none: no figure is "+rule)
		return
	}
	said := map[int]int{}
	var order []int
	text := map[int][]string{}
	for _, o := range p.Odd {
		if said[o.Rank]++; said[o.Rank] == 1 {
			order = append(order, o.Rank)
		}
		text[o.Rank] = append(text[o.Rank], oddText(&o))
	}
	for i, rank := range order {
		if i == shortOdd && !p.full && len(order) > i+1 {
			p.printf("  and %s more: --full lists them\n", countText(len(order)-i))
			break
		}
		p.wrapped("  ", p.Ranks.Ranks[rank].Name+": "+strings.Join(text[rank], ", "))
	}
	p.wrapped("  ", "odd: "+rule)
	p.compareWith(order[0])
}

// compareWith says how to go on: with the odd rank and a usual one.
func (p *rankPage) compareWith(odd int) {
	unlike := map[int]bool{}
	for _, o := range p.Odd {
		unlike[o.Rank] = true
	}
	for i, r := range p.Ranks.Ranks {
		if file := p.Ranks.Ranks[odd].File; !unlike[i] && !r.Partial && r.File != file {
			p.wrapped("  ", fmt.Sprintf("by call stack: ashlar diff %s %s", r.File, file))
			return
		}
	}
}

func oddText(o *diff.Odd) string {
	name := measureNames[o.Measure]
	if o.DeltaBytes != nil {
		return fmt.Sprintf("%s %s%s", name, units.Delta(*o.DeltaBytes), percentDelta(o.Fraction))
	}
	return fmt.Sprintf("%s %s%s", name, signed(*o.DeltaCount), percentDelta(o.Fraction))
}

func (p *rankPage) divergence() {
	p.heading("Calls", ": sizes allocated and freed, in order")
	switch d := p.Divergence; {
	case !p.Compared:
		p.wrapped("  ", "not compared: fewer than two ranks have events")
	case d == nil:
		p.wrapped("  ", fmt.Sprintf("the same in all ranks, as far as each goes: up to %s", plural(p.Common, "call", "calls")))
	default:
		lead := "the ranks diverge at the first call:"
		if d.Common > 0 {
			lead = fmt.Sprintf("the first %s are the same in all ranks, then they diverge:", plural(d.Common, "call", "calls"))
		}
		p.wrapped("  ", lead)
		for i, b := range d.Branches {
			if i == shortBranches && !p.full && len(d.Branches) > i+1 {
				p.printf("  and %s more ways: --full lists them\n", countText(len(d.Branches)-i))
				break
			}
			p.branch(&b, i == 0 && d.Majority)
		}
	}
}

func (p *rankPage) branch(b *diff.Branch, most bool) {
	first := p.Ranks.Ranks[b.Ranks[0]].Name
	who := first
	if n := len(b.Ranks); n > 1 {
		who = fmt.Sprintf("%s and %s like it", first, plural(n-1, "other", "others"))
	}
	if most {
		who += ", the majority"
	}
	p.wrapped("  ", fmt.Sprintf("%s: %s %s, event %s", who, b.Call, units.Size(b.Bytes), countText(b.Event)))
	if b.Frames != nil {
		p.printf("    at %s\n", siteText(b.Site, p.columns()-7))
	} else {
		p.printf("    (no call stack)\n")
	}
}

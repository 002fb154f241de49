package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// PlanLargest writes the end of a search for the largest batch or sequence.
func PlanLargest(w io.Writer, head PlanHead, l *plan.Largest, style Style) error {
	p := &page{w: w, style: style}
	into := largestRoom(head.Capacity)
	if l.Value == 0 {
		p.wrapped("", fmt.Sprintf("Not even --%s %d fits into %s: %s.", l.Of, l.Next, into, l.Why))
	} else {
		p.wrapped("", fmt.Sprintf("The largest that fits into %s: --%s %d, with a peak of %s.", into, l.Of, l.Value, limitedText(l.Limited)))
		next := fmt.Sprintf("--%s %d does not: %s", l.Of, l.Next, l.Why)
		if l.NextPeakReserved > 0 {
			next += fmt.Sprintf("; without a limit it would reserve %s", units.Size(l.NextPeakReserved))
		}
		p.wrapped("", next+".")
	}
	switch others := l.Plans - 2; {
	case l.Value == 0:
		p.wrapped("", "That was planned in full and replayed.")
	case others < 1:
		p.wrapped("", "Both were planned in full and replayed.")
	case others == 1:
		p.wrapped("", "Both were planned in full and replayed, as was one other on the way.")
	default:
		p.wrapped("", fmt.Sprintf("Both were planned in full and replayed, as were %d others on the way.", others))
	}
	return p.err
}

func largestRoom(room plan.Capacity) string {
	switch {
	case room.Card != nil && room.Limit > 0:
		return room.Card.Title + " under the limit of " + units.Size(room.Limit)
	case room.Card != nil:
		return room.Card.Title
	}
	return "the limit of " + units.Size(room.Limit)
}

// PlanSweep writes a table of plans.
func PlanSweep(w io.Writer, head PlanHead, axes []plan.Axis, cells []plan.Cell, style Style) error {
	p := &page{w: w, style: style}
	p.name("", head.Name)
	p.wrapped("  ", head.Options)
	p.printf("\n")
	widths := make([]int, len(axes))
	names := ""
	for i, a := range axes {
		widths[i] = len(a.Name)
		for _, v := range a.Values {
			widths[i] = max(widths[i], len(v))
		}
		names += fmt.Sprintf("  %*s", widths[i], a.Name)
	}
	retries := false
	const row = "%s  %12s %12s %12s  %-10s %s"
	p.line(row, names, "allocated", "reserved", "device", "peak is in", "fits")
	for _, c := range cells {
		values := ""
		for i, v := range c.Values {
			values += fmt.Sprintf("  %*s", widths[i], v)
		}
		if c.Error != "" {
			p.wrapped(values+"  ", c.Error)
			continue
		}
		fits := ""
		if c.Fits != nil {
			fits = "no"
			if *c.Fits {
				fits = "yes"
			}
			if c.Limited != nil && c.Limited.Retries > 0 {
				fits, retries = "yes *", true
			}
		}
		p.line(row, values, units.Size(c.PeakAllocated), units.Size(c.PeakReserved), units.Size(c.PeakDevice), c.BindingPhase, fits)
	}
	if retries {
		p.printf("\n")
		p.wrapped("", "The peaks are those of runs without a limit. * the cache is released on the way, which takes time.")
	}
	return p.err
}

// PlanRecompute writes the choice of layers to recompute beside others.
func PlanRecompute(w io.Writer, b *plan.BestRecompute, style Style) error {
	p := &page{w: w, style: style}
	p.heading("Recomputation", "")
	best := &b.Best
	said := fmt.Sprintf("best: %s", best.Text())
	switch {
	case !best.Fits:
		said = "No choice of layers fits. The smallest: " + best.Text()
	case len(best.Layers) == 0:
		said = "It fits without recomputing anything"
	}
	p.wrapped("  ", said+".")
	const row = "  %-10s %7s %9s %12s %12s  %s"
	p.line(row, "", "layers", "compute", "allocated", "reserved", "fits")
	for _, r := range append([]plan.Recomputation{*best}, b.Others...) {
		name := r.Name
		if name == "none" && len(best.Layers) == 0 && best.Fits && r.Flags == best.Flags && name != best.Name {
			continue
		}
		fits := "no"
		if r.Fits {
			fits = "yes"
		}
		compute := fmt.Sprintf("+%.1f %%", 100*r.Extra)
		if name == "selective" {
			compute = "*"
		}
		p.line(row, name, fmt.Sprint(len(r.Layers)), compute, units.Size(r.PeakAllocated), units.Size(r.PeakReserved), fits)
	}
	p.wrapped("  ", "compute: repeated matrix products, relative to a step's; * none of them, only the ops between them; reserved: without a limit (under one, less is cached)")
	p.printf("  %s\n", best.Flags)
	return p.err
}

// maxTerms is how many terms of each kind are listed.
const maxTerms = 12

// PlanAgainst writes a plan beside a recording.
func PlanAgainst(w io.Writer, name string, a *plan.Against, style Style) error {
	p := &page{w: w, style: style}
	p.heading("Against "+Clean(name), "")
	p.wrapped("  ", fmt.Sprintf("allocations of %s or more, from %s to %s: %.2f %% of the recorded bytes are planned, in the same order; %s was recorded but not planned, %s planned but not recorded",
		units.Size(a.Least), a.From, a.To, 100*a.Covered, units.Size(a.Missing), units.Size(a.Extra)))
	if said := partsText(a.Parts); said != "" {
		p.wrapped("  ", said)
	}
	if f := a.First; f != nil {
		p.wrapped("  ", firstText(f))
	}
	for _, n := range a.Notes {
		p.wrapped("  note: ", n)
	}
	const row = "  %-10s %14s %14s %10s"
	p.line(row, "peak", "planned", "measured", "error")
	for _, x := range a.Peaks {
		if x.Measured == nil {
			p.line(row, x.Name, units.Size(x.Planned), "unknown", "")
			continue
		}
		off := 100 * (float64(x.Planned)/float64(max(*x.Measured, 1)) - 1)
		p.line(row, x.Name, units.Size(x.Planned), units.Size(*x.Measured), fmt.Sprintf("%+.2f %%", off))
	}
	if len(a.Curve.Planned) > 0 {
		p.printf("\n")
		p.chart(chart{
			a: a.Curve.Planned, b: a.Curve.Measured, both: '#', onlyA: '+', onlyB: 'o', phases: a.Curve.Phases,
			legend: "requested bytes: # both   + only planned   o only measured",
		})
	}
	p.againstTerms(a)
	return p.err
}

// firstText says where a plan and a recording part.
func firstText(f *plan.FirstPair) string {
	what := f.Where
	said := "recorded but not planned"
	if f.Change == "extra" {
		what, said = strings.TrimSuffix(f.What+" of "+f.Where, " of "), "planned but not recorded"
	}
	said = fmt.Sprintf("they part in the %s: %s is %s", stepText(f.Phase, f.Step), units.Size(f.Bytes), said)
	if what != "" {
		said += ", by " + Clean(what)
	}
	if f.After != "" {
		said += ", after " + Clean(f.After)
	}
	return said
}

// maxParts is how many parts of a run are told apart.
const maxParts = 8

// partsText says how much of each part of the run is planned, or of the worst
// one if there are many.
func partsText(parts []plan.PartPair) string {
	if len(parts) < 2 {
		return ""
	}
	said := func(x plan.PartPair) string { return fmt.Sprintf("%s %.2f %%", x.Name, 100*x.Covered) }
	if len(parts) > maxParts {
		worst := parts[0]
		for _, x := range parts {
			if x.Covered < worst.Covered {
				worst = x
			}
		}
		if worst.Covered == 1 {
			return ""
		}
		return fmt.Sprintf("of %d parts the worst is %s", len(parts), said(worst))
	}
	all := make([]string, len(parts))
	for i, x := range parts {
		all[i] = said(x)
	}
	return "by part: " + strings.Join(all, ", ")
}

// againstTerms lists what is missing, extra and matched.
func (p *page) againstTerms(a *plan.Against) {
	for _, kind := range []struct{ change, title string }{
		{"missing", "Recorded, but not planned"}, {"extra", "Planned, but not recorded"}, {"matched", "Matched"},
	} {
		var terms []plan.TermPair
		for _, t := range a.Terms {
			if t.Change == kind.change {
				terms = append(terms, t)
			}
		}
		if len(terms) == 0 {
			continue
		}
		p.heading(kind.title, "")
		const row = "  %8s %12s %12s  %s"
		p.line(row, "times", "bytes", "largest", "")
		for _, t := range terms[:min(len(terms), maxTerms)] {
			what := t.Where
			if t.Change != "missing" {
				what = strings.TrimSuffix(t.What+" of "+t.Where, " of ")
			}
			p.fitted(fmt.Sprintf("  %8s %12s %12s  ", units.Count(int64(t.Count)), units.Size(t.Bytes), units.Size(t.Most)), Clean(what))
		}
		if n := len(terms) - maxTerms; n > 0 {
			p.line("  and %s more", units.Count(int64(n)))
		}
	}
}

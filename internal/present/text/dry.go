package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/dry"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// DryHead says what a dry run is asked about.
type DryHead struct {
	Capacity plan.Capacity
	Full     bool // reasons, the course of the run and all lines too
}

// Dry writes the answer to a dry run.
func Dry(w io.Writer, head DryHead, d *dry.Document, style Style) error {
	p := &page{w: w, style: style}
	a := d.Answer
	if d.Max != nil {
		p.dryLargest(head, d.Max)
	}
	p.dryHead(head, d)
	p.peaks(&a.Outcome, nil)
	p.reasons(&a.Outcome, head.Full)
	p.planComponents(&a.Outcome)
	p.dryLines(a, head.Full)
	if head.Full {
		p.planTimeline(&a.Outcome)
	}
	p.planLevers(&a.Outcome, "Each was replayed; its saving is how far the peak of reserved memory falls.")
	p.dryNotes(a, head.Full)
	p.list("Assumed", a.Assumed)
	p.list("Not modelled", a.NotModelled)
	return p.err
}

func (p *page) dryHead(head DryHead, d *dry.Document) {
	a := d.Answer
	p.verdict(fitsText(head.Capacity, &a.Outcome, nil))
	p.oneLever(&a.Outcome, "A larger card, a smaller batch or less kept for the backward pass may.")
	if f := a.Failure; f != nil {
		p.wrapped("  ", failedText(f))
	}
	if c := head.Capacity.Card; c != nil && c.Taken != "" {
		p.wrapped("  ", c.Taken+".")
	}
	if why, ok := strings.CutPrefix(a.Ended, "error: "); ok {
		p.wrapped("  ", "The dry run ended with an error, and the answer is about what came before it: "+Clean(why))
	}
	if where, ok := strings.CutPrefix(a.Ended, "cut: "); ok {
		p.wrapped("  ", "The ledger is not whole, and the answer is about what is there: "+Clean(where))
	}
	if a.Ended == "interrupted" {
		p.wrapped("  ", "The dry run was interrupted, and the answer is about what came before.")
	}
	if a.Ended == "passes" {
		p.wrapped("  ", "The script has no optimizer and was stopped when memory did not grow in more forward passes; --steps 0 runs it to its end.")
	}
	if d.Exit != nil && *d.Exit != 0 {
		p.wrapped("  ", fmt.Sprintf("The script ended with exit status %d.", *d.Exit))
	}
	p.printf("\n")
	p.name("", d.File)
	p.wrapped("  ", drySubject(a))
}

// drySubject says what was run.
func drySubject(a *dry.Answer) string {
	said := Clean(strings.Join(a.Script, " "))
	if said != "" {
		said += ", "
	}
	switch a.Steps {
	case 0:
		said += "no step of an optimizer"
	case 1:
		said += "1 step"
	default:
		said += units.Count(int64(a.Steps)) + " steps"
	}
	if a.Compiled > 0 {
		said += fmt.Sprintf(", %s compiled by Inductor", plural(a.Compiled, "graph", "graphs"))
	}
	if a.Card != "" {
		said += ", as on " + Clean(a.Card)
	}
	if a.Torch != "" {
		said += ", torch " + Clean(a.Torch)
	}
	return said + fmt.Sprintf(", %s events", units.Count(int64(a.Events)))
}

// fewLines is how many of the script's lines are shown unless all are asked for.
const fewLines = 6

// dryLines lists the script's lines that hold most.
func (p *page) dryLines(a *dry.Answer, full bool) {
	if len(a.Lines) == 0 {
		return
	}
	p.heading("The script's lines that hold most at the peak", "")
	n := len(a.Lines)
	if !full {
		n = min(n, fewLines)
	}
	for _, l := range a.Lines[:n] {
		p.wrapped(fmt.Sprintf("  %12s %6s  ", units.Size(l.Bytes), share(l.Bytes, a.PeakAllocated)), fmt.Sprintf("%s, mostly %s", Clean(l.Where), l.Mostly))
	}
}

// dryNotes lists what was answered without bytes, and what nobody knows.
func (p *page) dryNotes(a *dry.Answer, full bool) {
	where := func(s string) string {
		if s == "" {
			return ""
		}
		return " (" + Clean(s) + ")"
	}
	if len(a.Notes) > 0 {
		p.heading("Answered without numbers", "")
		n := len(a.Notes)
		if !full {
			n = min(n, fewLines)
		}
		for _, x := range a.Notes[:n] {
			p.wrapped("  ", Clean(x.Text)+where(x.Where)+times(x.Count))
		}
		if n < len(a.Notes) {
			p.wrapped("  ", fmt.Sprintf("and %d others: --full lists them", len(a.Notes)-n))
		}
	}
	if len(a.Unknown) > 0 {
		p.heading("Ops that are not known: their outputs count, their workspace does not", "")
		for _, x := range a.Unknown {
			p.wrapped("  ", Clean(x.Name)+where(x.Where)+times(x.Count))
		}
	}
}

func times(n int) string {
	if n == 1 {
		return ""
	}
	return ", " + units.Count(int64(n)) + " times"
}

// dryLargest writes the end of a search for the largest value that fits.
func (p *page) dryLargest(head DryHead, l *dry.Largest) {
	into := largestRoom(head.Capacity)
	if l.Value == 0 {
		p.wrapped("", fmt.Sprintf("Not even %s %d fits into %s: %s.", l.Of, l.Next, into, l.Why))
	} else {
		p.wrapped("", fmt.Sprintf("The largest that fits into %s: %s %d, with a peak of %s.", into, l.Of, l.Value, limitedText(l.Limited)))
	}
	switch {
	case l.Value == 0:
	case l.Next == 0:
		p.wrapped("", "No larger one was found not to fit.")
	default:
		p.wrapped("", fmt.Sprintf("%s %d does not: %s; without a limit it would reserve %s.", l.Of, l.Next, l.Why, units.Size(l.NextPeakReserved)))
	}
	runs := make([]string, len(l.Runs))
	for i, v := range l.Runs {
		runs[i] = fmt.Sprint(v)
	}
	said := "The script was run with " + strings.Join(runs, ", ")
	if l.Interpolated > 0 {
		said += fmt.Sprintf("; the sizes of %s further values lie on straight lines through those of two runs", units.Count(int64(l.Interpolated)))
	}
	p.wrapped("", said+".")
	p.printf("\n")
}

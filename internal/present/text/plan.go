package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// PlanHead says what a plan is about.
type PlanHead struct {
	Name     string // of the config
	Options  string // how the model is run, as on the command line
	Capacity plan.Capacity
	Full     bool // reasons and the course of the step too
}

// Plan writes an answer.
func Plan(w io.Writer, head PlanHead, a *plan.Answer, style Style) error {
	p := &page{w: w, style: style}
	p.planHead(head, a)
	p.planPeaks(a, head.Full)
	p.planComponents(&a.Outcome)
	if head.Full {
		p.planTimeline(&a.Outcome)
	}
	p.planLevers(&a.Outcome, "Each was planned; its saving is how far the peak falls: of allocated memory, unless it says otherwise. In brackets: transformers' and PEFT's words.")
	p.list("Assumed", a.Assumed)
	p.list("Not modelled", a.NotModelled)
	return p.err
}

// planHead says whether it fits, what to change if not, and what it is about.
func (p *page) planHead(head PlanHead, a *plan.Answer) {
	p.verdict(fitsText(head.Capacity, &a.Outcome, a.LeavesOut))
	p.oneLever(&a.Outcome, "A larger card, more GPUs (--shard fsdp:N) or a smaller --batch or --seq may.")
	if f := a.Failure; f != nil {
		p.wrapped("  ", failedText(f))
	}
	if c := head.Capacity.Card; c != nil && c.Taken != "" {
		p.wrapped("  ", c.Taken+".")
	}
	for _, left := range a.LeavesOut {
		p.wrapped("  ", "Not in it: "+left+"; the rest of the model is planned.")
	}
	p.printf("\n")
	p.planSubject(head, a.Model, a.Parameters, a.Preset)
}

// oneLever names the cheapest change that makes a run fit, or what else may.
func (p *page) oneLever(a *plan.Outcome, otherwise string) {
	if a.Fits == nil || *a.Fits {
		return
	}
	for _, l := range a.Levers {
		if l.Fits != nil && *l.Fits {
			p.wrapped("  ", "The cheapest way to make it fit: "+strings.TrimPrefix(l.Name, "together: ")+" ("+l.Cost+").")
			p.toPaste("    ", l)
			return
		}
	}
	p.wrapped("  ", "Nothing that was tried makes it fit: see below. "+otherwise)
}

// toPaste writes a lever's flags and, in brackets, the user's own lines; on lines
// of their own where there are many.
func (p *page) toPaste(lead string, l plan.Lever) {
	both := lead + l.Flags
	if l.Flags == "" {
		p.printf("%s%s\n", lead, strings.Join(l.Lines, "; "))
		return
	}
	if len(l.Lines) > 0 {
		both += "  (" + strings.Join(l.Lines, "; ") + ")"
	}
	if width(both) <= p.style.columns() {
		p.printf("%s\n", both)
		return
	}
	p.printf("%s%s\n", lead, l.Flags)
	for _, line := range l.Lines {
		p.printf("%s%s\n", lead, line)
	}
}

// verdict writes a sentence that begins with whether it fits.
func (p *page) verdict(said string) {
	for _, v := range []struct {
		word  string
		dress func(string) string
	}{{"DOES NOT FIT", p.style.Bad}, {"FITS", p.style.Good}, {"MAY FIT", p.style.Warn}} {
		if rest, ok := strings.CutPrefix(said, v.word+" "); ok {
			p.dressed("", v.word, v.dress, " ", rest)
			return
		}
	}
	p.wrapped("", said)
}

// planSubject names the model and how it is run.
func (p *page) planSubject(head PlanHead, model string, parameters int64, preset string) {
	p.name("", head.Name)
	p.wrapped("  ", fmt.Sprintf("%s, %s parameters, as in preset %s", model, units.Count(parameters), preset))
	if head.Options != "" {
		p.wrapped("  ", head.Options)
	}
}

// fitsText returns the verdict.
func fitsText(room plan.Capacity, a *plan.Outcome, without []string) string {
	need := units.SizeUp(a.SmallestLimit)
	if a.Fits == nil {
		return "It needs at least " + need + " for the allocator. Give --gpu or --limit to see whether that fits."
	}
	into := roomText(room, a)
	spare := *a.Headroom
	switch {
	case *a.Fits && spare >= 0:
		said := fmt.Sprintf("FITS %sinto %s, with %s to spare: the run needs at least %s.", withoutText(without), into, units.Size(uint64(spare)), need)
		if a.Tight {
			said += fmt.Sprintf(" But the plan may be up to %s too low: it may not fit.", units.Size(a.Range.ReservedHigh-a.PeakReserved))
		}
		return said
	case *a.Fits: // a lower limit than the one that was found passes too
		return fmt.Sprintf("FITS %sinto %s.", withoutText(without), into)
	case spare < 0:
		return fmt.Sprintf("DOES NOT FIT into %s: %s is missing; the run needs at least %s.", into, units.Size(uint64(-spare)), need)
	}
	return fmt.Sprintf("DOES NOT FIT into %s, although %s would do: a lower limit releases the cache at other moments, and that happens to help.", into, need)
}

// withoutText says what of the model the plan leaves out, with a space after it;
// "" if nothing.
func withoutText(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return "without " + strings.Join(parts, " and ") + " "
}

// roomText says what there is.
func roomText(room plan.Capacity, a *plan.Outcome) string {
	said := ""
	if c := room.Card; c != nil {
		total := units.Size(c.TotalBytes)
		if a.TotalEstimated {
			total += " estimated"
		}
		said = fmt.Sprintf("%s (%s, %s of it for the allocator)", c.Title, total, units.Size(c.TotalBytes-min(c.TotalBytes, a.Context+a.Collectives)))
	}
	if room.Limit > 0 {
		if said != "" {
			said += " and "
		}
		said += "the limit of " + units.Size(room.Limit)
	}
	return said
}

// failedText says where a run ends that does not fit.
func failedText(f *plan.Failure) string {
	said := fmt.Sprintf("It fails on a %s request", units.Size(f.Bytes))
	var by []string
	if f.Op != "" {
		by = append(by, "op `"+f.Op+"`")
	}
	if f.Module != "" {
		by = append(by, f.Module)
	}
	if len(by) > 0 {
		said += " (" + strings.Join(by, ", ") + ")"
	}
	if f.Phase != "" {
		said += " in the " + stepText(f.Phase, f.Step)
	}
	return said + fmt.Sprintf(", with %s allocated and %s reserved.", units.Size(f.Allocated), units.Size(f.Reserved))
}

// stepText names a phase.
func stepText(phase string, step int) string {
	switch {
	case step == 0 || phase == "prefill":
		return phase
	case phase == "decode":
		return fmt.Sprintf("%s of token %d", phase, step)
	}
	return fmt.Sprintf("%s of step %d", phase, step)
}

// planPeaks writes the peaks, and how well they are known.
func (p *page) planPeaks(a *plan.Answer, full bool) {
	p.peaks(&a.Outcome, a.Beside)
	p.reasons(&a.Outcome, full)
	if !a.Measured {
		p.wrapped("  note: ", "no plan of this kind was compared with a measured run")
	}
	for _, s := range a.RestsOn {
		p.wrapped("  rests on ", s+", not measured")
	}
}

// peaks writes the three totals with their ranges.
func (p *page) peaks(a *plan.Outcome, beside []plan.Beside) {
	p.heading("Peaks", "")
	const row = "  %-10s %12s   %s"
	r := &a.Range
	between := func(low, high uint64) string { return "from " + units.Size(low) + " to " + units.Size(high) }
	p.line(row, "allocated", units.Size(a.PeakAllocated), between(r.Low, r.High))
	p.line(row, "reserved", units.Size(a.PeakReserved), between(r.ReservedLow, r.ReservedHigh))
	p.wrapped(fmt.Sprintf("  %-10s %12s   ", "device", units.Size(a.PeakDevice)), between(r.DeviceLow, r.DeviceHigh)+"; "+externalText(a))
	for _, b := range beside {
		p.wrapped(fmt.Sprintf("  %-10s %12s   ", b.Where, units.Size(b.Bytes)), besideText(b))
	}
	p.line("  peak is in %s", stepText(a.BindingPhase, a.BindingStep))
	if l := a.Limited; l != nil && (l.Retries > 0 || l.PeakReserved < a.PeakReserved) {
		p.wrapped("  under the limit: ", limitedText(l)+". The peaks above are those of a run without a limit")
	}
}

// reasons writes why the peaks may differ, if all is to be said.
func (p *page) reasons(a *plan.Outcome, full bool) {
	for _, x := range a.Range.Reasons {
		if !full {
			break
		}
		if said := reasonText(x); said != "" {
			p.wrapped("  range: ", said)
		}
	}
}

// besideText says what memory is for that the allocator does not see.
func besideText(b plan.Beside) string {
	if b.Where == "managed" {
		return b.What + ", not in the figures above: the driver moves it to the host when the GPU is full"
	}
	return b.What + ", in pinned memory of this rank's host"
}

// limitedText says how a run goes that has less than it would take.
func limitedText(l *plan.Limited) string {
	said := fmt.Sprintf("%s reserved, %s of the device", units.Size(l.PeakReserved), units.Size(l.PeakDevice))
	switch {
	case l.Retries == 1:
		said += "; the cache is released once on the way, which takes time"
	case l.Retries > 1:
		said += fmt.Sprintf("; the cache is released %s times on the way, which takes time", units.Count(l.Retries))
	}
	return said
}

// externalText says what a process holds beside the allocator's memory.
func externalText(a *plan.Outcome) string {
	said := units.Size(a.Context) + " of it CUDA's context"
	if a.ContextEstimated {
		said += " (estimated)"
	}
	if a.Collectives > 0 {
		said += ", " + units.Size(a.Collectives) + " NCCL"
		// What NCCL may hold more widens the range of the device alone.
		if more := int64(a.Range.DeviceHigh-a.Range.ReservedHigh) - int64(a.PeakDevice-a.PeakReserved); more > 0 {
			said += " (up to " + units.Size(a.Collectives+uint64(more)) + ")"
		}
	}
	return said
}

// reasonText says what a reason comes to; nothing if that is nothing.
func reasonText(x plan.Reason) string {
	said := func(low, high uint64) string {
		switch {
		case low == 0 && high == 0:
			return ""
		case low == high:
			return "+-" + units.Size(low)
		}
		return units.Delta(-int64(low)) + " to " + units.Delta(int64(high))
	}
	allocated, reserved := said(x.Low, x.High), said(x.ReservedLow, x.ReservedHigh)
	switch {
	case allocated == "" && reserved == "":
		return ""
	case allocated == reserved:
		return x.Name + ": " + allocated
	case allocated == "":
		return x.Name + ": reserved " + reserved
	case reserved == "":
		return x.Name + ": allocated " + allocated
	}
	return x.Name + ": allocated " + allocated + ", reserved " + reserved
}

// planComponents draws a bar for each part of the peak.
func (p *page) planComponents(a *plan.Outcome) {
	p.heading("What the peak of allocated memory is made of", "")
	var most uint64
	const lead = 40 // columns before the bars
	barWidth := uint64(p.style.TextColumns() - lead)
	for _, c := range a.Components {
		most = max(most, c.Bytes)
	}
	for _, c := range a.Components {
		n := int((c.Bytes*barWidth + most/2) / max(most, 1))
		p.line("  %-16s %12s %6s  %s", c.Name, units.Size(c.Bytes), share(c.Bytes, a.PeakAllocated), strings.Repeat("#", n))
	}
}

// share returns a part in percent.
func share(part, all uint64) string {
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(all))
}

// longLever is from where on a lever's name leaves no room beside it.
const longLever = 48

// planLevers lists what could be changed, and says how that was found.
func (p *page) planLevers(a *plan.Outcome, how string) {
	if len(a.Levers) == 0 {
		return
	}
	p.heading("What would save memory, the cheapest first", "")
	for _, l := range a.Levers {
		said := fmt.Sprintf("-%s", units.Size(l.Saving))
		if l.Of != "allocated" {
			said += " " + l.Of
		}
		said += ", " + l.Cost
		if l.Fits != nil && a.Fits != nil && !*a.Fits {
			if *l.Fits {
				said += "; then it fits"
			} else {
				said += "; not enough alone"
			}
		}
		if name := "  " + l.Name + ": "; len(name) <= longLever {
			p.wrapped(name, said)
		} else {
			p.wrapped("  ", l.Name+": "+said)
		}
		p.toPaste("      ", l)
	}
	p.printf("\n")
	p.wrapped("", how)
}

// list writes a list of sentences under a heading.
func (p *page) list(name string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.heading(name, "")
	for _, l := range lines {
		p.wrapped("  ", l)
	}
}

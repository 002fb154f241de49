package text

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// DiffOptions say how much of a comparison is written.
type DiffOptions struct {
	Full  bool // all stacks and ranks instead of what fits a ticket
	Style Style
}

// shortLines is how long a comparison may be to fit a ticket; shortStacks and
// shortNotes are how much of a list it gets at most.
const (
	shortLines  = 56
	shortStacks = 15
	shortNotes  = 3
)

// Diff writes what changed between two sides.
func Diff(w io.Writer, d *diff.Diff, o DiffOptions) error {
	var head, tail strings.Builder
	p := &page{w: &head, style: o.Style}
	p.sides(d)
	p.diffMemory(d)
	p.diffSums(d)
	p.w = &tail
	p.notes(d.Notes, o.Full)

	stacks := len(d.Stacks)
	if !o.Full {
		lines := shortLines - strings.Count(head.String(), "\n") - strings.Count(tail.String(), "\n")
		stacks = min(d.Changed(), shortStacks, lines/2)
	}
	p.w = w
	p.printf("%s", head.String())
	p.diffStacks(d, stacks)
	p.printf("%s", tail.String())
	return p.err
}

// sides says what is compared.
func (p *page) sides(d *diff.Diff) {
	if d.OneFile() {
		p.name("", d.A.File)
		p.wrapped("  ", sideText(d.A))
		p.wrapped("A ", momentAsked(d.A))
		p.wrapped("B ", momentAsked(d.B))
		return
	}
	for _, s := range []struct {
		name string
		*diff.Side
	}{{"A ", d.A}, {"B ", d.B}} {
		p.name(s.name, s.File)
		p.wrapped("  ", sideText(s.Side)+"; "+momentAsked(s.Side))
	}
	if a, b := settingsText(d.A), settingsText(d.B); a != b {
		p.wrapped("  settings: ", "A "+a+", B "+b)
	}
}

func sideText(s *diff.Side) string {
	device := "host memory"
	if s.Device != nil {
		device = fmt.Sprintf("device %d", *s.Device)
	}
	if s.DeviceReason != nil {
		device = *s.DeviceReason
	}
	text := device + "; " + plural(s.Events, "event", "events")
	if s.Replay != nil && s.Replay.Identical {
		text += ", replayed identically"
	}
	return text
}

// momentAsked says where a side is looked at.
func momentAsked(s *diff.Side) string {
	m := &s.At
	text := "at event " + m.Asked
	step, isStep := strings.CutPrefix(m.Asked, "step:")
	switch {
	case m.Asked == "end":
		return "at the end"
	case m.Asked == "peak" && s.PeakAllocated == nil:
		text = "at the peak of requested"
	case m.Asked == "peak":
		text = "at the peak of allocated"
	case isStep:
		text = "at the end of step " + step
	}
	if m.Event == nil {
		return text + ", before the first event"
	}
	if m.Asked == "peak" || isStep {
		text += ": event " + countText(*m.Event)
	} else {
		text = "at event " + countText(*m.Event)
	}
	if m.Since != nil {
		text += ", " + secondsText(*m.Since)
	}
	if m.Step != nil && !isStep {
		text += fmt.Sprintf(", step %d", *m.Step)
	}
	return text
}

func settingsText(s *diff.Side) string {
	switch {
	case s.Settings == nil:
		return "not in the file"
	case *s.Settings == "":
		return "the defaults"
	}
	return *s.Settings
}

// diffMemory writes the totals side by side.
func (p *page) diffMemory(d *diff.Diff) {
	p.heading("Memory", "                    A           B        B - A")
	row := func(name string, a, b *uint64) {
		if a != nil || b != nil {
			p.line("  %-14s %11s %11s %12s", name, sizeOr(a), sizeOr(b), deltaOr(a, b))
		}
	}
	counts := func(name string, a, b int) {
		p.line("  %-14s %11s %11s %12s", name, countText(a), countText(b), signed(b-a))
	}
	fraction := func(name string, a, b *float64, meaning string) {
		if a == nil && b == nil {
			return
		}
		change := "-"
		if a != nil && b != nil {
			change = fmt.Sprintf("%+.1f points", 100**b-100**a)
		}
		p.line("  %-14s %11s %11s %12s  %s", name, percentText(a), percentText(b), change, meaning)
	}
	a, b := &d.A.Fragmentation, &d.B.Fragmentation
	if !d.OneFile() {
		row("peak allocated", d.A.PeakAllocated, d.B.PeakAllocated)
		row("peak reserved", d.A.PeakReserved, d.B.PeakReserved)
		if d.A.PeakAllocated == nil || d.B.PeakAllocated == nil {
			row("peak requested", d.A.PeakRequested, d.B.PeakRequested)
		}
		fraction("fragmentation", a.OfPeaks, b.OfPeaks, "1 - allocated / reserved")
		if d.A.OOMs+d.B.OOMs > 0 {
			counts("OOMs", d.A.OOMs, d.B.OOMs)
		}
		if d.A.Events+d.B.Events > 0 {
			p.printf("  at the moments compared:\n")
		}
	}
	row("reserved", &d.A.Reserved, &d.B.Reserved)
	row("allocated", d.A.Allocated, d.B.Allocated)
	if differ(d.A.Active, d.A.Allocated) || differ(d.B.Active, d.B.Allocated) {
		row("active", d.A.Active, d.B.Active)
	}
	row("requested", d.A.Requested, d.B.Requested)
	counts("active blocks", d.A.Blocks, d.B.Blocks)
	if d.OneFile() || a.OfPeaks == nil && b.OfPeaks == nil {
		fraction("unallocated", a.ReservedUnallocated, b.ReservedUnallocated, "of reserved memory")
	}
	fraction("inactive split", a.InactiveSplit, b.InactiveSplit, "free, but pinned")
	fraction("external", a.External, b.External, "free, but in pieces")
}

// diffSums says how much changed by call stack.
func (p *page) diffSums(d *diff.Diff) {
	by := map[string]string{
		diff.BlockSizes: "block sizes", diff.RequestedSizes: "requested sizes", diff.MixedSizes: "sizes as far as known",
	}[d.Sizes]
	p.heading("By call stack", fmt.Sprintf(" (active blocks, %s): %s in all", by, units.Delta(d.Delta)))
	var parts []string
	for _, c := range []struct {
		name string
		diff.Changes
	}{{"grown", d.Grown}, {"shrunk", d.Shrunk}, {"new", d.New}, {"gone", d.Gone}, {"the same", d.Same}} {
		switch {
		case c.Stacks > 0 && c.name == "the same":
			parts = append(parts, countText(c.Stacks)+" the same")
		case c.Stacks > 0:
			parts = append(parts, fmt.Sprintf("%s %s %s", countText(c.Stacks), c.name, units.Delta(c.Changes.Delta)))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no active blocks on either side")
	}
	p.wrapped("  ", strings.Join(parts, ", "))
	p.moved(d)
}

// diffStacks lists the first n call stacks.
func (p *page) diffStacks(d *diff.Diff, n int) {
	if n > 0 {
		p.printf("\n        B - A           A           B  blocks\n")
	}
	rest := int64(0)
	for i, s := range d.Stacks {
		if i < n {
			p.stack(&s)
		} else {
			rest += s.Delta
		}
	}
	if more := d.Changed() - n; more > 0 {
		p.printf("  and %s more, %s together: --full lists them\n", countText(more), units.Delta(rest))
	}
}

// moved says how stacks were found again that are not quite the same.
func (p *page) moved(d *diff.Diff) {
	var parts []string
	if n := d.Matched.Lines + d.Matched.Functions; n > 0 {
		parts = append(parts, countText(n)+" across other lines or paths")
	}
	if n := d.Matched.Site; n > 0 {
		parts = append(parts, countText(n)+" by call site only")
	}
	if len(parts) > 0 {
		p.wrapped("  ", "stacks matched: "+countText(d.Matched.Exact)+" exactly, "+strings.Join(parts, ", "))
	}
}

func (p *page) stack(s *diff.Stack) {
	a, b := units.Size(s.ABytes), units.Size(s.BBytes)
	switch s.Change {
	case diff.New:
		a = "new"
	case diff.Gone:
		b = "gone"
	}
	p.line("  %11s %11s %11s  %s", units.Delta(s.Delta), a, b, blocksText(s))
	site := "(no call stack)"
	if s.Frames != nil {
		site = siteText(s.Site, p.columns()-6)
	}
	p.line("      %s", site)
}

// blocksText returns the number of blocks, and what it was before if that
// differs.
func blocksText(s *diff.Stack) string {
	if s.ABlocks == s.BBlocks || s.ABlocks == 0 || s.BBlocks == 0 {
		return countText(max(s.ABlocks, s.BBlocks))
	}
	return countText(s.ABlocks) + " > " + countText(s.BBlocks)
}

// notes says what to know about the numbers.
func (p *page) notes(notes []string, full bool) {
	if len(notes) == 0 {
		return
	}
	p.heading("Notes", "")
	for i, n := range notes {
		if i == shortNotes && !full && len(notes) > i+1 {
			p.printf("  - and %s more: --full lists them\n", countText(len(notes)-i))
			return
		}
		p.wrapped("  - ", n)
	}
}

func deltaOr(a, b *uint64) string {
	if a == nil || b == nil {
		return "-"
	}
	return units.Delta(int64(*b - *a))
}

func differ(a, b *uint64) bool { return a != nil && b != nil && *a != *b }

func signed(n int) string {
	if n > 0 {
		return "+" + countText(n)
	}
	return countText(n)
}

// percentDelta returns a difference as part of what it is measured by.
func percentDelta(f *float64) string {
	if f == nil || math.IsInf(*f, 0) {
		return ""
	}
	return fmt.Sprintf(" (%+.1f %%)", 100**f)
}

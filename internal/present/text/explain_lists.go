package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// pinners are the tensors that keep free memory from being used.
func (e *explanation) pinners() {
	list := e.report.Pinners
	if len(list) == 0 {
		return
	}
	e.title("What pins the free memory", ": tensors in its segments; most memory freed per byte moved first")
	for _, s := range list {
		e.wrapped("  ", PinnedText(&s))
		e.blocks(s.Blocks, e.shown.parts)
	}
}

// blocks are bytes by call stack.
func (e *explanation) blocks(list []explain.Block, most int) {
	for _, b := range list[:min(len(list), most)] {
		e.stack(b.Frames, b.Site, fmt.Sprintf("    %10s %6s  ", units.Size(b.Bytes), countText(b.Count)+"x"))
	}
}

// holderRow is how much somebody holds, in how many blocks.
const holderRow = "  %10s %6s  "

// holders are who holds the memory.
func (e *explanation) holders() {
	r := e.report
	if len(r.Holders) == 0 {
		return
	}
	lines := r.ByLine[:e.more(len(r.ByLine), e.shown.lines, "line of your code", "lines of your code")]
	if e.shown.lines+e.shown.kinds == 0 {
		return
	}
	e.heading("Who holds the memory "+HoldersTime(r), "")
	if len(r.ByKind) > 0 {
		var kinds []string
		for _, k := range r.ByKind[:min(len(r.ByKind), e.shown.kinds)] {
			kinds = append(kinds, fmt.Sprintf("%s %s (%s)", CategoryText(k.Category), units.Size(k.Bytes), k.Confidence))
		}
		e.wrapped("  ", strings.Join(kinds, ", "))
	}
	if len(lines) > 0 {
		for _, h := range lines {
			e.fitted(fmt.Sprintf(holderRow, units.Size(h.Bytes), countText(h.Blocks)+"x"), Clean(h.Line.String()))
		}
		if !e.full() {
			return
		}
		e.line("  by call stack:")
	}
	for _, h := range r.Holders[:e.more(len(r.Holders), e.shown.lines, "call stack", "call stacks")] {
		e.stack(h.Frames, h.Site, fmt.Sprintf(holderRow, units.Size(h.Bytes), countText(h.Blocks)+"x"))
	}
	if e.full() && len(r.ByModule) > 0 {
		e.line("  by module:")
		for _, m := range r.ByModule {
			e.name(fmt.Sprintf(holderRow, units.Size(m.Bytes), countText(m.Blocks)+"x"), m.Module)
		}
	}
}

// full reports whether nothing is left out.
func (e *explanation) full() bool { return e.shown.all }

// findingNames say what a finding is.
var findingNames = map[string]string{
	explain.Leak:      "leak",
	explain.Spike:     "spike",
	explain.Transient: "transient",
}

// ignored are settings that are not in force, though the user believes so. They
// change what all the rest means, so they stand first and are never left out.
func (e *explanation) ignored() {
	first := true
	for _, f := range e.report.Findings {
		if f.Kind != explain.Ignored {
			continue
		}
		if first {
			e.heading("Settings that are not in force", "")
			first = false
		}
		e.wrapped("  - ", f.Detail)
	}
}

func (e *explanation) findings() {
	list := slices.DeleteFunc(slices.Clone(e.report.Findings), func(f explain.Finding) bool {
		said := f.Kind == e.report.Cause || f.Kind == explain.Leak && e.report.Cause == explain.None && e.report.CauseText != ""
		return f.Kind == explain.Ignored || !e.full() && (f.Kind == explain.Transient || said)
	})
	list = list[:e.more(len(list), e.shown.findings, "finding", "findings")]
	if len(list) == 0 {
		return
	}
	e.heading("Found besides", "")
	for _, f := range list {
		e.wrapped("  - ", fmt.Sprintf("%s (%s): %s", findingNames[f.Kind], f.Confidence, f.Detail))
		switch {
		case len(f.Parts) > 0:
			e.blocks(f.Parts, e.shown.parts)
		case len(f.Frames) > 0:
			e.stack(f.Frames, f.Site, "    at ")
		}
	}
}

// fixes are the others, in the order in which one would try them.
func (e *explanation) fixes() {
	if len(e.report.Fixes) < 2 {
		return
	}
	list := e.report.Fixes[1:]
	shown := list[:e.more(len(list), e.shown.fixes, "more fix", "more fixes")]
	if len(shown) == 0 {
		return
	}
	e.heading("Or", "")
	for i := range shown {
		f := &shown[i]
		lead := fmt.Sprintf("  %d. ", i+2)
		typed, comment := typedText(f)
		if typed == "" {
			e.wrapped(lead, f.Detail)
			continue
		}
		if width(lead)+width(typed)+width(comment) > e.textColumns() {
			comment = ""
		}
		e.line("%s%s%s", lead, typed, comment)
		e.wrapped(strings.Repeat(" ", len(lead)), e.proved(f))
	}
}

// afterUpgrade lists settings that help but that the PyTorch of the recording does
// not know.
func (e *explanation) afterUpgrade() {
	list := e.report.AfterUpgrade
	shown := list[:e.more(len(list), max(1, e.shown.fixes), "fix after an upgrade", "fixes after an upgrade")]
	if len(shown) == 0 {
		return
	}
	e.heading("After an upgrade", "")
	for i := range shown {
		f := &shown[i]
		e.line("  %s", Clean(f.Export))
		e.wrapped("    ", Clean(f.Requires)+": "+e.proved(f))
	}
}

// proved says what a fix does, with its numbers if all is shown.
func (e *explanation) proved(f *explain.Fix) string {
	if e.full() {
		return FixText(f)
	}
	return f.Detail
}

// FixText says what a fix was proved to do, with its numbers.
func FixText(f *explain.Fix) string {
	said := Clean(f.Detail)
	if f.SmallestLimit != nil && !strings.Contains(said, "if the limit was at least") {
		said += "; needs a limit of " + units.SizeUp(*f.SmallestLimit)
	}
	if f.DriverMS != nil {
		said += ", " + driverTime(*f.DriverMS) + " in the driver"
	}
	return said
}

func (e *explanation) notes() {
	if len(e.report.Notes) == 0 {
		return
	}
	e.heading("Notes", "")
	for _, note := range e.report.Notes {
		e.wrapped("  - ", note)
	}
}

// record are the lines with which the next run shows more.
func (e *explanation) record() {
	if len(e.report.Record) == 0 {
		return
	}
	e.title("To know more next time", ", record a snapshot and explain that")
	for _, line := range e.report.Record[:min(len(e.report.Record), e.shown.record)] {
		e.line("    %s", line)
	}
}

// trust says what the answer rests on.
func (e *explanation) trust() {
	said := ""
	if c := e.report.SelfCheck; c != nil {
		said = "How far to trust it: " + c.Note + ". "
	}
	if n := len(e.report.Notes); n > 0 && !e.full() {
		e.left = append(e.left, plural(n, "note", "notes"))
	}
	if len(e.left) > 0 {
		said += "Not shown: " + strings.Join(e.left, ", ") + "; --full shows all."
	}
	if said != "" {
		e.printf("\n")
		e.wrapped("", said)
	}
}

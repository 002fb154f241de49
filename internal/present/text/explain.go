package text

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// ExplainHead says what an explanation is made from.
type ExplainHead struct {
	Name  string // of the file
	About string // what it is
}

// ExplainOptions say how much is shown.
type ExplainOptions struct {
	Full   bool // all of it, not only what fits on a page
	Frames bool // all frames of each call stack
	Width  int  // of the terminal; 0 if there is none
}

// width returns where lines end: on a wide terminal, or none, at explainWidth.
func (o ExplainOptions) width() int {
	const narrowest = 40 // below it every line is broken anyway
	if o.Width <= 0 {
		return explainWidth
	}
	return min(max(o.Width, narrowest), explainWidth)
}

// How much an explanation takes by default: it is to be pasted into a ticket.
const (
	explainWidth = 100
	explainLines = 59
)

// shown is how much of each list is shown; less of it if the page is too long.
type shown struct {
	pinned, stacks, lines, kinds, findings, parts, settings, alternatives, notes int
}

// pages are tried until one fits, the longest first.
var pages = []shown{
	{pinned: 4, stacks: 2, lines: 6, kinds: 6, findings: 4, parts: 2, settings: 4, alternatives: 8, notes: 8},
	{pinned: 3, stacks: 2, lines: 5, kinds: 6, findings: 3, parts: 2, settings: 3, alternatives: 6, notes: 6},
	{pinned: 3, stacks: 1, lines: 4, kinds: 6, findings: 3, parts: 1, settings: 3, alternatives: 5, notes: 4},
	{pinned: 2, stacks: 1, lines: 3, kinds: 4, findings: 2, parts: 1, settings: 2, alternatives: 4, notes: 3},
	{pinned: 1, stacks: 1, lines: 2, kinds: 4, findings: 1, parts: 1, settings: 1, alternatives: 2, notes: 1},
	{pinned: 1, stacks: 1, lines: 1, kinds: 2, findings: 1, settings: 1, alternatives: 1},
	{pinned: 1, stacks: 1, lines: 1, kinds: 2, settings: 1, alternatives: 1},
}

// Explain writes an explanation, the most important first.
func Explain(w io.Writer, head ExplainHead, r *explain.Report, o ExplainOptions, style Style) error {
	if o.Full || o.Frames {
		const all = 1 << 30
		much := pages[0]
		if o.Full {
			much = shown{all, all, all, all, all, all, all, all, all}
		}
		e := &explanation{page: page{w: w, style: style, width: o.width()}, report: r, frames: o.Frames, shown: much}
		e.write(head)
		return e.err
	}
	var text bytes.Buffer
	for i := range pages {
		text.Reset()
		e := &explanation{page: page{w: &text, style: style, width: o.width()}, report: r, shown: pages[i]}
		e.write(head)
		if e.err != nil {
			return e.err
		}
		if bytes.Count(text.Bytes(), []byte("\n")) <= explainLines {
			break
		}
	}
	_, err := w.Write(text.Bytes())
	return err
}

// explanation is one being written.
type explanation struct {
	page
	report *explain.Report
	frames bool
	shown  shown
	left   []string // what is not shown
}

func (e *explanation) write(head ExplainHead) {
	e.printf("%s\n", Clean(head.Name))
	if head.About != "" {
		e.wrapped("  ", head.About)
	}
	e.title(verdictLine(e.report))
	e.wrapped("  ", e.report.Summary)
	e.ignored()
	e.numbers()
	e.alternatives()
	e.health()
	e.pinners()
	e.holders()
	e.findings()
	e.fixes()
	e.notes()
	e.record()
	e.trust()
}

// title is a heading whose rest goes below it where the line is too narrow.
func (e *explanation) title(name, rest string) {
	if width(name)+width(rest) <= e.width {
		e.heading(name, rest)
		return
	}
	e.heading(name, "")
	e.wrapped("  ", strings.TrimLeft(rest, ":;, "))
}

// more remembers that a list is longer than what is shown of it.
func (e *explanation) more(n, most int, one, many string) int {
	if n <= most {
		return n
	}
	e.left = append(e.left, plural(n-most, one, many))
	return most
}

// verdictNames say in a few words what each verdict means.
var verdictNames = map[string]string{
	explain.Capacity:      "too little memory",
	explain.External:      "others hold memory that was needed",
	explain.Pools:         "private pools hold the free memory",
	explain.Pending:       "freed memory waits for another stream",
	explain.Streams:       "free memory belongs to another stream",
	explain.Setting:       "a setting keeps free memory from the request",
	explain.Fragmentation: "enough memory, but not in one piece",
	explain.None:          "nothing failed",
	explain.Unknown:       "the input does not show why",
}

// verdictLine is the verdict, and what it means.
func verdictLine(r *explain.Report) (verdict, means string) {
	under := ""
	if r.UnderCap {
		under = ", under a per-process limit"
	}
	name := verdictNames[r.Verdict]
	if r.Verdict == explain.None && r.Confidence == explain.Open {
		name = "no failed request is known"
	}
	return fmt.Sprintf("Verdict: %s (%s)%s", r.Verdict, r.Confidence, under), ": " + name
}

// numbers are the evidence: as a sum, or as the arithmetic of a text.
func (e *explanation) numbers() {
	if len(e.report.Arithmetic) > 0 {
		e.heading("The numbers", "")
		for _, line := range e.report.Arithmetic {
			e.wrapped("  - ", line)
		}
	}
	rows := Sum(e.report)
	if len(rows) == 0 {
		return
	}
	e.heading("The sum", momentLine(e.report.Failure))
	for _, r := range rows {
		e.wrapped(fmt.Sprintf("  %1s %11s  ", r.Mark, r.Value), r.Text)
	}
	e.stack(e.report.Failure.Frames, e.report.Failure.Site, "  requested at ")
}

// momentLine says when the request failed.
func momentLine(f *explain.Failure) string {
	if f.Event == nil {
		return ""
	}
	return " at " + momentOf(&f.Moment)
}

func momentOf(m *timeline.Moment) string {
	s := "event " + countText(*m.Event)
	if m.Since != nil {
		s += ", " + secondsText(*m.Since)
	}
	if m.Step != nil {
		s += fmt.Sprintf(", step %d", *m.Step)
	}
	if m.Annotation != nil {
		s += ", in " + Clean(*m.Annotation)
	}
	return s
}

// alternatives are what else it could be.
func (e *explanation) alternatives() {
	list := e.report.Alternatives
	if len(list) == 0 {
		return
	}
	name := "What else it could be"
	if e.report.Verdict == explain.Unknown {
		name = "What it could be"
	}
	e.heading(name, "")
	for _, a := range list[:e.more(len(list), e.shown.alternatives, "other cause", "other causes")] {
		e.wrapped("  - ", a.Verdict+", "+a.When)
	}
}

// stack writes a call stack: the places that say most, or all of it.
func (e *explanation) stack(frames []timeline.Frame, site timeline.Site, lead string) {
	if len(frames) == 0 {
		e.line("%s(no call stack in the file)", lead)
		return
	}
	e.line("%s%s", lead, siteText(site, e.width-width(lead)))
	if !e.frames {
		return
	}
	indent := strings.Repeat(" ", width(lead)+2)
	for _, f := range frames {
		e.line("%s%s:%d %s", indent, Clean(f.Filename), f.Line, Clean(f.Name))
	}
}

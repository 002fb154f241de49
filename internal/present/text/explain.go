package text

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
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
}

// explainLines is how much an explanation takes by default: it is read at a
// glance.
const explainLines = 25

// shown is how much of each list is shown; less of it if the page is too long.
type shown struct {
	sum, lines, kinds, findings, parts, fixes, alternatives, record int
	all                                                             bool
}

// pages are tried until one fits, the longest first.
var pages = []shown{
	{sum: 4, lines: 4, kinds: 6, findings: 3, parts: 1, fixes: 3, alternatives: 2, record: 2},
	{sum: 3, lines: 3, kinds: 6, findings: 2, parts: 1, fixes: 2, alternatives: 2, record: 2},
	{sum: 2, lines: 3, kinds: 4, findings: 1, parts: 1, fixes: 2, alternatives: 1, record: 2},
	{sum: 2, lines: 2, kinds: 4, findings: 1, fixes: 1, alternatives: 1, record: 2},
	{sum: 2, lines: 1, kinds: 2, fixes: 1, alternatives: 1, record: 2},
	{sum: 1, lines: 1, kinds: 2, alternatives: 1, record: 2},
	{sum: 1, record: 2},
}

// Explain writes an explanation, the most important first.
func Explain(w io.Writer, head ExplainHead, r *explain.Report, o ExplainOptions, style Style) error {
	if o.Full || o.Frames {
		const all = 1 << 30
		e := &explanation{page: page{w: w, style: style}, report: r, frames: o.Frames, shown: shown{all, all, all, all, all, all, all, all, true}}
		e.write(head)
		return e.err
	}
	var text bytes.Buffer
	for i := range pages {
		text.Reset()
		e := &explanation{page: page{w: &text, style: style}, report: r, shown: pages[i]}
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
	lines := 0
	if e.report.Warning != "" {
		lines = e.stand(e.style.Warn, e.report.Warning)
	}
	e.head(head)
	e.cause(lines)
	e.tryFirst()
	e.ignored()
	e.why()
	e.alternatives()
	e.health()
	e.holders()
	e.fixes()
	e.afterUpgrade()
	e.findings()
	if e.shown.all {
		e.sum()
		e.pinners()
		e.notes()
	}
	e.record()
	e.trust()
}

// head says what the explanation is made from; on one line unless all is shown.
func (e *explanation) head(head ExplainHead) {
	about := middle(Clean(head.Name), e.columns())
	for i, part := range strings.Split(head.About, "; ") {
		switch {
		case part == "":
		case i == 0:
			about += ": " + part
		case e.full() || width(about+"; "+part) <= e.textColumns():
			about += "; " + part
		}
	}
	if e.full() {
		e.wrapped("", about)
		return
	}
	e.line("%s", cut(Clean(about), e.columns()))
}

// title is a heading whose rest goes below it where the line is too narrow.
func (e *explanation) title(name, rest string) {
	if width(name)+width(rest) <= e.textColumns() {
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

// causeNames say in a few words what each cause means.
var causeNames = map[string]string{
	explain.Leak:          "memory grows from step to step",
	explain.Spike:         "one step needs more than the others",
	explain.Capacity:      "too little memory",
	explain.SharedDevice:  "others hold memory that was needed",
	explain.Stranded:      "free memory is where the request cannot use it",
	explain.AbsurdRequest: "one request is larger than all there is",
	explain.Fragmentation: "enough memory, but not in one piece",
	explain.None:          "nothing failed",
	explain.Open:          "the input does not show why",
}

// causeLine is the cause, how sure it is, and where.
func causeLine(r *explain.Report) string {
	name, _ := CauseName(r)
	line := fmt.Sprintf("Cause: %s (%s)", name, r.CauseConfidence)
	if r.Cause == explain.Open {
		line = "Cause: not known"
	}
	if r.Cause == explain.None && r.CauseText != "" {
		line += ", but a leak"
	}
	if r.Where != "" {
		line += ", in " + r.Where
	}
	if r.Capped {
		line += ", under a limit"
	}
	return line
}

// causeLines is how many lines the cause takes at most, so that the first fix is
// among the first six lines, below the name of the file.
const causeLines = 4

// cause says why the job does not run. lines are what a warning took.
func (e *explanation) cause(lines int) {
	r := e.report
	if c := r.SelfCheck; c != nil && !c.Complete && c.Identical < c.Events {
		lines += e.stand(e.style.Warn, fmt.Sprintf("Trust this less: the replay parts from the file at event %s of %s", countText(c.Identical), countText(c.Events)))
	}
	lines += e.stand(e.causeColour(), causeLine(r))
	said := Clean(CauseSentence(r))
	if !e.full() {
		room := causeLines - lines
		if r.Source != "" {
			room--
		}
		said = e.sentences(said, max(1, room))
	}
	e.wrapped("  ", said)
	if r.Source != "" {
		e.fitted("    ", Clean(r.Source))
	}
}

// causeColour is red for a failure, green for none, and yellow for what may
// become one.
func (e *explanation) causeColour() func(string) string {
	switch r := e.report; {
	case r.Cause != explain.None:
		return e.style.Bad
	case r.CauseText != "" || r.CauseConfidence == explain.Open:
		return e.style.Warn
	}
	return e.style.Good
}

// stand writes a text that stands out, and returns how many lines that takes.
func (e *explanation) stand(dress func(string) string, text string) int {
	lines := fold("", text, e.textColumns())
	for _, line := range lines {
		e.line("%s", dress(line))
	}
	return len(lines)
}

// sentences returns as many whole sentences of a text as fit on some lines, at
// least one.
func (e *explanation) sentences(text string, lines int) string {
	said := ""
	for rest := text; rest != ""; {
		sentence, more, _ := strings.Cut(rest, ". ")
		if more != "" {
			sentence += "."
		}
		next := strings.TrimLeft(said+" "+sentence, " ")
		if said != "" && len(fold("  ", next, e.textColumns())) > lines {
			break
		}
		said, rest = next, more
	}
	return said
}

// tryFirst is the one thing to try.
func (e *explanation) tryFirst() {
	if len(e.report.Fixes) == 0 {
		return
	}
	f := &e.report.Fixes[0]
	const lead = "Try this first:"
	typed, comment := typedText(f)
	switch {
	case typed == "":
		e.wrapped("", lead+" "+f.Detail)
		return
	case width(lead)+1+width(typed)+width(comment) <= e.textColumns():
		e.bold(lead + " " + typed + comment)
	case width(lead)+1+width(typed) <= e.textColumns():
		e.bold(lead + " " + typed)
	default:
		e.bold(lead)
		e.bold("  " + typed)
	}
	e.wrapped("  ", e.proved(f))
}

// typedText returns what to type for a fix, and a comment beside it; empty if
// there is nothing to type.
func typedText(f *explain.Fix) (typed, comment string) {
	typed = Clean(f.Export)
	if typed == "" {
		typed = Clean(f.Code)
	}
	if i := strings.Index(typed, "   #"); i >= 0 {
		return typed[:i], typed[i:]
	}
	return typed, ""
}

// why is the sum behind the cause, in a few lines.
func (e *explanation) why() {
	r := e.report
	if len(r.Arithmetic) > 0 {
		e.heading("Why", "")
		for _, line := range r.Arithmetic[:e.more(len(r.Arithmetic), e.shown.sum, "line of the sum", "lines of the sum")] {
			e.wrapped("  ", line)
		}
		return
	}
	v := &r.Evidence
	if r.Failure == nil || v.Live == nil || v.Rounded == nil {
		return
	}
	e.heading("Why", momentLine(r.Failure))
	sum := fmt.Sprintf("%s allocated + %s request = %s", units.Size(*v.Live), units.Size(*v.Rounded), units.Size(*v.Live+*v.Rounded))
	if p := r.Prognosis; p != nil && p.Need > *v.Live+*v.Rounded {
		sum += fmt.Sprintf(", %s before the step ends", units.Size(p.Need))
	}
	if v.Available != nil {
		sum += fmt.Sprintf("; %s available: %s", units.Size(*v.Available), thereText(r))
	}
	e.wrapped("  ", sum)
	if v.Free != nil && v.LargestFree != nil {
		e.wrapped("  ", fmt.Sprintf("%s reserved and free, largest piece %s%s", units.Size(*v.Free), units.Size(*v.LargestFree), usableText(v)))
	}
}

// sum is the trigger, with the numbers of the failed request one by one.
func (e *explanation) sum() {
	rows := Sum(e.report)
	if len(rows) == 0 {
		return
	}
	e.heading(fmt.Sprintf("Trigger: %s (%s)", strings.ReplaceAll(Clean(e.report.Trigger), "_", " "), e.report.Confidence), momentLine(e.report.Failure))
	e.wrapped("  ", e.report.Summary)
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
	name := "What else it could be"
	if e.report.Cause == explain.Open {
		name = "What it could be"
	}
	if list = list[:e.more(len(list), e.shown.alternatives, "other cause", "other causes")]; len(list) == 0 {
		return
	}
	e.heading(name, "")
	for _, a := range list {
		e.wrapped("  - ", a.Verdict+", "+a.When)
	}
}

// stack writes a call stack: the places that say most, or all of it.
func (e *explanation) stack(frames []timeline.Frame, site timeline.Site, lead string) {
	if len(frames) == 0 {
		e.line("%s(no call stack in the file)", lead)
		return
	}
	e.line("%s%s", lead, siteText(site, e.columns()-width(lead)))
	if !e.frames {
		return
	}
	indent := strings.Repeat(" ", width(lead)+2)
	for _, f := range frames {
		said := fmt.Sprintf("%s:%d %s", Clean(f.Filename), f.Line, Clean(f.Name))
		if e.style.Width > 0 { // a file keeps it whole
			said = middle(said, e.columns()-width(indent))
		}
		e.line("%s%s", indent, said)
	}
}

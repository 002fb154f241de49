package text

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/check"
)

// Check writes the answer of a gate: a line for each rule, then what the file
// leaves open, then the verdict. reason is why this device, if there was a
// choice.
func Check(w io.Writer, f *check.File, r *check.Report, style Style) error {
	p := &page{w: w, style: style}
	p.warning(f.Warning)
	p.name("", f.Name)
	if f.Reason != "" {
		p.wrapped("  ", f.Reason)
	}
	failed, open := 0, 0
	for _, x := range r.Rules {
		mark, dress := "ok  ", p.style.Good
		switch {
		case x.Passed == nil:
			mark, dress = "?   ", p.style.Warn
			open++
		case !*x.Passed:
			mark, dress = "FAIL", p.style.Bad
			failed++
		}
		said := strings.ReplaceAll(x.Rule, "_", "-") + ": " + x.ValueText + ", " + x.BoundText
		if x.Detail != x.ValueText {
			said += "; " + x.Detail
		}
		p.dressed("  ", mark, dress, "  ", said)
	}
	for _, n := range r.Notes {
		p.wrapped("  note: ", n)
	}
	if verdict := checkVerdict(r, failed, open); r.Passed {
		p.line("%s", p.style.Good(verdict))
	} else {
		p.line("%s", p.style.Bad(verdict))
	}
	return p.err
}

// checkVerdict is the last line.
func checkVerdict(r *check.Report, failed, open int) string {
	rules := plural(len(r.Rules), "rule", "rules")
	switch {
	case r.Passed && len(r.Rules) == 1:
		return "the rule holds"
	case r.Passed:
		return "all " + rules + " hold"
	case open > 0:
		return countText(failed) + " of " + rules + " failed, " + countText(open) + " unknown from the file"
	}
	return countText(failed) + " of " + rules + " failed"
}

// CheckMarkdown writes the same as a table in Markdown, for the page of a pull
// request.
func CheckMarkdown(w io.Writer, name, reason string, r *check.Report) error {
	var b strings.Builder
	failed, open := 0, 0
	for _, x := range r.Rules {
		mark := "ok"
		switch {
		case x.Passed == nil:
			mark = "**?**"
			open++
		case !*x.Passed:
			mark = "**FAIL**"
			failed++
		}
		detail := x.Detail
		if detail == x.ValueText {
			detail = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", mark, strings.ReplaceAll(x.Rule, "_", "-"), markdown(x.ValueText), markdown(x.BoundText), markdown(detail))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", markdown(n))
	}
	about := markdown(name)
	if reason != "" {
		about += ", " + markdown(reason)
	}
	_, err := fmt.Fprintf(w, "**%s**: %s\n\n| | rule | value | bound | |\n|---|---|---|---|---|\n%s", about, checkVerdict(r, failed, open), b.String())
	return err
}

// markdown makes a text what it is in a table: names in a file may be anything.
func markdown(text string) string { return markdownMarks.Replace(Clean(text)) }

var markdownMarks = func() *strings.Replacer {
	var pairs []string
	for _, mark := range "\\`*_[]<>|~@#:" {
		pairs = append(pairs, string(mark), "&#"+strconv.Itoa(int(mark))+";")
	}
	return strings.NewReplacer(append(pairs, "&", "&amp;")...)
}()

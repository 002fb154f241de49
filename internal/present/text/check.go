package text

import (
	"io"
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
	rules := plural(len(r.Rules), "rule", "rules")
	switch {
	case r.Passed && len(r.Rules) == 1:
		p.line("%s", p.style.Good("the rule holds"))
	case r.Passed:
		p.line("%s", p.style.Good("all "+rules+" hold"))
	case open > 0:
		p.line("%s", p.style.Bad(countText(failed)+" of "+rules+" failed, "+countText(open)+" unknown from the file"))
	default:
		p.line("%s", p.style.Bad(countText(failed)+" of "+rules+" failed"))
	}
	return p.err
}

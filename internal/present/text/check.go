package text

import (
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/check"
)

// Check writes the answer of a gate: a line for each rule, then what the file
// leaves open, then the verdict. reason is why this device, if there was a
// choice.
func Check(w io.Writer, name, reason string, r *check.Report, style Style) error {
	p := &page{w: w, style: style}
	p.printf("%s\n", Clean(name))
	if reason != "" {
		p.wrapped("  ", reason)
	}
	failed, open := 0, 0
	for _, x := range r.Rules {
		mark := "ok  "
		switch {
		case x.Passed == nil:
			mark = "?   "
			open++
		case !*x.Passed:
			mark = "FAIL"
			failed++
		}
		p.printf("  %s  %s: %s, %s; %s\n", mark, strings.ReplaceAll(x.Rule, "_", "-"), x.ValueText, x.BoundText, Clean(x.Detail))
	}
	for _, n := range r.Notes {
		p.wrapped("  note: ", n)
	}
	rules := plural(len(r.Rules), "rule", "rules")
	switch {
	case r.Passed && len(r.Rules) == 1:
		p.printf("the rule holds\n")
	case r.Passed:
		p.printf("all %s hold\n", rules)
	case open > 0:
		p.printf("%s of %s failed, %s unknown from the file\n", countText(failed), rules, countText(open))
	default:
		p.printf("%s of %s failed\n", countText(failed), rules)
	}
	return p.err
}

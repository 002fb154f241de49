package text

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Style says how text is dressed up.
type Style struct {
	Bold bool // headings stand out, by terminal sequences
}

// page writes lines under headings. The first error is kept.
type page struct {
	w     io.Writer
	style Style
	width int // where text is wrapped; 0 is pageWidth
	err   error
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// line writes a line without blanks at its end.
func (p *page) line(format string, args ...any) {
	p.printf("%s\n", strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// heading begins a part. What follows it on the line is not dressed up.
func (p *page) heading(name, rest string) {
	if p.style.Bold {
		p.printf("\n\x1b[1m%s\x1b[0m%s\n", name, rest)
		return
	}
	p.printf("\n%s%s\n", name, rest)
}

// bold writes a line that stands out.
func (p *page) bold(text string) {
	if p.style.Bold {
		p.printf("\x1b[1m%s\x1b[0m\n", text)
		return
	}
	p.printf("%s\n", text)
}

const pageWidth = 80

// wrapped writes text below a first line that begins with lead, indented by as
// much as lead is wide.
func (p *page) wrapped(lead, text string) {
	limit := pageWidth
	if p.width > 0 {
		limit = p.width
	}
	for _, line := range fold(lead, text, limit) {
		p.printf("%s\n", line)
	}
}

// fold cuts text into lines of limit characters, the first behind lead and the
// others indented as far.
func fold(lead, text string, limit int) (lines []string) {
	line, empty := lead, true
	for _, word := range words(Clean(text)) {
		if !empty && width(line)+1+width(word) > limit {
			lines = append(lines, line)
			line, empty = strings.Repeat(" ", width(lead)), true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return append(lines, strings.TrimRight(line, " "))
}

// words cuts text where a line may end: at blanks, but not between a number and
// its unit.
func words(text string) []string {
	var out []string
	for _, w := range strings.Fields(text) {
		switch strings.TrimRight(w, ",;.:)") {
		case "B", "KiB", "MiB", "GiB", "s", "ms", "us", "ns", "%":
			if n := len(out); n > 0 {
				out[n-1] += " " + w
				continue
			}
		}
		out = append(out, w)
	}
	return out
}

// cut shortens text to n characters.
func cut(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:max(0, n-3)]) + "..."
}

func width(s string) int { return len([]rune(s)) }

// Clean replaces what a terminal would not print as it is: the text comes from
// a file that anybody may have written.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// plural writes a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return countText(n) + " " + many
}

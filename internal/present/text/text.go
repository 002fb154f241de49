package text

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Style says how text is dressed up.
type Style struct {
	Bold  bool // headings stand out and verdicts have colours, by terminal sequences
	Width int  // of the terminal; 0 if there is none
}

// The widths of a page. Tables and call stacks take what the terminal has, up to
// widest; sentences end at longestLine, beyond which eyes lose the line.
const (
	narrowest   = 40 // below it every line is broken anyway
	pageWidth   = 100
	longestLine = 120
	widest      = 200
)

// columns returns how wide a page is.
func (s Style) columns() int {
	if s.Width <= 0 {
		return pageWidth
	}
	return min(max(s.Width, narrowest), widest)
}

// TextColumns returns where sentences end.
func (s Style) TextColumns() int { return min(s.columns(), longestLine) }

// Good, Bad and Warn give a verdict its colour.
func (s Style) Good(text string) string { return s.sequence("1;32", text) }

// Bad is for what fails.
func (s Style) Bad(text string) string { return s.sequence("1;31", text) }

// Warn is for what is open.
func (s Style) Warn(text string) string { return s.sequence("1;33", text) }

func (s Style) bold(text string) string { return s.sequence("1", text) }

func (s Style) sequence(code, text string) string {
	if !s.Bold || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// page writes lines under headings. The first error is kept.
type page struct {
	w     io.Writer
	style Style
	err   error
}

// columns returns how wide the page is.
func (p *page) columns() int { return p.style.columns() }

// textColumns returns where sentences end.
func (p *page) textColumns() int { return p.style.TextColumns() }

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// line writes a line without blanks at its end.
func (p *page) line(format string, args ...any) {
	p.printf("%s\n", strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// warning writes what is to be said before everything else, if there is anything.
func (p *page) warning(text string) {
	if text == "" {
		return
	}
	for _, line := range fold("", Clean(text), p.textColumns()) {
		p.line("%s", p.style.Warn(line))
	}
}

// heading begins a part. What follows it on the line is not dressed up.
func (p *page) heading(name, rest string) {
	p.printf("\n%s%s\n", p.style.bold(name), rest)
}

// bold writes a line that stands out.
func (p *page) bold(text string) { p.line("%s", p.style.bold(text)) }

// fitted writes a line whose last part is shortened to what the page has room
// for.
func (p *page) fitted(lead, last string) {
	p.line("%s%s", lead, cut(last, p.columns()-width(lead)))
}

// row writes a line of which there is one for each thing. On a terminal it is
// wrapped; elsewhere it stays one line, for programs that look for it.
func (p *page) row(lead, text string) {
	if p.style.Width > 0 {
		p.wrapped(lead, text)
		return
	}
	p.line("%s%s", lead, Clean(text))
}

// dressed is row with a word in it that has a colour.
func (p *page) dressed(lead, word string, dress func(string) string, gap, text string) {
	var plain strings.Builder
	inner := &page{w: &plain, style: p.style}
	inner.row(lead+word+gap, text)
	rest := strings.TrimPrefix(plain.String(), lead+word)
	p.printf("%s%s%s", lead, dress(word), rest)
}

// name writes a line with the name of a file, which is shortened in its middle:
// where it is and what it is called stand at its ends.
func (p *page) name(lead, file string) {
	p.line("%s%s", lead, middle(Clean(file), p.columns()-width(lead)))
}

// wrapped writes text below a first line that begins with lead, indented by as
// much as lead is wide.
func (p *page) wrapped(lead, text string) {
	for _, line := range fold(lead, text, p.textColumns()) {
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

// Wrap returns text in lines of so many columns, the first of which begins with
// lead; the others are indented by as much.
func Wrap(lead, text string, columns int) string {
	return strings.Join(fold(lead, text, min(columns, longestLine)), "\n") + "\n"
}

// Reflow wraps the paragraphs of a text anew. Lines that are indented stay as
// they are.
func Reflow(text string, columns int) string {
	var out strings.Builder
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			out.WriteString(Wrap("", strings.Join(paragraph, " "), columns))
			paragraph = nil
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == ' ' {
			end()
			out.WriteString(line + "\n")
			continue
		}
		paragraph = append(paragraph, line)
	}
	end()
	return strings.TrimSuffix(out.String(), "\n")
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
	if len(text) <= n {
		return text
	}
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:max(0, n-3)]) + "..."
}

// middle shortens text to n characters by leaving out its middle.
func middle(text string, n int) string {
	r := []rune(text)
	if len(r) <= n || n < 5 {
		return cut(text, n)
	}
	half := (n - 3) / 2
	return string(r[:half]) + "..." + string(r[len(r)-(n-3-half):])
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

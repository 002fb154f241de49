package html

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode"

	"github.com/ashlar-mem/ashlar/internal/present/palette"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

//go:embed page.html parts.html style.css
var files embed.FS

// page is all that the template shows. It has texts that are ready to be
// printed, and the template escapes them.
type page struct {
	Title   string // the name of the file
	About   string // what the file is about, in a sentence
	Policy  string // content security policy
	Style   template.CSS
	Version string

	Verdict  verdict
	Warnings []string // what limits the trust in all the rest
	Numbers  []number
	Run      []fact
	Settings []setting
	Devices  []device
	Curves   *curves
	NoCurves string
	Map      *segmentMap
	When     string // the moment of map and holders
	At       string
	Pinners  pinners
	Holders  holders
	Findings []finding
	WhatIf   *whatIf
	NoWhatIf string
	Policies *policyTable
	Stats    *statistics
	Text     string // of a file without a trace
	Trust    []string
	Notes    []string
	Missing  []string
}

// newPage puts everything together.
func newPage(s *subject, d detail) *page {
	d.file = s.Name
	p := &page{
		Title: d.clip(baseName(s.Name)), Version: d.clip(s.Version),
		Curves: newCurves(s, d), Map: newSegmentMap(s, d), When: s.moment.when,
		NoWhatIf: d.say(s.NoWhatIf), Text: d.plain(s.Text),
	}
	if s.trace != nil {
		if s.moment.at.Event != nil {
			p.At = d.clip(text.MomentText(&s.moment.at))
		}
		if p.Curves == nil {
			p.NoCurves = "The file has no events: recording was off. It tells only what was there when it was written."
		}
	}
	p.Verdict = newVerdict(s, d)
	p.facts(s, d)
	p.Pinners = newPinners(s, d)
	p.Holders = newHolders(s, d)
	p.Findings = newFindings(s, d)
	p.WhatIf = newWhatIf(s, d)
	p.Policies = newPolicyTable(s)
	p.trust(s, d)
	return p
}

// plain returns a text of several lines.
func (d detail) plain(lined string) string {
	if lined == "" {
		return ""
	}
	lines := strings.Split(strings.TrimRight(lined, "\n"), "\n")
	more := len(lines) - d.lines
	lines = lines[:min(len(lines), d.lines)]
	for i, l := range lines {
		lines[i] = d.clip(l)
	}
	if more > 0 {
		lines = append(lines, "and "+text.Plural(more, "more line", "more lines"))
	}
	return strings.Join(lines, "\n")
}

// render writes the page. What is inline is named by its hash, so that nothing
// else can be: not even by a name that got past the template.
func render(w io.Writer, p *page) error {
	style, err := files.ReadFile("style.css")
	if err != nil {
		return err
	}
	t, err := template.ParseFS(files, "page.html", "parts.html")
	if err != nil {
		return err
	}
	style = append(append(style, coloursCSS()...), footCSS(p.Title)...)
	hash := sha256.Sum256(style)
	p.Style = template.CSS(style)
	p.Policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; img-src data:; base-uri 'none'; form-action 'none'"
	return t.ExecuteTemplate(w, "page.html", p)
}

// coloursCSS has the colours of categories, which are those of the page.
func coloursCSS() string {
	light := palette.CSS(func(s palette.Shade) palette.RGB { return s.Light })
	dark := palette.CSS(func(s palette.Shade) palette.RGB { return s.Dark })
	return ":root { " + light + " }\n@media screen and (prefers-color-scheme: dark) { :root { " + dark + " } }\n"
}

// footCSS has what stands under each printed page: the name of the file and the
// number of the page.
func footCSS(name string) string {
	return `@page { @bottom-left { content: "` + cssText(name) + `"; } @bottom-right { content: counter(page) " of " counter(pages); } }` + "\n"
}

// cssText writes text for within quotes. Whatever is no letter, digit, point or
// dash is written by its number, so that nothing ends the quotes or the style.
func cssText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '.' || r == '-' || r == '_' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\%x `, r)
		}
	}
	return b.String()
}

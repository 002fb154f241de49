package main

import (
	"fmt"
	"io"
	"strings"
)

const intro = `# Claims

What is often said about GPU memory, each with the experiment that decides it. Written by ` + "`make claims`" + `
([tools/claims](../tools/claims/doc.go)): do not edit it.

A verdict is computed from the figures by the rule in its row. *Holds*: every run or size follows the rule. *Does not hold*: none does.
*Holds when*: some do, and the row says which. *Open*: the experiment stands there and was not made yet. Figures of recordings are
computed on any machine; those of a GPU have its name and the day. ` + "`fresh`" + ` names the second set of recordings.
`

// answer is a row with its values.
type answer struct {
	row
	values  []value
	verdict string
	follow  int
	source  string
}

func (l *lab) answer(r row) (answer, error) {
	values, err := r.values(l)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", r.id, err)
	}
	a := answer{row: r, values: values, source: r.source}
	a.verdict, a.follow = verdict(values, r.rule)
	if r.fromGPU != "" {
		for _, f := range l.gpu {
			if f.ID == r.fromGPU {
				a.source = fmt.Sprintf("%s, PyTorch %s, %s", f.Card, f.Torch, f.Date)
			}
		}
	}
	return a, nil
}

func writePage(w io.Writer, l *lab) error {
	fmt.Fprint(w, intro)
	for _, g := range groups() {
		fmt.Fprintf(w, "\n## %s\n\n| claim | experiment | figure | verdict | how far it goes |\n|---|---|---|---|---|\n", g.title)
		for _, r := range g.rows {
			a, err := l.answer(r)
			if err != nil {
				return err
			}
			fmt.Fprintln(w, a.line())
		}
	}
	return nil
}

// line is the row of the table.
func (a answer) line() string {
	return fmt.Sprintf("| <a id=%q></a>%s | %s | %s | %s | %s |", a.id, cell(a.claim), cell(a.command), cell(a.figureText()), a.verdictText(), cell(a.general))
}

func (a answer) figureText() string {
	if len(a.values) == 0 {
		return "not measured"
	}
	return summary(a.values, a.show) + ". " + a.source
}

// verdictText is the verdict with the rule and how many values follow it.
func (a answer) verdictText() string {
	said := "**" + a.verdict + "**"
	if a.verdict == holdsWhen && a.when != "" {
		said += " " + a.when
	}
	if a.verdict == open {
		return said + ": is it " + cell(a.rule.words) + "?"
	}
	if len(a.values) == 1 {
		return said + ": " + cell(a.rule.words)
	}
	said += fmt.Sprintf(": %s in %d of %d", cell(a.rule.words), a.follow, len(a.values))
	if a.verdict == holdsWhen && a.follow <= 4 {
		said += " (" + strings.Join(a.followers(), ", ") + ")"
	}
	return said
}

// followers names the values that follow the rule.
func (a answer) followers() []string {
	var out []string
	for _, v := range a.values {
		if a.rule.ok(v.x) {
			out = append(out, v.of)
		}
	}
	return out
}

// cell keeps a text within its cell.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

package html

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// verdict is why the run failed, how sure that is, and what to do.
type verdict struct {
	Class      string // good, bad, or open if nothing is known
	Cause      string // as explain has it; empty if there is none
	Name       string // for people
	Confidence string
	Means      string
	Summary    string
	First      *fix     // to try
	Smaller    []fix    // with which a run that did not fail reserves less
	Found      []string // leaks and spikes, which matter whatever failed
	Ignored    []string // settings that are not in force, though somebody believes so
	Others     []string // what else it could be
	OthersName string
	Fixes      []fix // the others, in their order
	MoreFixes  []fix
	Tried      bool // by replay
	Sum        []row
	SumAt      string
	Requested  *stack
	Arithmetic []string
	Lines      []row // of the user's code, that hold most
	LinesWhen  string
	Health     []row
	Record     []string
	Later      []fix // that need a newer PyTorch
}

// row is a number and what it means.
type row struct {
	Mark, Value, Text string
	Size              *size
}

// fix is something that would have helped.
type fix struct {
	Code string // to type: the line of a shell, or of the program
	Text string
}

func newRows(rows []text.Row, d detail) []row {
	var out []row
	for _, r := range rows {
		out = append(out, row{Mark: r.Mark, Value: r.Value, Size: sizeOf("", r.Bytes), Text: d.say(r.Text)})
	}
	return out
}

// How many fixes, lines of code, and settings that reserve less are in view.
const (
	firstFixes   = 6
	firstLines   = 4
	firstSmaller = 3
)

// More reports whether there is something to say beside the verdict.
func (v verdict) More() bool {
	return len(v.Sum)+len(v.Arithmetic)+len(v.Health)+len(v.Lines)+len(v.Fixes)+len(v.Later)+len(v.Found)+len(v.Others)+len(v.Record) > 0
}

func newVerdict(s *subject, d detail) verdict {
	r := s.Explain
	if r == nil {
		return verdict{Class: explain.Open, Means: "no verdict", Summary: d.say(s.NoVerdict)}
	}
	v := verdict{
		Class: "bad", Cause: r.Cause, Confidence: r.CauseConfidence, Summary: d.say(strings.TrimLeft(r.Warning+" "+text.CauseSentence(r), " ")),
		Arithmetic: d.sayAll(r.Arithmetic, d.notes), Record: d.sayAll(r.Record, d.notes),
		Sum: newRows(text.Sum(r), d), Tried: r.SelfCheck != nil, OthersName: "What else it could be", LinesWhen: text.HoldersTime(r),
	}
	v.Name, v.Means = text.CauseName(r)
	if r.Where != "" {
		v.Means += ", in " + d.clip(r.Where)
	}
	if r.Capped {
		v.Means += ", under a limit"
	}
	switch r.Cause {
	case explain.None:
		v.Class = "good"
		if r.CauseConfidence == explain.Open || r.CauseText != "" {
			v.Class = explain.Open
		}
	case explain.Open:
		v.Class, v.OthersName = explain.Open, "What it could be"
	}
	for _, l := range r.ByLine[:min(len(r.ByLine), firstLines)] {
		v.Lines = append(v.Lines, row{Value: units.Size(l.Bytes), Size: sizeOf("", &l.Bytes), Text: d.say(l.Line.String())})
	}
	if f := r.Failure; f != nil {
		if f.Event != nil {
			v.SumAt = d.say(text.MomentText(&f.Moment))
		}
		if len(f.Frames) > 0 {
			at := d.stack(f.Frames, f.Site)
			v.Requested = &at
		}
	}
	if r.Health != nil {
		v.Health = newRows(text.Health(r.Health), d)
		for i := range r.Health.Smaller[:min(len(r.Health.Smaller), firstSmaller)] {
			x := &r.Health.Smaller[i]
			v.Smaller = append(v.Smaller, fix{Code: d.say(x.Export), Text: d.say(text.SmallerText(r.Health, x))})
		}
	}
	v.findings(r.Findings, d)
	for _, a := range r.Alternatives[:min(len(r.Alternatives), d.notes)] {
		v.Others = append(v.Others, d.say(a.Verdict+", "+a.When))
	}
	v.fixes(r.Fixes[:min(len(r.Fixes), d.fixes)], d)
	for i := range r.AfterUpgrade[:min(len(r.AfterUpgrade), firstFixes)] {
		f := &r.AfterUpgrade[i]
		v.Later = append(v.Later, fix{Code: d.say(f.Export), Text: d.say(f.Requires + ": " + text.FixText(f))})
	}
	return v
}

// findings takes those that change what is to be done.
func (v *verdict) findings(list []explain.Finding, d detail) {
	for i := range list {
		switch f := &list[i]; {
		case f.Kind == explain.Ignored && len(v.Ignored) < d.findings:
			v.Ignored = append(v.Ignored, d.say(f.Detail))
		case (f.Kind == explain.Leak || f.Kind == explain.Spike) && len(v.Found) < d.findings:
			v.Found = append(v.Found, d.say(fmt.Sprintf("%s (%s): %s", f.Kind, f.Confidence, f.Detail)))
		}
	}
}

// fixes takes the first fix, and the others.
func (v *verdict) fixes(list []explain.Fix, d detail) {
	for i := range list {
		f := fix{Code: d.say(list[i].Export), Text: d.say(text.FixText(&list[i]))}
		if f.Code == "" {
			f.Code = d.say(list[i].Code)
		}
		switch {
		case i == 0:
			v.First = &f
		case i <= firstFixes:
			v.Fixes = append(v.Fixes, f)
		default:
			v.MoreFixes = append(v.MoreFixes, f)
		}
	}
}

package html

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// verdict is why the run failed, how sure that is, and what to do.
type verdict struct {
	Class      string // good, bad, or open if nothing is known
	Verdict    string // as explain has it; empty if there is none
	Name       string // for people
	Confidence string
	Means      string
	Summary    string
	Found      []string // leaks and spikes, which matter whatever failed
	Ignored    []string // settings that are not in force, though somebody believes so
	Others     []string // what else it could be
	OthersName string
	Fixes      []fix
	MoreFixes  []fix
	FixesName  string
	Tried      bool // by replay
	Sum        []row
	SumAt      string
	Requested  *stack
	Arithmetic []string
	Health     []row
	Record     []string
}

// row is a number and what it means.
type row struct {
	Mark, Value, Text string
	Size              *size
}

// fix is something that would have helped.
type fix struct {
	Export string // the line of a shell
	Text   string
}

func newRows(rows []text.Row, d detail) []row {
	var out []row
	for _, r := range rows {
		out = append(out, row{Mark: r.Mark, Value: r.Value, Size: sizeOf("", r.Bytes), Text: d.say(r.Text)})
	}
	return out
}

// firstFixes is how many fixes are not folded away.
const firstFixes = 6

func newVerdict(s *subject, d detail) verdict {
	r := s.Explain
	if r == nil {
		return verdict{Class: explain.Open, Means: "no verdict", Summary: d.say(s.NoVerdict)}
	}
	v := verdict{
		Class: "bad", Verdict: r.Verdict, Name: r.Verdict, Confidence: r.Confidence, Summary: d.say(r.Summary),
		Arithmetic: d.sayAll(r.Arithmetic, d.notes), Record: d.sayAll(r.Record, d.notes),
		Sum: newRows(text.Sum(r), d), Tried: r.SelfCheck != nil, FixesName: "What would have helped", OthersName: "What else it could be",
	}
	_, v.Means = text.CauseText(r)
	if r.UnderCap {
		v.Means += ", under a per-process limit"
	}
	switch r.Verdict {
	case explain.None:
		v.Class, v.FixesName = "good", "What would help"
		v.Name, v.Means = v.Means, ""
		if r.Confidence == explain.Open {
			v.Class = explain.Open
		}
	case explain.Unknown:
		v.OthersName = "What it could be"
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
		v.Health = newRows(append(text.Health(r.Health), text.Smaller(r.Health)...), d)
	}
	v.findings(r.Findings, d)
	for _, a := range r.Alternatives[:min(len(r.Alternatives), d.notes)] {
		v.Others = append(v.Others, d.say(a.Verdict+", "+a.When))
	}
	v.fixes(r.Fixes[:min(len(r.Fixes), d.fixes)], d)
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

func (v *verdict) fixes(list []explain.Fix, d detail) {
	proved := ""
	for i := range list {
		f := fix{Text: d.say(list[i].Detail)}
		if list[i].Export != "" {
			f.Export, f.Text = d.say(list[i].Export), d.say(text.SettingText(&list[i], list[i].Detail == proved))
			proved = list[i].Detail
		}
		if i < firstFixes {
			v.Fixes = append(v.Fixes, f)
		} else {
			v.MoreFixes = append(v.MoreFixes, f)
		}
	}
}

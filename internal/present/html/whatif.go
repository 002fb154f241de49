package html

import (
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// whatIf is what other settings would have done to the run.
type whatIf struct {
	Bounds  []string
	Results []result
	Needs   bool // some result has the limit it needs
	Width   int  // of the bars
	Legend  []string
	Left    string
	// Failures are the first failing requests; results that fail alike are
	// named together.
	Failures []failures
}

type failures struct {
	Names [][]string
	Lines []string
}

// result is one setting.
type result struct {
	Name         []string // in parts, where it may be broken
	Recorded     bool
	Fails        bool
	Verdict      string
	PeakReserved size
	Bar          string // width of the bar of PeakReserved
	Against      string
	Allocated    size
	Retries      string
	Driver       string
	Needs        *size
}

// resultBar is how wide the bar of the largest peak is.
const resultBar = 120

func newWhatIf(s *subject, d detail) *whatIf {
	a := s.WhatIf
	if a == nil || len(a.Results) == 0 {
		return nil
	}
	w := &whatIf{
		Bounds: []string{text.LimitText(a.Limit), text.MemoryText(a.DeviceMemory)}, Legend: text.Legend(a), Width: resultBar,
	}
	needs := neededLimits(s.Explain)
	list := a.Results[:min(len(a.Results), d.results)]
	most := uint64(1)
	for _, r := range list {
		most = max(most, r.PeakReserved)
	}
	for _, r := range list {
		one := result{
			Name: confParts(d.clip(text.ConfText(r.Settings))), Recorded: r.Recorded, Fails: r.Fails, Verdict: d.clip(text.ResultText(r, a.OnOOM)),
			PeakReserved: newSize("whatif.peak_reserved_bytes", r.PeakReserved), Bar: px(resultBar * part(r.PeakReserved, most)),
			Allocated: newSize("whatif.peak_allocated_bytes", r.PeakAllocated),
			Retries:   units.Count(r.Retries), Driver: text.DriverTime(r.DriverMS), Needs: needs[canonical(r)],
		}
		one.Against = text.AgainstText(list[0], r, a.OnOOM)
		if r.First != nil {
			w.fails(one.Name, d.sayAll(text.FailureLines(r, a.OnOOM), d.notes))
		}
		w.Needs = w.Needs || one.Needs != nil
		w.Results = append(w.Results, one)
	}
	if more := len(a.Results) - len(list); more > 0 {
		w.Left = "and " + text.Plural(more, "more setting", "more settings")
	}
	return w
}

// canonical returns how explain names the settings of a result.
func canonical(r *whatif.Result) string {
	s, err := whatif.ParseSetting(r.Settings)
	if err != nil {
		return r.Settings
	}
	return s.Parsed.String()
}

// neededLimits returns the lowest limits that explain found, by settings.
func neededLimits(r *explain.Report) map[string]*size {
	out := map[string]*size{}
	if r == nil {
		return out
	}
	for i := range r.Fixes {
		if f := &r.Fixes[i]; f.Kind == explain.FixSetting && f.SmallestLimit != nil {
			n := newSize("whatif.smallest_limit_bytes", *f.SmallestLimit)
			n.Text = units.SizeUp(*f.SmallestLimit)
			out[f.Settings] = &n
		}
	}
	return out
}

// fails adds a failing request.
func (w *whatIf) fails(name, lines []string) {
	at := slices.IndexFunc(w.Failures, func(f failures) bool { return slices.Equal(f.Lines, lines) })
	if at < 0 {
		at = len(w.Failures)
		w.Failures = append(w.Failures, failures{Lines: lines})
	}
	w.Failures[at].Names = append(w.Failures[at].Names, name)
}

// confParts cuts settings behind their commas.
func confParts(conf string) []string { return strings.SplitAfter(conf, ",") }

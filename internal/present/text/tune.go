package text

import (
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Tune writes the answer of a search: the line to export first.
func Tune(w io.Writer, head WhatIfHead, a *tune.Answer, style Style) error {
	p := &page{w: w, style: style}
	p.warning(head.Warning)
	r := a.Recommended
	if r.Recorded {
		p.printf("Keep the settings: %s\n", confText(r.Settings))
	} else {
		p.printf("%s\n", r.Export)
	}
	p.printf("\n")
	p.wrapped("  ", "Goal: "+goalText(a.Goal)+". "+sentence(r.Reason))
	p.underLimit(a)
	if r.Requires != "" {
		p.wrapped("  ", r.Requires+".")
	}
	if a.CutOff && !a.Interrupted {
		p.wrapped("  ", "The search was cut off by --budget: with more time the answer may be another one.")
	}

	p.heading("Compared", "")
	p.choices(a)
	if c := a.AfterUpgrade; c != nil {
		p.heading("After an upgrade", "")
		p.line("  %s", Clean(c.Export))
		p.wrapped("    ", fmt.Sprintf("%s. The run then %s", Clean(c.Requires), a.Achieves(c)))
	}
	p.heading("How it was found", "")
	p.whatIfHead(head, a.SelfCheck)
	p.whatIfBounds(a.Limit, a.DeviceMemory)
	p.wrapped("  ", searchText(a))
	for _, n := range a.Notes {
		p.wrapped("  note: ", n)
	}
	p.wrapped("  ", "Reserved, calls and time are of a run without a limit, calls after the second step. Needs is the lowest limit with which the run "+
		"passes; the peak of live bytes is "+units.Size(a.LowerBound)+", so nothing needs less. Variations are the run with steps left out, "+
		"in another order, and with sizes changed by 3 %. Driver time estimates what the calls cost on an H200.")
	return p.err
}

func goalText(g tune.Goal) string {
	switch g {
	case tune.SmallestLimit:
		return "the smallest limit"
	case tune.FewestCalls:
		return "the fewest driver calls"
	}
	return "least reserved memory"
}

// sentence makes a reason one.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return string(s[0]-'a'+'A') + s[1:] + "."
}

func searchText(a *tune.Answer) string {
	said := plural(a.Evaluated, "setting", "settings") + fmt.Sprintf(" tried in %.1f s", a.Seconds)
	switch {
	case a.Interrupted:
		return said + "; interrupted: this is what is known so far"
	case a.CutOff:
		return said + ", as many as --budget allowed"
	case !a.Finished:
		return said + ", the most that are tried for a run of this length"
	}
	return said + "; the search is complete"
}

// underLimit says what the recommendation does under the limit.
func (p *page) underLimit(a *tune.Answer) {
	r, now := a.Recommended.UnderLimit, a.Current.UnderLimit
	if r == nil {
		return
	}
	limit := units.Size(*r.Limit)
	verdictOf := func(r *whatif.Result) string {
		switch {
		case r.Fails && r.First.AtStart:
			return "fail at the start"
		case r.Fails:
			return "fail at event " + countText(*r.First.Event)
		}
		return "pass"
	}
	said := fmt.Sprintf("Under the limit of %s the recommended settings %s, with a peak of %s reserved and %s",
		limit, verdictOf(r), units.Size(r.PeakReserved), plural(int(r.Retries), "release of the cache", "releases of the cache"))
	if !a.Recommended.Recorded && now != nil {
		said += "; the recorded ones " + verdictOf(now)
	}
	p.wrapped("  ", said+".")
	if s := a.Recommended.SmallestLimit; r.Fails && s != nil && *s <= *r.Limit {
		p.wrapped("  ", "They pass under "+units.SizeUp(*s)+": "+NotMonotone)
	}
	if r.Fails {
		p.wrapped("  ", "No setting that was tried passes under this limit.")
	}
}

// choices writes the table: the settings on a line, the numbers below.
func (p *page) choices(a *tune.Answer) {
	g := grid{head: [][]string{
		{"reserved", "needs", "driver calls", "driver", "worst of " + countText(a.Variations), "recorded"},
		{"", "", "when warm", "time", "variations", "there"},
	}}
	var names []string
	for _, c := range append([]*tune.Choice{a.Current, a.Recommended}, a.Others...) {
		if c == a.Recommended && c.Recorded && len(names) > 0 {
			continue
		}
		name := confText(c.Settings)
		switch {
		case c.Recorded:
			name = "recorded: " + name
		case c == a.Recommended:
			name = "recommended: " + name
		}
		need, worst, recorded := "none", "", ""
		if c.Need != nil {
			need = units.SizeUp(*c.Need)
		}
		if w := c.Worst; w != nil {
			worst, recorded = a.Goal.Number(w.Value), a.Goal.Number(w.Recorded)
		}
		names = append(names, name)
		g.rows = append(g.rows, []string{units.Size(c.PeakReserved), need, units.Count(c.WarmCalls), driverTime(c.WarmMS), worst, recorded})
	}
	lines := g.lines(p.columns())
	for _, l := range lines[:len(g.head)] {
		p.line("%s", l)
	}
	for i, name := range names {
		p.printf("%s\n%s\n", name, lines[len(g.head)+i])
	}
}

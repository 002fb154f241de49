package text

import (
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Tune writes the answer of a search.
func Tune(w io.Writer, head WhatIfHead, a *tune.Answer, style Style) error {
	p := &page{w: w, style: style}
	p.whatIfHead(head, a.SelfCheck)
	p.whatIfBounds(a.Limit, a.DeviceMemory)
	p.wrapped("  ", searchText(a))
	for _, n := range a.Notes {
		p.wrapped("  note: ", n)
	}

	p.heading("Recommended", "")
	p.printf("%s\n", confText(a.Recommended.Settings))
	p.wrapped("  ", a.Recommended.Reason)
	p.underLimit(a)
	if a.Recommended.Requires != "" {
		p.wrapped("  ", a.Recommended.Requires)
	}
	if !a.Recommended.Recorded {
		p.printf("\n  %s\n", a.Recommended.Export)
	}

	p.heading("Recorded, recommended, and settings that no other beats in all three figures", "")
	const row = "  %12s %12s %11s %10s"
	p.line(row, "memory", "above peak", "peak", "driver")
	p.line(row, "needed", "allocated", "reserved", "time")
	shown := map[string]bool{}
	for _, c := range append([]*tune.Choice{a.Current, a.Recommended}, a.Front...) {
		if shown[c.Settings] {
			continue
		}
		shown[c.Settings] = true
		p.choice(row, c, a)
	}
	p.printf("\n")
	p.wrapped("", "Memory needed is the lowest limit on reserved memory under which the whole recording passes and which it does not exceed, "+
		"bisected in steps of "+units.Whole(alloc.SegmentUnit)+"; the peak of allocated bytes is "+units.Size(a.LowerBound)+", so nothing needs less. Peak reserved and driver time are those of a run without "+
		"a limit; driver time estimates what the calls cost on an H200, without waiting for the device. Every line was replayed through "+
		"PyTorch's allocator rules; it holds as long as the program makes the same calls.")
	return p.err
}

func searchText(a *tune.Answer) string {
	said := fmt.Sprintf("%s settings evaluated in %.1f s", units.Count(int64(a.Evaluated)), a.Seconds)
	switch {
	case a.Interrupted:
		return said + "; interrupted: this is what is known so far"
	case !a.Finished:
		return said + ", as many as the budget allowed; --budget gives the search more time"
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

func (p *page) choice(row string, c *tune.Choice, a *tune.Answer) {
	name := confText(c.Settings)
	switch {
	case c.Recorded && c.Settings == a.Recommended.Settings:
		name = "recorded and recommended: " + name
	case c.Recorded:
		name = "recorded: " + name
	case c.Settings == a.Recommended.Settings:
		name = "recommended: " + name
	}
	p.printf("%s\n", name)
	limit, above := "none passes", ""
	if c.Need != nil {
		limit = units.SizeUp(*c.Need)
		if a.LowerBound > 0 {
			above = fmt.Sprintf("%+.1f %%", 100*(float64(*c.Need)/float64(a.LowerBound)-1))
		}
	}
	p.line(row, limit, above, units.Size(c.PeakReserved), driverTime(c.DriverMS))
}

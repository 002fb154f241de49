package text

import (
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/answer/policies"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Policies writes an answer about the allocators that a run was put through. The
// head has no events if it is about a placement problem.
func Policies(w io.Writer, head WhatIfHead, a *policies.Answer, style Style) error {
	p := &page{w: w, style: style}
	p.warning(head.Warning)
	if a.SelfCheck != nil {
		p.whatIfHead(head, *a.SelfCheck)
		p.whatIfBounds(a.Limit, a.DeviceMemory)
	} else {
		p.name("", head.File)
		p.wrapped("  ", "a placement problem of "+plural(head.Events, "buffer", "buffers"))
		p.wrapped("  ", MemoryText(a.DeviceMemory))
	}
	p.wrapped("  ", "live at most "+units.Size(a.LowerBound)+": no allocator needs less")
	for _, n := range a.Notes {
		p.wrapped("  note: ", n)
	}
	p.policyTable(a)
	if len(a.NotRun) > 0 {
		p.printf("\ninterrupted; without an answer:\n")
		for _, n := range a.NotRun {
			p.printf("  %s\n", Clean(n))
		}
	}
	p.policySizes(a.Results)
	p.policyFailures(a)
	p.policyNotes(a.Results)
	p.printf("\n")
	p.wrapped("", PolicyLegend(true))
	return p.err
}

// PolicyLegend says what the columns of the table are, with or without that of the
// smallest limits.
func PolicyLegend(limits bool) string {
	least := ""
	if limits {
		least = " Least limit is the smallest limit under which no request fails."
	}
	return "Every line makes the recorded calls; it holds as long as the program makes the same ones. Reserved is what the allocator has from the driver at its peak, " +
		"against what is live at most." + least + " Waste is at the peak of reserved memory: inside is what was given beyond what was asked for, outside what was reserved " +
		"and not given. Driver time estimates what the driver's calls cost on an H200, without waiting for the device. Oracles (*) know the future: no allocator can do that."
}

// policyTable writes a line for each policy that has figures.
func (p *page) policyTable(a *policies.Answer) {
	g := grid{
		left: 2,
		head: [][]string{
			{"", "", "peak", "over", "least", "waste", "waste", "driver", "driver"},
			{"policy", "verdict", "reserved", "live", "limit", "inside", "outside", "calls", "time"},
		},
		drop: []int{5, 6, 7},
	}
	for _, r := range a.Results {
		if r.PeakReserved != nil {
			g.rows = append(g.rows, PolicyRow(r, a.OnOOM))
		}
	}
	if len(g.rows) > 0 {
		p.heading("Policies", "")
		for _, l := range g.lines(p.columns()) {
			p.line("%s", l)
		}
	}
	for _, r := range a.Results {
		if r.WhyNot != nil {
			p.wrapped("  ", r.Policy+": not answered, "+*r.WhyNot)
		}
	}
}

// PolicyRow returns the cells of a policy's line: its name, the verdict, the peak of
// reserved memory, that over live, the least limit, waste inside and outside, the
// driver's calls and their time.
func PolicyRow(r *policies.Result, onOOM string) []string {
	calls, ms := "-", "-"
	if r.DeviceAllocs != nil {
		calls = units.Count(*r.DeviceAllocs + *r.DeviceFrees)
	}
	if r.DriverMS != nil {
		ms = driverTime(*r.DriverMS)
	}
	over := "-"
	if r.ReservedOverLive != nil {
		over = fmt.Sprintf("%.3f", *r.ReservedOverLive)
	}
	return []string{
		PolicyName(r), policyVerdict(r, onOOM), sizeOrDash(r.PeakReserved), over, sizeOrDash(r.SmallestLimit),
		sizeOrDash(r.InternalWaste), sizeOrDash(r.ExternalWaste), calls, ms,
	}
}

// PolicyName returns the name of a policy, with a mark if it knows the future.
func PolicyName(r *policies.Result) string {
	if r.Kind == policies.Oracle {
		return Clean(r.Policy) + " *"
	}
	return Clean(r.Policy)
}

func policyVerdict(r *policies.Result, onOOM string) string {
	switch {
	case r.Kind == policies.Bound:
		return ""
	case !r.Fails:
		return "passes"
	case r.First == nil:
		return "needs more"
	case r.First.AtStart || r.First.Event == nil:
		return "fails at the start"
	case onOOM == whatif.OnOOMSkip:
		return "left out, first at " + countText(*r.First.Event)
	}
	return "fails at " + countText(*r.First.Event)
}

func sizeOrDash(n *uint64) string {
	if n == nil {
		return "-"
	}
	return units.Size(*n)
}

// policySizes writes what devices with managed memory move.
func (p *page) policySizes(results []*policies.Result) {
	for _, r := range results {
		if len(r.Sizes) == 0 {
			continue
		}
		how := "moved by faults"
		if r.Policy == policies.ManagedPrefetch {
			how = "prefetched"
		}
		p.heading("Managed memory, "+how, "")
		g := grid{head: [][]string{{"device", "moved, low", "moved, high", "added, low", "added, high"}}}
		for _, s := range r.Sizes {
			g.rows = append(g.rows, []string{
				units.Size(s.DeviceBytes), units.Size(s.MovedLow), units.Size(s.MovedHigh), driverTime(s.AddedLowMS), driverTime(s.AddedHighMS),
			})
		}
		for _, l := range g.lines(p.columns()) {
			p.line("%s", l)
		}
	}
}

// policyFailures describes the first request that failed under each policy.
func (p *page) policyFailures(a *policies.Answer) {
	first := true
	for _, r := range a.Results {
		f := r.First
		if f == nil {
			continue
		}
		if first {
			p.heading("What fails first", "")
			first = false
		}
		when := "at the start"
		if f.Event != nil {
			when = "event " + countText(*f.Event)
		}
		text := fmt.Sprintf("%s: %s, a request for %s with %s reserved, %s of it given", PolicyName(r), when, units.Size(f.Size), units.Size(f.Reserved), units.Size(f.Given))
		if f.RecordedToo {
			text += "; it also failed in the recording"
		}
		p.wrapped("  ", text)
	}
}

// policyNotes writes the notes of all policies, each once.
func (p *page) policyNotes(results []*policies.Result) {
	var order []string
	names := map[string]string{}
	for _, r := range results {
		for _, n := range r.Notes {
			if names[n] == "" {
				order = append(order, n)
				names[n] = Clean(r.Policy)
			} else {
				names[n] += ", " + Clean(r.Policy)
			}
		}
	}
	if len(order) == 0 {
		return
	}
	p.heading("Notes", "")
	for _, n := range order {
		p.wrapped("  ", names[n]+": "+n)
	}
}

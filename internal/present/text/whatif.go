package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// WhatIfHead says what an answer is about.
type WhatIfHead struct {
	answer.Subject
	Events int
}

// WhatIf writes an answer.
func WhatIf(w io.Writer, head WhatIfHead, a *whatif.Answer, style Style) error {
	p := &page{w: w, style: style}
	p.warning(head.Warning)
	p.whatIfHead(head, a.SelfCheck)
	p.whatIfBounds(a.Limit, a.DeviceMemory)
	if c := a.EmptyCache; c != nil {
		p.wrapped("  ", fmt.Sprintf("empty_cache %s: %s instead of the %s that the recording shows", c.When, plural(c.Made, "call", "calls"), countText(c.Recorded)))
	}
	for _, c := range a.Changes {
		p.wrapped("  ", strings.ReplaceAll(c.Name(), "_", " ")+": "+c.Note)
	}
	for _, n := range a.Notes {
		p.wrapped("  note: ", n)
	}
	p.whatIfResults(a.Results, a.OnOOM)
	if a.Interrupted {
		p.printf("\ninterrupted; without an answer:\n")
		for i, s := range a.NotRun {
			if i == 10 {
				p.printf("  and %s more\n", countText(len(a.NotRun)-i))
				break
			}
			p.printf("  %s\n", confText(s))
		}
	}
	p.failures(a.Results, a.OnOOM)
	if a.Overflow != nil {
		p.overflow(a.Overflow)
	}
	p.whatIfLegend(a)
	return p.err
}

// whatIfHead says what is answered about, and how well the model fits it.
func (p *page) whatIfHead(head WhatIfHead, check whatif.SelfCheck) {
	device := fmt.Sprintf("device %d", head.Device)
	if head.DeviceReason != nil {
		device = *head.DeviceReason
	}
	p.name("", head.File)
	p.wrapped("  ", device+"; "+plural(head.Events, "event", "events"))
	p.wrapped("  ", check.Note)
}

// whatIfBounds says under which limit and on which device.
func (p *page) whatIfBounds(limit whatif.Limit, memory whatif.Memory) {
	p.wrapped("  ", LimitText(limit))
	p.wrapped("  ", MemoryText(memory))
}

// whatIfResults writes the table: the settings on a line, the numbers below.
func (p *page) whatIfResults(results []*whatif.Result, onOOM string) {
	p.heading("Settings", "")
	g := grid{
		left: 1,
		head: [][]string{
			{"verdict", "peak", "against", "peak", "", "device", "device", "driver"},
			{"(event, step or time)", "reserved", "recorded", "allocated", "retries", "allocs", "frees", "time"},
		},
		drop: []int{3, 6}, // allocated hardly differs; what is allocated is freed
	}
	var recorded *whatif.Result
	for _, r := range results {
		if r.Recorded {
			recorded = r
		}
		g.rows = append(g.rows, []string{
			verdict(r, onOOM), units.Size(r.PeakReserved), AgainstText(recorded, r, onOOM), units.Size(r.PeakAllocated),
			units.Count(r.Retries), units.Count(r.DeviceAllocs), units.Count(r.DeviceFrees), driverTime(r.DriverMS),
		})
	}
	lines := g.lines(p.columns())
	for _, l := range lines[:len(g.head)] {
		p.line("%s", l)
	}
	for _, after := range []string{whatif.AfterNothing, whatif.AfterUpgrade, whatif.AfterNever} {
		first := true
		for i, r := range results {
			if r.After != after {
				continue
			}
			if title := afterTitles[after]; first && title != "" {
				p.heading(title, "")
			}
			first = false
			p.result(r, lines[len(g.head)+i], onOOM)
		}
	}
}

// afterTitles stand above settings that cannot be used with what wrote the file.
var afterTitles = map[string]string{whatif.AfterUpgrade: "After an upgrade", whatif.AfterNever: "Not on this device"}

// result writes one result: its settings, its numbers, and what it takes.
func (p *page) result(r *whatif.Result, line, onOOM string) {
	p.printf("%s\n", resultName(r))
	if said := verdict(r, onOOM); strings.HasPrefix(line, "  "+said) { // whole
		dress := p.style.Good
		if r.Fails {
			dress = p.style.Bad
		}
		line = "  " + dress(said) + line[2+len(said):]
	}
	p.line("%s", line)
	if r.Needs != "" {
		p.wrapped("  ", Clean(r.Needs))
	}
}

// AgainstText returns the peak of a result against that of the recorded
// settings. The peak of a run that ended at a failure goes only up to there, so
// it is compared with no other.
func AgainstText(recorded, r *whatif.Result, onOOM string) string {
	switch {
	case recorded == nil || r.Recorded:
		return ""
	case onOOM == whatif.OnOOMDie && (recorded.Fails || r.Fails):
		return "-"
	}
	return units.Delta(int64(r.PeakReserved) - int64(recorded.PeakReserved))
}

// resultName says which settings a result is about.
func resultName(r *whatif.Result) string {
	switch {
	case r.Recorded:
		return "recorded: " + confText(r.Settings)
	case r.EmptyCache != nil:
		return confText(r.Settings) + ", empty_cache " + *r.EmptyCache
	case r.Change != nil && *r.Change == whatif.ChangeNoCache:
		return "PYTORCH_NO_CUDA_MEMORY_CACHING=1"
	case r.Change != nil:
		return confText(r.Settings) + ", " + *r.Change
	}
	return confText(r.Settings)
}

// confText names settings.
func confText(conf string) string {
	if conf == "" {
		return "PyTorch's defaults"
	}
	return Clean(conf)
}

// verdict returns the answer in a few words.
func verdict(r *whatif.Result, onOOM string) string {
	switch {
	case !r.Fails:
		return "passes"
	case r.First.AtStart:
		return "fails at the start"
	case onOOM == whatif.OnOOMSkip && r.OOMs > 1:
		return units.Count(r.OOMs) + " left out, first at " + countText(*r.First.Event)
	case onOOM == whatif.OnOOMSkip:
		return "1 left out, event " + countText(*r.First.Event)
	}
	return "fails at " + whenText(r.First)
}

// whenText says when a request failed: the event, and the step or the time.
func whenText(f *whatif.Failure) string {
	s := countText(*f.Event)
	switch {
	case f.Step != nil:
		s += fmt.Sprintf(", step %d", *f.Step)
	case f.Since != nil:
		s += ", " + secondsText(*f.Since)
	}
	return s
}

// driverTime writes an estimate: no more digits than it is worth.
func driverTime(ms float64) string {
	switch {
	case ms >= 1e4:
		return fmt.Sprintf("~%.0f s", ms/1e3)
	case ms >= 1e3:
		return fmt.Sprintf("~%.1f s", ms/1e3)
	}
	return fmt.Sprintf("~%.0f ms", ms)
}

// failures describes the first failing request of each result; results that
// fail alike are named together.
func (p *page) failures(results []*whatif.Result, onOOM string) {
	var order []string
	names := map[string][]string{}
	for _, r := range results {
		if r.First == nil {
			continue
		}
		text := failureText(r, onOOM, p.columns())
		if names[text] == nil {
			order = append(order, text)
		}
		names[text] = append(names[text], resultName(r))
	}
	if len(order) > 0 {
		p.heading("What fails first", "")
	}
	for _, text := range order {
		for _, name := range names[text] {
			p.printf("%s\n", name)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "at ") {
				p.printf("  %s\n", line)
			} else {
				p.wrapped("  ", line)
			}
		}
	}
}

// failureText describes a failing request in some lines, of which that with the
// call stack is no wider than columns.
func failureText(r *whatif.Result, onOOM string, columns int) string {
	f := r.First
	if f.AtStart {
		return fmt.Sprintf("%s is reserved before the first event even after the cache is released: more than is available", units.Size(f.Reserved))
	}
	said := fmt.Sprintf("event %s: a request for %s", whenText(f), units.Size(f.Size))
	if units.Size(f.Segment) != units.Size(f.Size) {
		said += fmt.Sprintf(", for which the driver was asked for %s", units.Size(f.Segment))
	}
	said += fmt.Sprintf("; reserved %s, allocated %s, unallocated %s, largest free block %s", units.Size(f.Reserved), units.Size(f.Allocated), units.Size(f.Unallocated), units.Size(f.LargestFree))
	switch {
	case f.DeviceFree != nil && *f.DeviceFree < f.Segment:
		said += fmt.Sprintf("; the device has %s left", units.Size(*f.DeviceFree))
	case r.Limit != nil && f.Reserved+f.Segment > *r.Limit:
		said += "; the limit is " + units.Size(*r.Limit)
	case f.DeviceFree != nil:
		said += fmt.Sprintf("; the device has %s left", units.Size(*f.DeviceFree))
	}
	if f.RecordedToo {
		said += "; it also failed in the recording"
	}
	if len(f.Stack) > 0 {
		said += "\nat " + siteText(f.Site, columns-5)
	} else {
		said += "\nno call stack in the file"
	}
	if f.Caught != nil {
		said += "\nthis failure may be caught, by " + f.Caught.By
		if onOOM == whatif.OnOOMDie {
			said += "; " + askOn(f.Caught)
		}
	}
	return said
}

// askOn says how to ask about what follows a failure that is caught.
func askOn(c *whatif.Caught) string {
	if c.Restarts {
		return "the program would start again with less, which these calls cannot show"
	}
	return "--on-oom skip leaves such requests out and continues"
}

// whatIfLegend says what the numbers are and how far they go.
func (p *page) whatIfLegend(a *whatif.Answer) {
	p.printf("\n")
	for _, text := range Legend(a) {
		p.wrapped("", text)
	}
}

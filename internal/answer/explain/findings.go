package explain

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// findingsWork computes the findings in the background.
type findingsWork struct {
	done     chan struct{}
	analysis *findings.Analysis
	found    *findings.Findings
	err      error
}

// startFindings starts to compute the findings.
func (e *explainer) startFindings() *findingsWork {
	w := &findingsWork{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		if w.analysis, w.err = e.Run.Analysis(e.ctx); w.err == nil {
			w.found, w.err = e.Run.Findings(e.ctx)
		}
	}()
	return w
}

// How much of the lists a report holds.
const maxHolders = 100

// join waits for the findings and adds them to the report.
func (w *findingsWork) join(e *explainer) error {
	<-w.done
	if w.err != nil {
		return w.err
	}
	at := e.event - 1 // the failed request itself holds nothing
	if e.event < 0 || e.event >= e.trace.Events.Len() {
		at = e.trace.Events.Len() - 1
	}
	peak := w.analysis.PeakEvent()
	if e.event < 0 { // nothing failed: the peak is what matters
		at = peak
	}
	held := w.analysis.Holders(at)
	e.holders(held)
	if at != peak {
		held = w.analysis.Holders(peak)
	}
	for _, h := range held.Stacks {
		if len(e.report.AtPeak) < maxHolders {
			e.report.AtPeak = append(e.report.AtPeak, e.holder(h))
		}
	}
	if !w.analysis.Exact {
		e.report.Notes = append(e.report.Notes, "holders and findings count requested bytes: block sizes are known only if the whole recording replays")
	}
	steps := w.analysis.Steps
	if n := steps.Complete(); e.report.Health != nil && n > 2 {
		// The first step also gets going.
		growth := int64(w.analysis.LiveBefore(steps.List[n-1].End)) - int64(w.analysis.LiveBefore(steps.List[1].End))
		e.report.Health.Growth = &growth
	}
	for _, l := range w.found.Leaks {
		e.leak(l, steps)
	}
	for _, s := range w.found.Spikes {
		e.spike(s, steps)
	}
	if t := w.found.Transient; t != nil {
		e.transient(t)
	}
	return nil
}

func (e *explainer) holder(h findings.Holder) Holder {
	out := Holder{
		Bytes: h.Bytes, Blocks: h.Blocks, Category: string(h.Category), Confidence: string(h.Confidence),
		Frames: timeline.Frames(e.trace, h.Stack),
	}
	out.Site, _ = timeline.SiteOf(e.trace, h.Stack)
	return out
}

func (e *explainer) holders(h *findings.Holders) {
	for _, s := range h.Stacks[:min(len(h.Stacks), maxHolders)] {
		e.report.Holders = append(e.report.Holders, e.holder(s))
	}
	for _, l := range h.Lines[:min(len(h.Lines), maxHolders)] {
		if l.User {
			e.report.ByLine = append(e.report.ByLine, LineHolder{l.Bytes, l.Blocks, l.Line})
		}
	}
	for _, m := range h.Modules[:min(len(h.Modules), maxHolders)] {
		e.report.ByModule = append(e.report.ByModule, ModuleHolder{m.Bytes, m.Blocks, modulePath(m.Path)})
	}
	for i := range h.Categories {
		c := &h.Categories[i]
		e.report.ByKind = append(e.report.ByKind, CategoryHolder{c.Bytes, c.Blocks, string(c.Category), string(c.Confidence())})
	}
}

// modulePath names the forward functions that called each other, outermost
// first.
func modulePath(path []timeline.Frame) string {
	text := ""
	for i := len(path) - 1; i >= 0; i-- {
		if text != "" {
			text += " > "
		}
		text += path[i].String()
	}
	return text
}

func (e *explainer) parts(parts []findings.Part) []Block {
	out := []Block{}
	for _, p := range parts {
		b := Block{Bytes: p.Bytes, Count: p.Blocks, Frames: timeline.Frames(e.trace, p.Stack)}
		b.Site, _ = timeline.SiteOf(e.trace, p.Stack)
		out = append(out, b)
	}
	return out
}

func (e *explainer) finding(kind string, bytes uint64, stack trace.StackID, parts []findings.Part) Finding {
	f := Finding{Kind: kind, Bytes: bytes, Steps: []int{}, Frames: timeline.Frames(e.trace, stack), Parts: e.parts(parts)}
	f.Site, _ = timeline.SiteOf(e.trace, stack)
	return f
}

func (e *explainer) leak(l findings.Leak, steps *findings.Steps) {
	f := e.finding(Leak, l.Bytes, l.Stack, l.Parts)
	slope, spread := float64(l.BytesPerStep), float64(l.MostPerStep-l.LeastPerStep)
	f.BytesPerStep, f.Spread, f.Confidence = &slope, &spread, string(l.Confidence)
	f.Steps = numbers(steps, l.KeptIn)
	average := "on average"
	if l.Median {
		average = "in the median"
	}
	f.Detail = fmt.Sprintf("%s of %s steps leave memory behind %s: %s a step %s (%s to %s), %s in all; %s",
		units.Count(int64(len(l.KeptIn))), units.Count(int64(l.Steps)), fate(&l), units.Size(l.BytesPerStep), average,
		units.Size(l.LeastPerStep), units.Size(l.MostPerStep), units.Size(l.Bytes), findings.WhereNotWho)
	e.report.Findings = append(e.report.Findings, f)
}

// fate says how long the memory of a leak stays.
func fate(l *findings.Leak) string {
	switch {
	case l.FreedBytes == 0:
		return "that nobody frees"
	case l.AtEnd && l.FreedBytes == l.Bytes:
		return "until the program ends"
	case l.FreedBytes == l.Bytes:
		return "until the steps are over"
	}
	return fmt.Sprintf("that nobody frees during the steps, and only %s of it later", units.Size(l.FreedBytes))
}

func (e *explainer) spike(s findings.Spike, steps *findings.Steps) {
	f := e.finding(Spike, s.Bytes, s.Stack, s.Parts)
	f.Confidence, f.Steps = string(s.Confidence), numbers(steps, s.Steps)
	when := fmt.Sprintf("%s of %s steps", units.Count(int64(len(s.Steps))), units.Count(int64(steps.Complete())))
	if s.Every > 1 {
		when = fmt.Sprintf("every %s step", ordinal(s.Every))
	}
	f.Detail = fmt.Sprintf("%s takes %s that the others do not: it peaks at %s, with %s between steps; an ordinary step peaks at %s",
		when, units.Size(s.Bytes), units.Size(s.LevelBytes), units.Size(s.RestBytes), units.Size(s.OrdinaryBytes))
	e.report.Findings = append(e.report.Findings, f)
}

func (e *explainer) transient(t *findings.Transient) {
	f := e.finding(Transient, t.Bytes, t.Stack, t.Parts)
	f.Confidence = string(findings.Certain)
	f.Detail = fmt.Sprintf("within an ordinary step %s comes and goes: %s at its peak, %s between steps",
		units.Size(t.Bytes), units.Size(t.PeakBytes), units.Size(t.RestBytes))
	switch stays := t.PeakBytes - t.Bytes; { // at the peak, besides
	case units.Size(stays) == units.Size(t.RestBytes):
	case stays > t.RestBytes:
		f.Detail += fmt.Sprintf("; the other %s outlives the step or is older", units.Size(stays-t.RestBytes))
	default:
		f.Detail += fmt.Sprintf("; %s of the latter is gone at the peak", units.Size(t.RestBytes-stays))
	}
	e.report.Findings = append(e.report.Findings, f)
}

// numbers returns what the steps at some positions are called.
func numbers(steps *findings.Steps, at []int) []int {
	out := []int{}
	for _, i := range at {
		if i >= 0 && i < len(steps.List) {
			out = append(out, steps.List[i].Number)
		}
	}
	return out
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}

package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// code tries the changes of the program that the findings suggest. They come
// after fixes that free a little, and before the settings.
func (e *explainer) code(w *findingsWork) error {
	if e.failed == nil || !e.failed.reproduced || e.failed.program != e.program || e.event <= 0 {
		return nil // without a replay up to the failure nothing can be tried
	}
	c := &coder{explainer: e, steps: w.analysis.Steps, found: w.found, calls: map[trace.StackID][]trace.FrameID{}}
	c.lives = livesOf(e.program, e.trace, e.event)
	for _, h := range w.analysis.Holders(e.event - 1).Stacks {
		switch h.Category {
		case findings.Activations, findings.Temporaries:
			c.passing = append(c.passing, h.Stack)
		case findings.Parameters, findings.OptimizerState, findings.Workspace:
			c.lasting = append(c.lasting, h.Stack)
		}
	}
	for _, try := range []func() error{c.stopLeaks, c.allocateEarly, c.makeSmaller} {
		if err := try(); err != nil {
			return err
		}
	}
	at := slices.IndexFunc(e.report.Fixes, func(f Fix) bool { return f.Kind == FixSetting || f.Kind == FixMemory })
	if at < 0 {
		at = len(e.report.Fixes)
	}
	e.report.Fixes = slices.Insert(e.report.Fixes, at, c.fixes...)
	return nil
}

// coder looks for changes of the program.
type coder struct {
	*explainer
	steps   *findings.Steps
	found   *findings.Findings
	lives   []life                            // up to the failure
	passing []trace.StackID                   // of blocks that are there at the failure and will go
	lasting []trace.StackID                   // ... that will stay
	calls   map[trace.StackID][]trace.FrameID // see callOf
	fixes   []Fix
}

// life is a tensor that was allocated after the recording began.
type life struct {
	tensor      int
	born, freed int // events; freed is that of the failure if it is there then
	size        uint64
	stream      uint64
	pool        alloc.PoolID
	stack       trace.StackID
}

// livesOf lists the tensors that are allocated before an event.
func livesOf(p *replay.Program, t *trace.Trace, until int) []life {
	var out []life
	at := make([]int32, p.Tensors())
	for i := range p.Len() {
		c := p.Call(i)
		if c.Event >= until {
			break
		}
		switch c.Kind {
		case replay.CallAlloc:
			out = append(out, life{c.Tensor, c.Event, until, c.Size, c.Stream, c.Pool, known(t.Events.Stack.At(c.Event))})
			at[c.Tensor] = int32(len(out))
		case replay.CallFree, replay.CallFreeLater:
			if k := at[c.Tensor]; k > 0 {
				out[k-1].freed = c.Event
			}
		}
	}
	return out
}

// known returns the stack of findings: none where there are no frames.
func known(id trace.StackID) trace.StackID {
	if id == trace.EmptyStack {
		return trace.NoStack
	}
	return id
}

// served reports whether the request is served after a change, and adds to the
// detail if that depends on where in its range the limit was.
func (c *coder) served(detail *string, try func(replay.Conditions) (bool, error)) (bool, error) {
	served, err := try(c.conditions(c.limits.high))
	if !served || err != nil || c.limits.low == c.limits.high {
		return served, err
	}
	low, err := try(c.conditions(c.limits.low))
	if err == nil && !low {
		*detail += fmt.Sprintf("; not enough if the limit was at the low end of its range, %s", units.Size(c.limits.low))
	}
	return true, err
}

func (c *coder) add(bytes uint64, detail string) {
	yes := true
	c.fixes = append(c.fixes, Fix{Kind: FixCode, PassesFailure: &yes, UntilEvent: &c.event, Bytes: &bytes, Detail: detail})
}

// stopLeaks frees what leaked. If that is not enough the finding says so.
func (c *coder) stopLeaks() error {
	next := 0
	for i := range c.report.Findings {
		if c.report.Findings[i].Kind != Leak || next == len(c.found.Leaks) {
			continue
		}
		if err := c.stopLeak(&c.found.Leaks[next], &c.report.Findings[i]); err != nil {
			return err
		}
		next++
	}
	return nil
}

func (c *coder) stopLeak(l *findings.Leak, f *Finding) error {
	leaked := func(b *replay.Live) bool {
		step := -1
		if b.Event >= 0 {
			step = c.steps.Of(b.Event)
		}
		return step >= 0 && step < c.steps.Complete() &&
			slices.ContainsFunc(l.Parts, func(p findings.Part) bool { return p.Stack == known(b.Stack) })
	}
	var bytes uint64
	var addrs []uint64
	for _, b := range c.failed.held.Live() {
		if leaked(&b) {
			bytes += b.Size
			addrs = append(addrs, b.Address)
		}
	}
	if bytes == 0 {
		return nil
	}
	detail := fmt.Sprintf("free or detach what leaks: %s in %s at the failure; with that freed the request is served; allocated at %s",
		units.Size(bytes), tensorCount(len(addrs)), c.sites(addrs))
	served, err := c.served(&detail, func(cond replay.Conditions) (bool, error) {
		return c.failed.servedAfter(c.ctx, cond, func(m *replay.Paused) error {
			for _, b := range m.Live() {
				if leaked(&b) {
					if err := m.Free(b.Address); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return err
	case served:
		c.add(bytes, detail)
	default:
		f.Detail += fmt.Sprintf("; at the failure it holds %s: with that freed the request still fails", units.Size(bytes))
	}
	return nil
}

func tensorCount(n int) string {
	if n == 1 {
		return "one tensor"
	}
	return units.Count(int64(n)) + " tensors"
}

// allocateEarly runs the program with the long-lived tensors that pin free
// memory allocated before everything else, if they were born among others that
// have gone since.
func (c *coder) allocateEarly() error {
	if c.report.Verdict == Capacity || c.report.Verdict == External || c.failed.call.Pool != (alloc.PoolID{}) {
		return nil
	}
	pinning := map[uint64]bool{}
	for i := range c.failed.after {
		s := &c.failed.after[i]
		if s.Pool == c.failed.call.Pool && s.Large == c.failed.rules.Large(c.failed.rounded) && s.TotalSize > s.ActiveSize && s.ActiveSize > 0 {
			for _, b := range s.Blocks {
				pinning[b.Address] = b.State == alloc.ActiveAllocated
			}
		}
	}
	born := map[int]int{} // event -> position in lives
	for i := range c.lives {
		born[c.lives[i].born] = i
	}
	among, lasts := c.amongTransient(), c.lasts()
	early := map[int]bool{}
	var bytes uint64
	var addrs []uint64
	for _, b := range c.failed.held.Live() {
		if i, ok := born[b.Event]; ok && pinning[b.Address] && among[i] && c.long(&c.lives[i]) && lasts[c.lives[i].stack] {
			early[c.lives[i].tensor] = true
			bytes += b.Size
			addrs = append(addrs, b.Address)
		}
	}
	if len(early) == 0 {
		return nil
	}
	f := *c.failed
	f.program = c.program.Early(early)
	detail := fmt.Sprintf("allocate long-lived tensors before transient ones: %s (%s) stay for steps and pin free memory; with those allocated first the request is served; allocated at %s",
		tensorCount(len(addrs)), units.Size(bytes), c.sites(addrs))
	served, err := c.served(&detail, func(cond replay.Conditions) (bool, error) {
		passes, _, err := f.passes(c.ctx, f.whole(cond))
		return passes, err
	})
	if served && err == nil {
		c.add(bytes, detail)
	}
	return err
}

// lasts reports for each stack whether it allocates state, which could as well be
// allocated at the beginning, and not the work of each step.
func (c *coder) lasts() map[trace.StackID]bool {
	out := map[trace.StackID]bool{}
	in := map[trace.StackID]int{} // the step of the first
	for i := range c.lives {
		stack, step := c.lives[i].stack, c.steps.Of(c.lives[i].born)
		first, seen := in[stack]
		if !seen {
			in[stack] = step
		}
		out[stack] = !seen || out[stack] && step == first
	}
	for _, stack := range c.lasting {
		out[stack] = true
	}
	for _, l := range c.found.Leaks {
		for _, p := range l.Parts {
			out[p.Stack] = false
		}
	}
	out[trace.NoStack] = false // nobody could tell what to move
	return out
}

func (c *coder) leaks(stack trace.StackID) bool {
	return slices.ContainsFunc(c.found.Leaks, func(l findings.Leak) bool {
		return slices.ContainsFunc(l.Parts, func(p findings.Part) bool { return p.Stack == stack })
	})
}

// long reports whether a tensor is there for a complete step or more.
func (c *coder) long(l *life) bool {
	steps := c.steps.List[:c.steps.Complete()]
	i, _ := slices.BinarySearchFunc(steps, l.born, func(s findings.Step, event int) int { return cmp.Compare(s.Begin, event) })
	return i < len(steps) && steps[i].End <= l.freed
}

// amongTransient reports for each tensor whether some transient one, freed within
// a step or between two, is allocated when it begins.
func (c *coder) amongTransient() []bool {
	out := make([]bool, len(c.lives))
	latest := -1 // when the last of the transient ones so far goes
	for i := range c.lives {
		l := &c.lives[i]
		out[i] = latest > l.born
		if l.freed < c.event && !c.long(l) {
			latest = max(latest, l.freed)
		}
	}
	return out
}

package stats

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

func (c *collector) miss(what, format string, args ...any) {
	c.out.Missing = append(c.out.Missing, Missing{what, fmt.Sprintf(format, args...)})
}

// missing says what the file lacks and what follows from that.
func (c *collector) missing() {
	t, n := c.trace, c.trace.Events.Len()
	if tr := c.file.Truncated; tr != nil {
		c.miss("truncated", "the end of the file: it stops %s; %s", tr.Where, c.truncatedMeans())
	}
	switch {
	case n == 0 && c.file.Truncated != nil:
		c.miss("events", "events: %s, so there are no peaks, times or causes; copy the file again, whole", input.WhyNoEvents(c.file))
	case n == 0:
		c.miss("events", "events: recording was off, so there are no peaks, times or causes; torch.cuda.memory._record_memory_history() turns it on")
	default:
		c.missingStart()
	}
	if len(t.Segments) == 0 && n > 0 {
		c.miss("segments", "segments: the numbers at the end are those after the last event")
	}
	c.missingStacks()
	if !t.Settings.Known {
		c.miss("settings", "allocator settings: the defaults are assumed")
	}
	if n > 0 && c.peaks.First == trace.NoTime {
		c.miss("times", "times: moments are given by event only")
	}
	if c.peaks.Unordered > 0 {
		c.miss("order", "order: %s events are older than the one before them", units.Count(int64(c.peaks.Unordered)))
	}
	if !c.state.RequestedKnown {
		c.miss("requested_sizes", "requested sizes of blocks: the loss by rounding is unknown")
	}
	if n > 0 && privatePools(t) && t.Events.Pool.Constant() && t.Events.Pool.At(0) == trace.NoPool {
		c.miss("pool_ids", "pools of events (recorded by PyTorch after 2.11): known only if the segment still exists at the end")
	}
	c.missingReplay()
}

func (c *collector) truncatedMeans() string {
	switch {
	case c.line.AtLeast:
		return "the state at the end is complete, the events before it are not, and totals over time are lower bounds"
	case c.trace.Partial:
		return "the state at the end is complete, the events before it are not, and peaks are at least those of the events that are there"
	case c.trace.Events.Len() == 0:
		return "what follows is lost, and the state may be incomplete"
	}
	return "events and segments are complete"
}

// missingStart is about events that are lost before the first one.
func (c *collector) missingStart() {
	for _, x := range []trace.Extra{c.file.Extra, c.trace.Settings.Fields} {
		if lost, ok := x.Get("trace_alloc_overflowed").(bool); ok && lost {
			c.miss("start", "the oldest events: the file says that the ring of events overflowed")
			return
		}
	}
	rebuilt := c.line.Start.Kind == start.Rebuilt
	if c.trace.Partial {
		if c.line.AtLeast {
			c.miss("start", "the state before the first event: the events use memory that was already there")
		}
		return
	}
	for i, note := range c.line.Start.Notes {
		if rebuilt && i == len(c.line.Start.Notes)-1 {
			note += ". Totals start from the state rebuilt there; earlier peaks are lost"
		}
		c.miss("start", "the beginning: %s", note)
	}
}

func (c *collector) missingStacks() {
	t := c.trace
	events := 0
	for i := range t.Events.Len() {
		if t.Events.Stack.At(i) > trace.EmptyStack {
			events++
		}
	}
	var blocks, bytes, all uint64
	for i := range t.Segments {
		for j := range t.Segments[i].Blocks {
			b := &t.Segments[i].Blocks[j]
			if b.State == alloc.Inactive {
				continue
			}
			all++
			if b.Stack <= trace.EmptyStack {
				blocks++
				bytes += b.Size
			}
		}
	}
	n := t.Events.Len()
	switch {
	case n == 0 && blocks == all: // without recording there are none
	case events == 0 && blocks == all:
		c.miss("frames", "call stacks: who allocated what is unknown; record with context=\"all\" to keep them")
	case events == 0 && n > 0:
		c.miss("frames", "call stacks of events: only blocks have them (recorded with context=\"state\")")
	case n > 0 && events < n/2:
		c.miss("frames", "call stacks of %s of %s events: made outside Python, as in the backward pass, or not recorded", units.Count(int64(n-events)), units.Count(int64(n)))
	}
	if events > 0 && bytes > c.state.Active/20 {
		c.miss("frames", "call stacks of %s of %s allocated blocks, %s: made outside Python, or while recording was off",
			units.Count(int64(blocks)), units.Count(int64(all)), units.Size(bytes))
	}
}

func (c *collector) missingReplay() {
	n := c.trace.Events.Len()
	switch r := c.out.Replay; {
	case c.line.Exact || n == 0:
	case c.trace.Host:
		c.miss("replay", "peaks of allocated and active: host memory has another allocator, which is not replayed")
	case n > run.MaxReplay:
		c.miss("replay", "peaks of allocated and active: traces of more than %s events are not replayed here", units.Count(run.MaxReplay))
	case r != nil:
		c.miss("replay", "peaks of allocated and active: the replay diverges from the trace at event %s (ashlar verify shows how)",
			units.Count(int64(r.IdenticalEvents)))
	}
}

func privatePools(t *trace.Trace) bool {
	for i := range t.Segments {
		if t.Segments[i].Pool != (alloc.PoolID{}) {
			return true
		}
	}
	return false
}

package timeline

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// Peak is the first moment at which a total was highest.
type Peak struct {
	Value  uint64
	Event  int    // -1: before the first event
	Time   int64  // trace.NoTime if the file does not say
	Totals Totals // at that moment
}

// EventTotals is an event and the totals after it.
type EventTotals struct {
	Index  int
	Event  trace.Event
	Totals Totals
}

// Peaks are the highest totals of a timeline and its extent.
type Peaks struct {
	Reserved, Requested Peak
	Blocks              Peak
	// Pending is measured at allocations and at the end: most frees complete at
	// once.
	Pending           Peak
	Allocated, Active Peak // zero unless Timeline.Exact

	// Served is the end of the allocation during which Reserved peaked: before it
	// the requested memory is in no tensor yet.
	Served EventTotals

	Last Totals // after the last event

	// First and End are the times of the earliest and the latest event;
	// trace.NoTime if the file does not say.
	First, End int64
	Unordered  int // events with an earlier time than the one before
	OOMs       []EventTotals
	Actions    map[string]int
}

// Peaks walks the whole timeline.
func (l *Timeline) Peaks() *Peaks {
	p := &Peaks{First: trace.NoTime, End: trace.NoTime, Actions: map[string]int{}}
	var count [256]int
	before := trace.Event{Time: trace.NoTime}
	p.update(l, -1, &before, &l.before)
	p.Served = EventTotals{-1, before, l.before}
	// Read only the columns that are needed: a cursor would assemble whole events.
	events, totals, last := &l.Trace.Events, l.before, int64(trace.NoTime)
	for i := range events.Len() {
		e := trace.Event{Action: events.Action.At(i), Size: events.Size.At(i), Time: events.Time.At(i)}
		totals.apply(&e)
		if l.Exact {
			totals.applyBlock(e.Action, l.sizes.At(i))
		}
		count[e.Action]++
		switch e.Action {
		case alloc.ActionAlloc, alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
			p.update(l, i, &e, &totals)
			if e.Action == alloc.ActionAlloc {
				p.serve(events, i, &totals)
			}
		case alloc.ActionOOM:
			p.serve(events, i, &totals)
			p.OOMs = append(p.OOMs, EventTotals{i, events.At(i), totals})
		}
		if t := e.Time; t != trace.NoTime {
			if p.First == trace.NoTime || t < p.First {
				p.First = t
			}
			p.End = max(p.End, t)
			if t < last {
				p.Unordered++
			}
			last = t
		}
	}
	p.Last = totals
	if p.Served.Index < p.Reserved.Event { // the file ends during it
		p.Served.Index, p.Served.Totals = p.Reserved.Event, p.Reserved.Totals
	}
	if n := events.Len(); n > 0 {
		e := events.At(n - 1)
		p.Pending.raise(totals.Pending, n-1, &e, &totals)
	}
	for a, n := range count {
		if n > 0 {
			p.Actions[l.Trace.Events.ActionName(trace.Action(a))] = n
		}
	}
	return p
}

// serve records the end of an allocation.
func (p *Peaks) serve(events *trace.Events, i int, t *Totals) {
	if p.Served.Index < p.Reserved.Event {
		p.Served = EventTotals{i, events.At(i), *t}
	}
}

func (p *Peaks) update(l *Timeline, i int, e *trace.Event, t *Totals) {
	p.Reserved.raise(t.Reserved, i, e, t)
	p.Requested.raise(t.Requested, i, e, t)
	p.Pending.raise(t.Pending, i, e, t)
	p.Blocks.raise(uint64(t.Blocks), i, e, t)
	if l.Exact {
		p.Allocated.raise(t.Allocated, i, e, t)
		p.Active.raise(t.Active, i, e, t)
	}
}

func (p *Peak) raise(value uint64, i int, e *trace.Event, t *Totals) {
	if value > p.Value || i < 0 {
		*p = Peak{value, i, e.Time, *t}
	}
}

// WentOn reports whether the program allocated anything after a failed request:
// it, or a library, caught the error.
func WentOn(t *trace.Trace, oom int) bool {
	for i := oom + 1; i < t.Events.Len(); i++ {
		if t.Events.Action.At(i) == alloc.ActionAlloc {
			return true
		}
	}
	return false
}

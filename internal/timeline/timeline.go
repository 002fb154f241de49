package timeline

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/trace"
)

// Totals are the sums at one moment.
type Totals struct {
	Reserved uint64 // bytes of segments

	Requested     uint64 // bytes asked for in active blocks
	Pending       uint64 // of these in blocks freed, but in use on another stream
	Blocks        int    // active
	PendingBlocks int

	// The sums of block sizes; 0 unless Timeline.Exact.
	Allocated, Active uint64
}

// Options say what is known beside the trace.
type Options struct {
	// Start is the state before the first event; if nil, New finds it.
	Start *start.State
	// Sizes are block sizes from a replay that reproduced every event; nil if
	// there was none.
	Sizes *verify.Sizes
}

// Timeline is the history of one device. It does not change the trace.
type Timeline struct {
	Trace *trace.Trace
	// Start is the state before the first event; its segments are empty if
	// recording began with the first allocation or the trace is partial.
	Start *start.State
	// Exact reports whether Totals have sums of block sizes.
	Exact bool
	// AtLeast reports whether the totals are lower bounds: the trace is partial
	// and not all memory before its first event is known.
	AtLeast bool

	before Totals
	sizes  *verify.Sizes
	pools  *poolIndex
}

// New prepares the timeline of a trace.
func New(t *trace.Trace, o Options) *Timeline {
	l := &Timeline{Trace: t, Start: o.Start}
	if l.Start == nil {
		l.Start = start.Find(t)
	}
	if t.Partial {
		l.before, l.AtLeast = leastBefore(&t.Events)
	}
	for i := range l.Start.Segments {
		l.before.addSegment(&l.Start.Segments[i])
	}
	if o.Sizes != nil && !l.AtLeast {
		l.Exact = true
		l.sizes = o.Sizes
		l.before.Allocated, l.before.Active = o.Sizes.AllocatedBytes, o.Sizes.ActiveBytes
	}
	l.pools = newPoolIndex(t, l.Start)
	return l
}

func (t *Totals) addSegment(s *alloc.Segment) {
	t.Reserved += s.TotalSize
	for _, b := range s.Blocks {
		if b.State == alloc.Inactive {
			continue
		}
		t.Requested += b.RequestedSize
		t.Blocks++
		if b.State == alloc.ActivePendingFree {
			t.Pending += b.RequestedSize
			t.PendingBlocks++
		}
	}
}

// Before returns the totals before the first event.
func (l *Timeline) Before() Totals { return l.before }

// Cursor walks through the events of a timeline, from the first one on.
type Cursor struct {
	Index  int // of Event
	Event  trace.Event
	Totals Totals // after Event

	line  *Timeline
	pools poolWalk
}

// Cursor returns a cursor that stands before the first event.
func (l *Timeline) Cursor() *Cursor {
	return &Cursor{Index: -1, Totals: l.before, line: l, pools: l.pools.walk()}
}

// Next advances to the next event. It returns false at the end.
func (c *Cursor) Next() bool {
	events := &c.line.Trace.Events
	if c.Index+1 >= events.Len() {
		return false
	}
	c.Index++
	c.Event = events.At(c.Index)
	c.Totals.apply(&c.Event)
	if c.line.Exact {
		c.Totals.applyBlock(c.Event.Action, c.line.sizes.At(c.Index))
	}
	c.pools.apply(c.Index, &c.Event)
	return true
}

// Pool returns the pool of the event, if the file has it: by the event or by
// the segment, as far as that is there at the end.
func (c *Cursor) Pool() (alloc.PoolID, bool) { return c.pools.poolOf(&c.Event, &c.line.Trace.Events) }

func (t *Totals) apply(e *trace.Event) {
	switch e.Action {
	case alloc.ActionAlloc:
		t.Requested += e.Size
		t.Blocks++
	case alloc.ActionFreeRequested:
		t.Pending += e.Size
		t.PendingBlocks++
	case alloc.ActionFreeCompleted:
		t.Requested = less(t.Requested, e.Size)
		t.Pending = less(t.Pending, e.Size)
		t.Blocks = max(0, t.Blocks-1)
		t.PendingBlocks = max(0, t.PendingBlocks-1)
	case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
		t.Reserved += e.Size
	case alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
		t.Reserved = less(t.Reserved, e.Size)
	}
}

func (t *Totals) applyBlock(a trace.Action, size uint64) {
	switch a {
	case alloc.ActionAlloc:
		t.Allocated += size
		t.Active += size
	case alloc.ActionFreeRequested:
		t.Allocated = less(t.Allocated, size)
	case alloc.ActionFreeCompleted:
		t.Active = less(t.Active, size)
	}
}

// less subtracts, but not below zero if a file contradicts itself.
func less(a, b uint64) uint64 { return a - min(a, b) }

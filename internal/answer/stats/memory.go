package stats

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Memory holds the sums at the end of the file and their peaks.
type Memory struct {
	Reserved  Level `json:"reserved"`
	Allocated Level `json:"allocated"`
	Active    Level `json:"active"`
	Requested Level `json:"requested"`
	Pending   Level `json:"pending"`
	Blocks    Count `json:"active_blocks"`

	FreeBytes          uint64 `json:"free_bytes"`
	LargestFreeBytes   uint64 `json:"largest_free_bytes"`
	InactiveSplitBytes uint64 `json:"inactive_split_bytes"`
}

// Level is one sum of bytes.
type Level struct {
	Now  *uint64          `json:"now_bytes"`
	Peak *uint64          `json:"peak_bytes"`
	At   *timeline.Moment `json:"peak_at"` // nil with a Peak: when the file was written, after the events that are there
	// AtLeast: the file ends within its events, so it may have been more.
	AtLeast bool `json:"peak_at_least"`
}

// Count is one number of things.
type Count struct {
	Now  int              `json:"now"`
	Peak *int             `json:"peak"`
	At   *timeline.Moment `json:"peak_at"`

	AtLeast bool `json:"peak_at_least"` // as in Level
}

// Group is the memory in segments of one pool, stream and kind.
type Group struct {
	Pool             *[2]uint64 `json:"pool"`
	Stream           uint64     `json:"stream"`
	Type             *string    `json:"type"`
	Expandable       bool       `json:"expandable"`
	Segments         int        `json:"segments"`
	ReservedBytes    uint64     `json:"reserved_bytes"`
	AllocatedBytes   uint64     `json:"allocated_bytes"`
	ActiveBytes      uint64     `json:"active_bytes"`
	FreeBytes        uint64     `json:"free_bytes"`
	LargestFreeBytes uint64     `json:"largest_free_bytes"`
}

// Fragmentation holds fractions from 0 to 1, the first four of the state at the
// end.
type Fragmentation struct {
	ReservedUnallocated *float64 `json:"reserved_unallocated"`
	InactiveSplit       *float64 `json:"inactive_split"`
	Internal            *float64 `json:"internal"`
	External            *float64 `json:"external"`
	// OfPeaks is the fragmentation of the run: 1 - peak allocated / peak reserved.
	OfPeaks *float64 `json:"reserved_unallocated_of_peaks"`
	// AtPeak is ReservedUnallocated where reserved memory was highest.
	AtPeak *float64 `json:"reserved_unallocated_at_peak"`
}

// OOM is a request that failed.
type OOM struct {
	timeline.Moment
	RequestBytes     uint64           `json:"request_bytes"`
	DeviceFreeBytes  uint64           `json:"device_free_bytes"`
	Stream           uint64           `json:"stream"`
	ReservedBytes    uint64           `json:"reserved_bytes"`
	RequestedBytes   uint64           `json:"requested_bytes"`
	AllocatedBytes   *uint64          `json:"allocated_bytes"`
	UnallocatedBytes *uint64          `json:"unallocated_bytes"` // reserved - allocated
	FreeBytes        *uint64          `json:"free_bytes"`
	LargestFreeBytes *uint64          `json:"largest_free_bytes"`
	Frames           []timeline.Frame `json:"frames"`
	Site             timeline.Site    `json:"-"` // if there are Frames
}

// Holder is a call stack whose allocations are alive at the end.
type Holder struct {
	Bytes  uint64           `json:"active_bytes"`
	Blocks int              `json:"blocks"`
	Frames []timeline.Frame `json:"frames"`
	Site   timeline.Site    `json:"-"` // if there are Frames
}

func (c *collector) memory() {
	s, p, m := c.state, c.peaks, &c.out.Memory
	level := func(now uint64, known bool, peak *timeline.Peak) Level {
		var l Level
		if known {
			l.Now = &now
		}
		if peak != nil && c.trace.Events.Len() > 0 {
			l.Peak, l.At, l.AtLeast = &peak.Value, c.moment(peak.Event, peak.Time), c.trace.Partial
			if c.trace.Partial && known && now > peak.Value { // the state shows more than the events
				l.Peak, l.At = &now, nil
			}
		}
		return l
	}
	if c.state.Segments == 0 && c.trace.Events.Len() > 0 { // the file has events only
		last := &p.Last
		s = &timeline.State{
			Reserved: last.Reserved, Allocated: last.Allocated, Active: last.Active, Requested: last.Requested,
			Blocks: last.Blocks, RequestedKnown: true,
		}
	}
	exact := func(peak *timeline.Peak) *timeline.Peak {
		if !c.line.Exact {
			return nil
		}
		return peak
	}
	blocks := c.state.Segments > 0 || c.line.Exact || c.trace.Events.Len() == 0
	m.Reserved = level(s.Reserved, true, &p.Reserved)
	m.Allocated = level(s.Allocated, blocks, exact(&p.Allocated))
	m.Active = level(s.Active, blocks, exact(&p.Active))
	m.Requested = level(s.Requested, s.RequestedKnown, &p.Requested)
	m.Pending = level(s.Pending, true, &p.Pending)
	m.Blocks.Now = s.Blocks
	if c.trace.Events.Len() > 0 {
		n := int(p.Blocks.Value)
		m.Blocks.Peak, m.Blocks.At, m.Blocks.AtLeast = &n, c.moment(p.Blocks.Event, p.Blocks.Time), c.trace.Partial
		if c.trace.Partial && s.Blocks > n {
			m.Blocks.Peak, m.Blocks.At = &s.Blocks, nil
		}
	}
	m.FreeBytes, m.LargestFreeBytes, m.InactiveSplitBytes = s.Free, s.LargestFree, s.InactiveSplit

	f := s.Fragmentation()
	c.out.Fragmentation = Fragmentation{
		ReservedUnallocated: fraction(f.Cached), InactiveSplit: fraction(f.InactiveSplit),
		Internal: fraction(f.Internal), External: fraction(f.External),
	}
	if m.Reserved.Peak != nil && m.Allocated.Peak != nil && !c.trace.Partial {
		c.out.Fragmentation.OfPeaks = timeline.PeakFragmentation(*m.Reserved.Peak, *m.Allocated.Peak)
	}
	if m.Reserved.Peak != nil && m.Reserved.At == nil { // most is reserved at the end
		c.out.Fragmentation.AtPeak = c.out.Fragmentation.ReservedUnallocated
	} else if at := p.Served.Totals; c.line.Exact && at.Reserved >= at.Allocated {
		c.out.Fragmentation.AtPeak = fraction(timeline.Fraction(at.Reserved-at.Allocated, at.Reserved))
	}
}

// moment describes the place of an event.
func (c *collector) moment(event int, time int64) *timeline.Moment {
	m := c.moments.At(event, time)
	return &m
}

func (c *collector) segments() {
	for _, g := range timeline.Groups(c.trace) {
		out := Group{
			Stream: g.Stream, Type: text(g.Type), Expandable: g.Expandable, Segments: g.Segments,
			ReservedBytes: g.Reserved, AllocatedBytes: g.Allocated, ActiveBytes: g.Active,
			FreeBytes: g.Free, LargestFreeBytes: g.LargestFree,
		}
		if g.HasPool {
			out.Pool = &[2]uint64{g.Pool.First, g.Pool.Second}
		}
		c.out.Segments = append(c.out.Segments, out)
	}
}

func (c *collector) ooms() {
	for i, at := range c.peaks.OOMs {
		o := OOM{
			Moment: *c.moment(at.Index, at.Event.Time), RequestBytes: at.Event.Size, DeviceFreeBytes: at.Event.Addr,
			Stream: at.Event.Stream, ReservedBytes: at.Totals.Reserved, RequestedBytes: at.Totals.Requested,
			Frames: timeline.Frames(c.trace, at.Event.Stack),
		}
		if c.line.Exact {
			allocated, unallocated := at.Totals.Allocated, at.Totals.Reserved-min(at.Totals.Reserved, at.Totals.Allocated)
			o.AllocatedBytes, o.UnallocatedBytes = &allocated, &unallocated
		}
		if c.seen != nil && i < len(c.seen.OOMs) && c.seen.OOMs[i].Event == at.Index {
			o.FreeBytes, o.LargestFreeBytes = &c.seen.OOMs[i].FreeBytes, &c.seen.OOMs[i].LargestBytes
		}
		o.Site, _ = timeline.SiteOf(c.trace, at.Event.Stack)
		c.out.OOMs = append(c.out.OOMs, o)
	}
}

func (c *collector) holders() {
	all := timeline.Holders(c.trace)
	for _, h := range all {
		if h.Stack != trace.NoStack {
			c.out.HolderCount++
		}
	}
	top := all[:min(len(all), topStacks)]
	stacks, sites := make([]trace.StackID, len(top)), make([]timeline.Site, len(top))
	for i, h := range top {
		stacks[i] = h.Stack
		sites[i], _ = timeline.SiteOf(c.trace, h.Stack)
	}
	timeline.TellApart(c.trace, stacks, sites)
	for i, h := range top {
		c.out.Holders = append(c.out.Holders, Holder{h.Bytes, h.Blocks, timeline.Frames(c.trace, h.Stack), sites[i]})
	}
}

func countOOMs(t *trace.Trace) int {
	n := 0
	for i := range t.Events.Len() {
		if t.Events.Action.At(i) == alloc.ActionOOM {
			n++
		}
	}
	return n
}

// streams lists the streams of events and segments, in the order they appear.
func streams(t *trace.Trace) []uint64 {
	out := append([]uint64{}, t.Events.Streams...)
	seen := map[uint64]bool{}
	for _, s := range out {
		seen[s] = true
	}
	for i := range t.Segments {
		if s := t.Segments[i].Stream; !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

func deviceOf(t *trace.Trace) *int {
	if t.Host {
		return nil
	}
	return &t.Device
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func fraction(f float64) *float64 {
	if f < 0 {
		return nil
	}
	return &f
}

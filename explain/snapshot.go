package explain

import (
	"context"
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/facts"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/replay"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/timeline"
	"github.com/ashlar-mem/ashlar/trace"
	"github.com/ashlar-mem/ashlar/whatif"
)

// FromSnapshot explains the failed request of a recorded run, with whatever
// else is known about it.
func FromSnapshot(ctx context.Context, in Input) (*Report, error) {
	if in.Program == nil || in.Program.Check == nil {
		return nil, errors.New("explaining a snapshot: its program was not checked")
	}
	e := &explainer{Input: in, ctx: ctx, p: in.Program, t: in.Program.Trace}
	check := whatif.NewSelfCheck(e.p)
	e.r = &Report{
		SelfCheck: &check, Alternatives: []Alternative{}, Pinners: []Segment{}, Holders: []Holder{}, AtPeak: []Holder{},
		ByLine: []LineHolder{}, ByModule: []ModuleHolder{}, ByKind: []CategoryHolder{}, Findings: []Finding{}, Fixes: []Fix{},
		Arithmetic: []string{}, Record: []string{}, Notes: whatif.RestsOn(e.p),
	}
	// Who holds the memory and what stands out is found on another core.
	side := e.startFindings()
	if err := e.explain(); err != nil {
		return nil, err
	}
	if err := side.join(e); err != nil {
		return nil, err
	}
	e.believed()
	return e.r, nil
}

// explainer is one explanation in the making.
type explainer struct {
	Input
	ctx context.Context
	p   *replay.Program
	t   *trace.Trace
	r   *Report

	event  int // of the failed request; -1 if none
	limits limitRange
	f      *failing
	least  uint64 // see needAtLeast
}

// limitRange is what is known of the cap; high 0 is none.
type limitRange struct {
	low, high uint64
	source    string
}

func (e *explainer) explain() error {
	var given *replay.Call
	e.event = lastOOM(e.t)
	if e.event < 0 {
		if given = e.fromMessage(); given == nil {
			return e.healthy()
		}
		e.event = e.t.Events.Len()
	}
	e.findLimit()
	f, err := lookAt(e.ctx, e.p, e.conditions(e.limits.high), e.event, given)
	if err != nil {
		return err
	}
	e.f = f
	e.fullDevice()
	e.device()
	e.failure(given != nil)
	e.evidence()
	if err := e.verdict(); err != nil {
		return err
	}
	e.pinners()
	return e.fixes()
}

// conditions are those of the recorded run under a limit.
func (e *explainer) conditions(limit uint64) replay.Conditions {
	s := e.p.Settings
	s.PerProcessMemoryFraction = 1 // the limit stands for it
	return replay.Conditions{Settings: s, Limit: limit}
}

// lastOOM is the last failed request of a trace, or -1.
func lastOOM(t *trace.Trace) int {
	for i := t.Events.Len() - 1; i >= 0; i-- {
		if t.Events.Action.At(i) == alloc.ActionOOM {
			return i
		}
	}
	return -1
}

// fromMessage is the request that a message tells of, for a file without a
// failed request. The message gives the segment, not the tensor.
func (e *explainer) fromMessage() *replay.Call {
	m := e.Message
	if m == nil || m.TriedBytes == nil || m.Backend != message.Native || m.Device >= 0 && m.Device != e.t.Device {
		return nil
	}
	c := &replay.Call{Kind: replay.CallTry, Tensor: -1, Size: whole(m.TriedBytes, m.Backend).Low}
	if c.Size == alloc.SmallSegment {
		c.Size /= 2 // the most that the small pool serves; more would ask for another segment
	}
	if n := e.t.Events.Len(); n > 0 {
		c.Stream = e.t.Events.At(n - 1).Stream
	} else if len(e.t.Segments) > 0 {
		c.Stream = e.t.Segments[0].Stream
	}
	e.r.Notes = append(e.r.Notes, fmt.Sprintf("no request fails in the file: the one of the message, %s, is tried in the state at its end, on stream %d",
		units.Size(c.Size), c.Stream))
	return c
}

// findLimit joins what is known of the cap.
func (e *explainer) findLimit() {
	l := limitRange{source: "none"}
	b := whatif.LimitOf(e.p, e.Side)
	if b.Max != nil {
		l = limitRange{min(max(*b.Min, e.atFirst()), *b.Max), *b.Max, whatif.Inferred}
	}
	if m := e.Message; m != nil && m.LimitBytes != nil {
		r := limitRange{m.LimitBytes.Low, m.LimitBytes.High, "message"}
		if l.high > 0 && r.low <= l.high && r.high >= l.low {
			r.low, r.high = max(r.low, l.low), min(r.high, l.high)
		}
		l = r
	}
	if b.Source == whatif.Recorded {
		l = limitRange{*b.Bytes, *b.Bytes, whatif.Recorded}
	}
	if e.Limit > 0 {
		if l.high > 0 && l.source != "none" && (e.Limit > l.high || e.Limit < l.low) {
			e.r.Notes = append(e.r.Notes, fmt.Sprintf("the limit given, %s, does not agree with the file, which shows one from %s to %s",
				units.Size(e.Limit), units.Size(l.low), units.Size(l.high)))
		}
		l = limitRange{e.Limit, e.Limit, whatif.Given}
	}
	e.limits = l
	e.r.Limit = Limit{Source: l.source}
	if l.high > 0 {
		e.r.Limit.Min, e.r.Limit.Max = &l.low, &l.high
	}
}

// atFirst is a bound from below on the limit, by what was reserved before the
// first event. A mapping may exceed the limit by less than a granule, as the
// limit is compared with the segment (spec 14 item 13).
func (e *explainer) atFirst() uint64 {
	var bytes uint64
	for i := range e.p.Start.Segments {
		bytes += e.p.Start.Segments[i].TotalSize
	}
	if e.p.Settings.ExpandableSegments {
		bytes -= min(bytes, e.p.Settings.LargeSegmentSize)
	}
	return max(bytes, 1)
}

// fullDevice forgets a limit that was inferred if the device itself had no room
// for the request: what it refused looks as if a limit had.
func (e *explainer) fullDevice() {
	if e.limits.source == whatif.Inferred && e.f.deviceFree != nil && *e.f.deviceFree < e.f.segment {
		e.limits = limitRange{source: whatif.None}
		e.r.Limit = Limit{Source: whatif.None}
		e.f.c.Limit = 0
	}
}

// device adds what is known of the device beside the snapshot.
func (e *explainer) device() {
	if m := e.Message; m != nil {
		if e.f.deviceFree == nil && m.FreeBytes != nil {
			e.f.deviceFree = &m.FreeBytes.High
		}
		if m.TotalBytes != nil {
			e.f.deviceTotal = &m.TotalBytes.High
		}
	}
	if e.Side == nil {
		return
	}
	if d := e.Side.DeviceFacts(e.t.Device); d != nil && d.TotalBytes != nil {
		e.f.deviceTotal = d.TotalBytes
	}
}

// failure describes the request.
func (e *explainer) failure(fromMessage bool) {
	f := &Failure{Stream: e.f.call.Stream}
	for i := range e.t.Events.Len() {
		if e.t.Events.Action.At(i) == alloc.ActionOOM {
			f.OOMs++
		}
	}
	if e.f.call.Pool != (alloc.PoolID{}) {
		f.Pool = &[2]uint64{e.f.call.Pool.First, e.f.call.Pool.Second}
	}
	if !fromMessage {
		f.Moment = facts.NewPlaces(e.t).Event(e.event)
		stack := e.t.Events.Stack.At(e.event)
		f.Frames = timeline.Frames(e.t, stack)
		f.Site, _ = timeline.SiteOf(e.t, stack)
		for i := e.event + 1; i < e.t.Events.Len() && !f.Caught; i++ {
			f.Caught = e.t.Events.Action.At(i) == alloc.ActionAlloc
		}
	}
	if f.OOMs > 1 {
		e.r.Notes = append(e.r.Notes, fmt.Sprintf("%s requests fail in the file; the last one is explained", units.Count(int64(f.OOMs))))
	}
	if f.Caught {
		e.r.Notes = append(e.r.Notes, "the program went on after this failure: something caught it")
	}
	e.r.Failure = f
}

// evidence fills in the numbers.
func (e *explainer) evidence() {
	f := e.f
	e.r.Evidence = Evidence{
		Live: &f.live, Request: &f.call.Size, Rounded: &f.rounded, Segment: &f.segment,
		Free: &f.free.all, LargestFree: &f.free.largest, FreeUsable: &f.free.usable, LargestUsable: &f.free.largestUsable,
		FreeStreams: &f.free.streams, FreePools: &f.free.private, Pending: &f.pending, Reserved: &f.reserved,
		DeviceFree: f.deviceFree, DeviceTotal: f.deviceTotal,
	}
	if f.deviceFree != nil {
		e.r.UnderCap = *f.deviceFree >= f.segment
		if f.deviceTotal != nil && *f.deviceTotal >= f.reserved+*f.deviceFree {
			outside := *f.deviceTotal - f.reserved - *f.deviceFree
			e.r.Evidence.Outside = &outside
		}
	} else {
		e.r.UnderCap = e.limits.high > 0
	}
	if there, known := f.roomUnder(e.limits.high); known {
		e.r.Evidence.Available = &there.bytes
		if need := f.live + f.rounded; need > there.bytes {
			gap := need - there.bytes
			e.r.Evidence.Gap = &gap
		}
	}
}

// verdict decides, at both ends of what the limit may be.
func (e *explainer) verdict() error {
	f, r := e.f, e.r
	v, why, err := f.cause(e.ctx, e.limits.high)
	if err != nil {
		return err
	}
	r.Verdict, r.Confidence = v, Certain
	if !r.SelfCheck.Complete || !f.reproduced || e.event == e.t.Events.Len() {
		r.Confidence = Likely
	}
	if !f.reproduced {
		r.Notes = append(r.Notes, "the replay serves the request that failed: what made it fail is not in the file")
	}
	if there, _ := f.roomUnder(e.limits.high); v == Outside && f.live+f.rounded <= there.bytes {
		// It would also fit into what others left, in one piece.
		r.Confidence = Likely
		r.Alternatives = append(r.Alternatives, Alternative{Fragmentation, "if what others hold cannot be had: the free memory is in pieces"})
	}
	if e.limits.low < e.limits.high {
		if err := e.breakEven(v); err != nil {
			return err
		}
	}
	if v == Capacity || v == Fragmentation {
		if err := e.roundedUp(v); err != nil {
			return err
		}
	}
	r.Summary = e.summary(r.Verdict, why)
	return nil
}

// summary says in a few sentences what happened.
func (e *explainer) summary(verdict, why string) string {
	f := e.f
	asked := fmt.Sprintf("A request for %s failed with %s live", units.Size(f.call.Size), units.Size(f.live))
	need := f.live + f.rounded
	together := fmt.Sprintf("%s: together %s", asked, units.Size(need))
	room, known := f.roomUnder(e.limits.high)
	between := room.cap && e.limits.low < e.limits.high // what the limit was is not known
	there := "what the device had left"
	switch {
	case between:
		there = fmt.Sprintf("a limit between %s and %s", units.Size(e.limits.low), units.Size(e.limits.high))
		if e.r.BreakEven != nil {
			there += fmt.Sprintf(", if it was %s or more", units.Size(*e.r.BreakEven))
		}
	case room.cap:
		there = "the limit of " + units.Size(room.bytes)
	case known:
		there = units.Size(room.bytes) + " that the device had for PyTorch"
	}
	switch {
	case verdict == Capacity && e.r.BreakEven != nil:
		together += fmt.Sprintf(", which is more than a limit below %s allows; it was between %s and %s",
			units.Size(*e.r.BreakEven), units.Size(e.limits.low), units.Size(e.limits.high))
	case !known || need <= room.bytes:
	case between:
		together += fmt.Sprintf(", and the limit was less than %s", units.Size(room.bytes+1))
	default:
		together += fmt.Sprintf(", which is %s more than %s", units.Size(need-room.bytes), there)
	}
	switch verdict {
	case Capacity:
		if e.needAtLeast() > room.bytes {
			return together + ". No allocator setting helps."
		}
		return together + "."
	case Outside:
		return fmt.Sprintf("%s. It would fit on this device of %s, but %s of it belong to others: contexts, NCCL, libraries or other processes.",
			asked, units.Size(*f.deviceTotal), units.Size(*f.deviceTotal-min(*f.deviceTotal, f.device)))
	case Fragmentation:
		text := fmt.Sprintf("%s, which fit into %s. But of the %s that are reserved and free no piece is large enough: the largest is %s",
			together, there, units.Size(f.free.all), units.Size(f.free.largestUsable))
		switch {
		case between:
			text += fmt.Sprintf(", and less than the %s of a new segment are left", units.Size(f.segment))
		case known && room.bytes >= f.reserved:
			text += fmt.Sprintf(", and %s are left for a new segment of %s", units.Size(room.bytes-f.reserved), units.Size(f.segment))
		}
		return text + "."
	}
	if known && need > room.bytes {
		return fmt.Sprintf("%s; but blocks are larger than what was asked for: %s.", together, why)
	}
	return fmt.Sprintf("%s, which fit into %s: %s.", asked, there, why)
}

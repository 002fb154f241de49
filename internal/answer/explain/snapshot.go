package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/trace"
)

// FromSnapshot explains the failed request of a recorded run, with whatever
// else is known about it.
func FromSnapshot(ctx context.Context, in Input) (*Report, error) {
	e := &explainer{Input: in, ctx: ctx, program: in.Run.Program, trace: in.Run.Trace}
	check := whatif.NewSelfCheck(e.program)
	e.report = &Report{
		SelfCheck: &check, Alternatives: []Alternative{}, Pinners: []Segment{}, Holders: []Holder{}, AtPeak: []Holder{},
		ByLine: []LineHolder{}, ByModule: []ModuleHolder{}, ByKind: []CategoryHolder{}, Findings: []Finding{}, Fixes: []Fix{}, AfterUpgrade: []Fix{},
		Arithmetic: []string{}, Record: []string{}, Notes: whatif.RestsOn(e.program),
	}
	// Holders and findings are computed on another core.
	work := e.startFindings()
	if err := e.explain(); err != nil {
		return nil, err
	}
	if err := work.join(e); err != nil {
		return nil, err
	}
	if j := e.newJudge(work); j != nil {
		j.decide()
		if err := j.fixes(); err != nil {
			return nil, err
		}
	} else {
		e.report.Cause, e.report.CauseConfidence = causeOf(e.report.Trigger), e.report.Confidence
		if f := e.report.Failure; f != nil {
			e.report.shows(f.Frames, f.Site)
		}
		e.leaksWithoutFailure(work)
	}
	if e.Source != "" && e.report.Line != nil {
		e.report.Source = sourceLine(e.Source, *e.report.Line)
	}
	e.believed()
	e.releasedAtStart()
	return e.report, nil
}

// releasedAtStart adds a note if figures rest on a start state from which
// memory was released.
func (e *explainer) releasedAtStart() {
	start := e.program.Start.Reserved()
	below := func(f Fix) bool { return f.SmallestLimit != nil && *f.SmallestLimit < start }
	given := e.report.Health != nil && e.report.Health.Survives != nil && e.Limit < start
	if !given && !slices.ContainsFunc(e.report.Fixes, below) {
		return
	}
	if n, err := e.program.StartCache(); err == nil && n > 0 {
		e.report.Notes = append(e.report.Notes, whatif.ReleasedAtStart(e.program, n))
	}
}

// explainer builds one explanation.
type explainer struct {
	Input
	ctx     context.Context
	program *replay.Program
	trace   *trace.Trace
	report  *Report

	event int // of the failed request; -1 if none
	// stateOnly: the state is that of the file's segments, the events were not
	// replayed.
	stateOnly bool
	limits    limitRange
	failed    *failedRequest
	why       string // the request failed just then, in words
	least     uint64 // see needAtLeast
}

// limitRange is what is known of the cap; high 0 is none.
type limitRange struct {
	low, high uint64
	source    string
}

func (e *explainer) explain() error {
	var given *replay.Call
	e.otherDevice()
	e.event = lastOOM(e.trace)
	if e.event < 0 {
		if given = e.fromMessage(); given == nil {
			return e.healthy()
		}
		// A file with events is taken to end at the failure unless the numbers
		// say otherwise.
		if same, known := input.SameMoment(e.trace, e.Message); known && !same {
			return e.byText()
		}
		e.event = e.trace.Events.Len()
	}
	if err := e.findLimit(); err != nil {
		return err
	}
	f, err := e.findFailed(given)
	if err != nil {
		return err
	}
	e.failed = f
	e.fullDevice()
	e.device()
	e.failure(given != nil)
	e.evidence()
	if err := e.trigger(); err != nil {
		return err
	}
	e.pinners()
	return nil
}

// findFailed replays up to the failure. If the events do not replay to the end,
// but the file was written at the failure, its segments are the state there.
func (e *explainer) findFailed(given *replay.Call) (*failedRequest, error) {
	if e.report.SelfCheck.Complete || given != nil || e.trace.Partial || len(e.trace.Segments) == 0 || !e.endsThere() {
		return newFailedRequest(e.ctx, e.program, e.conditions(e.limits.high), e.event, given)
	}
	at := *e.trace
	at.Events = trace.Events{}
	state, err := run.New(&at, e.Facts).Program(e.ctx)
	if err != nil {
		return nil, err
	}
	oom := e.trace.Events.At(e.event)
	call := &replay.Call{Kind: replay.CallTry, Tensor: -1, Size: oom.Size, Stream: oom.Stream, Event: e.event}
	if e.limits.source == whatif.Inferred {
		e.setLimit(limitRange{source: whatif.None}) // from a replay that went astray
	}
	f, err := newFailedRequest(e.ctx, state, e.conditions(e.limits.high), 0, call)
	if err != nil {
		return nil, err
	}
	var reserved uint64
	for i := range e.trace.Segments {
		reserved += e.trace.Segments[i].TotalSize
	}
	if oom.Addr >= f.segment && e.limits.high == 0 {
		// The device had room, so a limit refused: one between what is reserved
		// and what would have been.
		e.setLimit(limitRange{reserved, reserved + f.segment - 1, whatif.Inferred})
		f.conditions.Limit = e.limits.high
	}
	f.deviceFree = &oom.Addr
	f.device = oom.Addr + reserved
	f.deviceBefore = f.device
	e.report.Notes = append(e.report.Notes, "the events do not replay to the end: the state at the failure is taken from the file's segments")
	e.stateOnly = true
	return f, f.again(e.ctx)
}

// otherDevice drops a message that is about another device.
func (e *explainer) otherDevice() {
	if m := e.Message; m != nil && m.Device >= 0 && m.Device != e.trace.Device {
		e.report.Notes = append(e.report.Notes, fmt.Sprintf("the message is not used: it is about device %d, the file about device %d", m.Device, e.trace.Device))
		e.Message = nil
	}
}

// byText takes the trigger from the message alone: the file is of another
// moment.
func (e *explainer) byText() error {
	text, err := FromText(Input{Message: e.Message, Stats: e.Stats, Facts: e.Facts, Limit: e.Limit, Believed: e.Believed})
	if err != nil {
		return err
	}
	r := e.report
	r.Trigger, r.Summary, r.Confidence, r.Alternatives, r.BreakEven = text.Trigger, text.Summary, text.Confidence, text.Alternatives, text.BreakEven
	r.Capped, r.Limit, r.Evidence, r.Fixes, r.Arithmetic = text.Capped, text.Limit, text.Evidence, text.Fixes, text.Arithmetic
	r.Notes = append(r.Notes, "no request fails in the file, and its end does not match the message: the verdict rests on the message alone, the holders of memory on the file")
	r.Notes = append(r.Notes, text.Notes...)
	return nil
}

// setLimit sets the limit that the explanation uses.
func (e *explainer) setLimit(l limitRange) {
	e.limits = l
	e.report.Limit = Limit{Source: l.source}
	if l.high > 0 {
		e.report.Limit.Min, e.report.Limit.Max = &l.low, &l.high
	}
}

// conditions returns the conditions of the recorded run under a limit.
func (e *explainer) conditions(limit uint64) replay.Conditions {
	s := e.program.Settings
	s.PerProcessMemoryFraction = 1 // the limit stands for it
	return replay.Conditions{Settings: s, Limit: limit}
}

// lastOOM returns the last failed request of a trace, or -1.
func lastOOM(t *trace.Trace) int {
	for i := t.Events.Len() - 1; i >= 0; i-- {
		if t.Events.Action.At(i) == alloc.ActionOOM {
			return i
		}
	}
	return -1
}

// fromMessage returns the request that a message is about, for a file without a
// failed request. The message gives the segment, not the tensor.
func (e *explainer) fromMessage() *replay.Call {
	m := e.Message
	if m == nil || m.TriedBytes == nil || m.Backend != message.Native || m.Device >= 0 && m.Device != e.trace.Device {
		return nil
	}
	rules := alloc.RulesOf(e.program.Settings, e.program.Version)
	_, most := rules.Requests(whole(m.TriedBytes, m.Backend).Low)
	c := &replay.Call{Kind: replay.CallTry, Tensor: -1, Size: most}
	if n := e.trace.Events.Len(); n > 0 {
		c.Stream = e.trace.Events.At(n - 1).Stream
	} else if len(e.trace.Segments) > 0 {
		c.Stream = e.trace.Segments[0].Stream
	}
	e.report.Notes = append(e.report.Notes, fmt.Sprintf("no request fails in the file: the message's request, %s, is tried in the file's final state, on stream %d",
		units.Size(c.Size), c.Stream))
	return c
}

// findLimit joins what is known of the cap. The error is a *[LimitError].
func (e *explainer) findLimit() error {
	l := limitRange{source: "none"}
	b := whatif.LimitOf(e.Run)
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
		if err := e.refutes(b); err != nil {
			return err
		}
		l = limitRange{e.Limit, e.Limit, whatif.Given}
	}
	e.setLimit(l)
	return nil
}

// refutes returns why the given limit is impossible, or nil.
func (e *explainer) refutes(shown whatif.Limit) error {
	if !e.report.SelfCheck.Complete || shown.Min == nil {
		return nil
	}
	least := max(*shown.Min, e.atFirst())
	if e.Limit >= least && (shown.Max == nil || e.Limit <= *shown.Max) {
		return nil
	}
	return &LimitError{Limit: e.Limit, Low: least, High: shown.Max}
}

// atFirst returns a lower bound of the limit: what was reserved before the first
// event. A mapping may exceed the limit by less than a granule, as
// the limit is compared with the segment (spec 14 item 13).
func (e *explainer) atFirst() uint64 {
	bytes := e.program.Start.Reserved()
	if e.program.Settings.ExpandableSegments {
		rules := alloc.RulesOf(e.program.Settings, e.program.Version)
		bytes -= min(bytes, rules.Granule(true))
	}
	return max(bytes, 1)
}

// fullDevice drops an inferred limit if the device itself had no room for the
// request: a refusal by the device looks like one by a limit.
func (e *explainer) fullDevice() {
	if e.limits.source == whatif.Inferred && e.failed.deviceFree != nil && *e.failed.deviceFree < e.failed.segment {
		e.limits = limitRange{source: whatif.None}
		e.report.Limit = Limit{Source: whatif.None}
		e.failed.conditions.Limit = 0
	}
}

// device adds what is known of the device beside the snapshot.
func (e *explainer) device() {
	if m := e.Message; m != nil {
		if e.failed.deviceFree == nil && m.FreeBytes != nil {
			e.failed.deviceFree = &m.FreeBytes.High
		}
		if m.TotalBytes != nil {
			e.failed.deviceTotal = &m.TotalBytes.High
		}
	}
	if e.Facts == nil {
		return
	}
	if d := e.Facts.DeviceFacts(e.trace.Device); d != nil && d.TotalBytes != nil {
		e.failed.deviceTotal = d.TotalBytes
	}
}

// failure describes the request.
func (e *explainer) failure(fromMessage bool) {
	f := &Failure{Stream: e.failed.call.Stream}
	for i := range e.trace.Events.Len() {
		if e.trace.Events.Action.At(i) == alloc.ActionOOM {
			f.OOMs++
		}
	}
	if e.failed.call.Pool != (alloc.PoolID{}) {
		f.Pool = &[2]uint64{e.failed.call.Pool.First, e.failed.call.Pool.Second}
	}
	if !fromMessage {
		f.Moment = e.Run.Moments.Event(e.event)
		stack := e.trace.Events.Stack.At(e.event)
		f.Frames = timeline.Frames(e.trace, stack)
		f.Site, _ = timeline.SiteOf(e.trace, stack)
		f.Caught = timeline.WentOn(e.trace, e.event)
	}
	if f.OOMs > 1 {
		e.report.Notes = append(e.report.Notes, fmt.Sprintf("%s requests fail in the file; the last one is explained", units.Count(int64(f.OOMs))))
	}
	if f.Caught {
		e.report.Notes = append(e.report.Notes, "the program went on after this failure: something caught it")
	}
	e.report.Failure = f
}

// evidence fills in the numbers.
func (e *explainer) evidence() {
	f := e.failed
	e.report.Evidence = Evidence{
		Live: &f.live, Request: &f.call.Size, Rounded: &f.rounded, Segment: &f.segment,
		Free: &f.free.all, LargestFree: &f.free.largest, FreeUsable: &f.free.usable, LargestUsable: &f.free.largestUsable,
		FreeStreams: &f.free.onStreams, FreePools: &f.free.inPools, Pending: &f.pending, Reserved: &f.reserved,
		DeviceFree: f.deviceFree, DeviceTotal: f.deviceTotal,
	}
	if f.deviceFree != nil {
		e.report.Capped = *f.deviceFree >= f.segment
		if f.deviceTotal != nil && *f.deviceTotal >= f.reserved+*f.deviceFree {
			outside := *f.deviceTotal - f.reserved - *f.deviceFree
			e.report.Evidence.External = &outside
		}
	} else {
		e.report.Capped = e.limits.high > 0
	}
	if there, known := f.availableUnder(e.limits.high); known {
		e.report.Evidence.Available = &there.bytes
		if need := f.live + f.rounded; need > there.bytes {
			gap := need - there.bytes
			e.report.Evidence.Gap = &gap
		}
	}
}

// trigger decides, at both ends of the limit's range.
func (e *explainer) trigger() error {
	f, r := e.failed, e.report
	var v, why string
	if f.reproduced {
		var err error
		if v, why, err = f.trigger(e.ctx, e.limits.high); err != nil {
			return err
		}
	}
	r.Trigger, r.Confidence = v, Certain
	if !r.SelfCheck.Complete && !e.stateOnly || e.event == e.trace.Events.Len() {
		r.Confidence = Likely
	}
	if !f.reproduced {
		r.Trigger, r.Confidence = Unknown, Open
		r.Summary = fmt.Sprintf("A request for %s failed with %s allocated, but the replay serves it: the cause is not in the file, the limit was another, or the device had less memory.",
			units.Size(f.call.Size), units.Size(f.live))
		return nil
	}
	if there, _ := f.availableUnder(e.limits.high); v == External && f.live+f.rounded <= there.bytes {
		// It would also fit into what others left, in one piece.
		r.Confidence = Likely
		r.Alternatives = append(r.Alternatives, Alternative{Fragmentation, "if others need what they hold: the free memory is in pieces"})
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
	if there, known := f.availableUnder(e.limits.high); v == Capacity && known && e.needAtLeast() <= there.bytes && r.Confidence == Certain {
		// Blocks are larger than what was asked for: other settings may not pad.
		r.Confidence = Likely
		r.Alternatives = append(r.Alternatives, Alternative{
			Fragmentation, fmt.Sprintf("if counted by requested bytes, %s in all: the rest is padding of blocks, which a setting may avoid", units.Size(e.needAtLeast())),
		})
	}
	e.why = why
	r.Summary = e.summary(r.Trigger, why)
	return nil
}

// summary says in a few sentences what happened.
func (e *explainer) summary(verdict, why string) string {
	f := e.failed
	asked := fmt.Sprintf("A request for %s failed with %s allocated", units.Size(f.call.Size), units.Size(f.live))
	need := f.live + f.rounded
	together := fmt.Sprintf("%s: together %s", asked, units.Size(need))
	have, known := f.availableUnder(e.limits.high)
	between := have.cap && e.limits.low < e.limits.high // what the limit was is not known
	there := "what the device had left"
	switch {
	case between:
		there = fmt.Sprintf("a limit between %s and %s", units.Size(e.limits.low), units.Size(e.limits.high))
		if e.report.BreakEven != nil {
			there += fmt.Sprintf(", if it was %s or more", units.SizeUp(*e.report.BreakEven))
		}
	case have.cap:
		there = "the limit of " + units.Size(have.bytes)
	case known:
		there = units.Size(have.bytes) + " that the device had for PyTorch"
	}
	switch {
	case verdict == Capacity && e.report.BreakEven != nil:
		together += fmt.Sprintf(", more than a limit below %s allows; the limit was between %s and %s",
			units.SizeUp(*e.report.BreakEven), units.Size(e.limits.low), units.Size(e.limits.high))
	case !known || need <= have.bytes:
	case between:
		together += fmt.Sprintf(", and the limit was less than %s", units.Size(have.bytes+1))
	default:
		together += fmt.Sprintf(", which is %s more than %s", units.Size(need-have.bytes), there)
	}
	switch verdict {
	case Capacity:
		if e.needAtLeast() > have.bytes {
			return together + ". No allocator setting helps."
		}
		return together + "."
	case External:
		return fmt.Sprintf("%s. It would fit on this device of %s, but %s of that belongs to others: contexts, NCCL, libraries or other processes.",
			asked, units.Size(*f.deviceTotal), units.Size(*f.deviceTotal-min(*f.deviceTotal, f.device)))
	case Fragmentation:
		text := fmt.Sprintf("%s, which fits within %s. But no piece of the %s reserved and free is large enough: the largest is %s",
			together, there, units.Size(f.free.all), units.Size(f.free.largestUsable))
		switch {
		case between:
			text += fmt.Sprintf(", and too little is left for a new segment of %s", units.Size(f.segment))
		case known && have.bytes >= f.reserved:
			text += fmt.Sprintf(", and only %s is left for a new segment of %s", units.Size(have.bytes-f.reserved), units.Size(f.segment))
		}
		return text + "."
	}
	if known && need > have.bytes {
		return fmt.Sprintf("%s; but blocks are larger than requested: %s.", together, why)
	}
	return fmt.Sprintf("%s, which fits within %s: %s.", together, there, why)
}

package explain

import (
	"context"
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// normalExternal is the memory that PyTorch does not own in an ordinary process:
// a CUDA context took 0.61 GiB on an H200 and 0.47 to 0.92 GiB on an A100. What
// NCCL and others take on top is not counted as normal: it may be needed, but it
// is what is missing.
const normalExternal = 1 << 30

// failedRequest is the request to explain, with the state around it.
type failedRequest struct {
	program    *replay.Program
	conditions replay.Conditions // of the recorded run
	rules      alloc.Rules       // under their settings
	event      int               // of the request; the number of events if it is not among them
	holdAt     int               // the event at which a run is paused for it
	call       replay.Call

	live, pending    uint64 // before the request; pending is not in live
	rounded, segment uint64
	releasable       uint64 // before the request

	deviceFree, deviceTotal *uint64 // as far as they are known
	device                  uint64  // what it had for PyTorch; 0 if unknown
	deviceBefore            uint64  // before that, or what was reserved if others took it since
	earlier                 int     // failed requests before this one

	held       *replay.Paused  // after the failed request: PyTorch has flushed
	after      []alloc.Segment // the state there
	reserved   uint64          // there
	free       freeMemory
	reproduced bool // the replay fails here too
	fits       bool // a cached block would serve it there
}

// freeMemory sums free memory by who may use it.
type freeMemory struct {
	inPools, onStreams      uint64 // in any private pool; on any other stream than the request's
	all, largest            uint64
	usable, largestUsable   uint64 // of the request's pool and stream
	streams, largestStreams uint64 // of other streams, in the request's pool
	private, largestPrivate uint64 // in private pools other than the request's
	privateWhole            uint64 // ... that would go back to the device if the pools were given up
	largestDefault          uint64 // in the default pool, if the request is for a private one
}

// newFailedRequest replays the run up to an event and makes the request that
// failed: that of the event, or a given one if the file ends before it.
func newFailedRequest(ctx context.Context, p *replay.Program, c replay.Conditions, event int, given *replay.Call) (*failedRequest, error) {
	f := &failedRequest{program: p, conditions: c, rules: alloc.RulesOf(c.Settings, p.Version), event: event, holdAt: holdEvent(p, event)}
	if event < p.Trace.Events.Len() {
		if e := p.Trace.Events.At(event); e.Action == alloc.ActionOOM {
			now, peak := reservedAt(p.Trace, p.Start, event)
			f.deviceFree = &e.Addr
			f.device = e.Addr + now
			f.deviceBefore = max(f.device, peak)
		}
	}
	for i := range event {
		if p.Trace.Events.Action.At(i) == alloc.ActionOOM {
			f.earlier++
		}
	}
	m, err := f.hold(ctx, c)
	if err != nil {
		return nil, err
	}
	call, ok := m.Call()
	if given != nil {
		call = *given
	} else if !ok || call.Kind != replay.CallTry || call.Event != event {
		e := p.Trace.Events.At(event)
		call = replay.Call{Kind: replay.CallTry, Tensor: -1, Size: e.Size, Stream: e.Stream, Event: event}
	}
	t := m.Totals()
	f.live, f.pending = t.Allocated, t.Active-t.Allocated
	f.call, f.rounded, f.releasable = call, f.rules.Round(call.Size), m.Releasable()
	f.segment = f.rules.SegmentSize(f.rounded)
	return f, f.request(m)
}

// request makes the failed request and takes the state after it.
func (f *failedRequest) request(m *replay.Paused) error {
	failed := m.Request(f.call)
	var oom *alloc.OutOfMemoryError
	if f.reproduced = errors.As(failed, &oom); failed != nil && !f.reproduced {
		return failed
	}
	f.held, f.after, f.reserved = m, m.Segments(), m.Totals().Reserved
	f.free = freeMemory{}
	f.countFree()
	f.fits = f.reproduced && m.WouldFit(f.call)
	return nil
}

// again makes the request once more under changed conditions.
func (f *failedRequest) again(ctx context.Context) error {
	m, err := f.hold(ctx, f.conditions)
	if err != nil {
		return err
	}
	return f.request(m)
}

// holdEvent returns the event at which to pause a run so that the request of an
// event is its next call. The frees that PyTorch waited for in that request come
// after it, but have earlier events.
func holdEvent(p *replay.Program, event int) int {
	for i := p.Len() - 1; i >= 0; i-- {
		if c := p.Call(i); c.Kind == replay.CallTry && c.Event == event {
			if i == 0 {
				return 0
			}
			return p.Call(i-1).Event + 1
		}
	}
	return event
}

// hold runs up to the request. The device has what it had then, and was as full
// before: its refusals made PyTorch flush the cache.
func (f *failedRequest) hold(ctx context.Context, c replay.Conditions) (*replay.Paused, error) {
	m, err := f.program.Hold(ctx, f.whole(c), f.holdAt)
	if err == nil && f.device > 0 {
		m.SetDeviceMemory(f.device)
	}
	return m, err
}

// reservedAt returns what a trace has reserved after an event, and the peak until
// then.
func reservedAt(t *trace.Trace, start *start.State, event int) (reserved, peak uint64) {
	for i := range start.Segments {
		reserved += start.Segments[i].TotalSize
	}
	peak = reserved
	for i := range event + 1 {
		switch t.Events.Action.At(i) {
		case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
			reserved += t.Events.Size.At(i)
			peak = max(peak, reserved)
		case alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
			reserved -= min(reserved, t.Events.Size.At(i))
		}
	}
	return reserved, peak
}

// countFree sorts free memory by who may use it.
func (f *failedRequest) countFree() {
	raise := func(sum, largest *uint64, size uint64) {
		*sum += size
		*largest = max(*largest, size)
	}
	var ignored uint64
	large := f.rules.Large(f.rounded)
	for i := range f.after {
		s := &f.after[i]
		for _, b := range s.Blocks {
			if b.State != alloc.Inactive {
				continue
			}
			raise(&f.free.all, &f.free.largest, b.Size)
			if s.Pool != (alloc.PoolID{}) {
				f.free.inPools += b.Size
			}
			if s.Stream != f.call.Stream {
				f.free.onStreams += b.Size
			}
			fitting := b.Size
			if s.Large != large {
				fitting = 0 // the other kind never serves it
			}
			switch {
			case s.Pool == f.call.Pool && s.Stream == f.call.Stream:
				raise(&f.free.usable, &f.free.largestUsable, fitting)
			case s.Pool == f.call.Pool:
				f.free.streams += b.Size
				f.free.largestStreams = max(f.free.largestStreams, fitting)
			case s.Pool == alloc.PoolID{}:
				raise(&ignored, &f.free.largestDefault, fitting)
			default:
				f.free.private += b.Size
				f.free.largestPrivate = max(f.free.largestPrivate, fitting)
				f.free.privateWhole += f.rules.Releasable(s, &b)
			}
		}
	}
}

// available is the memory that PyTorch may use: a limit, or the device.
type available struct {
	bytes uint64
	cap   bool // the limit decides
}

// availableUnder returns the memory available under a limit (0: none). It is
// unknown if neither a limit nor the device is known.
func (f *failedRequest) availableUnder(limit uint64) (available, bool) {
	var r available
	known := false
	if f.deviceFree != nil {
		r.bytes, known = f.reserved+*f.deviceFree, true
	}
	if limit > 0 && (!known || limit < r.bytes) {
		r, known = available{limit, true}, true
	}
	return r, known
}

// trigger returns the first one that applies under a limit, 0 for none.
func (f *failedRequest) trigger(ctx context.Context, limit uint64) (verdict, why string, err error) {
	there, known := f.availableUnder(limit)
	need := f.live + f.rounded
	c := f.conditions
	c.Limit = limit
	if known && need > there.bytes {
		if !there.cap && f.wouldFitAlone(need) {
			return External, "", nil
		}
		// Live blocks may be larger than what was asked for, by a setting.
		if v, why, err := f.oneSetting(ctx, c); v != "" || err != nil {
			return v, why, err
		}
		return Capacity, "", nil
	}
	if known && !there.cap && f.crowdedOut() {
		return External, "", nil
	}
	for _, try := range []func(context.Context, replay.Conditions) (string, string, error){
		f.pools, f.pendingFrees, f.otherStreams, f.oneSetting,
	} {
		if v, why, err := try(ctx, c); v != "" || err != nil {
			return v, why, err
		}
	}
	return Fragmentation, "", nil
}

// crowdedOut reports whether others take so much beyond a context that a new
// segment would fit without it, and more than PyTorch's own free memory.
func (f *failedRequest) crowdedOut() bool {
	if f.deviceTotal == nil || f.deviceFree == nil || *f.deviceTotal < f.reserved+*f.deviceFree+normalExternal {
		return false
	}
	excess := *f.deviceTotal - f.reserved - *f.deviceFree - normalExternal
	return f.segment <= *f.deviceFree+excess && excess > f.free.all
}

// wouldFitAlone reports whether need bytes would fit if PyTorch had all of the
// device but a context.
func (f *failedRequest) wouldFitAlone(need uint64) bool {
	return f.deviceTotal != nil && need+normalExternal <= *f.deviceTotal
}

// whole returns the conditions of a run from the beginning on that device.
func (f *failedRequest) whole(c replay.Conditions) replay.Conditions {
	c.DeviceMemory = f.deviceBefore
	return c
}

// servedAfter pauses the run before the request, makes a change, and reports
// whether the request is then served.
func (f *failedRequest) servedAfter(ctx context.Context, c replay.Conditions, change func(*replay.Paused) error) (served bool, err error) {
	m, err := f.hold(ctx, c)
	if err != nil {
		return false, err
	}
	if err := change(m); err != nil {
		return false, err
	}
	err = m.Request(f.call)
	var oom *alloc.OutOfMemoryError
	if errors.As(err, &oom) {
		return false, nil
	}
	return err == nil, err
}

// passes runs the whole recording under some conditions and reports whether it
// gets past the failure. Requests that failed before it in the recording may
// fail again: the program went on then.
func (f *failedRequest) passes(ctx context.Context, c replay.Conditions) (bool, *replay.Outcome, error) {
	inFile := f.event < f.program.Trace.Events.Len()
	c.SkipOOM = f.earlier > 0
	o, err := f.program.Run(ctx, c)
	switch {
	case err != nil:
		return false, nil, err
	case f.earlier == 0 && inFile:
		return !o.Fails || o.First.Event > f.event, o, nil
	case o.OOMs > int64(f.earlier):
		return false, o, nil
	}
	m, err := f.program.Hold(ctx, c, f.holdAt)
	if err != nil {
		return false, nil, err
	}
	return m.Request(f.call) == nil, o, nil
}

// pools: the request was routed to a private pool, where PyTorch does not flush
// the cache; or free memory sits in private pools.
func (f *failedRequest) pools(ctx context.Context, c replay.Conditions) (verdict, why string, err error) {
	if f.call.Pool != (alloc.PoolID{}) {
		served, err := f.servedAfter(ctx, c, (*replay.Paused).EmptyCache)
		if err != nil {
			return "", "", err
		}
		if served {
			return Pools, fmt.Sprintf("the request was routed to a private pool, where PyTorch does not release its cache; an empty_cache() before it would have released %s and served it",
				units.Size(f.releasable)), nil
		}
		if f.free.largestDefault >= f.rounded {
			return Pools, fmt.Sprintf("the request was routed to a private pool, and a free block of %s sits in the default pool", units.Size(f.free.largestDefault)), nil
		}
	}
	if f.free.largestPrivate >= f.rounded {
		return Pools, fmt.Sprintf("a free block of %s sits in a private pool", units.Size(f.free.largestPrivate)), nil
	}
	there, known := f.availableUnder(c.Limit)
	if known && f.free.privateWhole > 0 && f.reserved-f.free.privateWhole+f.segment <= there.bytes {
		return Pools, fmt.Sprintf("%s of private pools is empty; releasing it would have made room", units.Size(f.free.privateWhole)), nil
	}
	return "", "", nil
}

// pendingFrees: memory freed but waiting for another stream.
func (f *failedRequest) pendingFrees(ctx context.Context, c replay.Conditions) (verdict, why string, err error) {
	if f.pending == 0 {
		return "", "", nil
	}
	served, err := f.servedAfter(ctx, c, func(m *replay.Paused) error {
		m.CompleteAll()
		return nil
	})
	if !served {
		return "", "", err
	}
	why = fmt.Sprintf("%s was freed but waited for another stream (record_stream); without that wait the request would have been served", units.Size(f.pending))
	if f.fits {
		why += ". PyTorch did wait when it released its cache, but it does not search again after that"
	}
	return Pending, why, nil
}

// otherStreams: a free block of another stream.
func (f *failedRequest) otherStreams(context.Context, replay.Conditions) (verdict, why string, err error) {
	if f.free.largestStreams >= f.rounded {
		return Streams, fmt.Sprintf("a free block of %s belongs to another stream, in a segment that cannot be released", units.Size(f.free.largestStreams)), nil
	}
	return "", "", nil
}

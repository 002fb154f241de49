package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay/private"
	"github.com/ashlar-mem/ashlar/trace"
)

// Run makes the calls of the program under other conditions. The error is a
// *[ConditionError], the context's, or an error of the device that PyTorch would
// have met too.
func (p *Program) Run(ctx context.Context, c Conditions) (*Outcome, error) {
	r, err := p.simulate(c, nil)
	if err != nil {
		return nil, err
	}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return r.finish(), nil
}

// simulation is one run of a program.
type simulation struct {
	*Program
	outcome   *Outcome
	device    *sim.Device
	allocator *alloc.Allocator
	serial    alloc.Serial
	handles   []alloc.Handle // tensor -> block; 0 while there is none
	pools     *private.Pools
	external  []ExternalRange // still to come
	hosted    *Hosted         // nil for a run that is alone
	pass      uint64          // how often the run began again
	failures  int
	failure   error // the last
	highs     highs
	piece     highs // of the current piece of the curve
	at        int   // the call that is being made; -1 before the first

	startCalls sim.Counts // of the driver before the first call
	startCost  time.Duration
	cold       DriverWork // before the call WarmFrom
}

// highs are the highest totals of a stretch, and the calls that reached them.
type highs struct {
	reserved, allocated, active, requested         uint64
	reservedAt, allocatedAt, activeAt, requestedAt int
	then                                           PeakTotals // when reserved was highest
}

// waitStream is the first of the made-up streams that pending frees wait for.
const waitStream = 1 << 63

// simulate sets a run up; host makes its allocator, if it has one.
func (p *Program) simulate(c Conditions, host Host) (*simulation, error) {
	if err := p.Runnable(c); err != nil {
		return nil, err
	}
	config := sim.Config{TotalMemory: p.memory, Endless: true, Events: sim.Manual, Follow: p.follow}
	config.Started = p.started
	config.Mirrored = c.Mirrored && len(p.initial) == 0 && len(p.follow) == 0
	if c.DeviceMemory > 0 {
		config.TotalMemory, config.Endless = c.DeviceMemory, false
	}
	r := &simulation{
		Program: p, outcome: &Outcome{Conditions: c}, external: p.external,
		handles: make([]alloc.Handle, p.tensors), at: -1,
	}
	config.Clock = func() (int64, bool) { return p.clock(r.at) }
	r.device = sim.New(config)
	conf := c.Settings
	if len(p.initial) > 0 {
		conf = p.Settings // the state at the beginning was made under these
	}
	options := []alloc.Option{alloc.WithDevice(p.Trace.Device), alloc.WithSettings(conf), alloc.WithVersion(p.Version)}
	if p.order != nil {
		options = append(options, alloc.WithStartOrder(func(addr uint64) uint32 { return p.order[addr] }))
	}
	if c.Observe != nil {
		options = append(options, alloc.WithObserver(func(e alloc.Event) { c.Observe(r.outcome.Calls, e) }))
	}
	if host == nil {
		r.allocator = alloc.New(r.device, options...)
	} else if err := r.moveIn(host, options); err != nil {
		return nil, err
	}
	restored := host == nil || !r.hosted.Requested
	if len(p.initial) > 0 && restored {
		if err := r.allocator.Restore(p.initial, p.reserved...); err != nil {
			return nil, fmt.Errorf("starting from the state at the beginning: %w", err)
		}
	}
	r.allocator.Use(c.Settings)
	if limit := c.Cap(); limit > 0 {
		r.allocator.SetLimit(limit)
	}
	r.serial = r.allocator.Serial()
	r.pools = private.New(r.allocator)
	if restored {
		if err := r.findStart(); err != nil {
			return nil, err
		}
	}
	r.piece = highs{reservedAt: -1, allocatedAt: -1, activeAt: -1, requestedAt: -1}
	r.highs = r.piece
	r.notePeaks(-1)
	return r, nil
}

// findStart finds the tensors of a start state that was restored.
func (r *simulation) findStart() error {
	for i, addr := range r.first {
		r.handles[i] = r.serial.Find(addr)
	}
	if err := r.freeStart(); err != nil {
		return err
	}
	for i := range r.initial {
		if err := r.pools.Hold(r.initial[i].Pool); err != nil {
			return err
		}
	}
	return r.fitStart()
}

// freeStart makes the frees that were requested before the first call.
func (r *simulation) freeStart() error {
	for _, w := range r.freed {
		h := r.handles[w.tensor]
		r.handles[w.tensor] = 0
		if err := r.serial.FreeAfter(h, r.waitStream(w.stream)); err != nil {
			return err
		}
	}
	return nil
}

// fitStart releases the cache of a start state that exceeds the limit or the
// device: under these the program could not have reached that state with it.
// Nobody knows when it would have been released, so peaks, counts and driver
// time begin after it.
func (r *simulation) fitStart() error {
	c := &r.outcome.Conditions
	most := c.Cap()
	if most > 0 && r.Settings.ExpandableSegments && c.Settings.ExpandableSegments {
		// A mapping may exceed the limit by less than a granule, as the limit is
		// compared with the segment (spec 14 item 13).
		rules := alloc.RulesOf(r.Settings, r.Version)
		most += rules.Granule(true) - 1
	}
	if c.DeviceMemory > 0 && (most == 0 || c.DeviceMemory < most) {
		most = c.DeviceMemory
	}
	before := r.serial.Totals().Reserved
	if len(r.initial) == 0 || most == 0 || before <= most {
		return nil
	}
	if err := r.allocator.EmptyCache(); err != nil {
		return err
	}
	t := r.serial.Totals()
	r.outcome.StartReleased = before - t.Reserved
	r.allocator.ResetPeakStats()
	r.allocator.ResetAccumulatedStats()
	r.startCalls, r.startCost = r.device.Calls(), r.device.Cost()
	if t.Reserved > most {
		r.outcome.Fails = true
		r.outcome.First = &Failure{
			Event: -1, Time: trace.NoTime, AtStart: true, Active: t.Active, LargestFree: r.serial.LargestFree(),
			OutOfMemoryError: &alloc.OutOfMemoryError{
				Device: r.Trace.Device, Limited: c.Cap() > 0, Limit: c.Cap(), Reserved: t.Reserved, Allocated: t.Allocated, DeviceTotal: c.DeviceMemory,
			},
		}
	}
	return nil
}

// StartCache returns the [Outcome].StartReleased of a run under a limit below
// what its start state reserves.
func (p *Program) StartCache() (uint64, error) {
	c := Conditions{Settings: p.Settings, Limit: 1}
	c.Settings.PerProcessMemoryFraction = 1
	c.Settings.ExpandableSegments = false // these may exceed a limit
	r, err := p.simulate(c, nil)
	if err != nil {
		return 0, err
	}
	return r.outcome.StartReleased, nil
}

// stride is how many calls are made between two checks of the context.
const stride = 1 << 16

func (r *simulation) run(ctx context.Context) error {
	c := &r.outcome.Conditions
	n := len(r.calls)
	if c.BlockSizes {
		r.outcome.BlockSizes = make([]uint64, r.tensors)
	}
	from := min(c.From, n)
	if from > 0 {
		if err := r.runTo(ctx, from); err != nil {
			return err
		}
		if !r.ended() {
			r.reset(from - 1)
		}
	}
	points := min(c.Points, n-from)
	pieces := max(points, 1)
	for k := range pieces {
		if err := r.runTo(ctx, from+int(int64(n-from)*int64(k+1)/int64(pieces))); err != nil {
			return err
		}
		r.closePiece(points > 0)
		if r.ended() {
			break
		}
	}
	return nil
}

// runTo makes the calls up to end, or up to a failure that ends the run. An
// observed run makes them one by one, so that Calls is the current one.
func (r *simulation) runTo(ctx context.Context, end int) error {
	c := &r.outcome.Conditions
	stride := stride
	switch {
	case c.Observe != nil:
		stride = 1
	case c.GiveUp > 0:
		stride = 1 << 12
	}
	for r.outcome.Calls < end && !r.ended() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if c.Progress != nil {
			c.Progress(r.outcome.Calls, len(r.calls))
		}
		next := min(r.outcome.Calls+stride, end)
		if r.outcome.Calls < c.WarmFrom {
			next = min(next, c.WarmFrom)
		}
		if err := r.makeCalls(r.outcome.Calls, next); err != nil {
			return err
		}
		if r.outcome.Calls <= c.WarmFrom {
			r.cold = r.driverWork()
		}
		r.outcome.GaveUp = c.GiveUp > 0 && max(r.highs.reserved, r.piece.reserved) > c.GiveUp
	}
	return nil
}

// driverWork returns what the driver did since the start.
func (r *simulation) driverWork() DriverWork {
	s := r.allocator.Stats()
	return DriverWork{Calls: s.NumDeviceAlloc + s.NumDeviceFree, Time: r.device.Cost() - r.startCost}
}

// reset restarts the peaks from the totals after a call.
func (r *simulation) reset(call int) {
	r.allocator.ResetPeakStats()
	r.piece = highs{reservedAt: call, allocatedAt: call, activeAt: call, requestedAt: call}
	r.highs = r.piece
	r.notePeaks(call)
}

// ended reports whether a failure ended the run, or that it was given up.
func (r *simulation) ended() bool {
	return r.outcome.Fails && !r.outcome.Conditions.SkipOOM || r.outcome.GaveUp
}

// makeCalls makes the calls from i to end, or to the next ExternalRange.
func (r *simulation) makeCalls(i, end int) error {
	for len(r.external) > 0 && r.external[0].Call <= i {
		if err := r.device.TakeExternal(r.external[0].ExternalRange); err != nil {
			return err
		}
		r.external = r.external[1:]
	}
	if len(r.external) > 0 {
		end = min(end, r.external[0].Call)
	}
	s, calls, handles, sizes := r.serial, r.calls, r.handles, r.outcome.BlockSizes
	for ; i < end; i++ {
		c := calls[i]
		r.at = i
		switch c.kind() {
		case CallFree:
			h := handles[c.tensor]
			handles[c.tensor] = 0
			if err := s.Free(h); err != nil {
				return err
			}
		case CallAlloc:
			at := &r.places[c.placeOrStream()]
			var h alloc.Handle
			var err error
			if at.pool == (alloc.PoolID{}) && r.hosted == nil {
				h, err = s.Malloc(c.size, at.stream)
			} else {
				h, err = r.routed(c.size, at)
			}
			handles[c.tensor] = h
			if sizes != nil && h != 0 {
				sizes[c.tensor] = s.Size(h)
			}
			r.notePeaks(i)
			if err != nil {
				if err := r.failed(i, err); err != nil {
					return err
				}
				if r.ended() {
					r.outcome.Calls = i
					return nil
				}
			}
		default:
			if err := r.makeRareCall(i); err != nil {
				return err
			}
			if r.ended() {
				r.outcome.Calls = i
				return nil
			}
		}
	}
	r.outcome.Calls = i
	return nil
}

// makeRareCall makes call i, which is neither an alloc nor a plain free.
func (r *simulation) makeRareCall(i int) error {
	c := r.calls[i]
	switch c.kind() {
	case CallFreeLater:
		h := r.handles[c.tensor]
		r.handles[c.tensor] = 0
		return r.serial.FreeAfter(h, r.waitStream(c.placeOrStream()))
	case CallComplete:
		r.device.Complete(r.waitStream(c.placeOrStream()))
	case CallEmptyCache:
		return r.allocator.EmptyCache()
	case CallClosePool:
		return r.pools.Close(r.poolID(r.places[c.placeOrStream()].pool))
	case CallTry:
		return r.repeatFailed(i)
	}
	return nil
}

// repeatFailed makes a request that failed in the recording. If it is served, it
// frees the memory at once: the recording does not show how long the program
// would have kept it.
func (r *simulation) repeatFailed(i int) error {
	c := r.calls[i]
	at := &r.places[c.placeOrStream()]
	h, err := r.routed(c.size, at)
	r.notePeaks(i)
	if err != nil {
		return r.failed(i, err)
	}
	return r.serial.Free(h)
}

// routed allocates from a pool, which may be the default one.
func (r *simulation) routed(size uint64, at *place) (h alloc.Handle, err error) {
	err = r.pools.Route(r.poolID(at.pool), func() (err error) {
		h, err = r.malloc(size, at.stream)
		return err
	})
	return h, err
}

// failed records that call i failed. It returns errors other than out of memory.
func (r *simulation) failed(i int, err error) error {
	var oom *alloc.OutOfMemoryError
	if !errors.As(err, &oom) {
		return err
	}
	r.failures, r.failure = r.failures+1, err
	if r.outcome.Fails {
		return nil
	}
	event := int(r.events[i])
	t := r.serial.Totals()
	r.outcome.Fails = true
	r.outcome.First = &Failure{
		Event: event, Time: r.time(event), Stack: r.stack(event),
		RecordedToo: r.calls[i].kind() == CallTry, OutOfMemoryError: oom,
		Active: t.Active, LargestFree: r.serial.LargestFree(),
	}
	return nil
}

// notePeaks raises the peaks to the totals after call i.
func (r *simulation) notePeaks(i int) {
	t := r.serial.Totals()
	if t.Allocated > r.piece.allocated {
		r.piece.allocated, r.piece.allocatedAt = t.Allocated, i
	}
	if t.Active > r.piece.active {
		r.piece.active, r.piece.activeAt = t.Active, i
	}
	if t.Requested > r.piece.requested {
		r.piece.requested, r.piece.requestedAt = t.Requested, i
	}
	if t.Reserved > r.piece.reserved {
		r.piece.reserved, r.piece.reservedAt = t.Reserved, i
		r.piece.then = PeakTotals{t.Allocated, t.Active, t.Requested}
	}
}

// closePiece ends a piece of the curve.
func (r *simulation) closePiece(point bool) {
	h, at := &r.highs, &r.piece
	raise := func(to *uint64, toAt *int, from uint64, fromAt int) {
		if from > *to {
			*to, *toAt = from, fromAt
		}
	}
	if at.reserved > h.reserved {
		h.then = at.then
	}
	raise(&h.reserved, &h.reservedAt, at.reserved, at.reservedAt)
	raise(&h.allocated, &h.allocatedAt, at.allocated, at.allocatedAt)
	raise(&h.active, &h.activeAt, at.active, at.activeAt)
	raise(&h.requested, &h.requestedAt, at.requested, at.requestedAt)
	if !point {
		return
	}
	now := r.serial.Totals()
	p := Point{
		Reserved: at.reserved, Allocated: at.allocated, Active: at.active, Requested: at.requested,
		ReservedNow: now.Reserved, AllocatedNow: now.Allocated, LargestFree: r.serial.LargestFree(), Time: trace.NoTime,
	}
	if n := min(r.outcome.Calls, len(r.calls)-1); n >= 0 {
		p.Event = int(r.events[n])
		p.Time = r.time(p.Event)
	}
	r.outcome.Curve = append(r.outcome.Curve, p)
	r.piece = highs{reserved: now.Reserved, allocated: now.Allocated, active: now.Active, requested: now.Requested}
}

func (r *simulation) finish() *Outcome {
	o := r.outcome
	o.Stats = r.allocator.Stats()
	high := func(bytes int64, call int) High {
		h := High{Bytes: uint64(bytes), Event: -1, Time: trace.NoTime}
		if call >= 0 {
			h.Event = int(r.events[call])
			h.Time = r.time(h.Event)
		}
		return h
	}
	o.Reserved = high(o.Stats.ReservedBytes.All.Peak, r.highs.reservedAt)
	o.Allocated = high(o.Stats.AllocatedBytes.All.Peak, r.highs.allocatedAt)
	o.Active = high(o.Stats.ActiveBytes.All.Peak, r.highs.activeAt)
	o.Requested = high(o.Stats.RequestedBytes.All.Peak, r.highs.requestedAt)
	o.AtPeak = r.highs.then
	o.Retries, o.OOMs = o.Stats.NumAllocRetries, o.Stats.NumOOMs
	o.LeastRefused = r.serial.LeastRefused()
	o.DeviceAllocs, o.DeviceFrees = o.Stats.NumDeviceAlloc, o.Stats.NumDeviceFree
	calls := r.device.Calls()
	o.Maps, o.Unmaps = int64(calls[sim.Map]-r.startCalls[sim.Map]), int64(calls[sim.Unmap]-r.startCalls[sim.Unmap])
	o.DriverTime = r.device.Cost() - r.startCost
	now := r.driverWork()
	o.Warm = DriverWork{Calls: now.Calls - r.cold.Calls, Time: now.Time - r.cold.Time}
	if o.Conditions.Observe != nil {
		o.Segments = r.allocator.Segments()
	}
	return o
}

package replay

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tier"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay/private"
)

// Overflow is what a run with alloc/tier has beside its [Conditions].
type Overflow struct {
	Host   uint64         // the most host memory that is taken
	Events []int          // with which steps begin, ascending
	Cold   func(int) bool // reports whether a tensor is named as seldom used; nil names none
	Busy   func(int) bool // reports whether one that lives long is named as used much; nil names none

	// Before Fetches, ascending events, what State reports comes home as far as there is room; nil if nothing does.
	Fetches []int
	State   func(int) bool
}

// OverflowOutcome is what became of a run with overflow.
type OverflowOutcome struct {
	Fails    bool
	Failure  *alloc.OutOfMemoryError // the first
	HostPeak uint64                  // the most host memory behind addresses
	Steps    []OverflowStep          // what comes before the first begins with event -1
}

// OverflowStep is what a step finds in the host's memory.
type OverflowStep struct {
	Event  int           // with which it begins
	Moves  time.Duration // what moving memory takes, in it and at its end, without making pages of the host and waiting for the device
	Waits  int           // how often the whole device was waited for
	Gives  int           // how often a stream was waited for to give cached memory back, and nothing was moved
	Mapped uint64        // the bytes that requests have mapped: in most steps what was given back before
	Away   []Away        // what of its tensors lies in the host's memory
}

// Away is a tensor in the host's memory.
type Away struct {
	Tensor int    // -1: a request that failed when it was recorded, and is served now
	Event  int    // that shows this request
	Bytes  uint64 // of it there
	Moved  bool   // it was made on the device in this step, and moved when others needed its place
	Home   bool   // it came home before it was used, or, if it was moved, soon after
}

// overflowRun is a run over a tier.
type overflowRun struct {
	*Program
	device *sim.Device
	engine *alloc.Allocator
	store  *tier.Store
	space  *tier.Space
	pools  *private.Pools
	names  Overflow
	addrs  []uint64 // tensor -> address; 0 while it has none
	born   []int32  // tensor -> step
	out    *OverflowOutcome
	made   []Away // those of the current step that were made on the host, or moved there
	left   map[int]bool
	moved  tier.Stats // what was moved so far
	waits  int        // so far
	mapped uint64     // so far
}

// RunOverflow makes the calls of the program over a tier: a request that would fail gets host
// memory, and cold memory makes room at the ends of steps. What was there before the first call is
// allocated first. Expandable segments are on. A request that fails all the same ends the run.
func (p *Program) RunOverflow(ctx context.Context, c Conditions, o Overflow) (*OverflowOutcome, error) {
	c.Settings.ExpandableSegments = true
	if err := p.Runnable(c); err != nil {
		return nil, err
	}
	total := cmp.Or(c.DeviceMemory, 2*max(p.memory, c.Limit))
	r := &overflowRun{
		Program: p, device: sim.New(sim.Config{TotalMemory: total, HostMemory: o.Host, Events: sim.Manual}), names: o,
		addrs: make([]uint64, p.tensors), born: make([]int32, p.tensors), out: &OverflowOutcome{}, left: map[int]bool{},
	}
	begin := time.Unix(0, 0)
	var err error
	r.store, err = tier.New(r.device, tier.Options{
		Host: o.Host, Overflow: true, Now: func() time.Time { return begin.Add(r.device.Cost()) },
		// In a training loop one thread works at a time, and the backward pass while its caller waits.
		Alone: func() bool { return true },
	})
	if err != nil {
		return nil, err
	}
	r.space = r.store.Space("run")
	r.engine = alloc.New(r.space.Driver(), alloc.WithSettings(c.Settings), alloc.WithVersion(p.Version))
	if err := r.space.Attach(r.engine); err != nil {
		return nil, err
	}
	if limit := c.Cap(); limit > 0 {
		r.engine.SetLimit(limit)
	}
	r.pools = private.New(r.engine)
	if err := r.run(ctx, o.Events); err != nil && r.out.Failure == nil {
		return nil, err
	}
	return r.out, nil
}

func (r *overflowRun) run(ctx context.Context, events []int) (err error) {
	r.out.Steps = []OverflowStep{{Event: -1}}
	r.EachFirst(func(tensor int, c Call) {
		if err == nil {
			err = r.malloc(tensor, c)
		}
	})
	if err != nil {
		return err
	}
	for _, w := range r.freed {
		if err := r.freeLater(w.tensor, w.stream); err != nil {
			return err
		}
	}
	for i := range r.calls {
		if i%stride == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for len(events) > 0 && int(r.events[i]) >= events[0] {
			if err := r.fetchUntil(events[0]); err != nil {
				return err
			}
			if err := r.mark(events[0]); err != nil {
				return err
			}
			events = events[1:]
		}
		if err := r.fetchUntil(int(r.events[i])); err != nil {
			return err
		}
		if err := r.call(r.Call(i)); err != nil {
			return err
		}
	}
	r.closeStep()
	return nil
}

// moveTime is what moves take between two statistics.
func moveTime(now, before tier.Stats) time.Duration {
	return sim.MoveOutTime(now.BytesOut-before.BytesOut) + sim.MoveInTime(now.BytesIn-before.BytesIn)
}

// countMoves adds what was moved since the last time to the step.
func (r *overflowRun) countMoves() {
	now := r.space.Stats()
	step, waits := &r.out.Steps[len(r.out.Steps)-1], r.device.Calls()[sim.SynchronizeDevice]
	step.Moves += moveTime(now, r.moved)
	mapped := uint64(r.engine.Stats().ReservedBytes.All.Allocated) - now.BytesIn
	step.Mapped += mapped - r.mapped
	r.mapped = mapped
	step.Waits += waits - r.waits
	r.waits = waits
	r.moved = now
}

// mark ends a step and begins the next.
func (r *overflowRun) mark(event int) error {
	r.countMoves()
	r.closeStep()
	if _, err := r.store.Step(); err != nil && !errors.Is(err, driver.ErrOutOfMemory) {
		return err
	}
	r.countMoves()
	r.out.Steps = append(r.out.Steps, OverflowStep{Event: event})
	return nil
}

// fetchUntil does the fetches up to an event.
func (r *overflowRun) fetchUntil(event int) error {
	due := false
	for len(r.names.Fetches) > 0 && r.names.Fetches[0] <= event {
		due, r.names.Fetches = true, r.names.Fetches[1:]
	}
	if !due || r.store.HostInUse() == 0 {
		return nil
	}
	var addrs []uint64
	far := map[int]uint64{} // by tensor
	for tensor, addr := range r.addrs {
		if addr == 0 || !r.names.State(tensor) {
			continue
		}
		if _, host, _, _ := r.space.Where(addr); host > 0 {
			addrs = append(addrs, addr)
			far[tensor] = host
		}
	}
	if _, err := r.space.Fetch(addrs); err != nil {
		return err
	}
	r.countMoves()
	for tensor, before := range far {
		if _, host, _, _ := r.space.Where(r.addrs[tensor]); host < before {
			r.made = append(r.made, Away{Tensor: tensor, Bytes: before - host, Home: true})
		}
	}
	return nil
}

// closeStep notes what of the live tensors lies on the host.
func (r *overflowRun) closeStep() {
	step := &r.out.Steps[len(r.out.Steps)-1]
	step.Away, r.made = r.made, nil
	clear(r.left)
	if r.space.Stats().Host == 0 {
		return
	}
	number := int32(len(r.out.Steps))
	for tensor, addr := range r.addrs {
		if addr == 0 || r.born[tensor] == number {
			continue
		}
		if _, far, _, _ := r.space.Where(addr); far > 0 {
			step.Away = append(step.Away, Away{Tensor: tensor, Bytes: far})
		}
	}
}

func (r *overflowRun) call(c Call) error {
	switch c.Kind {
	case CallAlloc:
		return r.malloc(c.Tensor, c)
	case CallTry:
		addr, err := r.request(c)
		if err != nil {
			return err
		}
		if _, far, _, _ := r.space.Where(addr); far > 0 {
			r.made = append(r.made, Away{Tensor: -1, Event: c.Event, Bytes: far})
		}
		return r.engine.Free(addr)
	case CallFree:
		addr := r.addrs[c.Tensor]
		r.addrs[c.Tensor] = 0
		return r.engine.Free(addr)
	case CallFreeLater:
		return r.freeLater(int32(c.Tensor), int(c.Stream))
	case CallComplete:
		r.device.Complete(waitStream + c.Stream)
	case CallEmptyCache:
		return r.engine.EmptyCache()
	case CallClosePool:
		return r.pools.Close(c.Pool)
	}
	return nil
}

func (r *overflowRun) freeLater(tensor int32, stream int) error {
	addr := r.addrs[tensor]
	r.addrs[tensor] = 0
	return errors.Join(r.engine.RecordStream(addr, waitStream+uint64(stream)), r.engine.Free(addr))
}

// request asks the engine, and notes the failure that ends the run.
func (r *overflowRun) request(c Call) (addr uint64, err error) {
	moves, calls := r.store.Moves(), r.device.Calls()
	defer func() {
		if r.store.Moves() != moves {
			r.noteMoved()
		}
		if now := r.device.Calls(); now[sim.Synchronize] > calls[sim.Synchronize] && now[sim.SynchronizeDevice] == calls[sim.SynchronizeDevice] {
			r.out.Steps[len(r.out.Steps)-1].Gives++
		}
	}()
	err = r.pools.Route(c.Pool, func() (err error) {
		addr, err = r.engine.Malloc(c.Size, c.Stream)
		return err
	})
	if errors.As(err, &r.out.Failure) {
		r.out.Fails = true
	}
	r.out.HostPeak = max(r.out.HostPeak, r.store.HostInUse())
	return addr, err
}

// noteMoved notes which tensors of the step a request has moved, if it has moved any memory.
func (r *overflowRun) noteMoved() {
	before := r.moved
	r.countMoves()
	if r.moved.BytesIn != before.BytesIn {
		r.noteHome()
	}
	if r.moved.BytesOut == before.BytesOut {
		return
	}
	for tensor, addr := range r.addrs {
		if addr == 0 || r.born[tensor] != int32(len(r.out.Steps)) || r.left[tensor] {
			continue
		}
		if _, far, _, _ := r.space.Where(addr); far > 0 {
			r.left[tensor] = true
			r.made = append(r.made, Away{Tensor: tensor, Bytes: far, Moved: true})
		}
	}
}

// noteHome notes which of the tensors that were moved in this step are on the device again.
func (r *overflowRun) noteHome() {
	for i := range r.made {
		w := &r.made[i]
		if !w.Moved {
			continue
		}
		if addr := r.addrs[w.Tensor]; addr != 0 {
			if _, far, _, _ := r.space.Where(addr); far == 0 {
				w.Home = true
			}
		}
	}
}

func (r *overflowRun) malloc(tensor int, c Call) error {
	before := r.store.Moves()
	addr, err := r.request(c)
	if err != nil {
		return err
	}
	r.addrs[tensor], r.born[tensor] = addr, int32(len(r.out.Steps))
	if r.names.Cold != nil && r.names.Cold(tensor) {
		r.space.Cold(addr)
	}
	if r.names.Busy != nil && r.names.Busy(tensor) {
		r.space.Busy(addr)
	}
	if r.store.Moves() != before || r.store.HostInUse() > 0 {
		if _, far, _, _ := r.space.Where(addr); far > 0 {
			r.left[tensor] = true
			r.made = append(r.made, Away{Tensor: tensor, Bytes: far})
		}
	}
	return nil
}

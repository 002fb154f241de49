package generate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/private"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// runner runs a program on one device. The same runner run twice does the same.
type runner struct {
	*program
	device   int
	settings settings.Settings
	version  pytorch.Version // of PyTorch, whose rules hold
	stacks   *stackSource
	seed     uint64
	onePass  bool
	limit    uint64 // on reserved bytes, with the first failure ending the run; 0 for none

	// Set by run:
	allocator *alloc.Allocator
	dev       *sim.Device
	addrs     []uint64 // tensor -> address; 0 while there is none
	streams   map[uint64]uint64
	idle      []uint64 // made-up streams free for use
	calls     int64
	now       snapshot.StreamEvent // what the events of the running call have in common
	emit      func(snapshot.StreamEvent) bool
	events    int64
	stopped   bool
	failed    bool // a request, under the limit

	pools                  *private.Pools
	names                  map[alloc.PoolID]alloc.PoolID // recorded -> in this run
	lastGraph, lastMemPool uint64                        // in the names of pools
}

// A pass follows the one before after a pause of so many microseconds.
const (
	minPause = 100
	maxPause = 1000
)

// deviceStep keeps the addresses of several devices apart: plain segments go
// down from deviceTop, expandable ones up from 0.
const (
	deviceStep = 1 << 42
	deviceTop  = 1 << 46
	maxDevices = 16
)

// run runs the program until done, called after each call, returns true, emit
// returns false, or a request fails under the limit.
func (r *runner) run(ctx context.Context, emit func(snapshot.StreamEvent) bool, done func() bool) error {
	r.dev = sim.New(sim.Config{TotalMemory: max(256<<30, 4*r.peak), Events: sim.Manual})
	r.allocator = alloc.New(r.dev, alloc.WithDevice(r.device), alloc.WithSettings(r.settings), alloc.WithVersion(r.version), alloc.WithObserver(r.observe))
	if err := r.allocator.SetMemoryFraction(1); err != nil {
		return err
	}
	if r.limit > 0 {
		r.allocator.SetLimit(r.limit)
	}
	r.namePools()
	r.addrs = make([]uint64, r.tensors)
	r.streams, r.idle = map[uint64]uint64{}, nil
	r.emit, r.events, r.calls, r.stopped, r.failed = emit, 0, 0, false, false
	clock := newClock(r.program, r.seed)
	for pass := 0; ; pass++ {
		before := r.events
		for i := range r.ops {
			o := &r.ops[i]
			if pass > 0 && o.once {
				continue
			}
			if r.calls%1024 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := r.call(o, clock.timeOf(pass, o.time)); err != nil {
				return err
			}
			if r.stopped || r.failed || done() {
				return nil
			}
		}
		if r.onePass {
			return nil
		}
		if !r.repeats {
			return fmt.Errorf("it has %d events, and no more can be made: nothing that it allocates is freed again", r.events)
		}
		if r.events == before {
			return errors.New("it repeats without events: no request can be served")
		}
		r.dev.CompleteAll()
	}
}

// call makes one call of the allocator.
func (r *runner) call(o *op, now int64) error {
	r.now = snapshot.StreamEvent{Event: trace.Event{
		Time: now, Meta: o.meta, Compile: o.compile, Stack: r.stacks.next(o.stack, r.calls, r.device),
	}}
	r.calls++
	addr := uint64(0)
	switch o.kind {
	case replay.CallFree, replay.CallFreeLater, replay.CallComplete:
		if addr = r.addrs[o.tensor]; addr == 0 {
			return nil // its allocation failed
		}
	}
	switch o.kind {
	case replay.CallAlloc:
		return r.malloc(o)
	case replay.CallFree:
		r.addrs[o.tensor] = 0
		return r.allocator.Free(addr)
	case replay.CallFreeLater:
		if err := r.allocator.RecordStream(addr, r.otherStream(addr)); err != nil {
			return err
		}
		return r.allocator.Free(addr)
	case replay.CallComplete:
		r.addrs[o.tensor] = 0
		if s, ok := r.streams[addr]; ok {
			r.dev.Complete(s)
		}
	case replay.CallEmptyCache:
		return r.allocator.EmptyCache()
	case replay.CallClosePool:
		id := r.pool(o.pool)
		delete(r.names, o.pool)
		return r.pools.Close(id)
	case replay.CallSnapshot:
		r.allocator.Snapshot()
	}
	return nil
}

func (r *runner) malloc(o *op) error {
	err := r.pools.Route(r.pool(o.pool), func() (err error) {
		r.addrs[o.tensor], err = r.allocator.Malloc(o.size, o.stream)
		return err
	})
	var oom *alloc.OutOfMemoryError
	if errors.As(err, &oom) {
		r.failed, err = r.limit > 0, nil
	}
	return err
}

// namePools lets the pools that the file names keep their names.
func (r *runner) namePools() {
	r.pools, r.names, r.lastGraph, r.lastMemPool = private.New(r.allocator), map[alloc.PoolID]alloc.PoolID{}, 0, 0
	for _, id := range r.finalPools {
		r.names[id] = id
		r.lastGraph, r.lastMemPool = max(r.lastGraph, id.First), max(r.lastMemPool, id.Second)
	}
}

// pool returns the pool that stands for a recorded one. As in PyTorch a name is
// used once: a pool that was deleted comes back under another.
func (r *runner) pool(recorded alloc.PoolID) alloc.PoolID {
	id, ok := r.names[recorded]
	switch {
	case ok || recorded == alloc.PoolID{}:
		return id
	case recorded.First == 0:
		r.lastMemPool++
		id.Second = r.lastMemPool
	default:
		r.lastGraph++
		id.First = r.lastGraph
	}
	r.names[recorded] = id
	return id
}

// otherStream returns a stream that nothing else waits for. Which one it is
// shows nowhere.
func (r *runner) otherStream(addr uint64) uint64 {
	stream := 1<<63 + uint64(len(r.streams)+len(r.idle)+1)
	if n := len(r.idle); n > 0 {
		stream, r.idle = r.idle[n-1], r.idle[:n-1]
	}
	r.streams[addr] = stream
	return stream
}

// observe passes an event on.
func (r *runner) observe(e alloc.Event) {
	if e.Action == alloc.ActionFreeCompleted {
		if s, ok := r.streams[e.Addr]; ok {
			delete(r.streams, e.Addr)
			r.idle = append(r.idle, s)
		}
	}
	if r.stopped {
		return
	}
	ev := r.now
	ev.Action, ev.Addr, ev.Size, ev.Stream = e.Action, e.Addr, e.Size, e.Stream
	if e.Action != alloc.ActionOOM && e.Action != alloc.ActionSnapshot {
		ev.Addr = r.shift(e.Addr)
	}
	r.events++
	r.now.SameCall = true
	r.stopped = !r.emit(ev)
}

// shift moves an address to where the device's addresses are.
func (r *runner) shift(addr uint64) uint64 {
	if addr >= deviceTop {
		return addr - uint64(r.device)*deviceStep
	}
	return addr + uint64(r.device)*deviceStep
}

// clock computes the time of an op in each pass.
type clock struct {
	*program
	rng    *rand.Rand
	pass   int
	offset int64
}

func newClock(p *program, seed uint64) *clock {
	return &clock{program: p, rng: rand.New(rand.NewPCG(seed, 0))}
}

// timeOf returns the time of something that happens at a time of the program.
// Passes are asked for in their order.
func (c *clock) timeOf(pass int, since int64) int64 {
	if !c.timed {
		return trace.NoTime
	}
	for ; c.pass < pass; c.pass++ {
		c.offset += c.span + minPause + c.rng.Int64N(maxPause-minPause)
	}
	return c.begin + c.offset + since
}

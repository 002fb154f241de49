package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Scenario is a running program. Its methods do nothing once the program has
// ended or failed; the first mistake is the error of Run.
type Scenario struct {
	config Config
	conf   settings.Settings
	dev    *sim.Device
	a      *alloc.Allocator
	t      *trace.Trace

	now      int64
	outer    []trace.FrameID // of Call, innermost first
	stack    trace.StackID   // of the running call
	meta     trace.StringID
	live     map[string]uint64 // name -> address
	stacks   map[uint64]trace.StackID
	segments map[uint64]trace.StackID // who got them from the driver
	pools    map[string]*alloc.MemPool
	captures map[string]*alloc.Capture
	step     trace.StringID // the open annotation

	oom  *alloc.OutOfMemoryError
	done bool
	err  error
}

// Run runs a program and returns what PyTorch would have dumped. The error
// tells a mistake in the program; an allocation that fails is none.
func Run(c Config, program func(*Scenario)) (*trace.Trace, error) {
	s, err := start(c)
	if err != nil {
		return nil, err
	}
	program(s)
	s.finish()
	return s.t, s.err
}

func start(c Config) (*Scenario, error) {
	conf, err := settings.Parse(c.Conf)
	if err != nil {
		return nil, err
	}
	s := &Scenario{
		config: c, conf: conf, now: begin,
		dev:  sim.New(sim.Config{TotalMemory: c.TotalMemory, Unusable: c.Unusable, Events: sim.Manual}),
		t:    &trace.Trace{Device: c.Device, Strings: &trace.Strings{}, Stacks: trace.NewStacks()},
		live: map[string]uint64{}, stacks: map[uint64]trace.StackID{}, segments: map[uint64]trace.StackID{},
		pools: map[string]*alloc.MemPool{}, captures: map[string]*alloc.Capture{},
	}
	s.a = alloc.New(s.dev, alloc.WithDevice(c.Device), alloc.WithSettings(conf), alloc.WithObserver(s.observe))
	if c.Limit > 0 {
		s.a.SetLimit(c.Limit)
	}
	return s, nil
}

// observe appends an event to the trace.
func (s *Scenario) observe(e alloc.Event) {
	switch e.Action {
	case alloc.ActionAlloc:
		s.stacks[e.Addr] = s.stack
	case alloc.ActionFreeCompleted:
		delete(s.stacks, e.Addr)
	case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
		s.segments[e.Addr] = s.stack
	}
	meta := s.meta
	if s.stack == trace.EmptyStack {
		meta = trace.NoString
	}
	s.t.Events.Append(trace.Event{
		Action: e.Action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Time: s.now, Stack: s.stack, Meta: meta,
	})
}

// begin opens a call with the given stack. It is false if nothing is to be
// done any more.
func (s *Scenario) begin(stack []string) bool {
	if s.done || s.err != nil {
		return false
	}
	s.now += Tick
	s.stack = s.intern(stack)
	return true
}

func (s *Scenario) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("after %d events: "+format, append([]any{s.t.Events.Len()}, args...)...)
	}
}

func (s *Scenario) check(err error) {
	if err != nil {
		s.fail("%w", err)
	}
}

// Alloc allocates a block on a stream. It is false if the allocation failed,
// or the program has ended.
func (s *Scenario) Alloc(name string, size, stream uint64, stack ...string) bool {
	if !s.begin(stack) {
		return false
	}
	if _, ok := s.live[name]; ok {
		s.fail("block %q is allocated twice", name)
		return false
	}
	addr, err := s.a.Malloc(size, stream)
	var oom *alloc.OutOfMemoryError
	if errors.As(err, &oom) {
		if s.oom == nil {
			s.oom = oom
		}
		if !s.config.KeepGoing {
			s.finish()
		}
		return false
	}
	s.check(err)
	s.live[name] = addr
	return err == nil
}

// Free frees blocks. Their names may be used again.
func (s *Scenario) Free(names ...string) {
	for _, name := range names {
		addr, ok := s.live[name]
		if !s.begin(nil) {
			return
		}
		if !ok {
			s.fail("block %q is not allocated", name)
			return
		}
		delete(s.live, name)
		s.check(s.a.Free(addr))
	}
}

// Has reports whether a block of that name is allocated.
func (s *Scenario) Has(name string) bool {
	_, ok := s.live[name]
	return ok
}

// RecordStream says that a block is used on another stream: once freed it is
// pending until Complete.
func (s *Scenario) RecordStream(name string, stream uint64) {
	if addr, ok := s.live[name]; !ok && !s.done {
		s.fail("block %q is not allocated", name)
	} else if !s.done && s.err == nil {
		s.check(s.a.RecordStream(addr, stream))
	}
}

// Complete lets a stream finish its work. The next allocation sees it.
func (s *Scenario) Complete(stream uint64) { s.dev.Complete(stream) }

// Others changes what the context and other processes hold of the device.
func (s *Scenario) Others(bytes uint64) {
	s.dev.SetUsable(s.dev.TotalMemory() - min(bytes, s.dev.TotalMemory()))
}

// EmptyCache is torch.cuda.empty_cache.
func (s *Scenario) EmptyCache() {
	if s.begin([]string{"/usr/lib/python3/dist-packages/torch/cuda/memory.py:224 empty_cache"}) {
		s.check(s.a.EmptyCache())
	}
}

// NewPool makes a MemPool.
func (s *Scenario) NewPool(name string, o PoolOptions) {
	if !s.begin(nil) {
		return
	}
	p, err := s.a.NewMemPool(o)
	s.check(err)
	s.pools[name] = p
}

// InPool runs a part of the program with its allocations directed to a pool,
// which is made if there is none of that name.
func (s *Scenario) InPool(name string, body func()) {
	if s.pools[name] == nil {
		s.NewPool(name, PoolOptions{})
	}
	if !s.begin(nil) {
		return
	}
	p := s.pools[name]
	s.check(p.Begin(0))
	body()
	if s.begin(nil) {
		s.check(p.End())
	}
}

// ClosePool gives a pool up.
func (s *Scenario) ClosePool(name string) {
	p := s.pools[name]
	if !s.begin([]string{"/usr/lib/python3/dist-packages/torch/cuda/memory.py:1200 __del__"}) {
		return
	}
	if p == nil {
		s.fail("there is no pool %q", name)
		return
	}
	delete(s.pools, name)
	s.check(p.Close())
}

// Capture runs a part of the program as a graph capture on streams.
func (s *Scenario) Capture(name string, streams []uint64, body func()) {
	if !s.begin(nil) {
		return
	}
	c, err := s.a.BeginCapture(alloc.PoolID{}, func(stream uint64) bool { return slices.Contains(streams, stream) })
	if err != nil {
		s.check(err)
		return
	}
	s.captures[name] = c
	body()
	if s.begin(nil) {
		s.check(c.End())
	}
}

// ReleaseCapture destroys the graph of a capture.
func (s *Scenario) ReleaseCapture(name string) {
	c := s.captures[name]
	if !s.begin(nil) {
		return
	}
	if c == nil {
		s.fail("there is no capture %q", name)
		return
	}
	delete(s.captures, name)
	s.check(c.Release())
}

// Snapshot takes a snapshot in between, which leaves an event.
func (s *Scenario) Snapshot() {
	if s.begin(nil) {
		s.a.Snapshot()
	}
}

// OOM returns the first allocation that failed; nil if none did.
func (s *Scenario) OOM() *alloc.OutOfMemoryError { return s.oom }

// Events returns the number of events so far.
func (s *Scenario) Events() int { return s.t.Events.Len() }

// Stats returns the allocator's statistics now.
func (s *Scenario) Stats() alloc.Stats { return s.a.Stats() }

// stepText returns the user_metadata of a step.
func stepText(n int) string { return "step " + strconv.Itoa(n) }

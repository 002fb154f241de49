package generate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Options say what to make. Without Events and Bytes the result has as many
// events as one pass through the recording.
type Options struct {
	Events int64 // of all devices together; the call that makes the last one is completed
	Bytes  int64 // of the file, about and uncompressed

	StackDepth     int // frames of each stack; 0 as recorded
	DistinctStacks int // different stacks; 0 as recorded

	// Limit on reserved bytes, 0 for none. The run makes as many calls as without
	// it, and ends where a request fails.
	Limit uint64

	Devices int // with the same program; 0 is one
	Seed    uint64

	// Resize returns what is asked for in place of a request of some size, which
	// stays as it is if Resize is nil.
	Resize func(stack trace.StackID, size uint64) uint64

	// Progress is called now and then with how much of the work is done.
	Progress func(done, total int64)
}

// Result says what was made.
type Result struct {
	Events int64
	Bytes  int64 // uncompressed
}

// The limits of options.
const (
	maxDepth    = 10_000
	maxDistinct = 10_000_000
)

// Check says what is wrong with the options.
func (o *Options) Check() error {
	switch {
	case o.Events < 0 || o.Bytes < 0:
		return errors.New("the size of the result cannot be negative")
	case o.Events > 0 && o.Bytes > 0:
		return errors.New("the size of the result can be given in events or in bytes, not in both")
	case o.StackDepth < 0 || o.StackDepth > maxDepth:
		return fmt.Errorf("the depth of stacks must be from 1 to %d", maxDepth)
	case o.DistinctStacks < 0 || o.DistinctStacks > maxDistinct:
		return fmt.Errorf("the number of distinct stacks must be from 1 to %d", maxDistinct)
	case o.Devices < 0 || o.Devices > maxDevices:
		return fmt.Errorf("the number of devices must be from 1 to %d", maxDevices)
	}
	return nil
}

// Write writes a snapshot, as a pickle, whose trace repeats the given one.
// The same options give the same bytes.
func Write(ctx context.Context, w io.Writer, t *trace.Trace, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p, err := readProgram(ctx, t)
	if err != nil {
		return nil, err
	}
	p.resize(o.Resize)
	g := &generator{ctx: ctx, trace: t, options: o, program: p, stacks: newStackSource(t, o), settings: settings.Default()}
	g.options.Devices = max(o.Devices, 1)
	if t.Settings.Known {
		g.settings = t.Settings.Parsed
	}
	for device := range g.options.Devices {
		if err := g.plan(device); err != nil {
			return nil, err
		}
	}
	return g.write(w)
}

type generator struct {
	ctx      context.Context
	trace    *trace.Trace
	options  Options
	program  *program
	stacks   *stackSource
	settings settings.Settings
	devices  []device
	err      error // of a run inside an iterator
	counted  int64 // events made so far, in both runs
	total    int64
}

// device is what is known of a device after the first run.
type device struct {
	calls    int64
	events   int64
	last     int64 // time
	segments []trace.Segment
}

func (g *generator) runner(n int) *runner {
	// Events are written without their pools, as no version after 2.11 does.
	return &runner{program: g.program, device: n, settings: g.settings, version: min(g.trace.Writer.Assumed(), pytorch.Default), stacks: g.stacks, seed: g.options.Seed}
}

// limitedRunner returns a runner under the limit, if there is one.
func (g *generator) limitedRunner(n int) *runner {
	r := g.runner(n)
	r.limit = g.options.Limit
	return r
}

// plan runs the program of one device for the first time.
func (g *generator) plan(n int) error {
	events := g.options.Events / int64(g.options.Devices)
	if int64(n) < g.options.Events%int64(g.options.Devices) {
		events++
	}
	plan := g.planEvents
	if g.options.Bytes > 0 {
		plan, events = g.planBytes, g.options.Bytes/int64(g.options.Devices)
	}
	d, err := plan(n, events)
	if err == nil && g.options.Limit > 0 {
		d, err = g.planFailure(n, d.calls)
	}
	if err != nil {
		return err
	}
	g.devices = append(g.devices, d)
	g.total += d.events
	return nil
}

// planEvents runs until there are so many events; 0 stands for one pass.
func (g *generator) planEvents(n int, events int64) (device, error) {
	r := g.runner(n)
	r.onePass = events == 0
	return g.outcome(r, func() bool { return events > 0 && r.events >= events })
}

// planFailure makes so many calls under the limit, one of which must fail.
func (g *generator) planFailure(n int, calls int64) (device, error) {
	r := g.limitedRunner(n)
	d, err := g.outcome(r, func() bool { return r.calls >= calls })
	if err == nil && !r.failed {
		s := r.allocator.Stats()
		err = fmt.Errorf("no request fails under a limit of %s: the run reserves at most %s and has at most %s allocated; set a lower limit",
			units.Size(g.options.Limit), units.Size(uint64(s.ReservedBytes.All.Peak)), units.Size(uint64(s.AllocatedBytes.All.Peak)))
	}
	return d, err
}

// outcome runs a program and keeps how it ends.
func (g *generator) outcome(r *runner, done func() bool) (device, error) {
	d := device{}
	live := map[uint64]trace.StackID{}
	err := r.run(g.ctx, func(ev snapshot.StreamEvent) bool {
		switch ev.Action {
		case alloc.ActionAlloc:
			live[ev.Addr] = ev.Stack
		case alloc.ActionFreeCompleted:
			delete(live, ev.Addr)
		}
		d.last = ev.Time
		return true
	}, done)
	d.calls, d.events = r.calls, r.events
	d.segments = g.segments(r, live)
	return d, err
}

// planBytes finds by trial the number of events that fill a given number of
// bytes. The size of an event depends on the segments, since what they name needs
// only a short reference afterwards, and the segments depend on the number of
// events.
func (g *generator) planBytes(n int, bytes int64) (best device, err error) {
	const close = 0.005
	miss := math.Inf(1)
	events := int64(0) // one pass
	for range 5 {
		d, err := g.planEvents(n, events)
		if err != nil {
			return d, err
		}
		size, err := g.estimate(n, d)
		if err != nil {
			return d, err
		}
		off := math.Abs(size/float64(bytes) - 1)
		if off < miss {
			best, miss = d, off
		}
		if miss < close {
			break
		}
		events = max(1, int64(float64(d.events)*float64(bytes)/size))
	}
	return best, nil
}

// sampleEvents is how many events are written to estimate a size.
const sampleEvents = 200_000

// estimate returns the size of a file with one device.
func (g *generator) estimate(n int, d device) (float64, error) {
	var size counter
	var err error
	empty := int64(0)
	r := g.runner(n)
	stream := g.stream([]device{d})
	stream.Traces = append(stream.Traces, func(yield func(snapshot.StreamEvent) bool) {
		empty = size.n
		err = r.run(g.ctx, yield, func() bool { return r.calls >= d.calls || r.events >= sampleEvents })
	})
	if werr := snapshot.WriteStream(&size, stream); err == nil {
		err = werr
	}
	return float64(empty) + float64(size.n-empty)*float64(d.events)/float64(max(1, r.events)), err
}

// segments lists the final state of a device.
func (g *generator) segments(r *runner, live map[uint64]trace.StackID) []trace.Segment {
	hasPool := len(g.trace.Segments) == 0 || g.trace.Segments[0].HasPool
	var out []trace.Segment
	for _, s := range r.allocator.Segments() {
		s.Address = r.shift(s.Address)
		for i := range s.Blocks {
			s.Blocks[i].Address = r.shift(s.Blocks[i].Address)
		}
		seg := trace.FromEngine(&s, live)
		seg.HasPool = hasPool
		out = append(out, seg)
	}
	return out
}

// stream returns a snapshot without events and annotations.
func (g *generator) stream(devices []device) *snapshot.Stream {
	return &snapshot.Stream{
		Strings: g.stacks.strings, Stacks: g.stacks.table, Settings: g.trace.Settings,
		Segments: func(yield func(int, *trace.Segment) bool) {
			for n := range devices {
				for i := range devices[n].segments {
					if !yield(n, &devices[n].segments[i]) {
						return
					}
				}
			}
		},
		Annotations: func(func(trace.Annotation) bool) {},
	}
}

// write runs the program for the second time.
func (g *generator) write(w io.Writer) (*Result, error) {
	s := g.stream(g.devices)
	for n := range g.devices {
		s.Traces = append(s.Traces, func(yield func(snapshot.StreamEvent) bool) { g.events(n, yield) })
	}
	s.Annotations = g.annotations
	size := counter{w: w}
	if err := snapshot.WriteStream(&size, s); g.err == nil {
		g.err = err
	}
	if g.err != nil {
		return nil, g.err
	}
	return &Result{Events: g.total, Bytes: size.n}, nil
}

// events makes the events of one device.
func (g *generator) events(n int, yield func(snapshot.StreamEvent) bool) {
	if g.err != nil {
		return
	}
	r := g.limitedRunner(n)
	calls := g.devices[n].calls
	g.err = r.run(g.ctx, func(ev snapshot.StreamEvent) bool {
		if g.counted++; g.counted%4096 == 0 && g.options.Progress != nil {
			g.options.Progress(g.counted, g.total)
		}
		return yield(ev)
	}, func() bool { return r.calls >= calls })
}

// annotations repeats the annotations on every device, in the order of time.
func (g *generator) annotations(yield func(trace.Annotation) bool) {
	if g.err != nil || !g.program.timed || len(g.trace.Annotations) == 0 {
		return
	}
	last := int64(0)
	for _, d := range g.devices {
		last = max(last, d.last)
	}
	c := newClock(g.program, g.options.Seed)
	for pass := 0; c.timeOf(pass, 0) <= last; pass++ {
		for _, a := range g.trace.Annotations {
			if a.Time == trace.NoTime || a.Device != g.trace.Device {
				continue
			}
			a.Time = c.timeOf(pass, a.Time-g.program.begin)
			if a.Time > last {
				continue
			}
			for n := range g.devices {
				a.Device = n
				if !yield(a) {
					return
				}
			}
		}
	}
}

// counter counts what is written.
type counter struct {
	w io.Writer // may be nil
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	if c.w == nil {
		return len(p), nil
	}
	return c.w.Write(p)
}

package policies

import (
	"context"
	"errors"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/policy"
)

// device is a simulated device on which a stream is done with a block when the
// recording says so, and not because the driver waited for it.
type device struct {
	*sim.Device
	done    []bool // by event
	streams map[uint64][]driver.Event
}

func newDevice() *device {
	return &device{Device: sim.New(sim.Config{Endless: true, Wide: true}), streams: map[uint64][]driver.Event{}}
}

func (d *device) RecordEvent(stream, _ uint64) (driver.Event, error) {
	ev := driver.Event(len(d.done))
	d.done = append(d.done, false)
	d.streams[stream] = append(d.streams[stream], ev)
	return ev, nil
}

func (d *device) EventDone(ev driver.Event) (bool, error) { return d.done[ev], nil }

// complete ends the work of a stream.
func (d *device) complete(stream uint64) {
	for _, ev := range d.streams[stream] {
		d.done[ev] = true
	}
	d.streams[stream] = d.streams[stream][:0]
}

// conditions are what a course is driven under.
type conditions struct {
	limit   uint64 // 0 is none
	skipOOM bool
	points  int
	region  func(policy.Place) uint64 // of a strategy with a fixed one
	only    int                       // the only place whose calls are made; -1 is all
	placed  func(tensor int32, addr, size uint64)
	arena   []bool // the tensors that a buffer for each step holds; nil if there is none
}

// outcome is what became of a course.
type outcome struct {
	stats      policy.Stats
	failed     *policy.OutOfMemoryError // the first
	failedAt   int                      // op
	peakAt     int                      // op
	heaps      int
	arena      uint64 // the size of the buffer for steps
	driverTime time.Duration
	elapsed    time.Duration
	ops        int
	curve      []point
}

// point is a piece of a curve: the highest totals since the one before.
type point struct {
	op                         int
	reserved, given, requested uint64
}

// stride is how many ops are made between two looks at the context.
const stride = 1 << 16

// driven is a course under way.
type driven struct {
	*course
	conditions
	device *device
	policy *policy.Allocator
	blocks []policy.Block // tensor -> block; noBlock while there is none
	buffer *buffer        // of an arena; nil without one
	out    *outcome
	piece  point
}

// What a tensor has if it has no block of the policy.
const (
	noBlock = ^policy.Block(0)
	inArena = noBlock - 1
)

// drive makes the ops of a course.
func (c *course) drive(ctx context.Context, s *policy.Strategy, cond conditions) (*outcome, error) {
	d := &driven{course: c, conditions: cond, device: newDevice(), out: &outcome{failedAt: -1, peakAt: -1}}
	d.blocks = make([]policy.Block, c.tensors)
	for i := range d.blocks {
		d.blocks[i] = noBlock
	}
	if cond.arena != nil {
		d.buffer = &buffer{within: cond.arena, sizes: make([]uint64, c.tensors)}
	}
	var drv driver.Driver = d.device
	if c.exact {
		drv = &counter{}
	}
	d.policy = s.New(drv, policy.Options{Limit: cond.limit, Exact: c.exact, Region: cond.region})
	begin := time.Now()
	n := len(c.ops)
	pieces := max(min(cond.points, n), 1)
	for k, at := 0, 0; k < pieces && !d.ended(); k++ {
		for end := n * (k + 1) / pieces; at < end && !d.ended(); {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			var err error
			if at, err = d.make(at, min(at+stride, end)); err != nil {
				return nil, err
			}
		}
		if cond.points > 0 {
			d.close(at - 1)
		}
	}
	o := d.out
	o.elapsed = time.Since(begin)
	o.stats, o.heaps, o.driverTime = d.policy.Stats(), d.policy.Heaps(), d.device.Cost()
	if b := d.buffer; b != nil {
		o.stats.Peak, o.arena = b.peak, b.mapped
		if b.mapped > 0 {
			o.stats.DeviceAllocs++
		}
	}
	return o, nil
}

// ended reports whether a failure has ended the run.
func (d *driven) ended() bool { return d.out.failed != nil && !d.skipOOM }

// make makes the ops from i to end, or to a failure that ends the run.
func (d *driven) make(i, end int) (int, error) {
	ops, blocks, p := d.ops, d.blocks, d.policy
	peak := p.Stats().Peak.Reserved
	for ; i < end; i++ {
		o := &ops[i]
		switch o.kind {
		case opFree:
			b := blocks[o.tensor]
			if b == noBlock {
				continue
			}
			blocks[o.tensor] = noBlock
			if b == inArena {
				d.take(o.tensor)
			} else if err := p.Free(b); err != nil {
				return i, err
			}
		case opMalloc:
			if d.only >= 0 && int(o.place) != d.only {
				continue
			}
			if d.buffer != nil {
				if err := d.arenaMalloc(i); err != nil || d.ended() {
					return i, err
				}
				break
			}
			b, err := p.Malloc(o.size, d.places[o.place])
			if err != nil {
				if err := d.fail(i, err); err != nil || d.ended() {
					return i, err
				}
				continue
			}
			blocks[o.tensor] = b
			if d.placed != nil {
				addr, size, err := p.Span(b)
				if err != nil {
					return i, err
				}
				d.placed(o.tensor, addr, size)
			}
			if now := p.Reserved(); now > peak {
				peak, d.out.peakAt = now, i
			}
			if d.points > 0 {
				d.note()
			}
		default:
			if err := d.rare(i); err != nil || d.ended() {
				return i, err
			}
		}
		d.out.ops++
	}
	return i, nil
}

// rare makes an op that is neither a malloc nor a plain free.
func (d *driven) rare(i int) error {
	o := &d.ops[i]
	switch o.kind {
	case opFreeLater:
		b := d.blocks[o.tensor]
		if b == noBlock {
			return nil
		}
		d.blocks[o.tensor] = noBlock
		if b == inArena {
			d.take(o.tensor)
			return nil
		}
		if err := d.policy.RecordStream(b, o.size); err != nil {
			return err
		}
		return d.policy.Free(b)
	case opComplete:
		d.device.complete(o.size)
	case opTrim:
		return d.policy.Trim()
	case opSync:
		if d.buffer != nil {
			d.buffer.used = 0
		}
		return d.policy.Synchronize()
	case opTry:
		if d.only >= 0 && int(o.place) != d.only {
			return nil
		}
		before := d.policy.Stats().Peak.Reserved
		b, err := d.policy.Malloc(o.size, d.places[o.place])
		if err != nil {
			return d.fail(i, err)
		}
		if d.buffer != nil {
			d.raise(i)
			return d.policy.Free(b)
		}
		if d.policy.Reserved() > before {
			d.out.peakAt = i
		}
		if d.points > 0 {
			d.note()
		}
		return d.policy.Free(b)
	}
	return nil
}

// fail notes the first request that found nothing; other errors are returned.
func (d *driven) fail(i int, err error) error {
	var oom *policy.OutOfMemoryError
	if !errors.As(err, &oom) {
		return err
	}
	if d.out.failed == nil {
		d.out.failed, d.out.failedAt = oom, i
	}
	return nil
}

// note raises the highest totals of the piece.
func (d *driven) note() {
	s := d.policy.Stats()
	if b := d.buffer; b != nil {
		s.Reserved, s.Given, s.Requested = s.Reserved+b.mapped, s.Given+b.given, s.Requested+b.asked
	}
	p := &d.piece
	p.reserved, p.given, p.requested = max(p.reserved, s.Reserved), max(p.given, s.Given), max(p.requested, s.Requested)
}

// close ends a piece of the curve.
func (d *driven) close(at int) {
	d.note()
	d.piece.op = at
	d.out.curve = append(d.out.curve, d.piece)
	d.piece = point{}
}

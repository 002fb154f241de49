package replay

import (
	"context"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/trace"
)

// RunUncached makes the calls of the program with PyTorch's cache switched off, as
// PYTORCH_NO_CUDA_MEMORY_CACHING=1 does: every request goes to the driver with
// the size that was asked for, and every free at once, whatever other streams do.
// PyTorch knows no limit then; of the conditions DeviceMemory, SkipOOM and Points
// count. What is reserved is what was asked for.
func (p *Program) RunUncached(ctx context.Context, c Conditions) (*Outcome, error) {
	if p.Start.Kind == start.Unknown {
		return nil, p.Runnable(c)
	}
	c.Limit, c.Settings.PerProcessMemoryFraction = 0, 1
	u := &uncached{Program: p, outcome: &Outcome{Conditions: c}, sizes: make([]uint64, p.tensors), pages: make([]int32, p.tensors)}
	u.small.Clock = func() (int64, bool) { return p.clock(u.outcome.Calls) }
	p.EachFirst(func(tensor int, c Call) {
		u.sizes[tensor] = c.Size
		u.pages[tensor], _ = u.small.Malloc(c.Size)
		u.live += c.Size
	})
	p.FreedBefore(func(tensor, _ int) {
		u.small.Free(u.pages[tensor], u.sizes[tensor])
		u.live -= u.sizes[tensor]
		u.sizes[tensor] = 0
	})
	u.high = High{Bytes: u.live, Event: -1, Time: trace.NoTime}
	u.piece = u.live
	if err := u.run(ctx); err != nil {
		return nil, err
	}
	o := u.outcome
	o.Reserved, o.Allocated, o.Active, o.Requested = u.high, u.high, u.high, u.high
	o.AtPeak = PeakTotals{u.high.Bytes, u.high.Bytes, u.high.Bytes}
	return o, nil
}

// uncached is one run of a program without a cache.
type uncached struct {
	*Program
	outcome *Outcome
	sizes   []uint64 // tensor -> bytes; 0 while it has none
	pages   []int32  // tensor -> its page of the driver's
	small   sim.SmallPages
	live    uint64
	high    High
	piece   uint64 // the highest of the current piece of the curve
}

func (u *uncached) run(ctx context.Context) error {
	o, n := u.outcome, len(u.calls)
	points := min(o.Conditions.Points, n)
	next := 0 // point
	for i := range u.calls {
		if i%stride == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		u.call(i)
		if o.Fails && !o.Conditions.SkipOOM {
			break
		}
		o.Calls = i + 1
		if points > 0 && o.Calls >= int(int64(n)*int64(next+1)/int64(points)) {
			u.point(i)
			next++
		}
	}
	if points > 0 && next < points && o.Calls < n {
		u.point(o.Calls)
	}
	return nil
}

func (u *uncached) call(i int) {
	switch c := u.calls[i]; c.kind() {
	case CallAlloc:
		if page, ok := u.malloc(i, c.size); ok {
			u.sizes[c.tensor], u.pages[c.tensor] = c.size, page
		}
	case CallFree, CallFreeLater:
		u.free(u.pages[c.tensor], u.sizes[c.tensor])
		u.sizes[c.tensor] = 0
	case CallTry:
		if page, ok := u.malloc(i, c.size); ok {
			u.free(page, c.size) // as a run with a cache does
		}
	}
}

// malloc asks the driver for memory and reports in which page it gave it, and whether.
func (u *uncached) malloc(i int, size uint64) (page int32, ok bool) {
	o := u.outcome
	if memory := o.Conditions.DeviceMemory; memory > 0 && u.live+size > memory {
		u.failed(i, size)
		return 0, false
	}
	page, took := u.small.Malloc(size)
	o.DeviceAllocs++
	o.DriverTime += took
	u.live += size
	u.piece = max(u.piece, u.live)
	if u.live > u.high.Bytes {
		event := int(u.events[i])
		u.high = High{Bytes: u.live, Event: event, Time: u.time(event)}
	}
	return page, true
}

// free gives memory back; a tensor that got none has nothing to give.
func (u *uncached) free(page int32, size uint64) {
	if size == 0 {
		return
	}
	u.outcome.DeviceFrees++
	u.outcome.DriverTime += u.small.Free(page, size)
	u.live -= size
}

func (u *uncached) failed(i int, size uint64) {
	o := u.outcome
	o.OOMs++
	if o.Fails {
		return
	}
	event := int(u.events[i])
	c := &o.Conditions
	o.Fails = true
	o.First = &Failure{
		Event: event, Time: u.time(event), Stack: u.stack(event), RecordedToo: u.calls[i].kind() == CallTry, Active: u.live,
		OutOfMemoryError: &alloc.OutOfMemoryError{
			Device: u.Trace.Device, Requested: size, Rounded: size, Segment: size, DeviceFree: c.DeviceMemory - min(c.DeviceMemory, u.live),
			DeviceTotal: c.DeviceMemory, Reserved: u.live, Allocated: u.live,
		},
	}
}

// point ends a piece of the curve after call i.
func (u *uncached) point(i int) {
	event := int(u.events[min(i, len(u.calls)-1)])
	u.outcome.Curve = append(u.outcome.Curve, Point{
		Event: event, Time: u.time(event), Reserved: u.piece, Allocated: u.piece, Active: u.piece, Requested: u.piece,
		ReservedNow: u.live, AllocatedNow: u.live,
	})
	u.piece = u.live
}

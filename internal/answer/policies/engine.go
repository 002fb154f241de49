package policies

import (
	"context"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

func (q *Question) conditions(s settings.Settings) replay.Conditions {
	return replay.Conditions{Settings: s, Limit: q.Limit.Value(), DeviceMemory: q.Memory.Value(), SkipOOM: q.SkipOOM, Points: q.Points}
}

// engine runs PyTorch's own allocator.
func (a *asked) engine(ctx context.Context, name string, s whatif.Setting) (*Result, error) {
	p, cond := a.program, a.conditions(s.Parsed)
	if a.run == nil {
		var err error
		if p, err = a.madeProgram(); err != nil {
			return nil, err
		}
	}
	if err := p.Runnable(cond); err != nil {
		return nil, &whatif.SettingError{Conf: s.Conf, Err: err}
	}
	begin := time.Now()
	o, err := p.Run(ctx, cond)
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(begin)
	r := &Result{Policy: name, Kind: Online, Parameters: map[string]any{"settings": s.Conf}, Fails: o.Fails, Notes: []string{}}
	r.PeakReserved = &o.Reserved.Bytes
	m := timeline.Moment{}
	if a.run != nil {
		m = a.run.Moments.At(o.Reserved.Event, o.Reserved.Time)
	} else if o.Reserved.Event >= 0 {
		m.Event = &o.Reserved.Event
	}
	r.PeakReservedAt = &m
	r.ReservedOverLive = a.overLive(r, o.Reserved.Bytes)
	r.DeviceAllocs, r.DeviceFrees, r.DriverMS = &o.DeviceAllocs, &o.DeviceFrees, milliseconds(o.DriverTime)
	r.CallsPerSecond = perSecond(o.Calls, elapsed)
	at := o.AtPeak
	r.InternalWaste, r.ExternalWaste = bytes(at.Allocated-min(at.Requested, at.Allocated)), bytes(o.Reserved.Bytes-min(at.Active, o.Reserved.Bytes))
	if o.StartReleased > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s that were cached before the first event are released first", size(o.StartReleased)))
	}
	if o.First != nil {
		r.First = a.engineFailure(o.First)
	}
	if a.Points > 0 {
		r.Curve = engineCurve(o.Curve)
	}
	if a.NoLimits {
		return r, nil
	}
	least, err := a.engineLimit(ctx, p, s.Parsed)
	if err == nil && least == 0 {
		return r, nil
	}
	return r.limited(ctx, least, err)
}

// engineLimit returns the smallest limit as tune finds it, 0 if tune gives up.
func (a *asked) engineLimit(ctx context.Context, p *replay.Program, s settings.Settings) (uint64, error) {
	if a.run == nil {
		return p.SmallestLimit(ctx, s, a.lower, 0)
	}
	c, err := tune.Measure(ctx, a.run, s, a.Memory.Value(), a.lower)
	return c.SmallestLimit, err
}

func (a *asked) engineFailure(f *replay.Failure) *Failure {
	out := &Failure{
		Size: f.Requested, Stream: f.Stream, Reserved: f.Reserved, Given: f.Allocated, RecordedToo: f.RecordedToo, AtStart: f.AtStart,
		Stack: []timeline.Frame{},
	}
	if a.run == nil {
		out.Event = &f.Event
		return out
	}
	out.Moment = a.run.Moments.At(f.Event, f.Time)
	out.Stack = timeline.Frames(a.run.Trace, f.Stack)
	out.Site, _ = timeline.SiteOf(a.run.Trace, f.Stack)
	return out
}

func engineCurve(points []replay.Point) *Curve {
	n := len(points)
	c := &Curve{make([]int, n), make([]*int64, n), make([]uint64, n), make([]uint64, n), make([]uint64, n)}
	for i := range points {
		p := &points[i]
		c.Event[i], c.Reserved[i], c.Given[i], c.Requested[i] = p.Event, p.Reserved, p.Active, p.Requested
		if p.Time != trace.NoTime {
			c.Time[i] = &p.Time
		}
	}
	return c
}

// madeProgram returns a placement problem as a program.
func (a *asked) madeProgram() (*replay.Program, error) {
	return replay.NewProgram(settings.Default(), len(a.ops), func(i int) replay.Call {
		o := &a.ops[i]
		kind := replay.CallAlloc
		if o.kind == opFree {
			kind = replay.CallFree
		}
		return replay.Call{Kind: kind, Tensor: int(o.tensor), Size: o.size}
	})
}

package policies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/bisect"
	"github.com/ashlar-mem/ashlar/internal/policy"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// limitStep is what smallest limits are found to.
const limitStep = alloc.SegmentUnit

// online runs a strategy of package policy.
func (a *asked) online(ctx context.Context, name string) (*Result, error) {
	s, err := policy.Parse(name)
	if err != nil {
		return nil, err
	}
	if why := a.tooManyHeaps(s); why != "" {
		return &Result{Policy: name, Kind: Online, Parameters: s.Parameters, WhyNot: &why, Notes: []string{}}, nil
	}
	if s.Fixed {
		return a.fixed(ctx, s)
	}
	cond := conditions{limit: a.cap, skipOOM: a.SkipOOM, points: a.Points, only: -1}
	o, err := a.drive(ctx, s, cond)
	if err != nil {
		return nil, err
	}
	r := a.result(s, o)
	r.Notes = a.strategyNotes(s, o.heaps)
	if a.NoLimits {
		return r, nil
	}
	high := uint64(0)
	if o.failed == nil && a.cap == 0 {
		high = o.stats.Peak.Reserved
	}
	least, err := a.smallest(high, func(limit uint64) (bool, uint64, error) {
		o, err := a.drive(ctx, s, conditions{limit: limit, only: -1})
		if err != nil {
			return false, 0, err
		}
		return o.failed == nil, o.stats.Peak.Reserved, nil
	})
	return r.limited(ctx, least, err)
}

// How many heaps a strategy may have. Each has indexes of its own, and each fixed
// region is looked for by itself.
const (
	mostHeaps   = 512
	mostRegions = 64
)

// tooManyHeaps says why a strategy is not run; "" if it is.
func (a *asked) tooManyHeaps(s *policy.Strategy) string {
	heaps, most, what := len(a.places), mostHeaps, "stream and private pool would have a heap"
	switch {
	case s.Streams:
		what = "private pool would have a heap"
		pools := map[uint64]bool{}
		for _, at := range a.places {
			pools[at.Pool] = true
		}
		heaps = len(pools)
	case s.Fixed:
		most, what = mostRegions, "stream and private pool would have a region"
	}
	if heaps <= most {
		return ""
	}
	return fmt.Sprintf("each %s of its own: %s, and at most %d are tried", what, units.Count(int64(heaps)), most)
}

// limited adds the smallest limit. If there is none, or was no time to find it, the
// rest of the result stands without it.
func (r *Result) limited(ctx context.Context, least uint64, err error) (*Result, error) {
	switch {
	case err == nil:
		r.SmallestLimit = &least
	case errors.Is(err, bisect.ErrNone):
		r.Notes = append(r.Notes, "it fails under any limit")
	case ctx.Err() == nil:
		return nil, err
	}
	return r, nil
}

// smallest finds the least limit that a run passes under, from the lower bound up.
// high passes, or is 0. A run that passes with less reserved goes the same way under
// any limit down to that.
func (a *asked) smallest(high uint64, passes func(limit uint64) (ok bool, peak uint64, err error)) (uint64, error) {
	r := bisect.New(a.lower, high, limitStep)
	return r.Climb(func(limit uint64) (bool, error) {
		ok, peak, err := passes(limit)
		if ok {
			r.High = max(min(limit, r.Up(peak)), r.Low)
		}
		return ok, err
	})
}

// fixed runs a strategy that takes all its memory at once: what it reserves is the
// smallest region under which it passes. Where there are several heaps each has a
// region of its own.
func (a *asked) fixed(ctx context.Context, s *policy.Strategy) (*Result, error) {
	regions := make([]uint64, len(a.places))
	total, none := uint64(0), error(nil)
	for n := range a.places {
		buffers := *a
		buffers.lower = a.loadOf(n)
		if buffers.lower == 0 {
			continue
		}
		least, err := buffers.smallest(0, func(limit uint64) (bool, uint64, error) {
			o, err := a.drive(ctx, s, conditions{only: n, region: func(policy.Place) uint64 { return limit }})
			if err != nil {
				return false, 0, err
			}
			return o.failed == nil, limit, nil
		})
		if errors.Is(err, bisect.ErrNone) {
			none, least = err, buffers.lower
		} else if err != nil {
			return nil, err
		}
		regions[n] = least
		total += least
	}
	given := map[policy.Place]uint64{}
	for n, at := range a.places {
		given[at] = regions[n]
		if a.cap > 0 && total > 0 {
			given[at] = uint64(float64(regions[n]) / float64(total) * float64(a.cap))
		}
	}
	o, err := a.drive(ctx, s, conditions{skipOOM: a.SkipOOM, points: a.Points, only: -1, region: func(at policy.Place) uint64 { return given[at] }})
	if err != nil {
		return nil, err
	}
	r := a.result(s, o)
	r.Notes = a.strategyNotes(s, o.heaps)
	if a.cap == 0 && none == nil {
		r.Notes = append(r.Notes, "the region is the smallest under which the run passes; TensorFlow and JAX take three quarters of the device or more")
	}
	return r.limited(ctx, total, none)
}

// loadOf returns the most bytes that were asked for and are live at a time at one
// place: no region is smaller.
func (a *asked) loadOf(place int) uint64 {
	sizes := make([]uint64, a.tensors)
	var live, most uint64
	begin := func(t int32, i int) {
		if int(a.ops[i].place) == place {
			sizes[t] = a.ops[i].size
			live += sizes[t]
			most = max(most, live)
		}
	}
	end := func(t int32, _ int) { live -= sizes[t] }
	_ = a.lives(begin, end, func(i int) error { // nothing in here fails
		if o := &a.ops[i]; o.kind == opTry && int(o.place) == place {
			most = max(most, live+o.size)
		}
		return nil
	})
	return most
}

// strategyNotes says what the figures of a strategy rest on.
func (a *asked) strategyNotes(s *policy.Strategy, heaps int) []string {
	notes := []string{}
	if heaps > 1 && !s.Streams {
		notes = append(notes, fmt.Sprintf("it knows no streams: each stream and private pool has a heap of its own, %d in all", heaps))
	}
	if heaps > 1 && s.Streams {
		notes = append(notes, fmt.Sprintf("each private pool has a heap of its own, %d in all", heaps))
	}
	if _, async := s.Parameters["release_threshold_bytes"]; async {
		if len(a.steps) > 0 {
			notes = append(notes, "a recording shows no synchronisation, which is when a pool merges and releases memory: the ends of steps stand for it")
		} else {
			notes = append(notes, "a recording shows no synchronisation, which is when a pool merges and releases memory, and no steps were found that could stand for it: nothing is released, and the figure may be high")
		}
		if len(a.places) > 1 {
			notes = append(notes, "which streams wait for which is not recorded: reuse_follow_event_dependencies changes nothing here")
		}
	}
	if s.Name == "binning" {
		notes = append(notes, "the driver packs blocks below 2 MiB into pages of 2 MiB: reserved counts full pages, as if it packed them without a gap")
	}
	return notes
}

// result describes what a strategy did.
func (a *asked) result(s *policy.Strategy, o *outcome) *Result {
	r := &Result{Policy: s.Name, Kind: Online, Parameters: s.Parameters, Fails: o.failed != nil, Notes: []string{}}
	a.peak(r, o.stats.Peak.Reserved, o.peakAt)
	r.DeviceAllocs, r.DeviceFrees = &o.stats.DeviceAllocs, &o.stats.DeviceFrees
	if !a.exact {
		r.DriverMS = milliseconds(o.driverTime)
	}
	r.CallsPerSecond = perSecond(o.ops, o.elapsed)
	p := o.stats.Peak
	r.InternalWaste, r.ExternalWaste = bytes(p.Given-p.Requested), bytes(p.Reserved-p.Given)
	if o.failed != nil {
		r.First = a.failure(o)
	}
	if a.Points > 0 {
		r.Curve = a.curve(o.curve)
	}
	return r
}

// peak notes the highest reserved total and the op that brought it.
func (a *asked) peak(r *Result, reserved uint64, at int) {
	r.PeakReserved = &reserved
	m := a.moment(at)
	r.PeakReservedAt = &m
	r.ReservedOverLive = a.overLive(r, reserved)
}

// overLive returns reserved bytes over the lower bound, nil if nothing is live or
// not all of it was served.
func (a *asked) overLive(r *Result, reserved uint64) *float64 {
	if a.lower == 0 || r.Fails {
		return nil
	}
	over := float64(reserved) / float64(a.lower)
	return &over
}

// moment returns when an op was; -1 is before the first.
func (a *asked) moment(at int) timeline.Moment {
	event := a.event(at)
	if a.run == nil {
		if event < 0 {
			return timeline.Moment{}
		}
		return timeline.Moment{Event: &event}
	}
	return a.run.Moments.At(event, a.time(event))
}

func (a *asked) failure(o *outcome) *Failure {
	f := &Failure{
		Moment: a.moment(o.failedAt), Size: o.failed.Size, Reserved: o.failed.Reserved, Given: o.failed.Given,
		AtStart: o.failedAt < a.initial && a.initial > 0, Stack: []timeline.Frame{},
	}
	op := &a.ops[o.failedAt]
	f.Stream, f.RecordedToo = a.places[op.place].Stream, op.kind == opTry
	if event := a.event(o.failedAt); a.run != nil && event >= 0 && event < a.run.Events() {
		stack := a.run.Trace.Events.Stack.At(event)
		f.Stack = timeline.Frames(a.run.Trace, stack)
		f.Site, _ = timeline.SiteOf(a.run.Trace, stack)
	}
	return f
}

func (a *asked) curve(points []point) *Curve {
	n := len(points)
	c := &Curve{make([]int, n), make([]*int64, n), make([]uint64, n), make([]uint64, n), make([]uint64, n)}
	for i, p := range points {
		c.Event[i], c.Reserved[i], c.Given[i], c.Requested[i] = a.event(p.op), p.reserved, p.given, p.requested
		if t := a.time(c.Event[i]); t != trace.NoTime {
			c.Time[i] = &t
		}
	}
	return c
}

func bytes(n uint64) *uint64 { return &n }

func milliseconds(d time.Duration) *float64 {
	ms := float64(d.Microseconds()) / 1e3
	return &ms
}

func perSecond(n int, d time.Duration) *float64 {
	if d <= 0 || n == 0 {
		return nil
	}
	rate := float64(int64(float64(n) / d.Seconds()))
	return &rate
}

// size writes bytes for a note.
func size(n uint64) string { return units.Size(n) }

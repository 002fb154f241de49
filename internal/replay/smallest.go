package replay

import (
	"context"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/bisect"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// SmallestLimit finds a limit under which no request of the program fails, while
// one does under one unit less: segments are multiples of that unit, so limits in
// between are alike. low is a lower bound, high a limit that is known to pass,
// or 0.
//
// A run shows more than whether it passes, which saves most of a bisection. A run
// that passes with less reserved than the limit goes the same way under any limit
// down to that. A run that fails goes the same way up to the least that the limit
// refused.
func (p *Program) SmallestLimit(ctx context.Context, s settings.Settings, low, high uint64) (uint64, error) {
	r := bisect.New(low, high, alloc.SegmentUnit)
	// Upwards, as what decides is mostly near the bound, and runs that fail end early.
	return r.Climb(func(limit uint64) (bool, error) {
		o, err := p.Run(ctx, Conditions{Settings: s, Limit: limit})
		if err != nil {
			return false, err
		}
		if limitOnlyRefuses(s) {
			p.narrow(r, limit, o)
		}
		return !o.Fails, nil
	})
}

// Passed returns a limit under which a run is known to pass by the outcome of
// another one with the same settings, 0 if there is none.
func Passed(o *Outcome) uint64 {
	c := &o.Conditions
	rules := alloc.RulesOf(c.Settings, pytorch.Default)
	// Where the limit ends before the device does, the device refuses nothing: a
	// mapping goes beyond the limit by less than a granule.
	free := c.DeviceMemory == 0 || c.Cap() > 0 && c.Cap()+rules.Granule(true) <= c.DeviceMemory
	switch {
	case o.Fails || c.SkipOOM || !free:
		return 0
	case limitOnlyRefuses(c.Settings):
		return o.Reserved.Bytes
	}
	return c.Cap()
}

// limitOnlyRefuses reports whether a run that stays below a limit goes as it does
// without one. The collector works under any limit, and expandable segments are
// mapped in granules but compared with a limit by segments. With a largest block
// that may be split, what is released for a request depends on its size.
func limitOnlyRefuses(s settings.Settings) bool {
	return s.GarbageCollectionThreshold == 0 && !s.ExpandableSegments && s.MaxSplitSize == settings.None
}

// PassesUnder returns a test of limits: whether no request fails under one. It
// runs the program only if no earlier run decides.
func (p *Program) PassesUnder(ctx context.Context, s settings.Settings) bisect.Test {
	type known struct {
		from, to uint64 // limits
		passes   bool
	}
	var all []known
	return func(limit uint64) (bool, error) {
		for _, k := range all {
			if k.from <= limit && limit <= k.to {
				return k.passes, nil
			}
		}
		o, err := p.Run(ctx, Conditions{Settings: s, Limit: limit})
		if err != nil {
			return false, err
		}
		k := known{limit, limit, !o.Fails}
		switch {
		case !limitOnlyRefuses(s):
		case !o.Fails:
			k.from = min(limit, o.Reserved.Bytes)
		case o.LeastRefused > limit && !o.First.AtStart && o.StartReleased == 0:
			k.to = o.LeastRefused - 1
		}
		all = append(all, k)
		return k.passes, nil
	}
}

// narrow makes the range of the smallest limit as narrow as an outcome under a
// limit allows.
func (p *Program) narrow(r *bisect.Range, limit uint64, o *Outcome) {
	if !o.Fails {
		r.High = max(min(limit, r.Up(o.Reserved.Bytes)), r.Low)
		return
	}
	if o.First.AtStart || o.LeastRefused == 0 {
		return
	}
	same := r.Up(o.LeastRefused)
	if o.StartReleased > 0 {
		same = min(same, r.Up(p.Start.Reserved())) // from there on the start keeps its cache
	}
	r.Low = max(r.Low, same)
}

package replay

import (
	"context"
	"errors"
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/settings"
)

// SmallestLimit finds a cap on reserved memory under which no request of the
// program fails while one does under one step less: segments are multiples
// of that, so limits in between are alike. low is a bound from below, high a limit
// that is known to pass, or 0.
//
// A run tells more than whether it passes, which saves most of a bisection. One
// that passes with less reserved than the limit goes the same way under any
// limit from there on. One whose only refusal is the request that kills it goes
// the same way up to what that request needs.
func (p *Program) SmallestLimit(ctx context.Context, s settings.Settings, low, high uint64) (uint64, error) {
	b := smallest{p: p, s: s, low: upTo(low), high: upTo(high), plain: limitOnlyRefuses(s)}
	// First upwards from the bound, in strides that double: what decides is
	// mostly near it, and runs that fail end early.
	try := b.low
	for stride := upTo(b.low / 64); b.high == 0 || b.low < b.high && try < b.high; stride *= 2 {
		if ok, err := b.passes(ctx, try); err != nil {
			return 0, err
		} else if ok {
			break
		}
		if try > math.MaxUint64/4 {
			return 0, errors.New("no limit is large enough for the run")
		}
		try = max(try+stride, b.low)
	}
	for b.low < b.high {
		if _, err := b.passes(ctx, (b.low+(b.high-b.low)/2)/limitStep*limitStep); err != nil {
			return 0, err
		}
	}
	return b.high, nil
}

// Passed returns a limit under which a run is known to pass by the outcome of
// another one with the same settings, 0 if there is none.
func Passed(o *Outcome) uint64 {
	c := &o.Conditions
	rules := alloc.RulesOf(c.Settings)
	// Where the limit ends before the device does, the device refuses nothing: a
	// mapping goes beyond the limit by less than a granule.
	free := c.DeviceMemory == 0 || c.Cap() > 0 && c.Cap()+rules.Granule(true) <= c.DeviceMemory
	switch {
	case o.Fails || c.SkipOOM || !free:
		return 0
	case limitOnlyRefuses(c.Settings):
		return upTo(o.Reserved.Bytes)
	}
	return upTo(c.Cap())
}

// limitOnlyRefuses reports whether a run that stays below a limit goes as it does
// without one. The collector works under any limit, and expandable segments are
// mapped in granules but compared with a limit by segments. With a largest block
// that may be split, what is released for a request depends on its size.
func limitOnlyRefuses(s settings.Settings) bool {
	return s.GarbageCollectionThreshold == 0 && !s.ExpandableSegments && s.MaxSplitSize == settings.None
}

// limitStep is how far apart two limits are that can differ.
const limitStep = alloc.SegmentUnit

func upTo(bytes uint64) uint64 { return (bytes + limitStep - 1) / limitStep * limitStep }

// smallest is the state of a search: the limit lies from low to high, and high
// passes. It is 0 while no limit is known that does.
type smallest struct {
	p         *Program
	s         settings.Settings
	plain     bool
	low, high uint64
}

// passes runs the program under a limit and narrows the search down.
func (b *smallest) passes(ctx context.Context, limit uint64) (bool, error) {
	o, err := b.p.Run(ctx, Conditions{Settings: b.s, Limit: limit})
	if err != nil {
		return false, err
	}
	if !o.Fails {
		b.high = limit
		if b.plain {
			b.high = max(min(limit, upTo(o.Reserved.Bytes)), b.low)
		}
		return true, nil
	}
	b.low = limit + limitStep
	if b.plain && o.Retries <= 1 && !o.First.AtStart {
		same := upTo(o.First.Reserved + o.First.Segment)
		if o.StartReleased > 0 {
			same = min(same, upTo(b.p.Start.Reserved())) // from there on the start keeps its cache
		}
		b.low = max(b.low, same)
	}
	if b.high > 0 {
		b.low = min(b.low, b.high)
	}
	return false, nil
}

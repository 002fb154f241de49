package tune

import (
	"context"
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// LowerBound is the peak of live bytes of a program under the tightest settings:
// no setting passes below it.
func LowerBound(ctx context.Context, p *replay.Program) (uint64, error) {
	o, err := p.Run(ctx, replay.Conditions{Settings: alloc.Tightest(), SkipOOM: true})
	if err != nil {
		return 0, err
	}
	return o.Allocated.Bytes, nil
}

// Measure finds the figures of settings that somebody chose, as [Search] finds
// them for those that it names: need, smallest limit, peak and driver time
// without a limit. lower is a bound from below, as by [LowerBound]. A share of
// the device among the settings is left out: limits take its place.
func Measure(ctx context.Context, p *replay.Program, s settings.Settings, memory, lower uint64) (*Candidate, error) {
	s.PerProcessMemoryFraction = 1
	c := &Candidate{Settings: s}
	at := &search{p: p, o: Options{DeviceMemory: memory}, ctx: ctx, bound: lower}
	if err := at.measure(ctx, c); err != nil {
		return nil, err
	}
	if err := at.findNeed(ctx, c); err != nil {
		return nil, err
	}
	return c, at.findLimit(ctx, c)
}

// SmallestLimit is the lowest limit under which a program passes with some
// settings; lower is a bound from below, as by [LowerBound].
func SmallestLimit(ctx context.Context, p *replay.Program, s settings.Settings, lower uint64) (uint64, error) {
	return Bisect(lower, func(limit uint64) (bool, error) {
		o, err := p.Run(ctx, replay.Conditions{Settings: s, Limit: limit})
		return err == nil && !o.Fails, err
	})
}

// Bisect finds a limit that is good while one step less is not, from a lower bound
// on.
func Bisect(lower uint64, good func(limit uint64) (bool, error)) (uint64, error) {
	low := (lower + step - 1) / step * step
	// A good limit is looked for upwards, in strides that double.
	high := low
	for stride := max(low/64/step*step, step); ; stride *= 2 {
		ok, err := good(high)
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		if high > math.MaxUint64/4 {
			return 0, fmt.Errorf("the recording does not pass under any limit up to %s", units.Size(high))
		}
		low, high = high+step, high+stride
	}
	return bisect(low, high, good)
}

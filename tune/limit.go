package tune

import (
	"context"
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// LowerBound is the peak of live bytes of a program: no setting passes below
// it. Expandable segments split wherever they can, so that what is allocated
// under them is what was asked for in units of 512 bytes.
func LowerBound(ctx context.Context, p *replay.Program) (uint64, error) {
	s := settings.Default()
	s.ExpandableSegments = true
	o, err := p.Run(ctx, replay.Conditions{Settings: s, SkipOOM: true})
	if err != nil {
		return 0, err
	}
	return o.Allocated.Bytes, nil
}

// SmallestLimit is the lowest limit under which a program passes with some
// settings; lower is a bound from below, as by [LowerBound].
func SmallestLimit(ctx context.Context, p *replay.Program, s settings.Settings, lower uint64) (uint64, error) {
	return Bisect(lower, func(limit uint64) (bool, error) {
		o, err := p.Run(ctx, replay.Conditions{Settings: s, Limit: limit})
		return err == nil && !o.Fails, err
	})
}

// Bisect finds a limit that is good while 2 MiB less is not, from a lower bound
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

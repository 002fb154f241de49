package explain

import (
	"errors"
	"fmt"
	"sort"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// A file does not say everything. What it leaves open may decide between two
// triggers; then both are named.

// open adds a trigger that may be the right one.
func (e *explainer) open(trigger, format string, args ...any) {
	e.report.Confidence = Open
	e.report.Alternatives = append(e.report.Alternatives, Alternative{trigger, fmt.Sprintf(format, args...)})
}

// breakEven looks for another trigger at the lower end of the limit's range, and
// for the limit from which on it is v. Between capacity and fragmentation, the
// trigger that holds for more of the range comes first.
func (e *explainer) breakEven(v string) error {
	f := e.failed
	at := func(limit uint64) (string, error) {
		other, _, err := f.trigger(e.ctx, limit)
		return other, err
	}
	low, err := at(e.limits.low)
	if err != nil || low == v {
		return err
	}
	from, even := e.limits.low, e.limits.high
	if need := f.live + f.rounded; from < need && need <= even {
		below := low
		if v == Setting { // all others need as much as that
			if below, err = at(need - 1); err != nil {
				return err
			}
		}
		other, err := at(need)
		switch {
		case err != nil:
			return err
		case below == v:
			even = need
		case other == v:
			from, even = need, need
		default:
			e.open(low, "if the limit was below %s", units.SizeUp(need))
			from, low = need, other
		}
	}
	// Reserved memory grows by whole units.
	const unit = alloc.SegmentUnit
	steps := int(even/unit - from/unit)
	n := sort.Search(steps, func(i int) bool {
		other, failed := at((from/unit + 1 + uint64(i)) * unit)
		if failed != nil {
			err = failed
		} else if other != v {
			low = other
		}
		return other == v
	})
	if err != nil {
		return err
	}
	if n < steps {
		even = (from/unit + 1 + uint64(n)) * unit
	}
	e.report.BreakEven = &even
	if v == Fragmentation && low == Capacity && even-e.limits.low > e.limits.high-even {
		// It holds for more of the range.
		e.report.Trigger = low
		e.open(v, "if the limit was %s or more", units.SizeUp(even))
		return nil
	}
	e.open(low, "if the limit was below %s", units.SizeUp(even))
	return nil
}

// roundedUp considers sizes of which the file has only the value after rounding
// by a setting: that of the request, and those of blocks older than the first
// event.
func (e *explainer) roundedUp(v string) error {
	f := e.failed
	if least := f.leastRequest(); least < f.rounded {
		c := f.conditions
		c.Limit, c.Settings.RoundupPower2Divisions = e.limits.high, settings.Default().RoundupPower2Divisions
		m, err := f.hold(e.ctx, c)
		if err != nil {
			return err
		}
		call := f.call
		call.Size = least
		var oom *alloc.OutOfMemoryError
		if err := m.Request(call); err == nil {
			e.open(Setting, "if less was requested: the file has only the size after roundup_power2_divisions; as little as %s may have been requested, which is served without the setting",
				units.Size(least))
			return nil
		} else if !errors.As(err, &oom) {
			return err
		}
	}
	there, known := f.availableUnder(e.limits.high)
	if v == Capacity && known && e.program.Start.Kind == start.Rebuilt && len(switchedOff(f.conditions.Settings)) > 0 && e.needAtLeast() <= there.bytes {
		e.open(Setting, "if blocks from before the first event are smaller under other settings: %s was requested in all", units.Size(e.needAtLeast()))
	}
	return nil
}

// tightest are the rules under which a request takes least.
var tightest = alloc.RulesOf(alloc.Tightest(), pytorch.Default)

// leastRequest returns the least that a request can take if it was rounded up to
// this size.
func (f *failedRequest) leastRequest() uint64 { return tightest.Round(f.rules.LeastRequest(f.rounded)) }

// needAtLeast returns what the live tensors and the request take under any
// setting.
func (e *explainer) needAtLeast() uint64 {
	if e.least == 0 {
		e.least = e.failed.leastRequest()
		for _, l := range e.failed.held.Live() {
			size := l.Size
			if l.Requested > 0 {
				size = min(size, tightest.Round(l.Requested))
			}
			e.least += size
		}
	}
	return e.least
}

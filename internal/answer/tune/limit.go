package tune

import (
	"context"
	"sync/atomic"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/vary"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/settings"
)

// Measure finds the figures of settings that somebody chose, as [Search] finds
// them for those that it names: need, smallest limit, peak and driver time
// without a limit. lower is a bound from below, as by
// [replay.Program.PeakLive]. A share of the device among the settings is left out:
// limits take its place.
func Measure(ctx context.Context, of *run.Checked, s settings.Settings, memory, lower uint64) (*Candidate, error) {
	steps, err := of.Steps(ctx)
	if err != nil {
		return nil, err
	}
	s.PerProcessMemoryFraction = 1
	c := &Candidate{Settings: s}
	warmFrom := vary.WarmFrom(of.Program, steps.Ranges())
	on := &course{lower: lower, total: memory, unit: step, make: func() (*replay.Program, int) { return of.Program, warmFrom }}
	return c, on.open(new(atomic.Int64)).describe(ctx, c)
}

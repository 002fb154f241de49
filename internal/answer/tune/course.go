package tune

import (
	"context"
	"sync/atomic"

	"github.com/ashlar-mem/ashlar/internal/bisect"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// figures are what settings do to one program: under the limit, or without one
// if there is none.
type figures struct {
	fails bool // a request fails, or the device refuses the settings
	peak  uint64
	warm  replay.DriverWork
	need  uint64 // 0 if not looked for, or if the program passes under no limit
}

// course is a program that settings are tried on, and the conditions there: the
// recording, or a variation of it.
type course struct {
	name         string
	make         func() (p *replay.Program, warmFrom int)
	lower        uint64 // the peak of live bytes
	limit, total uint64 // of reserved memory and of the device, 0 for none
	keep         figures
	expandable   figures
	goal         float64 // the better of the two, by the goal
	unit         uint64  // to which needs are found
}

// track is a course with its program at hand.
type track struct {
	*course
	program  *replay.Program
	warmFrom int
	replayed *atomic.Int64 // calls
}

// open makes the program of a course.
func (c *course) open(replayed *atomic.Int64) *track {
	t := &track{course: c, replayed: replayed}
	t.program, t.warmFrom = c.make()
	return t
}

func (t *track) run(ctx context.Context, s settings.Settings, limit, giveUp uint64) (*replay.Outcome, error) {
	o, err := t.program.Run(ctx, replay.Conditions{
		Settings: s, Limit: limit, DeviceMemory: t.total, WarmFrom: t.warmFrom, GiveUp: giveUp,
	})
	if err == nil {
		t.replayed.Add(int64(o.Calls))
	}
	return o, err
}

// try finds all figures but the need. A run that reserves more than most, if that
// is not 0, counts as one that fails.
func (t *track) try(ctx context.Context, s settings.Settings, most uint64) (figures, error) {
	o, err := t.run(ctx, s, t.limit, most)
	if err != nil {
		return figures{fails: true}, err
	}
	return figures{fails: o.Fails || o.GaveUp, peak: o.Reserved.Bytes, warm: o.Warm}, nil
}

// floor returns the lowest limit that can pass.
func (t *track) floor() uint64 { return (t.lower + step - 1) / step * step }

// suffices reports whether no request fails under a limit and no more than the
// limit is reserved.
func (t *track) suffices(ctx context.Context, s settings.Settings, limit uint64) (bool, error) {
	if limit < t.floor() {
		return false, nil
	}
	o, err := t.run(ctx, s, limit, 0)
	return err == nil && !o.Fails && o.Reserved.Bytes <= limit, err
}

// findNeed returns the least memory that suffices, 0 if there is none. low does
// not suffice and high does; either may be 0 if that is not known.
func (t *track) findNeed(ctx context.Context, s settings.Settings, low, high uint64) (uint64, error) {
	low = max(low+step, t.floor())
	at := low
	for stride := (low/64 + t.unit) / step * step; high == 0; stride *= 2 {
		ok, err := t.suffices(ctx, s, at)
		switch {
		case err != nil:
			return 0, err
		case ok:
			high = at
		case at > 8*t.floor()+t.program.Start.Reserved():
			return 0, nil
		default:
			low, at = at+step, at+stride
		}
	}
	return bisect.New(low, high, t.unit).Halve(func(limit uint64) (bool, error) { return t.suffices(ctx, s, limit) })
}

// describe finds the figures of a candidate without a limit, what it needs, and
// its smallest limit.
func (t *track) describe(ctx context.Context, c *Candidate) error {
	o, err := t.run(ctx, c.Settings, 0, 0)
	if err != nil {
		return err
	}
	c.PeakReserved, c.DriverTime, c.Warm = o.Reserved.Bytes, o.DriverTime, o.Warm
	if o.Fails {
		return nil // the device is too small
	}
	if c.Need, err = t.findNeed(ctx, c.Settings, 0, 0); err != nil || c.Need == 0 {
		return err
	}
	low := t.floor()
	if c.Settings.GarbageCollectionThreshold > 0 || c.Settings.ExpandableSegments {
		low = step // what is mapped may exceed a limit, even one below what is live
	}
	c.SmallestLimit, err = bisect.New(low, c.Need, step).Halve(func(limit uint64) (bool, error) {
		o, err := t.run(ctx, c.Settings, limit, 0)
		return err == nil && !o.Fails, err
	})
	return err
}

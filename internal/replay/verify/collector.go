package verify

import (
	"context"
	"errors"
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/bisect"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

// The garbage collector works only under a limit, which is in no file, and what
// it releases looks like what a refused request releases (spec 16).

// collected replays a trace that goes through without a limit, if something was
// refused and garbage_collection_threshold is set. Under a limit the collector
// works, and the lower the limit, the sooner. So the limit was high enough to
// keep it from releasing what stayed. If no limit in the range is, there was none
// and the device refused. What the collector does release was no flush and says
// nothing about the limit.
func (v *verifier) collected(ctx context.Context, p *player) (*player, error) {
	l := p.device.limit()
	if l.Max == 0 || p.config.limit != 0 {
		return p, nil
	}
	q, err := v.collectedIn(ctx, p, l)
	if errors.Is(err, errSpent) {
		p.device.high = math.MaxUint64 // nothing is known for sure
		return p, nil
	}
	return q, err
}

// collectedIn narrows down the range of a limit.
func (v *verifier) collectedIn(ctx context.Context, p *player, l *replay.Limit) (*player, error) {
	best, err := v.under(ctx, p, l.Max)
	if err != nil {
		return nil, err
	}
	if best.diff != nil {
		p.device.high = math.MaxUint64
		return p, nil
	}
	most := l.Max
	if best.device.high > most {
		top := max(min(p.device.sure, v.idle()), most)
		most, err = bisect.New(most+1, top+1, 1).Halve(func(limit uint64) (bool, error) { // the lowest that is too high
			q, err := v.under(ctx, p, limit)
			return err == nil && (q.diff != nil || q.device.high < limit), err
		})
		if err != nil {
			return nil, err
		}
		most--
	}
	least := l.Min
	if q, err := v.under(ctx, p, least); err != nil {
		return nil, err
	} else if q.diff != nil {
		least, err = bisect.New(least+1, l.Max, 1).Halve(func(limit uint64) (bool, error) {
			q, err := v.under(ctx, p, limit)
			return err == nil && q.diff == nil, err
		})
		if err != nil {
			return nil, err
		}
	}
	if best.allocator.Stats().NumAllocRetries == p.allocator.Stats().NumAllocRetries {
		best = p // nothing was collected
	}
	best.device.low, best.device.high = least, most
	return best, nil
}

// under replays as a player did, under a limit.
func (v *verifier) under(ctx context.Context, p *player, limit uint64) (*player, error) {
	c := p.config
	c.limit = limit
	return v.attempt(ctx, c)
}

// idle returns a limit under which the collector never works.
func (v *verifier) idle() uint64 {
	return uint64(float64(max(v.memory.peak, 1))/v.settings.GarbageCollectionThreshold) + 1
}

// searchLimit looks for a limit under which the garbage collector does what
// the trace shows. It runs whenever more than the threshold's share of the
// limit is reserved: under too low a limit it releases where the trace does
// not, under too high a one the trace releases where it does not.
func (v *verifier) searchLimit(ctx context.Context, p *player) (*player, error) {
	low := max(v.memory.peak, 1)
	high := v.idle()
	best, err := v.bisectLimit(ctx, p, low, high)
	if err != nil || best.diff != nil {
		return best, err
	}
	// What was refused narrows the limit down, too.
	if l := best.device.limit(); l.Max != 0 && (best.config.limit < l.Min || best.config.limit > l.Max) {
		if q, err := v.bisectLimit(ctx, p, max(low, l.Min), min(high, l.Max)); err != nil || q.diff == nil {
			return q, err
		}
	}
	return best, nil
}

// bisectLimit looks for a limit between two others; it returns the attempt that
// got furthest, p included.
func (v *verifier) bisectLimit(ctx context.Context, p *player, low, high uint64) (*player, error) {
	best := p
	for low <= high {
		c := v.config
		c.limit = low + (high-low)/2
		q, err := v.attempt(ctx, c)
		if err != nil {
			return nil, err
		}
		if q.diff == nil || q.pos > best.pos {
			best = q
		}
		switch {
		case q.diff == nil:
			return q, nil
		case !q.flushed && q.guess != nil && q.guess.got.Action == alloc.ActionSegmentFree:
			low = c.limit + 1
		default:
			high = c.limit - 1
		}
	}
	return best, nil
}

package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// The search for what a file leaves unsaid ends after so many replays, or when
// these have replayed so many events, which takes some ten seconds: what it finds
// does not depend on how fast the machine is.
const (
	SearchReplays = 400
	SearchEvents  = 20_000_000
)

// work is what a search takes, beside the first replay.
type work struct{ replays, events int }

// errSpent ends the search.
var errSpent = errors.New("the search takes too long")

// best plays the trace, and if it goes wrong looks for another reading of it. It
// returns the replay that went through, or else the one that got furthest.
func (v *verifier) best(ctx context.Context) (*player, error) {
	p, err := v.find(ctx)
	if errors.Is(err, errSpent) {
		return v.furthest, nil
	}
	return p, err
}

// attempt plays the trace under one reading of it. All but the first attempt
// count as search.
func (v *verifier) attempt(ctx context.Context, c playConfig) (*player, error) {
	search := v.furthest != nil
	if search && (v.spent.replays >= v.most.replays || v.spent.events >= v.most.events) {
		return nil, errSpent
	}
	p, err := v.plain, error(nil)
	if v.plain = nil; p == nil {
		p, err = v.play(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	if search {
		v.spent.replays++
		v.spent.events += p.pos
	}
	if v.furthest == nil || v.furthest.diff != nil && (p.diff == nil || p.pos > v.furthest.pos) {
		v.furthest = p
	}
	return p, nil
}

// play goes through the trace up to the first difference.
func (v *verifier) play(ctx context.Context, c playConfig) (*player, error) {
	p, err := newPlayer(v.rows, c)
	if err != nil {
		return nil, err
	}
	var progress func(done, total int)
	if v.furthest == nil {
		progress = v.progress
	}
	if err := p.play(ctx, progress); err != nil {
		return nil, err
	}
	if p.pos < v.rows.Len() {
		p.sizes = nil // of no use, and the search keeps many players
	}
	return p, nil
}

// find tries what the file may have left unsaid: other pools, and the limit at
// which garbage was collected.
func (v *verifier) find(ctx context.Context) (*player, error) {
	p, err := v.attemptLimited(ctx, v.config)
	if err == nil && p.diff != nil {
		p, err = v.otherDevice(ctx, p)
	}
	collects := v.settings.GarbageCollectionThreshold > 0
	if err != nil || p.diff == nil {
		if p, err = v.unrefused(ctx, p, err); err == nil && collects {
			return v.collected(ctx, p)
		}
		return p, err
	}
	if collects {
		if q, err := v.searchLimit(ctx, p); err != nil {
			return nil, err
		} else if q.pos > p.pos || q.diff == nil {
			p = q
		}
	}
	return v.search(ctx, p)
}

// otherDevice looks for another size of the device, among those that the
// addresses allow, with which the replay gets further.
func (v *verifier) otherDevice(ctx context.Context, p *player) (*player, error) {
	for _, memory := range v.found.others {
		c := v.config
		c.setDevice(v.found, memory)
		q, err := v.attemptLimited(ctx, c)
		if err != nil {
			return nil, err
		}
		if q.diff == nil || q.pos > p.pos {
			p, v.config = q, c
		}
		if q.diff == nil {
			break
		}
	}
	return p, nil
}

// attemptLimited plays the trace. Where the replay gets memory that is mapped
// already and the recorded run was refused, the driver had no say: a limit
// refused, and it is tried; or, where stacks do not decide, an empty_cache came
// before.
func (v *verifier) attemptLimited(ctx context.Context, c playConfig) (*player, error) {
	p, err := v.attempt(ctx, c)
	if err != nil || p.granted == 0 {
		return p, err
	}
	best := p
	for q := p; q.granted > 0; {
		c.atMost = q.granted - 1
		next, err := v.attempt(ctx, c)
		if err != nil || next.diff == nil {
			return next, err
		}
		if next.pos <= q.pos {
			break
		}
		best, q = next, next
	}
	c.atMost, c.unrefused = 0, true
	q, err := v.attempt(ctx, c)
	if err != nil || q.pos > best.pos || q.diff == nil {
		return q, err
	}
	return best, nil
}

// unrefused looks at a replay in which requests are refused that no limit
// explains, as more was granted at other times: where stacks do not decide, what
// was taken for a flush inside an allocation was an empty_cache before it.
func (v *verifier) unrefused(ctx context.Context, p *player, err error) (*player, error) {
	if err != nil || p.device.high >= p.device.low {
		return p, err
	}
	c := p.config
	c.unrefused = true
	q, err := v.attempt(ctx, c)
	if err != nil || q.diff == nil {
		return q, err
	}
	return p, nil
}

// search looks for a reading of the trace under which the replay goes through,
// or else as far as possible: the attempt that got furthest is varied first, of
// equals the one that assumes least.
func (v *verifier) search(ctx context.Context, p *player) (*player, error) {
	best := p
	open := []*stuck{p.stuck()}
	for len(open) > 0 {
		next := open[0]
		open = open[1:]
		for _, c := range v.readings(next) {
			q, err := v.attempt(ctx, c)
			if err != nil {
				return nil, err
			}
			if q.diff == nil {
				return q, nil
			}
			if q.pos > best.pos {
				best = q
			}
			if q.pos >= next.pos {
				q := q.stuck()
				i, _ := slices.BinarySearchFunc(open, q, func(x, y *stuck) int {
					return cmp.Or(cmp.Compare(y.pos, x.pos), cmp.Compare(x.config.pools.inferred(), y.config.pools.inferred()), -1)
				})
				open = slices.Insert(open, i, q)
			}
		}
	}
	return best, nil
}

// stuck is where a replay went wrong, and what it assumed.
type stuck struct {
	pos    int
	config playConfig
	guess  *conflict
	asked  [2]int // see recorded.Driver.Asked
}

func (p *player) stuck() *stuck {
	s := &stuck{pos: p.pos, config: p.config, guess: p.guess}
	s.asked[0], s.asked[1] = p.device.Asked()
	return s
}

// readings are other ways to read the trace where the replay went wrong. A
// pending free may have completed when the allocation began or while it waited
// after finding nothing; a segment may belong to another pool.
func (v *verifier) readings(p *stuck) []playConfig {
	var out []playConfig
	for at := p.asked[0]; at < p.asked[1]; at++ {
		c := p.config
		c.waited = append(slices.Clone(c.waited), at)
		slices.Sort(c.waited)
		out = append(out, c)
	}
	pools := p.config.pools
	if pools == nil {
		if v.pools == nil {
			v.pools = newPoolMap(v.rows, v.start)
		}
		pools = v.pools
	}
	for _, m := range pools.options(p.guess) {
		c := p.config
		c.pools = m
		out = append(out, c)
	}
	return out
}

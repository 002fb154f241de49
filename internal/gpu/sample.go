package gpu

import (
	"context"
	"math"
	"slices"
	"time"
)

// pace is how long and how often a case is timed, and how much data moves.
type pace struct {
	warm   int           // rounds that are not counted
	least  int           // rounds there are at least
	most   int           // rounds there are at most
	budget time.Duration // after which no further round begins
	round  time.Duration // what a round of short calls fills
	limit  time.Duration // of all cases together

	copied  uint64   // by the large copies
	managed []uint64 // sent there and back
}

// paceOf is the pace of each pass of a full or of a quick bench.
func paceOf(quick bool) pace {
	if quick {
		return pace{
			warm: 1, least: 2, most: 50, budget: 30 * time.Millisecond, round: 2 * time.Millisecond, limit: 15 * time.Second,
			copied: 64 * mib, managed: []uint64{256 * mib},
		}
	}
	return pace{
		warm: 2, least: 4, most: 100, budget: 175 * time.Millisecond, round: 5 * time.Millisecond, limit: 60 * time.Second,
		copied: 256 * mib, managed: []uint64{256 * mib, 512 * mib, gib},
	}
}

// timer does the rounds of one case in one pass.
type timer struct {
	pace
	ctx context.Context
	end time.Time // when the time of the whole bench is used up
}

// calm is for cases of which a round takes long: one is enough to warm up.
func (t timer) calm() *timer {
	t.warm, t.least = 1, min(t.least, 3)
	return &t
}

// rounds calls round again and again. It gives a slice to write the times of
// the parts into, and returns those of all rounds but the first, part by part.
func (t *timer) rounds(parts int, round func(took []time.Duration) error) ([][]time.Duration, error) {
	all := make([][]time.Duration, parts)
	took := make([]time.Duration, parts)
	var begin time.Time
	for n := -t.warm; n < t.most; n++ {
		if err := t.ctx.Err(); err != nil {
			return nil, err
		}
		now := time.Now()
		if n <= 0 {
			begin = now
		}
		if n >= t.least && now.Sub(begin) >= t.budget || n >= 1 && now.After(t.end) {
			break
		}
		if err := round(took); err != nil {
			return nil, err
		}
		if n < 0 {
			continue
		}
		for i, d := range took {
			all[i] = append(all[i], d)
		}
	}
	return all, nil
}

// many times a call that is too short to be timed alone: do does it n times. It
// returns how many a round has; if that is known from before it is given.
func (t *timer) many(n int, do func(n int) error) ([]time.Duration, int, error) {
	if n == 0 {
		var err error
		if n, err = t.calibrate(do); err != nil {
			return nil, 0, err
		}
	}
	all, err := t.rounds(1, func(took []time.Duration) error {
		begin := time.Now()
		err := do(n)
		took[0] = time.Since(begin)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return all[0], n, nil
}

// calibrate finds how many calls fill a round. The fastest of several tries
// counts: a pause of the machine must not pass for a slow call.
func (t *timer) calibrate(do func(n int) error) (int, error) {
	const most, tries = 1 << 24, 5
	for n := 1; ; n *= 2 {
		filled := 0
		for filled < tries {
			if err := t.ctx.Err(); err != nil {
				return 0, err
			}
			begin := time.Now()
			if err := do(n); err != nil {
				return 0, err
			}
			if time.Since(begin) < t.round {
				break
			}
			filled++
		}
		if filled == tries || n >= most {
			return n, nil
		}
	}
}

// summarise fills in the figures of a row from its rounds.
func (r *Row) summarise(rounds []time.Duration) {
	sorted := slices.Sorted(slices.Values(rounds))
	at := func(q float64) float64 { return quantile(sorted, q) / float64(r.PerRound) }
	r.Rounds = len(rounds)
	r.Median, r.Low, r.High, r.Least, r.Most = at(0.5), at(0.25), at(0.75), at(0), at(1)
}

// quantile is the value below which the part q of sorted samples lies, on a
// straight line between the two nearest.
func quantile(sorted []time.Duration, q float64) float64 {
	place := q * float64(len(sorted)-1)
	below := int(math.Floor(place))
	above := min(below+1, len(sorted)-1)
	part := place - float64(below)
	return float64(sorted[below])*(1-part) + float64(sorted[above])*part
}

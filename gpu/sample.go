package gpu

import (
	"context"
	"math"
	"slices"
	"time"
)

// pace is how long and how often a case is timed.
type pace struct {
	warm   int           // rounds that are not counted
	least  int           // rounds there are at least
	most   int           // rounds there are at most
	budget time.Duration // after which no further round begins
	round  time.Duration // what a round of short calls fills
}

// paceOf is the pace of a full or of a quick bench.
func paceOf(quick bool) pace {
	if quick {
		return pace{warm: 1, least: 3, most: 50, budget: 60 * time.Millisecond, round: 2 * time.Millisecond}
	}
	return pace{warm: 3, least: 7, most: 200, budget: 350 * time.Millisecond, round: 5 * time.Millisecond}
}

// timer does the rounds of one case.
type timer struct {
	pace
	ctx context.Context
	end time.Time // when the time of the whole bench is used up
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
// returns how often a round did.
func (t *timer) many(do func(n int) error) (samples []time.Duration, n int, err error) {
	n = 1
	for {
		begin := time.Now()
		if err := do(n); err != nil {
			return nil, 0, err
		}
		took := time.Since(begin)
		if took >= t.round || n >= 1<<24 {
			break
		}
		n *= 2
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

// summarise fills in the figures of a row from its rounds.
func (r *Row) summarise(samples []time.Duration, perRound int) {
	sorted := slices.Sorted(slices.Values(samples))
	at := func(q float64) float64 { return quantile(sorted, q) / float64(perRound) }
	r.Rounds, r.PerRound = len(samples), perRound
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

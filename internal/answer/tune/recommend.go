package tune

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// near is how close two needs, or two peaks, are that count as equal. A setting fitted closely
// to one recording gains less than this when the next run differs a little; the
// simpler one is worth more.
const near = 0.03

func enough(best uint64) uint64 { return uint64(float64(best)*(1+near)) / step * step }

// result picks the front and the recommendation.
func (s *search) result(ctx context.Context) (*Result, error) {
	r := &Result{Current: s.current, Evaluated: int(s.count.Load()), LowerBound: s.bound}
	within, cancel := ctx, context.CancelFunc(func() {})
	if s.options.Budget > 0 {
		within, cancel = context.WithTimeout(ctx, s.options.Budget-s.options.Budget*searchShare/10)
	}
	defer cancel()
	r.Front, r.FrontComplete = s.settle(within)
	r.Recommended = s.recommend()
	ctx = context.WithoutCancel(ctx) // little is left to do
	for _, c := range append([]*Candidate{r.Current, r.Recommended}, r.Front...) {
		if err := s.findLimit(ctx, c); err != nil {
			return nil, err
		}
		if s.options.Limit == 0 || c.Limited != nil {
			continue
		}
		o, err := s.program.Run(ctx, s.conditions(c.Settings, s.options.Limit))
		if err != nil {
			return nil, err
		}
		c.Limited = o
	}
	r.Reason = s.reason(r.Recommended)
	return r, nil
}

// settle finds the front: the settings that no other beats in all three
// figures. Settings whose need is not known may beat one that is on it, so they
// are tried with the most that any they could beat needs. It reports whether the
// time sufficed to try all.
func (s *search) settle(ctx context.Context) ([]*Candidate, bool) {
	tried := map[*Candidate]bool{}
	for {
		front := s.knownFront()
		var doubtful []*Candidate
		var needs []uint64
		for _, x := range s.all {
			if x.Need != 0 || x.fails || tried[x] {
				continue
			}
			if need := mostBeaten(front, x); need > 0 {
				doubtful, needs = append(doubtful, x), append(needs, need)
			}
		}
		found := make([]bool, len(doubtful))
		_ = parallel.Each(ctx, s.options.Workers, len(doubtful), func(i int) error { // found keeps what matters of the errors
			ok, err := s.suffices(ctx, doubtful[i], needs[i])
			if ok && err == nil {
				err = s.findNeed(ctx, doubtful[i])
				found[i] = err == nil
			}
			return err
		})
		if ctx.Err() != nil {
			return s.knownFront(), false
		}
		for _, x := range doubtful {
			tried[x] = true
		}
		if !slices.Contains(found, true) {
			return front, true
		}
	}
}

// mostBeaten is the most that any of the settings needs that x would beat if it
// needed as much; 0 if there is none.
func mostBeaten(front []*Candidate, x *Candidate) (need uint64) {
	for _, c := range front {
		if x.PeakReserved <= c.PeakReserved && x.DriverTime <= c.DriverTime {
			need = max(need, c.Need)
		}
	}
	return need
}

// knownFront returns the front of the settings whose need is known.
func (s *search) knownFront() []*Candidate {
	var out []*Candidate
	for _, c := range s.leaders(len(s.all)) {
		if !slices.ContainsFunc(out, func(o *Candidate) bool {
			return o.Need <= c.Need && o.PeakReserved <= c.PeakReserved && o.DriverTime <= c.DriverTime
		}) {
			out = append(out, c)
		}
	}
	return out
}

// recommend picks a setting. Of those that need practically least, and pass under
// the limit if any do, it takes the ones that reserve practically least when
// they may; of these the current one, or else the one with least to set.
func (s *search) recommend() *Candidate {
	known := s.leaders(len(s.all))
	if len(known) == 0 {
		return s.current
	}
	most := enough(known[0].Need)
	if s.options.Limit >= known[0].Need {
		most = min(most, s.options.Limit) // it has to pass under the limit
	}
	known = slices.DeleteFunc(known, func(c *Candidate) bool { return c.Need > most })
	least := known[0].PeakReserved
	for _, c := range known {
		least = min(least, c.PeakReserved)
	}
	known = slices.DeleteFunc(known, func(c *Candidate) bool { return c.PeakReserved > enough(least) })
	if slices.Contains(known, s.current) {
		return s.current
	}
	return slices.MinFunc(known, func(x, y *Candidate) int {
		return cmp.Or(cmp.Compare(changes(x.Settings), changes(y.Settings)), cmp.Compare(x.Need, y.Need),
			cmp.Compare(x.PeakReserved, y.PeakReserved), cmp.Compare(x.DriverTime, y.DriverTime))
	})
}

// reason says in a sentence why a setting is recommended.
func (s *search) reason(c *Candidate) string {
	if c.Need == 0 {
		return "no setting lets the recording pass on a device of this size"
	}
	text := fmt.Sprintf("the whole recording passes with %s, %.1f %% above the peak of allocated bytes, and reserves at most %s when more is available",
		units.SizeUp(c.Need), 100*(float64(c.Need)/float64(s.bound)-1), units.Size(c.PeakReserved))
	if c == s.current {
		return fmt.Sprintf("no setting beats the current ones by more than %.0f %% in both: with them %s", 100*near, text)
	}
	if s.current.Need == 0 {
		text += "; with the current settings no amount is enough"
	} else {
		text += fmt.Sprintf("; the current settings need %s and reserve %s", units.SizeUp(s.current.Need), units.Size(s.current.PeakReserved))
	}
	if least := s.leaders(1)[0]; c != least {
		text += fmt.Sprintf("; the smallest need of any setting is %s, with %s", units.SizeUp(least.Need), least.Settings)
	}
	return text
}

package tune

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// near is how close two needs are that count as equal. A setting fitted closely
// to one recording gains less than this when the next run differs a little; the
// simpler one is worth more.
const near = 0.03

func enough(best uint64) uint64 { return uint64(float64(best)*(1+near)) / step * step }

// frontSize bounds the settings whose need is looked for although they do not
// have the lowest one.
const frontSize = 12

// result picks the front and the recommendation.
func (s *search) result(ctx context.Context) (*Result, error) {
	r := &Result{Current: s.current, Evaluated: int(s.count.Load()), LowerBound: s.bound}
	// The cheapest in each of the other figures are on the front too.
	ctx = context.WithoutCancel(ctx) // little is left to do
	for _, c := range s.cheapest(frontSize) {
		if c.Need == 0 {
			if err := s.findNeed(ctx, c); err != nil {
				return nil, err
			}
		}
	}
	r.Front = s.front()
	r.Recommended = s.recommend()
	for _, c := range append([]*Candidate{r.Current, r.Recommended}, r.Front...) {
		if err := s.findLimit(ctx, c); err != nil {
			return nil, err
		}
		if s.o.Limit == 0 || c.Limited != nil {
			continue
		}
		o, err := s.p.Run(ctx, s.conditions(c.Settings, s.o.Limit))
		if err != nil {
			return nil, err
		}
		c.Limited = o
	}
	r.Reason = s.reason(r.Recommended)
	return r, nil
}

// cheapest are settings that no other beats in both peak reserved and driver
// time.
func (s *search) cheapest(n int) []*Candidate {
	all := slices.DeleteFunc(slices.Clone(s.all), func(c *Candidate) bool { return c.fails })
	slices.SortStableFunc(all, func(x, y *Candidate) int {
		return cmp.Or(cmp.Compare(x.PeakReserved, y.PeakReserved), cmp.Compare(x.DriverTime, y.DriverTime),
			cmp.Compare(changes(x.Settings), changes(y.Settings)))
	})
	var out []*Candidate
	var least time.Duration
	for _, c := range all {
		if len(out) == 0 || c.DriverTime < least {
			out = append(out, c)
			least = c.DriverTime
		}
	}
	return out[:min(n, len(out))]
}

// front are the settings of which no other is better in all three figures.
func (s *search) front() []*Candidate {
	known := s.leaders(len(s.all))
	var out []*Candidate
	for _, c := range known {
		if !slices.ContainsFunc(out, func(o *Candidate) bool {
			return o.Need <= c.Need && o.PeakReserved <= c.PeakReserved && o.DriverTime <= c.DriverTime
		}) {
			out = append(out, c)
		}
	}
	return out
}

// recommend picks, of the settings that need practically least and that pass
// under the limit if any do, the one that changes least.
func (s *search) recommend() *Candidate {
	known := s.leaders(len(s.all))
	if len(known) == 0 {
		return s.current
	}
	choice := known[0]
	most := enough(choice.Need)
	if s.o.Limit >= choice.Need {
		most = min(most, s.o.Limit) // it has to pass under the limit
	}
	for _, c := range known {
		if c.Need > most {
			break
		}
		if c == s.current {
			return c
		}
		if better(c, choice) {
			choice = c
		}
	}
	return choice
}

// better prefers fewer settings to name, then what reserves less when it may,
// then less work for the driver.
func better(x, y *Candidate) bool {
	return cmp.Or(cmp.Compare(changes(x.Settings), changes(y.Settings)), cmp.Compare(x.PeakReserved, y.PeakReserved),
		cmp.Compare(x.DriverTime, y.DriverTime), cmp.Compare(x.Need, y.Need)) < 0
}

// reason says in a sentence why a setting is recommended.
func (s *search) reason(c *Candidate) string {
	if c.Need == 0 {
		return "no setting lets the recording pass on a device of this size"
	}
	text := fmt.Sprintf("the whole recording passes under a limit of %s, %.1f %% above the peak of live bytes",
		units.Size(c.SmallestLimit), 100*(float64(c.SmallestLimit)/float64(s.bound)-1))
	switch least := s.leaders(1)[0]; {
	case c == s.current:
		return fmt.Sprintf("nothing beats the current settings by more than %.0f %%: with them %s", 100*near, text)
	case s.current.Need == 0:
		return text + "; with the current settings it does not pass under any"
	case c != least:
		return fmt.Sprintf("%s; the current settings need %s, and the lowest found, %s, has more to set",
			text, units.Size(s.current.SmallestLimit), units.Size(least.Need))
	}
	return fmt.Sprintf("%s; the current settings need %s", text, units.Size(s.current.SmallestLimit))
}

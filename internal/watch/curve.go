package watch

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Curve is one number of a GPU over time, in at most so many points as were asked
// for.
type Curve struct {
	Name string  `json:"name"`
	Time []int64 `json:"time_us"` // of the last value of each point
	Low  []int64 `json:"min"`
	High []int64 `json:"max"`
	Last []int64 `json:"last"`
}

// maxPoints is more than a screen has columns.
const maxPoints = 10_000

// Curve returns a number of a session's GPU between two times.
func (s *Server) Curve(ctx context.Context, id string, gpu int, name string, from, to time.Time, points int) (Curve, error) {
	c := Curve{Name: name, Time: []int64{}, Low: []int64{}, High: []int64{}, Last: []int64{}}
	number := slices.Index(Names[:], name)
	if number < 0 || points < 1 || points > maxPoints || !to.After(from) {
		return c, fmt.Errorf("name must be a number of a sample, points from 1 to %d, and to after from", maxPoints)
	}
	spans, err := s.store.history(ctx, id)
	if err != nil {
		return c, unavailable{err}
	}
	begin, width := from.UnixMicro(), max(1, to.Sub(from).Microseconds()/int64(points)+1)
	last := int64(-1)
	for i := range spans {
		r := &spans[i]
		if r.GPU != gpu || r.V[Time] < begin || r.V[Time] >= to.UnixMicro() || r.V[number] == unknown {
			continue
		}
		low, high := r.extremes(number)
		at, n := (r.V[Time]-begin)/width, len(c.Time)-1
		if at == last {
			c.Low[n], c.High[n] = min(c.Low[n], low), max(c.High[n], high)
			c.Time[n], c.Last[n] = r.V[Time], r.V[number]
			continue
		}
		last = at
		c.Time, c.Last = append(c.Time, r.V[Time]), append(c.Last, r.V[number])
		c.Low, c.High = append(c.Low, low), append(c.High, high)
	}
	return c, nil
}

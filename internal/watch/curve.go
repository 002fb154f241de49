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
	width := max(1, to.Sub(from).Microseconds()/int64(points)+1)
	k := drawing{Curve: &c, gpu: gpu, begin: from.UnixMicro(), end: to.UnixMicro(), width: width, last: -1}
	if err := s.draw(ctx, id, number, &k); err != nil {
		return c, unavailable{err}
	}
	return c, nil
}

// draw puts what is kept of a session into a curve: only the blocks of its time,
// at the coarsest level that has a row for each point.
func (s *Server) draw(ctx context.Context, id string, number int, k *drawing) error {
	tail, err := s.tailRows(ctx, id)
	if err != nil {
		return err
	}
	x, err := s.store.index(ctx, id)
	pieces := x.pieces(k.begin, k.end, time.Duration(k.width)*time.Microsecond)
	x.mu.Unlock()
	if err != nil {
		return err
	}
	through := int64(0)
	for _, p := range pieces {
		strips, err := s.store.strips(ctx, id, p, number)
		if err != nil {
			return err
		}
		for i := range strips {
			if strips[i].gpu == k.gpu {
				k.strip(&strips[i], p.after, p.end)
			}
		}
		through = max(through, p.last)
	}
	for i := range tail {
		if r := &tail[i]; r.GPU == k.gpu && r.V[Seq] > through {
			k.add(r.V[Time], r.V[number], r.V[number], r.V[number])
		}
	}
	return nil
}

// tailRows returns the rows that are in no block yet.
func (s *Server) tailRows(ctx context.Context, id string) ([]Row, error) {
	s.mu.Lock()
	one := s.sessions[id]
	elsewhere := one == nil || s.foreign(one)
	s.mu.Unlock()
	if elsewhere {
		t, err := s.store.readTail(ctx, id)
		return t.rows, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return slices.Clone(one.tail.rows), nil
}

// drawing is a curve that is being made.
type drawing struct {
	*Curve
	gpu               int
	begin, end, width int64 // us
	last              int64 // the point that was added to last
}

func (k *drawing) strip(s *strip, after, end int64) {
	for i, seq := range s.seq {
		if seq > after && seq < end {
			k.add(s.time[i], s.last[i], s.low[i], s.high[i])
		}
	}
}

func (k *drawing) add(at, v, low, high int64) {
	if at < k.begin || at >= k.end || v == unknown {
		return
	}
	point, n := (at-k.begin)/k.width, len(k.Time)-1
	if point == k.last {
		k.Low[n], k.High[n] = min(k.Low[n], low), max(k.High[n], high)
		k.Time[n], k.Last[n] = at, v
		return
	}
	k.last = point
	k.Time, k.Last = append(k.Time, at), append(k.Last, v)
	k.Low, k.High = append(k.Low, low), append(k.High, high)
}

package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Largest is the end of a search for the largest batch or sequence that fits.
type Largest struct {
	Of    string `json:"of"`    // batch or seq
	Value int64  `json:"value"` // 0 if not even 1 fits
	// Next is the value above, which was planned too and does not fit, and Why.
	Next int64  `json:"next"`
	Why  string `json:"why"`
	// Peaks of both; those of Value are 0 if it is 0.
	PeakReserved     uint64 `json:"peak_reserved_bytes"`
	NextPeakReserved uint64 `json:"next_peak_reserved_bytes"`
	Plans            int    `json:"plans"` // how many jobs were planned
}

// FindLargest looks for the largest batch or sequence that fits. Reserved
// memory does not grow steadily with either, so a larger one that fits by luck
// may be missed; that Value fits and Next does not, was replayed.
func FindLargest(ctx context.Context, q Question, of string) (*Largest, error) {
	if err := q.prepare(); err != nil {
		return nil, err
	}
	if of != "batch" && of != "seq" {
		return nil, fmt.Errorf("--max %q: write batch or seq", of)
	}
	if !q.Room.given() {
		return nil, errors.New("--max needs something to fit into: give --gpu or --limit")
	}
	if of == "seq" && q.Model.ViT != nil {
		return nil, errors.New("--max seq: vit has no --seq; use --max batch")
	}
	s := &largest{q: &q, of: of, known: map[int64]*trial{}}
	// The first plan shows what is wrong with the other options.
	start := q.Options.count(of, 1)
	j, _, err := q.Options.with(of, fmt.Sprint(start)).Job(q.Model)
	if err != nil {
		return nil, err
	}
	s.room = q.Room.available(j)
	if err := s.try(ctx, 1, 2); err != nil {
		return nil, err
	}
	for s.low+1 != s.high {
		if err := s.try(ctx, s.guesses()...); err != nil {
			return nil, err
		}
	}
	out := &Largest{Of: of, Value: s.low, Next: s.high, Why: s.known[s.high].why, Plans: len(s.known)}
	out.NextPeakReserved = s.known[s.high].reserved
	if s.low > 0 {
		out.PeakReserved = s.known[s.low].reserved
	}
	return out, nil
}

// trial is one value that was planned.
type trial struct {
	fits                bool
	why                 string // it does not
	reserved, requested uint64 // without a limit; 0 if it could not be planned
}

// largest is the state of a search: low fits, or is 0; high does not, or is 0
// while nothing is known that does not.
type largest struct {
	q         *Question
	of        string
	known     map[int64]*trial
	low, high int64
	room      uint64
}

// try plans several values at once and narrows the search down.
func (s *largest) try(ctx context.Context, values ...int64) error {
	var mu sync.Mutex
	err := parallel(ctx, len(values), func(i int) error {
		t, err := s.trial(ctx, values[i])
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		s.known[values[i]] = t
		return nil
	})
	if err != nil {
		return err
	}
	for _, v := range values {
		if !s.known[v].fits && (s.high == 0 || v < s.high) {
			s.high = v
		}
	}
	for _, v := range values {
		if s.known[v].fits && v > s.low && (s.high == 0 || v < s.high) {
			s.low = v
		}
	}
	return nil
}

func (s *largest) trial(ctx context.Context, v int64) (*trial, error) {
	o := s.q.Options.with(s.of, fmt.Sprint(v))
	j, _, err := o.Job(s.q.Model)
	if err != nil {
		return &trial{why: err.Error()}, nil
	}
	p, err := s.q.planJob(ctx, j, 0)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return &trial{why: err.Error()}, nil
	}
	t := &trial{reserved: p.reserved, requested: p.requested}
	var failed *Failure
	ok, f, err := p.fits(ctx)
	if err != nil {
		return nil, err
	}
	if t.fits = ok; !ok {
		failed = describe(p.run.ledger, f)
		t.why = "it runs out of memory in " + failed.Phase
		if failed.Step > 0 {
			t.why += fmt.Sprintf(" %d", failed.Step)
		}
	}
	return t, nil
}

// reach is how many times further than known a guess may go.
const reach = 64

// guesses are the values to try next: where a straight line through what is
// known meets the room, by reserved memory, which is less than passes, and by
// what is live, which is more. Between two neighbours of which one fits they
// are thirds.
func (s *largest) guesses() []int64 {
	room := float64(s.room)
	if a, b := s.slope(); b != nil {
		first := meet(a, b, room, func(t *trial) uint64 { return t.reserved })
		second := meet(a, b, room, func(t *trial) uint64 { return t.requested })
		var out []int64
		for _, v := range []int64{first, first + 1, second, second + 1} {
			if v > s.low && (s.high == 0 || v < s.high) && s.known[v] == nil && v <= max(s.low, 1)*reach {
				out = append(out, v)
			}
		}
		if len(out) > 0 && len(s.known) < 8 {
			return out
		}
	}
	if s.high == 0 {
		return []int64{2 * s.low, 4 * s.low}
	}
	gap := s.high - s.low
	one, two := s.low+max(gap/3, 1), s.low+max(2*gap/3, 1)
	if one == two {
		return []int64{one}
	}
	return []int64{one, two}
}

// point is a value that was planned.
type point struct {
	v int64
	*trial
}

// slope are the two known points nearest to where the search is.
func (s *largest) slope() (a, b *point) {
	for v, t := range s.known {
		if t.requested == 0 {
			continue
		}
		p := &point{v, t}
		switch {
		case b == nil || s.nearer(v, b.v):
			a, b = b, p
		case a == nil || s.nearer(v, a.v):
			a = p
		}
	}
	if a == nil {
		return nil, nil
	}
	return a, b
}

// nearer tells whether a value is nearer to the end of what fits than another;
// of two that are as near the smaller one is.
func (s *largest) nearer(v, than int64) bool {
	d, e := max(v-s.low, s.low-v), max(than-s.low, s.low-than)
	return d < e || d == e && v < than
}

// meet is where the line through two points reaches the room.
func meet(a, b *point, room float64, of func(*trial) uint64) int64 {
	rise := (float64(of(b.trial)) - float64(of(a.trial))) / float64(b.v-a.v)
	if rise <= 0 {
		return 0
	}
	v := float64(b.v) + (room-float64(of(b.trial)))/rise
	return int64(min(max(v, 0), maxCount))
}

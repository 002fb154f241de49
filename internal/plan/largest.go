package plan

import (
	"context"
	"fmt"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// Largest is the result of a search for the largest batch or sequence that fits.
type Largest struct {
	Of    string `json:"of"`    // batch or seq
	Value int64  `json:"value"` // 0 if not even the smallest fits
	// Next is the next value above Value that can be planned. It does not fit; Why
	// says why.
	Next int64  `json:"next"`
	Why  string `json:"why"`
	// Peaks of both without a limit; those of Value are 0 if it is 0.
	PeakReserved     uint64 `json:"peak_reserved_bytes"`
	NextPeakReserved uint64 `json:"next_peak_reserved_bytes"`
	// Limited is the run of Value within the capacity; nil if Value is 0.
	Limited *Limited `json:"limited"`
	Plans   int      `json:"plans"` // how many jobs were planned
}

// FindLargest finds the largest batch or sequence that fits. Reserved memory does
// not grow steadily with either, so it may miss a larger one that fits by luck.
// Replays confirm that Value fits and Next does not.
func FindLargest(ctx context.Context, q Question, of string) (*Largest, error) {
	if err := q.prepare(); err != nil {
		return nil, err
	}
	if of != "batch" && of != "seq" {
		return nil, problem.New("{max} %q: write batch or seq", of)
	}
	if !q.Capacity.given() {
		return nil, problem.New("{max} needs something to fit into: give {gpu} or {limit}")
	}
	if of == "seq" && (q.Model.ViT != nil || q.Model.Audio != nil) {
		return nil, problem.New("{max} seq: %s takes no {seq}; use {max} batch", q.Model.ModelType)
	}
	s := &largest{question: &q, of: of, unit: q.Options.unit(of), known: map[int64]*trial{}}
	if err := s.findFirst(ctx); err != nil {
		return nil, err
	}
	for s.low+1 != s.high {
		if err := s.tryValues(ctx, s.guesses()...); err != nil {
			return nil, err
		}
	}
	next := s.known[s.high]
	out := &Largest{Of: of, Next: s.high * s.unit, Why: next.why, Plans: len(s.known)}
	out.NextPeakReserved = next.reserved
	if t := s.known[s.low]; t != nil && t.fits {
		out.Value, out.PeakReserved, out.Limited = s.low*s.unit, t.reserved, t.limited
	}
	return out, nil
}

// unit is the number that values of an option must be multiples of: a sequence is
// divided evenly among ranks.
func (o Options) unit(of string) int64 {
	if of != "seq" {
		return 1
	}
	return max(o.ranks("cp"), 1) * max(o.ranks("sp"), 1)
}

// firstValues is how many of the smallest values may be refused: there are jobs
// that a sequence of one token makes impossible.
const firstValues = 4

// findFirst finds the smallest value that can be planned. If there is none, its
// error says what is wrong with the other options.
func (s *largest) findFirst(ctx context.Context) error {
	var refusal error
	for v := int64(1); v <= firstValues; v++ {
		j, _, err := s.question.Options.with(s.of, fmt.Sprint(v*s.unit)).Job(s.question.Model)
		if err == nil {
			var t *trial
			if t, err = s.trial(ctx, v); err != nil {
				return err
			}
			if err = t.refused; err == nil {
				s.available = s.question.Capacity.available(groupOf(j))
				s.known[v], s.low = t, v-1
				return s.tryValues(ctx, v, v+1)
			}
		}
		if refusal == nil {
			refusal = err
		}
	}
	return refusal
}

// trial is one value that was planned.
type trial struct {
	fits                bool
	limited             *Limited
	why                 string // why it does not fit
	refused             error  // it could not be planned
	reserved, requested uint64 // without a limit; 0 if it could not be planned
}

// largest is the state of a search, in units: low fits, or is below the first
// that can be planned; high does not, or is 0 while nothing is known that does
// not.
type largest struct {
	question  *Question
	of        string
	unit      int64
	known     map[int64]*trial
	low, high int64
	available uint64
}

// tryValues plans several values at once and narrows the search down.
func (s *largest) tryValues(ctx context.Context, values ...int64) error {
	var mu sync.Mutex
	err := parallel.Each(ctx, parallel.AllCores, len(values), func(i int) error {
		mu.Lock()
		known := s.known[values[i]] != nil
		mu.Unlock()
		if known {
			return nil
		}
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
	o := s.question.Options.with(s.of, fmt.Sprint(v*s.unit))
	j, _, err := o.Job(s.question.Model)
	if err != nil {
		return &trial{why: problem.Flags(err), refused: err}, nil
	}
	p, err := s.question.planJob(ctx, j, 0)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return &trial{why: problem.Flags(err), refused: err}, nil
	}
	t := &trial{reserved: p.reserved, requested: p.requested}
	var failed *Failure
	if t.limited, failed, err = p.Within(ctx); err != nil {
		return nil, err
	}
	if t.fits = t.limited != nil; !t.fits {
		t.why = failed.Why()
	}
	return t, nil
}

// reach is how many times further than known a guess may go.
const reach = 64

// guesses returns the values to try next: where a straight line through known
// points reaches what is available, by reserved memory, which gives too little,
// and by requested memory, which gives too much. Otherwise they divide the gap
// between low and high into thirds.
func (s *largest) guesses() []int64 {
	available := float64(s.available)
	if a, b := s.slope(); b != nil {
		first := meet(a, b, available, func(t *trial) uint64 { return t.reserved })
		second := meet(a, b, available, func(t *trial) uint64 { return t.requested })
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
	value int64
	*trial
}

// slope returns the two known points nearest to where the search is.
func (s *largest) slope() (a, b *point) {
	for v, t := range s.known {
		if t.requested == 0 {
			continue
		}
		p := &point{v, t}
		switch {
		case b == nil || s.nearer(v, b.value):
			a, b = b, p
		case a == nil || s.nearer(v, a.value):
			a = p
		}
	}
	if a == nil {
		return nil, nil
	}
	return a, b
}

// nearer reports whether a value is nearer to low than another; of two that are
// equally near the smaller one is.
func (s *largest) nearer(v, than int64) bool {
	d, e := max(v-s.low, s.low-v), max(than-s.low, s.low-than)
	return d < e || d == e && v < than
}

// meet returns where the line through two points reaches what is available.
func meet(a, b *point, available float64, of func(*trial) uint64) int64 {
	rise := (float64(of(b.trial)) - float64(of(a.trial))) / float64(b.value-a.value)
	if rise <= 0 {
		return 0
	}
	v := float64(b.value) + (available-float64(of(b.trial)))/rise
	return int64(min(max(v, 0), maxCount))
}

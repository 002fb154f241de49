package dry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// Recorder makes dry runs of a script.
type Recorder interface {
	// Record runs the script with a value.
	Record(ctx context.Context, v *Variation) (*Recording, error)
}

// Largest is the result of a search for the largest value that fits.
type Largest struct {
	Of    string `json:"of"`
	Value int64  `json:"value"` // 0 if not even the smallest that was run fits
	// Next is the smallest value above Value that is known not to fit; 0 if none is.
	// NextRun tells whether the script was run with it; otherwise its sizes lie on
	// straight lines through those of others.
	Next    int64  `json:"next"`
	NextRun bool   `json:"next_run"`
	Why     string `json:"why"` // Next does not fit
	// Peaks of both without a limit.
	PeakReserved     uint64        `json:"peak_reserved_bytes"`
	NextPeakReserved uint64        `json:"next_peak_reserved_bytes"`
	Limited          *plan.Limited `json:"limited"` // the run of Value within the capacity; nil if Value is 0
	Runs             []int64       `json:"runs"`    // the values that the script was run with
	// Interpolated is how many values were computed in between; 0 if the script
	// does other things with other values.
	Interpolated int `json:"interpolated"`
}

// Bounds of the search.
const (
	firstValue   = 2 // a batch of one is often treated apart
	largestValue = 1 << 24
	mostRuns     = 20
)

// FindLargest finds the largest value with which a script fits. It returns the
// recording of that value, or of the smallest that was run.
func FindLargest(ctx context.Context, r Recorder, of string, v Variation, ask func(*Recording) (Question, error)) (*Largest, *Recording, error) {
	s := &search{recorder: r, variation: v, ask: ask, tried: map[int64]*verdict{}}
	out := &Largest{Of: of}
	err := s.find(ctx)
	if err != nil {
		return nil, nil, err
	}
	low, high := s.bounds()
	if low != nil {
		out.Value, out.PeakReserved, out.Limited = low.value, low.reserved, low.limited
	}
	if high != nil {
		out.Next, out.NextRun, out.Why, out.NextPeakReserved = high.value, high.rec != nil, high.why, high.reserved
	}
	for _, x := range s.samples {
		out.Runs = append(out.Runs, x.value)
	}
	out.Interpolated = s.interpolated
	answered := low
	if low == nil {
		answered = high
	}
	return out, answered.rec, nil
}

// verdict is a value that was tried.
type verdict struct {
	value    int64
	rec      *Recording // nil if it was interpolated
	limited  *plan.Limited
	why      string
	reserved uint64
}

type search struct {
	recorder     Recorder
	variation    Variation
	ask          func(*Recording) (Question, error)
	samples      []sample // in the order of their values
	tried        map[int64]*verdict
	interpolated int
	apart        bool // recordings cannot be interpolated
	rounded      bool // not all sizes lie on straight lines
}

// bounds returns the largest value that was run and fits, and the smallest above
// it that does not.
func (s *search) bounds() (low, high *verdict) {
	for _, x := range s.samples {
		if t := s.tried[x.value]; t.limited != nil && (low == nil || t.value > low.value) {
			low = t
		}
	}
	for _, t := range s.tried {
		if t.limited == nil && (low == nil || t.value > low.value) && (high == nil || t.value < high.value) {
			high = t
		}
	}
	return low, high
}

// find runs the script with two values, computes the largest that fits from
// these, runs it, and repeats that with the nearest runs until the next value
// does not fit.
func (s *search) find(ctx context.Context) error {
	for _, v := range []int64{firstValue, 2 * firstValue} {
		if err := s.run(ctx, v); err != nil {
			return err
		}
	}
	for {
		low, high := s.bounds()
		if low == nil {
			return s.below(ctx)
		}
		if high != nil && high.value == low.value+1 && high.rec != nil {
			return nil
		}
		if low.value >= largestValue {
			return nil
		}
		next, err := s.guess(ctx, low, high)
		if err != nil {
			return err
		}
		if s.tried[next] != nil && s.tried[next].rec != nil {
			if !s.rounded {
				return nil
			}
			next++ // what was computed is not certain
		}
		if len(s.samples) >= mostRuns {
			return nil
		}
		if err := s.run(ctx, next); err != nil {
			return err
		}
	}
}

// below looks for a value that fits below the first ones.
func (s *search) below(ctx context.Context) error {
	if s.tried[1] != nil {
		return nil
	}
	return s.run(ctx, 1)
}

// guess is the next value to run: the largest that fits by interpolation, or
// between what fits and what does not.
func (s *search) guess(ctx context.Context, low, high *verdict) (int64, error) {
	if !s.apart {
		v, err := s.computed(ctx)
		if err == nil && v > low.value && (high == nil || high.rec == nil || v < high.value) {
			return v, nil
		}
		if err == nil && v <= low.value {
			return low.value, nil // the next does not fit
		}
		if err != nil && !errors.Is(err, errOther) {
			return 0, err
		}
		if err != nil {
			s.forget()
		}
		low, high = s.bounds()
	}
	if high == nil {
		return 2 * low.value, nil
	}
	return low.value + max((high.value-low.value)/2, 1), nil
}

// forget drops what was interpolated.
func (s *search) forget() {
	s.apart, s.interpolated = true, 0
	for v, t := range s.tried {
		if t.rec == nil {
			delete(s.tried, v)
		}
	}
}

// nearest returns up to three samples around the largest that fits: the first
// that does not, and those below.
func (s *search) nearest() []sample {
	end := len(s.samples)
	for i, x := range s.samples {
		if s.tried[x.value].limited == nil {
			end = i + 1
			break
		}
	}
	end = max(end, 2)
	return s.samples[max(end-3, 0):end]
}

// computed finds the largest value that fits by interpolation between the
// nearest runs.
func (s *search) computed(ctx context.Context) (int64, error) {
	for v, t := range s.tried { // of other lines
		if t.rec == nil {
			delete(s.tried, v)
		}
	}
	near := s.nearest()
	fits := func(v int64) (bool, error) {
		if t := s.tried[v]; t != nil {
			return t.limited != nil, nil
		}
		rec, exact, err := interpolate(near, v)
		if err != nil {
			return false, err
		}
		s.rounded = s.rounded || !exact
		t, err := s.judge(ctx, v, rec)
		if err != nil {
			return false, err
		}
		t.rec = nil
		s.tried[v] = t
		s.interpolated++
		return t.limited != nil, nil
	}
	low, _ := s.bounds()
	v := low.value
	step := int64(1)
	for {
		ok, err := fits(v + step)
		switch {
		case err != nil:
			return 0, err
		case ok:
			if v += step; v >= largestValue {
				return v, nil
			}
			step *= 2
		case step == 1:
			return v, nil
		default:
			step = max(step/2, 1)
			// What is left lies between v and v+2*step.
			for ; step >= 1; step /= 2 {
				ok, err := fits(v + step)
				if err != nil {
					return 0, err
				}
				if ok {
					v += step
				}
			}
			return v, nil
		}
	}
}

// run runs the script with a value and sees whether it fits.
func (s *search) run(ctx context.Context, v int64) error {
	rec, err := s.recorder.Record(ctx, s.variation.With(v))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil && strings.HasPrefix(rec.Ended, "error: ") {
		err = fmt.Errorf("the script failed: %s", strings.TrimPrefix(rec.Ended, "error: "))
	}
	if err != nil {
		return fmt.Errorf("with the value %d: %w", v, err)
	}
	t, err := s.judge(ctx, v, rec)
	if err != nil {
		return fmt.Errorf("with the value %d: %w", v, err)
	}
	s.tried[v] = t
	at, _ := slices.BinarySearchFunc(s.samples, v, func(x sample, v int64) int { return int(x.value - v) })
	s.samples = slices.Insert(s.samples, at, sample{v, rec})
	return nil
}

// judge sees whether a recording fits.
func (s *search) judge(ctx context.Context, v int64, rec *Recording) (*verdict, error) {
	q, err := s.ask(rec)
	if err != nil {
		return nil, err
	}
	if q.Capacity.Card == nil && q.Capacity.Limit == 0 {
		return nil, problem.New("{max} needs something to fit into: give {gpu} or {limit}")
	}
	p, err := q.Play(ctx)
	if err != nil {
		return nil, err
	}
	t := &verdict{value: v, rec: rec}
	t.reserved = p.Outcome().PeakReserved
	var failed *plan.Failure
	if t.limited, failed, err = p.Within(ctx); err != nil {
		return nil, err
	}
	if failed != nil {
		t.why = failed.Why()
	}
	return t, nil
}

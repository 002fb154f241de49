package run

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// Start returns the state before the first event.
func (r *Run) Start() *start.State {
	s, _ := r.start.get(context.Background(), func() (*start.State, error) { return start.Find(r.Trace), nil })
	return s
}

// Annotations returns what the annotations say about the program.
func (r *Run) Annotations() *timeline.Annotations {
	a, _ := r.annotations.get(context.Background(), func() (*timeline.Annotations, error) {
		return timeline.NewAnnotations(r.Trace), nil
	})
	return a
}

// Outline returns the timeline without block sizes, which needs no replay.
func (r *Run) Outline() *timeline.Timeline {
	l, _ := r.outline.get(context.Background(), func() (*timeline.Timeline, error) {
		return timeline.New(r.Trace, timeline.Options{Start: r.Start()}), nil
	})
	return l
}

// History has the totals over time.
type History struct {
	Timeline *timeline.Timeline // with block sizes if the trace replays
	Peaks    *timeline.Peaks
	Moments  *timeline.Moments
}

// History returns the totals over time. The error is the context's.
func (r *Run) History(ctx context.Context) (*History, error) {
	return r.history.get(ctx, func() (*History, error) {
		h := &History{}
		if v, err := r.Replayed(ctx); err == nil && v != nil && v.Sizes != nil {
			h.Timeline = timeline.New(r.Trace, timeline.Options{Start: r.Start(), Sizes: v.Sizes})
		} else {
			h.Timeline = r.Outline()
		}
		h.Peaks = h.Timeline.Peaks()
		h.Moments = timeline.NewMoments(r.Trace, r.Annotations(), h.Peaks.First)
		return h, nil
	})
}

// Lifetimes returns the lifetimes of all blocks. The error is the context's.
func (r *Run) Lifetimes(ctx context.Context) (*timeline.Lifetimes, error) {
	return r.lifetimes.get(ctx, func() (*timeline.Lifetimes, error) {
		h, err := r.History(ctx)
		if err != nil {
			return nil, err
		}
		return timeline.NewLifetimes(h.Timeline), nil
	})
}

// Analysis returns the steps, and what findings and holders are read from. The
// error is the context's.
func (r *Run) Analysis(ctx context.Context) (*findings.Analysis, error) {
	return r.analysis.get(ctx, func() (*findings.Analysis, error) {
		lives, err := r.Lifetimes(ctx)
		if err != nil {
			return nil, err
		}
		return findings.New(lives, r.Annotations()), nil
	})
}

// Steps returns the steps alone. Where nothing else has asked for the analysis, it
// and the lifetimes are garbage afterwards: of a large trace they take more memory
// than its program, and a search needs neither. The error is the context's.
func (r *Run) Steps(ctx context.Context) (*findings.Steps, error) {
	return r.steps.get(ctx, func() (*findings.Steps, error) {
		if r.analysis.ready() || r.lifetimes.ready() {
			a, err := r.Analysis(ctx)
			if err != nil {
				return nil, err
			}
			return a.Steps, nil
		}
		h, err := r.History(ctx)
		if err != nil {
			return nil, err
		}
		return findings.New(timeline.NewLifetimes(h.Timeline), r.Annotations()).Steps, nil
	})
}

// Findings returns the leaks, the spikes, and what comes and goes in a step. The
// error is the context's.
func (r *Run) Findings(ctx context.Context) (*findings.Findings, error) {
	return r.findings.get(ctx, func() (*findings.Findings, error) {
		a, err := r.Analysis(ctx)
		if err != nil {
			return nil, err
		}
		return a.Find(), nil
	})
}

// Indices are what pictures are drawn from.
type Indices struct {
	History
	Lifetimes *timeline.Lifetimes
	Totals    *timeline.TotalsIndex
	Layout    *timeline.Layout
	Clock     *timeline.Clock
	Analysis  *findings.Analysis
}

// Indices returns what pictures are drawn from. The error is the context's.
func (r *Run) Indices(ctx context.Context) (*Indices, error) {
	return r.indices.get(ctx, func() (*Indices, error) {
		h, err := r.History(ctx)
		if err != nil {
			return nil, err
		}
		x := &Indices{History: *h, Clock: timeline.NewClock(r.Trace)}
		if x.Lifetimes, err = r.Lifetimes(ctx); err != nil {
			return nil, err
		}
		if x.Analysis, err = r.Analysis(ctx); err != nil {
			return nil, err
		}
		x.Totals, x.Layout = timeline.NewTotalsIndex(x.Timeline, x.Lifetimes), timeline.NewLayout(x.Timeline, x.Lifetimes)
		return x, nil
	})
}

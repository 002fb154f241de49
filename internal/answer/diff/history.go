package diff

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// history is a trace that was replayed and walked through.
type history struct {
	trace   *trace.Trace
	line    *timeline.Timeline
	peaks   *timeline.Peaks
	program *timeline.Annotations
	moments *timeline.Moments
	replay  *Replay
	notes   []string
}

// Replay says how well a replay of the trace matched it. Block sizes rest on it.
type Replay struct {
	Identical       bool `json:"identical"`
	Events          int  `json:"events"`
	IdenticalEvents int  `json:"identical_events"`
}

func follow(ctx context.Context, r *run.Run) (*history, error) {
	t := r.Trace
	h := &history{trace: t}
	switch seen, err := r.Replayed(ctx); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		h.note("the events cannot be replayed: %v", err)
	case seen != nil:
		h.replay = &Replay{seen.Result.Identical, seen.Result.Events, seen.Result.IdenticalEvents}
	case t.Events.Len() == 0:
	case t.Host:
		h.note("host memory has another allocator, which is not replayed")
	default:
		h.note("traces of more than %s events are not replayed", count(run.MaxReplay))
	}
	course, err := r.History(ctx)
	if err != nil {
		return nil, err
	}
	h.line, h.peaks, h.moments, h.program = course.Timeline, course.Peaks, course.Moments, r.Annotations()
	if t.Partial && !h.line.AtLeast {
		h.note("the file ends within its events: peaks are at least what it shows")
	}
	switch {
	case h.line.AtLeast:
		h.note("the state before the first event is unknown: totals are lower bounds")
	case h.replay != nil && !h.line.Exact:
		h.note("the replay diverges from the trace at event %s (ashlar verify shows how)", count(h.replay.IdenticalEvents))
	}
	return h, ctx.Err()
}

func (h *history) note(format string, args ...any) {
	h.notes = append(h.notes, fmt.Sprintf(format, args...))
}

// atLeast returns a peak of the events. Of a file that ends within them it is
// no lower than what its state shows.
func (h *history) atLeast(peak, now uint64) *uint64 {
	if h.trace.Partial {
		peak = max(peak, now)
	}
	return &peak
}

// peak returns the peak of allocated bytes or, without block sizes, of
// requested.
func (h *history) peak() timeline.Peak {
	if h.line.Exact {
		return h.peaks.Allocated
	}
	return h.peaks.Requested
}

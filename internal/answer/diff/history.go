package diff

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Options bound the work on one trace.
type Options struct {
	Progress func(done, total int) // of the replay
}

// maxReplay is the number of events above which a trace is not replayed: the
// replay of a longer one takes more memory than the trace.
const maxReplay = 5_000_000

// history is a trace that was replayed and walked through.
type history struct {
	t       *trace.Trace
	line    *timeline.Timeline
	peaks   *timeline.Peaks
	program *timeline.Program
	replay  *Replay
	notes   []string
}

// Replay says how well a replay of the trace matched it. Block sizes rest on it.
type Replay struct {
	Identical       bool `json:"identical"`
	Events          int  `json:"events"`
	IdenticalEvents int  `json:"identical_events"`
}

func follow(ctx context.Context, t *trace.Trace, o Options) (*history, error) {
	h := &history{t: t}
	var known timeline.Options
	switch n := t.Events.Len(); {
	case n == 0:
	case t.Host:
		h.note("host memory has another allocator, which is not replayed")
	case n > maxReplay:
		h.note("traces of more than %s events are not replayed", count(maxReplay))
	default:
		v, err := verify.Run(ctx, t, verify.Options{Progress: o.Progress})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			h.note("the events cannot be replayed: %v", err)
			break
		}
		h.replay = &Replay{v.Result.Identical, v.Result.Events, v.Result.IdenticalEvents}
		known = timeline.Options{Start: v.Start, Sizes: v.Sizes}
	}
	h.line = timeline.New(t, known)
	h.peaks = h.line.Peaks()
	h.program = timeline.NewProgram(t)
	if t.Partial && !h.line.AtLeast {
		h.note("the file ends within its events: peaks are at least what it shows")
	}
	switch {
	case h.line.AtLeast:
		h.note("what was there before the first event is not known: totals are lower bounds")
	case h.replay != nil && !h.line.Exact:
		h.note("a replay parts from the trace at event %s (ashlar verify shows how)", count(h.replay.IdenticalEvents))
	}
	return h, ctx.Err()
}

func (h *history) note(format string, args ...any) {
	h.notes = append(h.notes, fmt.Sprintf(format, args...))
}

// atLeast is a peak of the events. Of a file that ends within them it is no lower
// than what its state shows.
func (h *history) atLeast(peak, now uint64) *uint64 {
	if h.t.Partial {
		peak = max(peak, now)
	}
	return &peak
}

// peak is the peak of allocated bytes or, without block sizes, of requested.
func (h *history) peak() timeline.Peak {
	if h.line.Exact {
		return h.peaks.Allocated
	}
	return h.peaks.Requested
}

package hf

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// MaxEvents is how many allocations and frees a planned run may have, so that a
// plan ends before the machine's memory does. A token that DeepSeek-V3 generates
// has 13,660 events, a step of Qwen3.5-27B with 131,072 tokens some six million.
const MaxEvents = 50_000_000

// Option changes how a job is run, not what comes out.
type Option func(*watch)

// Progress calls f now and then with the number of events that the run has so far.
func Progress(f func(events int)) Option { return func(w *watch) { w.progress = f } }

// most sets another bound, for tests.
func most(events int) Option { return func(w *watch) { w.most = events } }

// watch looks after a run while its ledger grows.
type watch struct {
	progress func(events int)
	most     int
}

// stop ends a run from within: the ops of a model return tensors, not errors.
type stop struct{ err error }

// watcher returns the function that a ledger calls as it grows.
func (w watch) watcher(ctx context.Context) func(events int) {
	bound := w.most
	if bound == 0 {
		bound = MaxEvents
	}
	return func(n int) {
		if w.progress != nil {
			w.progress(n)
		}
		if ctx.Err() != nil {
			panic(stop{context.Cause(ctx)})
		}
		if n > bound {
			panic(stop{fmt.Errorf("the run has more than %s allocations and frees, which is as many as are planned: give fewer tokens, or larger chunks of the loss", units.Count(int64(bound)))})
		}
	}
}

// stopped is the error that a run was stopped with. Other panics go on.
func stopped(fault any) error {
	if fault == nil {
		return nil
	}
	if s, ok := fault.(stop); ok {
		return s.err
	}
	panic(fault)
}

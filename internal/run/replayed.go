package run

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
)

// Verified replays the trace and returns how that compares with the recording.
// The error says why it cannot be replayed, or is the context's.
func (r *Run) Verified(ctx context.Context) (*verify.Verified, error) {
	return r.verified.get(ctx, func() (*verify.Verified, error) {
		return verify.Run(ctx, r.Trace, verify.Options{Start: r.Start(), NoSizes: r.NoSizes, Progress: r.Progress})
	})
}

// Program returns the calls of the trace, checked by its replay. The error is
// that of [Run.Verified].
func (r *Run) Program(ctx context.Context) (*replay.Program, error) {
	v, err := r.Verified(ctx)
	if err != nil {
		return nil, err
	}
	return v.Program(), nil
}

// Replayed returns what [Run.Verified] does if the trace is worth a replay, and
// nil if not: without events, for host memory, or above [MaxReplay] events unless
// the replay was made already.
func (r *Run) Replayed(ctx context.Context) (*verify.Verified, error) {
	if n := r.Events(); n == 0 || r.Trace.Host || n > MaxReplay && !r.verified.ready() {
		return nil, nil
	}
	return r.Verified(ctx)
}

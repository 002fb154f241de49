package oracle

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

// VerifyAll loads and verifies the recordings and snapshots of all sources, as many at a time
// as there are processors, and calls each for every one, in the order of the
// sources, as soon as it and those before it are done. The error given to each
// is that of [Load] or [Verify]; the Result is then nil. VerifyAll itself
// returns the context's error, if it ended before all was done.
func VerifyAll(ctx context.Context, sources []Source, opts Options, each func(i int, r *replay.Result, err error)) error {
	type outcome struct {
		r   *replay.Result
		err error
	}
	outcomes := make([]chan outcome, len(sources))
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	go parallel.Each(ctx, parallel.AllCores, len(sources), func(i int) error {
		r, err := verifySource(ctx, sources[i], opts)
		outcomes[i] <- outcome{r, err}
		return nil
	})
	for i := range sources {
		select {
		case o := <-outcomes[i]:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			each(i, o.r, o.err)
		case <-ctx.Done():
			// Not waiting for the workers: one may hang reading a terminal.
			return context.Cause(ctx)
		}
	}
	return nil
}

package replay

import (
	"context"
	"runtime"
	"sync"
)

// VerifyAll loads and verifies the recordings of all sources, as many at a time
// as there are processors, and calls each for every one, in the order of the
// sources, as soon as it and those before it are done. The error given to each
// is that of [Load] or [Verify]; the Result is then nil. VerifyAll itself
// returns the context's error, if it ended before all was done.
func VerifyAll(ctx context.Context, sources []Source, each func(i int, r *Result, err error)) error {
	type outcome struct {
		r   *Result
		err error
	}
	outcomes := make([]chan outcome, len(sources))
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	var (
		wg   sync.WaitGroup
		next = make(chan int)
	)
	for range min(runtime.GOMAXPROCS(0), len(sources)) {
		wg.Go(func() {
			for i := range next {
				r, err := verifySource(ctx, sources[i])
				outcomes[i] <- outcome{r, err}
			}
		})
	}
	wg.Go(func() {
		defer close(next)
		for i := range sources {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
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
	wg.Wait()
	return nil
}

func verifySource(ctx context.Context, src Source) (*Result, error) {
	rec, err := Load(ctx, src)
	if err != nil {
		return nil, err
	}
	r, err := Verify(ctx, rec)
	if err != nil {
		if ctx.Err() == nil {
			err = &InputError{File: src.Name, Problem: err.Error(), Advice: "correct the recording's settings", Err: err}
		}
		return nil, err
	}
	r.File = src.Name
	return r, nil
}

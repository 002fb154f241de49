package plan

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel runs f for 0 to n-1 on all cores and returns the first error in
// their order. Nothing more is begun once the context ends.
func parallel(ctx context.Context, n int, f func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				errs[i] = f(i)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

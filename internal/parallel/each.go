package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// AllCores stands for one worker for each core.
const AllCores = 0

// Each calls f for 0 to n-1, at most workers at a time, and waits for all. A
// failed call does not stop the others; once ctx ends, no more calls begin. Each
// returns the error of the lowest i, or the cause of ctx if there is none.
func Each(ctx context.Context, workers, n int, f func(i int) error) error {
	if workers <= AllCores {
		workers = runtime.GOMAXPROCS(0)
	}
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
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

// Counter returns a function that counts a task as done and tells how many of total
// are, never concurrently. tell may be nil.
func Counter(total int, tell func(done, total int)) (done func()) {
	if tell == nil {
		return func() {}
	}
	var mu sync.Mutex
	n := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		n++
		tell(n, total)
	}
}

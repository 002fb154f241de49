package alloc

import "errors"

// oomRetry is the hook of WithOOMRetry.
type oomRetry struct {
	times int
	ask   func(*OutOfMemoryError) bool
}

// WithOOMRetry calls f when a request is about to fail, after cached memory was
// released and the driver still refused. If f reports true, the request is tried
// again from the start, at most times times; after that, or when f reports false,
// it fails. A request that a retry serves is no failure: it is not counted as an
// out-of-memory error, and the trace does not show it.
//
// f runs without the allocator's lock, on the goroutine of the request, and may
// be called by several at once. It may free memory, empty the cache or wait for
// others to do so. It must not allocate from the same allocator: that request
// could fail too and call f again. Requests of 2^60 bytes and more fail without
// it. A panic of f passes through the request and leaves the allocator usable. A
// second hook replaces the first.
func WithOOMRetry(times int, f func(*OutOfMemoryError) bool) Option {
	return func(a *Allocator) {
		a.retry = nil
		if times > 0 && f != nil {
			a.retry = &oomRetry{times, f}
		}
	}
}

// lastResort handles the failure of mallocBlock with err, for callers that hold the
// lock: the hook may free memory, else the failure is recorded. After the hook the
// request starts again, because routes and pools may have changed.
func (a *Allocator) lastResort(err error, size, stream, thread uint64) (blockID, error) {
	if a.retry != nil {
		for range a.retry.times {
			var oom *OutOfMemoryError
			if !errors.As(err, &oom) || !a.askUnlocked(oom) {
				break
			}
			var id blockID
			if id, err = a.mallocBlock(size, stream, thread, true); err == nil {
				return id, nil
			}
		}
	}
	if a.spiller != nil {
		var id blockID
		if id, err = a.spill(err, size, stream, thread); err == nil {
			return id, nil
		}
	}
	a.countFailure(err)
	return noBlock, err
}

// askUnlocked calls the hook without the lock. If the hook panics the lock stays
// free: nobody between here and the caller of the allocator takes it or gives it
// back, and nothing is half done.
func (a *Allocator) askUnlocked(oom *OutOfMemoryError) bool {
	a.mu.Unlock()
	again := a.retry.ask(oom)
	a.mu.Lock()
	return again
}

// countFailure records that a request failed for good (spec 3.3).
func (a *Allocator) countFailure(err error) {
	var oom *OutOfMemoryError
	if !errors.As(err, &oom) {
		return
	}
	a.stats.ooms++
	// The stream pool of the request may be gone since the lock was released.
	sp := streamPool{stream: oom.Stream, pool: &pool{}}
	if oom.Pool != (PoolID{}) {
		sp.pool.private = &privatePool{id: oom.Pool}
	}
	a.emit(ActionOOM, oom.DeviceFree, oom.Rounded, &sp)
}

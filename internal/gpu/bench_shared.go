package gpu

import (
	"errors"
	"sync"

	"github.com/ashlar-mem/ashlar/driver/cuda"
)

// sharedSize is the block that threads and streams ask for at once.
const sharedSize = 2 * mib

// threadSteps time the driver and its pool from several threads at once.
func (r *runner) threadSteps() []step {
	var steps []step
	for _, kind := range []string{CaseDriver, CasePool} {
		for _, n := range []int{1, 2, 4, 8, 16} {
			size := uint64(sharedSize)
			run := func() error { return r.threads(kind, n) }
			if kind == CasePool {
				run = func() error { return r.withPool(true, func() error { return r.threads(CasePool, n) }) }
			}
			steps = append(steps, step{of: Row{Group: GroupThreads, Case: kind, Size: &size, Goroutines: &n}, need: uint64(n) * size, run: run})
		}
	}
	return steps
}

// threads times pairs per pair over all threads. With the pool each has a stream of
// its own.
func (r *runner) threads(kind string, n int) (err error) {
	streams, end, err := r.streams(n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	once := func(stream uint64) error {
		addr, err := r.dev.Malloc(sharedSize, stream)
		if err != nil {
			return err
		}
		return r.dev.Free(addr, sharedSize)
	}
	what := "cuMemAlloc and cuMemFree, per pair over all threads"
	if kind == CasePool {
		what = "cuMemAllocAsync and cuMemFreeAsync, each thread on a stream of its own, per pair over all threads"
		once = func(stream uint64) error {
			addr, err := r.dev.MallocAsync(sharedSize, stream)
			if err != nil {
				return err
			}
			return r.dev.FreeAsync(addr, stream)
		}
	}
	size := uint64(sharedSize)
	row := Row{Group: GroupThreads, Case: kind, Part: PartAll, Size: &size, Goroutines: &n, What: what}
	return r.addMany(row, func(pairs int) error {
		err := atOnce(n, pairs, func(i, share int) error {
			release, err := r.dev.Bind()
			if err != nil {
				return err
			}
			defer release()
			for range share {
				if err := once(streams[i]); err != nil {
					return err
				}
			}
			return nil
		})
		for _, s := range streams {
			err = errors.Join(err, r.dev.Synchronize(s))
		}
		return err
	})
}

// atOnce shares so many calls out among goroutines that begin together.
func atOnce(goroutines, calls int, do func(i, share int) error) error {
	errs := make([]error, goroutines)
	var start, done sync.WaitGroup
	start.Add(1)
	for g := range goroutines {
		share := calls / goroutines
		if g < calls%goroutines {
			share++
		}
		done.Go(func() {
			start.Wait()
			errs[g] = do(g, share)
		})
	}
	start.Done()
	done.Wait()
	return errors.Join(errs...)
}

// streams makes so many streams; end gives them back.
func (r *runner) streams(n int) (streams []uint64, end func() error, err error) {
	end = func() error {
		var err error
		for _, s := range streams {
			err = errors.Join(err, r.dev.CloseStream(s))
		}
		return err
	}
	for range n {
		s, err := r.dev.NewStream()
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		streams = append(streams, s)
	}
	return streams, end, nil
}

// streamSteps time the driver's pool with blocks that go round several streams, with
// and without reuse from one stream to another.
func (r *runner) streamSteps() []step {
	var steps []step
	for _, kind := range []string{CaseReuse, CaseNoReuse} {
		for _, n := range []int{1, 2, 4, 8, 16} {
			size := uint64(sharedSize)
			steps = append(steps, step{
				of: Row{Group: GroupStreams, Case: kind, Size: &size, Streams: &n}, need: 4 * uint64(n) * size,
				run: func() error { return r.withPool(true, func() error { return r.aroundStreams(kind, n) }) },
			})
		}
	}
	return steps
}

// aroundStreams has one thread allocate, fill and free on one stream after the
// other. Without reuse the pool keeps memory for each of them.
func (r *runner) aroundStreams(kind string, n int) (err error) {
	before, err := r.dev.PoolReuse()
	if err != nil {
		return err
	}
	on := kind == CaseReuse
	defer func() { err = errors.Join(err, r.dev.SetPoolReuse(before)) }()
	if err := errors.Join(r.dev.SetPoolReuse(cuda.PoolReuse{FollowEvents: on, Opportunistic: on, InternalDependencies: on}), r.dev.TrimPool(0), r.dev.ResetPoolHighs()); err != nil {
		return err
	}
	streams, end, err := r.streams(n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	size := uint64(sharedSize)
	row := Row{
		Group: GroupStreams, Case: kind, Part: PartAll, Size: &size, Streams: &n,
		What: "cuMemAllocAsync, a fill and cuMemFreeAsync on one stream after the other",
	}
	if err := r.addMany(row, func(pairs int) error {
		for i := range pairs {
			s := streams[i%n]
			addr, err := r.dev.MallocAsync(size, s)
			if err != nil {
				return err
			}
			if err := errors.Join(r.dev.Fill(addr, 1, size, s), r.dev.FreeAsync(addr, s)); err != nil {
				return err
			}
		}
		var err error
		for _, s := range streams {
			err = errors.Join(err, r.dev.Synchronize(s))
		}
		return err
	}); err != nil {
		return err
	}
	stats, err := r.dev.PoolStats()
	if err != nil {
		return err
	}
	to := &r.bench.Rows[r.row(&row)]
	if to.PoolReserved == nil || *to.PoolReserved < stats.ReservedHigh {
		to.PoolReserved = &stats.ReservedHigh
	}
	return nil
}

package gpu

import (
	"errors"
	"time"
)

// pairSteps time cuMemAlloc and cuMemFree.
func (r *runner) pairSteps() []step {
	var steps []step
	for _, size := range []uint64{4 * kib, 2 * mib, 20 * mib, 200 * mib, 2 * gib} {
		steps = append(steps, step{
			of: Row{Group: GroupDriver, Case: CasePair, Size: &size}, need: size,
			run: func() error { return r.pair(size) },
		})
	}
	return steps
}

func (r *runner) pair(size uint64) error {
	samples, err := r.rounds(2, func(took []time.Duration) error {
		mark := time.Now()
		addr, err := r.dev.Malloc(size, 0)
		if err != nil {
			return err
		}
		took[0] = lap(&mark)
		err = r.dev.Free(addr, size)
		took[1] = lap(&mark)
		return err
	})
	if err != nil {
		return err
	}
	r.addParts(Row{Group: GroupDriver, Case: CasePair, Size: &size}, samples, []part{
		{PartAlloc, "a call of cuMemAlloc"}, {PartFree, "a call of cuMemFree, nothing running on the device"},
	})
	return nil
}

// asyncSteps time the driver's own pool.
func (r *runner) asyncSteps() []step {
	var steps []step
	for _, kind := range []string{CasePair, CaseSyncPair} {
		for _, size := range []uint64{4 * kib, 2 * mib, 20 * mib, 200 * mib} {
			run := func() error { return r.asyncPair(size) }
			if kind == CaseSyncPair {
				run = func() error { return r.asyncSyncPair(size) }
			}
			steps = append(steps, step{
				of: Row{Group: GroupAsync, Case: kind, Size: &size}, need: size,
				run: func() error { return r.withPool(kind == CasePair, run) },
			})
		}
	}
	return steps
}

// withPool runs f with a pool that keeps all its memory or none, and leaves the
// pool as it was.
func (r *runner) withPool(keeps bool, f func() error) error {
	before, err := r.dev.PoolStats()
	if err != nil {
		return err
	}
	threshold := uint64(0)
	if keeps {
		threshold = never
	}
	if err := r.dev.SetReleaseThreshold(threshold); err != nil {
		return err
	}
	err = f()
	return errors.Join(err, r.dev.Synchronize(r.stream), r.dev.SetReleaseThreshold(before.ReleaseThreshold), r.dev.TrimPool(0))
}

// asyncPair times pairs from a pool that has the memory.
func (r *runner) asyncPair(size uint64) error {
	row := Row{
		Group: GroupAsync, Case: CasePair, Part: PartAll, Size: &size,
		What: "cuMemAllocAsync and cuMemFreeAsync, the pool keeps its memory",
	}
	return r.addMany(row, func(n int) error {
		for range n {
			if err := r.asyncOnce(size); err != nil {
				return err
			}
		}
		return r.dev.Synchronize(r.stream)
	})
}

// asyncSyncPair times pairs with the release threshold a pool has at first: it
// gives its memory back whenever the stream is waited for.
func (r *runner) asyncSyncPair(size uint64) error {
	samples, err := r.rounds(1, func(took []time.Duration) error {
		mark := time.Now()
		if err := r.asyncOnce(size); err != nil {
			return err
		}
		err := r.dev.Synchronize(r.stream)
		took[0] = lap(&mark)
		return err
	})
	if err != nil {
		return err
	}
	r.add(Row{
		Group: GroupAsync, Case: CaseSyncPair, Part: PartAll, Size: &size,
		What: "cuMemAllocAsync, cuMemFreeAsync and waiting for the stream, release threshold 0",
	}, samples[0], 1)
	return nil
}

func (r *runner) asyncOnce(size uint64) error {
	addr, err := r.dev.MallocAsync(size, r.stream)
	if err != nil {
		return err
	}
	return r.dev.FreeAsync(addr, r.stream)
}

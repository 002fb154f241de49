package gpu

import (
	"errors"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// growthSteps time a malloc for which the engine needs new memory, and giving
// that back.
func (r *runner) growthSteps() []step {
	var steps []step
	for _, conf := range []string{SettingsPlain, SettingsExpandable} {
		for _, size := range []uint64{mib, 20 * mib, 200 * mib, gib} {
			steps = append(steps, step{
				of: Row{Group: GroupGrowth, Case: CaseGrow, Settings: &conf, Size: &size}, need: 3 * size,
				run: func() error {
					return r.withEngine(conf, func(a *alloc.Allocator) error { return r.grow(a, conf, size) })
				},
			})
		}
	}
	return steps
}

func (r *runner) grow(a *alloc.Allocator, conf string, size uint64) (err error) {
	anchors, err := fill(a, size)
	defer func() {
		for _, addr := range anchors {
			err = errors.Join(err, a.Free(addr))
		}
	}()
	if err != nil {
		return err
	}
	reserved := func() int64 { return a.Stats().ReservedBytes.All.Current }
	before := reserved()
	samples, err := r.rounds(2, func(took []time.Duration) error {
		mark := time.Now()
		addr, err := a.Malloc(size, 0)
		if err != nil {
			return err
		}
		took[0] = lap(&mark)
		grown := reserved() - before
		if err := a.Free(addr); err != nil {
			return err
		}
		mark = time.Now()
		err = a.EmptyCache()
		took[1] = lap(&mark)
		if err == nil && (grown <= 0 || reserved() != before) {
			return fmt.Errorf("the engine grew by %s and kept %s: it did not do what is timed", units.Delta(grown), units.Delta(reserved()-before))
		}
		return err
	})
	if err != nil {
		return err
	}
	r.addParts(Row{Group: GroupGrowth, Case: CaseGrow, Size: &size, Settings: &conf}, samples, []part{
		{PartMalloc, "malloc, no cached block fits"}, {PartEmpty, "empty_cache, the block is free"},
	})
	return nil
}

// fill allocates blocks until the cache has no room for another one. They keep
// their segments, so that a round begins and ends with the same memory.
func fill(a *alloc.Allocator, size uint64) (blocks []uint64, err error) {
	const most = 8
	for range most {
		addr, err := a.Malloc(size, 0)
		if err != nil {
			return blocks, err
		}
		blocks = append(blocks, addr)
		s := a.Stats()
		if s.ReservedBytes.All.Current-s.AllocatedBytes.All.Current < int64(size) {
			return blocks, nil
		}
	}
	return blocks, fmt.Errorf("the cache still has room after %d blocks of %s", most, units.Size(size))
}

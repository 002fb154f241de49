package gpu

import (
	"errors"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tier"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// tierSteps time memory of the host behind addresses of the device: what it takes to
// make, and what alloc/tier does with it.
func (r *runner) tierSteps() []step {
	var steps []step
	for _, size := range r.managed {
		steps = append(steps,
			step{of: Row{Group: GroupTier, Case: CaseHostPages, Size: &size}, run: func() error { return r.hostPages(size) }},
			step{of: Row{Group: GroupTier, Case: CasePark, Size: &size}, need: size + 42*mib, run: func() error { return r.park(size) }},
		)
	}
	return steps
}

// hostRoom says why so many bytes of the host's memory cannot be had. They are
// page-locked, so half of what is available is all that may be taken.
func (r *runner) hostRoom(size uint64) error {
	if r.dev.Granularity() == 0 {
		return errors.New("the device cannot map memory into ranges")
	}
	room, err := tier.HostRoom()
	if err == nil && size > room/2 {
		return fmt.Errorf("it takes %s of the host's memory and may take half of the %s that are available", units.Size(size), units.Size(room))
	}
	return err
}

func (r *runner) hostPages(size uint64) error {
	whole := r.mappable(size)
	if err := r.hostRoom(whole); err != nil {
		return err
	}
	var pages [1]driver.Physical
	samples, err := r.calm().rounds(2, func(took []time.Duration) error {
		mark := time.Now()
		if err := r.dev.CreateHostPhysical(whole, pages[:]); err != nil {
			return err
		}
		took[0] = lap(&mark)
		err := r.dev.ReleasePhysical(pages[:])
		took[1] = lap(&mark)
		return err
	})
	if err != nil {
		return err
	}
	r.addParts(Row{Group: GroupTier, Case: CaseHostPages, Size: &size}, samples, []part{
		{PartCreate, "cuMemCreate of the host's memory, one handle"}, {PartRelease, "cuMemRelease"},
	})
	return nil
}

// park times moving a block to the host's memory and back, and kernels that use it
// there. They check what they find, so that its bytes must really move.
func (r *runner) park(size uint64) (err error) {
	if err := r.hostRoom(size + 42*mib); err != nil {
		return err
	}
	conf, err := settings.Parse(SettingsExpandable)
	if err != nil {
		return err
	}
	set, err := r.kernels()
	if err != nil {
		return err
	}
	outcome, err := r.dev.Malloc(kernels.OutcomeSize, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.dev.Free(outcome, kernels.OutcomeSize)) }()
	store, err := tier.New(r.dev, tier.Options{})
	if err != nil {
		return err
	}
	space := store.Space("bench")
	a := alloc.New(space.Driver(), alloc.WithSettings(conf), alloc.WithDevice(r.bench.Device.Index))
	if err := space.Attach(a); err != nil {
		return err
	}
	addr, err := a.Malloc(size, 0)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, a.Free(addr), a.EmptyCache())
		store.Trim()
	}()
	words, seed := size/8, uint64(1)
	if err := errors.Join(set.Clear(outcome, r.stream), set.Write(addr, words, seed, r.stream), r.dev.Synchronize(r.stream)); err != nil {
		return err
	}
	samples, err := r.calm().rounds(4, func(took []time.Duration) error {
		mark := time.Now()
		if _, err := space.Park(true); err != nil {
			return err
		}
		took[0] = lap(&mark)
		if _, far, _, _ := space.Where(addr); far < size {
			return fmt.Errorf("only %s of %s went to the host's memory: it did not do what is timed", units.Size(far), units.Size(size))
		}
		mark = time.Now()
		if err := errors.Join(set.Check(addr, words, seed, outcome, r.stream), r.dev.Synchronize(r.stream)); err != nil {
			return err
		}
		took[1] = lap(&mark)
		seed++
		if err := errors.Join(set.Write(addr, words, seed, r.stream), r.dev.Synchronize(r.stream)); err != nil {
			return err
		}
		took[2] = lap(&mark)
		_, err := space.Restore()
		took[3] = lap(&mark)
		return errors.Join(err, set.Check(addr, words, seed, outcome, r.stream), r.dev.Synchronize(r.stream))
	})
	if err != nil {
		return err
	}
	found, err := set.Outcome(outcome, r.stream)
	if err != nil {
		return err
	}
	if found.Wrong > 0 {
		return fmt.Errorf("%d words are not what was written, the first is word %d: do not trust this device or its driver", found.Wrong, found.First)
	}
	r.addParts(Row{Group: GroupTier, Case: CasePark, Size: &size}, samples, []part{
		{PartToHost, "alloc/tier parks a block: a copy to the host's memory, which takes its place"},
		{PartRead, "a kernel reads all of it there, over the bus"},
		{PartWrite, "a kernel writes all of it there"},
		{PartToDevice, "alloc/tier restores it"},
	})
	return nil
}

package gpu

import (
	"errors"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
)

// handleSteps time the calls that put memory behind a range of addresses: one
// handle of several sizes, and many small ones side by side.
func (r *runner) handleSteps() []step {
	var steps []step
	add := func(group string, size uint64, handles int) {
		size = r.mappable(size)
		steps = append(steps, step{
			of: Row{Group: group, Case: CaseMapping, Size: &size, Handles: &handles}, need: size * uint64(handles),
			run: func() error { return r.mapping(group, size, handles) },
		})
	}
	for _, size := range []uint64{2 * mib, 20 * mib, 200 * mib, gib} {
		add(GroupHandle, size, 1)
	}
	for _, n := range []int{10, 100, 500} {
		add(GroupRange, 2*mib, n)
	}
	return steps
}

// mappable rounds a size up to what the device maps at once.
func (r *runner) mappable(size uint64) uint64 {
	unit := max(r.dev.Granularity(), 1)
	return (size + unit - 1) / unit * unit
}

func (r *runner) mapping(group string, size uint64, n int) (err error) {
	if r.dev.Granularity() == 0 {
		return errors.New("the device cannot map memory into ranges")
	}
	whole := size * uint64(n)
	base, err := r.dev.Reserve(whole, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.dev.Unreserve(base, whole)) }()
	handles := make([]driver.Physical, n)
	samples, err := r.rounds(5, func(took []time.Duration) error { return r.mapOnce(took, base, size, handles) })
	if err != nil {
		return err
	}
	of := ""
	if n > 1 {
		of = ", of all handles"
	}
	r.addParts(Row{Group: group, Case: CaseMapping, Size: &size, Handles: &n}, samples, []part{
		{PartCreate, "cuMemCreate" + of},
		{PartMap, "cuMemMap" + of},
		{PartSetAccess, "one cuMemSetAccess over the range"},
		{PartUnmap, "one cuMemUnmap over the range"},
		{PartRelease, "cuMemRelease" + of},
	})
	return nil
}

// mapOnce does all the calls, and undoes them if one fails.
func (r *runner) mapOnce(took []time.Duration, base, size uint64, handles []driver.Physical) error {
	whole := size * uint64(len(handles))
	mark := time.Now()
	if err := r.dev.CreatePhysical(size, handles); err != nil {
		return err
	}
	took[0] = lap(&mark)
	if err := r.dev.MapPhysical(base, size, handles); err != nil {
		return errors.Join(err, r.dev.ReleasePhysical(handles))
	}
	took[1] = lap(&mark)
	if err := r.dev.SetAccess(base, whole); err != nil {
		return errors.Join(err, r.dev.UnmapPhysical(base, whole), r.dev.ReleasePhysical(handles))
	}
	took[2] = lap(&mark)
	err := r.dev.UnmapPhysical(base, whole)
	took[3] = lap(&mark)
	err = errors.Join(err, r.dev.ReleasePhysical(handles))
	took[4] = lap(&mark)
	return err
}

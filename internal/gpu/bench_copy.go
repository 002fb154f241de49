package gpu

import (
	"errors"
	"os"
	"time"
)

// copySteps time copies between the host and the device, of a size that shows
// what a copy costs at least and of one that shows how fast bytes move.
func (r *runner) copySteps() []step {
	var steps []step
	for _, kind := range []string{CasePinned, CasePageable, CaseDevice} {
		for _, size := range []uint64{4 * kib, r.copied} {
			steps = append(steps, step{
				of: Row{Group: GroupCopy, Case: kind, Size: &size}, need: 2 * size,
				run: func() error { return r.copies(kind, size) },
			})
		}
	}
	return steps
}

func (r *runner) copies(kind string, size uint64) (err error) {
	addr, err := r.dev.Malloc(size, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.dev.Free(addr, size)) }()
	switch kind {
	case CaseDevice:
		return r.copyOnDevice(addr, size)
	case CasePinned:
		return r.copyPinned(addr, size)
	}
	host := make([]byte, size)
	for i := 0; i < len(host); i += os.Getpagesize() {
		host[i] = 1 // else the first copies would also pay for its pages
	}
	return r.copyBothWays(kind, addr, host)
}

func (r *runner) copyPinned(addr, size uint64) error {
	host, err := r.dev.AllocHost(size)
	if err != nil {
		return err
	}
	return errors.Join(r.copyBothWays(CasePinned, addr, host), r.dev.FreeHost(host))
}

func (r *runner) copyBothWays(kind string, addr uint64, host []byte) error {
	samples, err := r.rounds(2, func(took []time.Duration) error {
		mark := time.Now()
		if err := errors.Join(r.dev.CopyToDevice(addr, host, r.stream), r.dev.Synchronize(r.stream)); err != nil {
			return err
		}
		took[0] = lap(&mark)
		err := errors.Join(r.dev.CopyToHost(host, addr, r.stream), r.dev.Synchronize(r.stream))
		took[1] = lap(&mark)
		return err
	})
	if err != nil {
		return err
	}
	size := uint64(len(host))
	memory := map[string]string{CasePinned: "page-locked memory", CasePageable: "ordinary memory"}[kind]
	row := Row{Group: GroupCopy, Case: kind, Size: &size}
	row.Part, row.What = PartToDevice, "a copy from "+memory+" to the device, waited for"
	r.add(row, samples[0], 1)
	row.Part, row.What = PartToHost, "a copy from the device to "+memory+", waited for"
	r.add(row, samples[1], 1)
	return nil
}

func (r *runner) copyOnDevice(addr, size uint64) (err error) {
	to, err := r.dev.Malloc(size, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.dev.Free(to, size)) }()
	samples, err := r.rounds(1, func(took []time.Duration) error {
		mark := time.Now()
		err := errors.Join(r.dev.CopyOnDevice(to, addr, size, r.stream), r.dev.Synchronize(r.stream))
		took[0] = lap(&mark)
		return err
	})
	if err != nil {
		return err
	}
	r.add(Row{Group: GroupCopy, Case: CaseDevice, Part: PartOnDevice, What: "a copy within the device, waited for", Size: &size}, samples[0], 1)
	return nil
}

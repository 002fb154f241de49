package gpu

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// mostManaged is the most managed memory that is allocated at a time. Managed
// memory may be larger than the device, which can bring a machine to its knees.
const mostManaged = 4 * gib

var errManaged = fmt.Errorf("at most %s of managed memory are used", units.Size(mostManaged))

// managedSteps send data to the device, through a kernel and back: by copies of
// page-locked memory, and as managed memory with and without prefetching.
func (r *runner) managedSteps() []step {
	var steps []step
	for _, size := range r.managed {
		for _, kind := range []string{CaseExplicit, CaseOnDemand, CasePrefetch} {
			steps = append(steps, step{
				of: Row{Group: GroupManaged, Case: kind, Size: &size}, need: size + 2*mib,
				run: func() error { return r.thereAndBack(kind, size) },
			})
		}
	}
	return steps
}

// journey is memory that is sent to the device and back. Its kernel checks the
// pattern that the last one wrote and writes the next one, so that data must
// really move both ways.
type journey struct {
	kind       string
	host       []byte // as the host sees it
	addr, size uint64 // as the device does
	outcome    uint64 // of the checks
	seed       uint64
	seen       byte // what the host saw
}

func (r *runner) thereAndBack(kind string, size uint64) (err error) {
	set, err := r.kernels()
	if err != nil {
		return err
	}
	j, give, err := r.newJourney(kind, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, give()) }()
	begin := errors.Join(set.Clear(j.outcome, r.stream), set.Write(j.addr, j.words(), j.seed, r.stream), r.back(j))
	if begin != nil {
		return begin
	}
	samples, err := r.calm().rounds(2, func(took []time.Duration) error {
		mark := time.Now()
		if err := r.there(set, j); err != nil {
			return err
		}
		took[0] = lap(&mark)
		err := r.back(j)
		took[1] = lap(&mark)
		return err
	})
	if err != nil {
		return err
	}
	found, err := set.Outcome(j.outcome, r.stream)
	if err != nil {
		return err
	}
	if found.Wrong > 0 {
		return fmt.Errorf("%d words did not arrive as they were sent, the first is word %d: do not trust this device or its driver", found.Wrong, found.First)
	}
	r.addParts(Row{Group: GroupManaged, Case: kind, Size: &size}, samples, journeyParts(kind))
	return nil
}

func journeyParts(kind string) []part {
	switch kind {
	case CaseExplicit:
		return []part{
			{PartToDevice, "a copy from page-locked memory, a kernel that reads and one that writes all of it"},
			{PartToHost, "a copy to page-locked memory, a byte of every page read"},
		}
	case CasePrefetch:
		return []part{
			{PartToDevice, "managed memory: a prefetch, a kernel that reads and one that writes all of it"},
			{PartToHost, "managed memory: a prefetch to the host, a byte of every page read"},
		}
	}
	return []part{
		{PartToDevice, "managed memory: a kernel that reads and one that writes all of it"},
		{PartToHost, "managed memory: a byte of every page read by the host"},
	}
}

// newJourney gets the memory; give gives it back.
func (r *runner) newJourney(kind string, size uint64) (j *journey, give func() error, err error) {
	info := r.dev.Info()
	switch {
	case kind == CaseExplicit:
	case !info.Managed:
		return nil, nil, errors.New("the device has no managed memory")
	case kind == CasePrefetch && !info.PageFaults:
		return nil, nil, errors.New("the device cannot move managed memory page by page")
	case size > mostManaged:
		return nil, nil, errManaged
	}
	j = &journey{kind: kind, size: size, seed: 1}
	var undo []func() error
	give = func() error {
		var err error
		for _, f := range undo {
			err = errors.Join(err, f())
		}
		return err
	}
	if j.outcome, err = r.dev.Malloc(kernels.OutcomeSize, 0); err != nil {
		return nil, nil, err
	}
	undo = append(undo, func() error { return r.dev.Free(j.outcome, kernels.OutcomeSize) })
	if kind != CaseExplicit {
		if j.addr, j.host, err = r.dev.AllocManaged(size); err != nil {
			return nil, nil, errors.Join(err, give())
		}
		undo = append(undo, func() error { return r.dev.Free(j.addr, size) })
		return j, give, nil
	}
	if j.addr, err = r.dev.Malloc(size, 0); err != nil {
		return nil, nil, errors.Join(err, give())
	}
	undo = append(undo, func() error { return r.dev.Free(j.addr, size) })
	if j.host, err = r.dev.AllocHost(size); err != nil {
		return nil, nil, errors.Join(err, give())
	}
	undo = append(undo, func() error { return r.dev.FreeHost(j.host) })
	return j, give, nil
}

func (j *journey) words() uint64 { return j.size / 8 }

// move queues bringing the data to a place. Some kinds of memory need no call.
func (r *runner) move(j *journey, to cuda.Place) error {
	switch {
	case j.kind == CasePrefetch:
		return r.dev.Prefetch(j.addr, j.size, to, r.stream)
	case j.kind == CaseExplicit && to == cuda.OnDevice:
		return r.dev.CopyToDevice(j.addr, j.host, r.stream)
	case j.kind == CaseExplicit:
		return r.dev.CopyToHost(j.host, j.addr, r.stream)
	}
	return nil
}

// there brings the data to the device and lets kernels go over it.
func (r *runner) there(set *kernels.Set, j *journey) error {
	if err := r.move(j, cuda.OnDevice); err != nil {
		return err
	}
	if err := set.Check(j.addr, j.words(), j.seed, j.outcome, r.stream); err != nil {
		return err
	}
	j.seed++
	if err := set.Write(j.addr, j.words(), j.seed, r.stream); err != nil {
		return err
	}
	return r.dev.Synchronize(r.stream)
}

// back brings the data to the host, which looks at every page.
func (r *runner) back(j *journey) error {
	if err := r.move(j, cuda.OnHost); err != nil {
		return err
	}
	if err := r.dev.Synchronize(r.stream); err != nil {
		return err
	}
	j.seen += touchPages(j.host)
	return nil
}

// touchPages reads a byte of every page, which moves the page to the host. The sum
// keeps the compiler from optimising the reads away.
func touchPages(mem []byte) byte {
	var sum byte
	for i := 0; i < len(mem); i += os.Getpagesize() {
		sum += mem[i]
	}
	return sum
}

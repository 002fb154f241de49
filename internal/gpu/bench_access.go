package gpu

import (
	"errors"
	"os"
	"time"

	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
)

// The order in which a kernel reads: every word, one word of every page, or as many
// random ones.
var accessStrides = map[string]uint64{CaseSequential: 1, CaseStrided: pageWords, CaseRandom: 0}

// pageWords is the distance of strided reads, in words of 8 bytes: a page of the
// host.
const pageWords = 4096 / 8

// accessParts are the kinds of memory that a kernel reads, in words.
var accessParts = []struct{ name, what string }{
	{PartDevice, "memory of the device"},
	{PartResident, "managed memory that is on the device"},
	{PartFault, "managed memory that is on the host, moved by faults"},
	{PartPrefetch, "managed memory that is on the host, prefetched"},
	{PartReadMostly, "managed memory that is on the host, advised as read mostly, moved by faults"},
	{PartMapped, "managed memory that stays on the host, mapped for the device by advice"},
}

// accessSteps time a kernel that reads managed memory in some order.
func (r *runner) accessSteps() []step {
	var steps []step
	size := r.managed[0]
	for _, kind := range []string{CaseSequential, CaseStrided, CaseRandom} {
		for i := range accessParts {
			steps = append(steps, step{
				of: Row{Group: GroupAccess, Case: kind, Part: accessParts[i].name, Size: &size}, need: size + 2*mib,
				run: func() error { return r.access(kind, i, size) },
			})
		}
	}
	return steps
}

// withReadable calls f with memory of one kind for the device to read, and a word
// for the sum.
func (r *runner) withReadable(part string, size uint64, f func(addr uint64, host []byte, sum uint64) error) (err error) {
	info := r.dev.Info()
	if part != PartDevice && !(info.Managed && info.PageFaults) {
		return errors.New("the device cannot move managed memory page by page")
	}
	if size > mostManaged {
		return errManaged
	}
	sum, err := r.dev.Malloc(8, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.dev.Free(sum, 8)) }()
	var addr uint64
	var host []byte
	if part == PartDevice {
		addr, err = r.dev.Malloc(size, 0)
	} else {
		addr, host, err = r.dev.AllocManaged(size)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.dev.Free(addr, size)) }()
	return f(addr, host, sum)
}

func (r *runner) access(kind string, part int, size uint64) error {
	gather, err := r.loadGather()
	if err != nil {
		return err
	}
	name := accessParts[part].name
	words := size / 8
	reads := words / pageWords
	if kind == CaseSequential {
		reads = words
	}
	return r.withReadable(name, size, func(addr uint64, host []byte, sum uint64) error {
		if err := r.advise(name, addr, size); err != nil {
			return err
		}
		samples, err := r.calm().rounds(1, func(took []time.Duration) error {
			if err := r.place(name, addr, host); err != nil {
				return err
			}
			mark := time.Now()
			if name == PartPrefetch {
				if err := r.dev.Prefetch(addr, size, cuda.OnDevice, r.stream); err != nil {
					return err
				}
			}
			err := errors.Join(gather.Read(addr, words, reads, accessStrides[kind], sum, r.stream), r.dev.Synchronize(r.stream))
			took[0] = lap(&mark)
			return err
		})
		if err != nil {
			return err
		}
		what := map[string]string{CaseSequential: "a kernel that reads all of", CaseStrided: "a kernel that reads a word of every 4 KiB of", CaseRandom: "a kernel that reads as many random words of"}[kind]
		r.add(Row{Group: GroupAccess, Case: kind, Part: name, Size: &size, What: what + " " + accessParts[part].what}, samples[0], 1)
		return nil
	})
}

// advise tells the driver what the case is about.
func (r *runner) advise(part string, addr, size uint64) error {
	switch part {
	case PartReadMostly:
		return r.dev.Advise(addr, size, cuda.ReadMostly, cuda.OnDevice)
	case PartMapped:
		return errors.Join(r.dev.Advise(addr, size, cuda.PreferPlace, cuda.OnHost), r.dev.Advise(addr, size, cuda.AccessedFrom, cuda.OnDevice))
	}
	return nil
}

// place brings the memory to where a round finds it.
func (r *runner) place(part string, addr uint64, host []byte) error {
	size := uint64(len(host))
	switch part {
	case PartDevice:
		return nil
	case PartResident:
		return errors.Join(r.dev.Prefetch(addr, size, cuda.OnDevice, r.stream), r.dev.Synchronize(r.stream))
	}
	err := errors.Join(r.dev.Prefetch(addr, size, cuda.OnHost, r.stream), r.dev.Synchronize(r.stream))
	writePages(host) // which also ends copies of memory that is read mostly
	return err
}

// writePages writes a byte of every page.
func writePages(mem []byte) {
	for i := 0; i < len(mem); i += os.Getpagesize() {
		mem[i]++
	}
}

// faultPages is how many faults a round times, each in 2 MiB of its own: the driver
// moves neighbours along.
const faultPages = 16

// faultSteps time a single fault of the device, and one of the host.
func (r *runner) faultSteps() []step {
	size := uint64(faultPages) * 2 * mib
	return []step{{of: Row{Group: GroupFault, Case: CaseOnDemand, Size: &size}, need: size + 2*mib, run: func() error { return r.faults(size) }}}
}

func (r *runner) faults(size uint64) error {
	gather, err := r.loadGather()
	if err != nil {
		return err
	}
	return r.withReadable(PartFault, size, func(addr uint64, host []byte, sum uint64) error {
		read := func() (time.Duration, error) {
			mark := time.Now()
			for i := range uint64(faultPages) {
				if err := errors.Join(gather.Read(addr+i*2*mib, 1, 1, 1, sum, r.stream), r.dev.Synchronize(r.stream)); err != nil {
					return 0, err
				}
			}
			return lap(&mark), nil
		}
		samples, err := r.rounds(3, func(took []time.Duration) error {
			if err := r.place(PartFault, addr, host); err != nil {
				return err
			}
			var err error
			if took[0], err = read(); err != nil {
				return err
			}
			if took[1], err = read(); err != nil { // no fault any more
				return err
			}
			mark := time.Now()
			for i := range faultPages {
				host[i*2*mib]++
			}
			took[2] = lap(&mark)
			return nil
		})
		if err != nil {
			return err
		}
		for i, p := range []part{
			{PartFault, "a kernel that reads one word of managed memory on the host: launch, fault and wait"},
			{PartResident, "the same without the fault"},
			{PartToHost, "the host writes a byte of managed memory that is on the device"},
		} {
			r.add(Row{Group: GroupFault, Case: CaseOnDemand, Part: p.name, Size: &size, What: p.what}, samples[i], faultPages)
		}
		return nil
	})
}

// loadGather loads the kernel when it is first needed.
func (r *runner) loadGather() (*kernels.Gather, error) {
	return loaded(&r.gather, r.dev, kernels.LoadGather)
}

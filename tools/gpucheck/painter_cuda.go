package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
)

// openCUDA opens the first GPU.
func openCUDA() (*rig, error) {
	lib, err := cuda.Open()
	if err != nil {
		return nil, err
	}
	dev, err := lib.Device(0)
	if err != nil {
		return nil, err
	}
	// The painters share the kernels, which are compiled when the first one
	// needs them: the recordings do without.
	var set *kernels.Set
	return &rig{
		dev: dev,
		painter: func(slots int) (painter, error) {
			if set == nil {
				if set, err = kernels.Load(dev); err != nil {
					return nil, fmt.Errorf("compiling the kernels: %w", err)
				}
			}
			return newCUDAPainter(dev, set, slots)
		},
		close: func() error {
			var err error
			if set != nil {
				err = set.Close()
			}
			return errors.Join(err, dev.Close())
		},
	}, nil
}

// cudaPainter paints with kernels; nothing leaves the GPU but the counts. Its
// memory for them comes from the driver, not from the allocator under test.
type cudaPainter struct {
	dev   *cuda.Device
	set   *kernels.Set
	found uint64 // an outcome for each slot
	host  []byte // room for all of them
	clean []byte // outcomes of which nothing is known yet
}

func newCUDAPainter(dev *cuda.Device, set *kernels.Set, slots int) (*cudaPainter, error) {
	p := &cudaPainter{dev: dev, set: set}
	size := uint64(slots) * kernels.OutcomeSize
	var err error
	if p.found, err = dev.Malloc(size, 0); err != nil {
		return nil, err
	}
	if p.host, err = dev.AllocHost(size); err == nil {
		p.clean, err = dev.AllocHost(size)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	for i := 0; i < len(p.clean); i += kernels.OutcomeSize {
		binary.LittleEndian.PutUint64(p.clean[i:], 0)
		binary.LittleEndian.PutUint64(p.clean[i+8:], math.MaxUint64)
	}
	if err := errors.Join(p.warmUp(), p.clear(len(p.clean))); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// warmUp launches every kernel once. The driver loads a kernel when it is first
// launched and may wait for the device then, which would undo the delays that
// the checks rely on.
func (p *cudaPainter) warmUp() error {
	if err := p.write(p.found, kernels.OutcomeSize, 0, 0); err != nil {
		return err
	}
	if err := p.check(p.found, kernels.OutcomeSize, 0, 0, 1); err != nil {
		return err
	}
	if err := p.spin(0, time.Microsecond); err != nil {
		return err
	}
	return p.dev.Synchronize(0)
}

func (p *cudaPainter) clear(bytes int) error {
	if err := p.dev.CopyToDevice(p.found, p.clean[:bytes], 0); err != nil {
		return err
	}
	return p.dev.Synchronize(0)
}

func (p *cudaPainter) write(addr, size, seed, stream uint64) error {
	return p.set.Write(addr, size/8, seed, stream)
}

func (p *cudaPainter) check(addr, size, seed, stream uint64, slot int) error {
	return p.set.Check(addr, size/8, seed, p.found+uint64(slot)*kernels.OutcomeSize, stream)
}

// cyclesPerMicrosecond is about the clock of today's cards; a slower one spins
// somewhat longer.
const cyclesPerMicrosecond = 2000

func (p *cudaPainter) spin(stream uint64, d time.Duration) error {
	return p.set.Spin(uint64(d.Microseconds())*cyclesPerMicrosecond, stream)
}

func (p *cudaPainter) results(n int) ([]finding, error) {
	bytes := n * kernels.OutcomeSize
	if bytes == 0 {
		return nil, nil
	}
	if err := p.dev.CopyToHost(p.host[:bytes], p.found, 0); err != nil {
		return nil, err
	}
	if err := p.dev.Synchronize(0); err != nil {
		return nil, err
	}
	out := make([]finding, n)
	for i := range out {
		at := p.host[i*kernels.OutcomeSize:]
		out[i] = finding{Bad: binary.LittleEndian.Uint64(at), First: binary.LittleEndian.Uint64(at[8:])}
	}
	return out, p.clear(bytes)
}

func (p *cudaPainter) close() error {
	var errs []error
	for _, mem := range [][]byte{p.host, p.clean} {
		if mem != nil {
			errs = append(errs, p.dev.FreeHost(mem))
		}
	}
	return errors.Join(append(errs, p.dev.Free(p.found, 0))...)
}

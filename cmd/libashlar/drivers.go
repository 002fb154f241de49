package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// ASHLAR_DRIVER=sim puts the library on a simulated device with
// ASHLAR_SIM_MEMORY of memory: addresses without anything behind them.
const (
	driverVariable = "ASHLAR_DRIVER"
	memoryVariable = "ASHLAR_SIM_MEMORY"
)

// opener finds the driver of a device.
type opener struct {
	lookup func(string) (string, bool)

	mu   sync.Mutex
	cuda *cuda.Library
}

func (o *opener) open(n int) (driver.Driver, error) {
	name, _ := o.lookup(driverVariable)
	switch name {
	case "", "cuda":
		return o.openCUDA(n)
	case "sim":
		return o.openSim(n)
	}
	return nil, fmt.Errorf("%s=%q: allowed: cuda, sim", driverVariable, name)
}

func (o *opener) openCUDA(n int) (driver.Driver, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cuda == nil {
		l, err := cuda.Open()
		if err != nil {
			return nil, err
		}
		o.cuda = l
	}
	return o.cuda.Device(n)
}

func (o *opener) openSim(n int) (driver.Driver, error) {
	if n >= simDevices {
		return nil, fmt.Errorf("there is no device %d: %d are simulated", n, simDevices)
	}
	var total uint64
	if text, ok := o.lookup(memoryVariable); ok && strings.TrimSpace(text) != "" {
		b, err := units.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", memoryVariable, err)
		}
		total = b
	}
	return &shifted{sim.New(sim.Config{TotalMemory: total, Started: true}), uint64(n) << simShift}, nil
}

// Simulated devices all have the same addresses, but a pointer must name one
// block in the process. So each device is moved to a part of its own.
const (
	simShift   = 47
	simDevices = 4 // the address table ends at 2^49
)

var _ driver.HostMapper = (*shifted)(nil)

type shifted struct {
	*sim.Device
	by uint64
}

func (s *shifted) Malloc(size, stream uint64) (uint64, error) {
	addr, err := s.Device.Malloc(size, stream)
	return s.shiftUp(addr, err)
}

func (s *shifted) Reserve(size, stream uint64) (uint64, error) {
	addr, err := s.Device.Reserve(size, stream)
	return s.shiftUp(addr, err)
}

func (s *shifted) shiftUp(addr uint64, err error) (uint64, error) {
	if err != nil {
		return 0, err
	}
	return addr + s.by, nil
}

func (s *shifted) Free(addr, size uint64) error      { return s.Device.Free(addr-s.by, size) }
func (s *shifted) Unreserve(addr, size uint64) error { return s.Device.Unreserve(addr-s.by, size) }

func (s *shifted) Map(addr, size, granule uint64) error {
	return s.Device.Map(addr-s.by, size, granule)
}

func (s *shifted) Unmap(addr, size, granule, stream uint64) error {
	return s.Device.Unmap(addr-s.by, size, granule, stream)
}

func (s *shifted) MapPhysical(addr, size uint64, handles []driver.Physical) error {
	return s.Device.MapPhysical(addr-s.by, size, handles)
}

func (s *shifted) SetAccess(addr, size uint64) error { return s.Device.SetAccess(addr-s.by, size) }

func (s *shifted) UnmapPhysical(addr, size uint64) error {
	return s.Device.UnmapPhysical(addr-s.by, size)
}

func (s *shifted) CopyMapped(dst, src, size uint64) error {
	return s.Device.CopyMapped(dst-s.by, src-s.by, size)
}

func (s *shifted) RecordEvent(stream, addr uint64) (driver.Event, error) {
	return s.Device.RecordEvent(stream, addr-s.by)
}

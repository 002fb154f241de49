package gpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// When says on which devices a context may be created. A context takes a few
// hundred MiB for a moment, which can kill a job that has filled its device.
type When string

const (
	// Idle creates one where NVML sees no process and at least half of the
	// memory is free, and where there is no NVML: then only a context shows how
	// much is free.
	Idle When = "idle"
	// Always creates one on every device.
	Always When = "always"
	// Never creates none.
	Never When = "never"
)

// Inspect asks the driver and NVML about all devices.
func Inspect(lib *cuda.Library, when When) (*Info, error) {
	n, err := lib.Devices()
	if err != nil {
		return nil, err
	}
	info := &Info{DriverVersion: driverVersion(lib), CUDAVersion: lib.Version().String(), Devices: make([]Device, n), Notes: []string{}}
	if v, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		info.Notes = append(info.Notes, fmt.Sprintf("CUDA_VISIBLE_DEVICES=%s is set: other GPUs of this machine are not shown, and numbers start from 0", v))
	}
	for i := range info.Devices {
		if err := inspectDevice(lib, i, when, &info.Devices[i]); err != nil {
			return nil, err
		}
	}
	return info, nil
}

// card is what a device says about itself.
func card(i cuda.Info) Card {
	return Card{
		Index: i.Index, Name: i.Name, UUID: i.UUID, PCIBusID: i.PCIBusID, ComputeCapability: fmt.Sprintf("%d.%d", i.Major, i.Minor),
		Multiprocessors: i.Multiprocessors, TotalBytes: i.TotalMemory,
	}
}

func driverVersion(lib *cuda.Library) *string {
	v, err := lib.DriverVersion()
	if err != nil {
		return nil
	}
	return &v
}

func inspectDevice(lib *cuda.Library, n int, when When, d *Device) error {
	i, err := lib.Info(n)
	if err != nil {
		return err
	}
	*d = Device{Card: card(i), Processes: []Process{}, Notes: []string{}}
	usage, usageErr := lib.Usage(n)
	if usageErr != nil {
		d.note(usageErr)
	} else {
		d.NVML = &Memory{usage.Total, usage.Free, usage.Used}
		if usage.Utilization {
			gpu, memory := float64(usage.GPUBusy)/100, float64(usage.MemoryBusy)/100
			d.GPUUtilisation, d.MemoryUtilisation = &gpu, &memory
		}
	}
	// Before there is a context of our own, so that these are the others.
	list, listErr := lib.Processes(n)
	if listErr != nil && usageErr == nil {
		d.note(listErr)
	}
	for _, p := range list {
		d.Processes = append(d.Processes, process(p))
	}
	if why := d.contextRefused(when, listErr == nil); why != "" {
		d.ContextNotMeasured = &why
		return nil
	}
	d.measureContext(lib, n)
	return nil
}

func (d *Device) note(err error) { d.Notes = append(d.Notes, err.Error()) }

// contextRefused says why no context is made; empty if one is.
func (d *Device) contextRefused(when When, listed bool) string {
	switch {
	case when == Always:
		return ""
	case when == Never:
		return "no context was made"
	case d.NVML == nil:
		return ""
	case !listed:
		return "who uses the device is unknown, and a context takes memory (--context always makes one)"
	case len(d.Processes) > 0:
		return "the device is in use, and a context takes memory (--context always makes one)"
	case d.NVML.FreeBytes < d.NVML.TotalBytes/2:
		return fmt.Sprintf("only %s is free, and a context takes memory (--context always makes one)", units.Size(d.NVML.FreeBytes))
	}
	return ""
}

// measureContext creates two contexts: one to see its size, and one to see the
// memory as a program does.
func (d *Device) measureContext(lib *cuda.Library, n int) {
	cost, err := lib.ContextCost(n)
	if err == nil {
		d.ContextBytes = &cost
	} else {
		why := err.Error()
		d.ContextNotMeasured = &why
	}
	dev, err := lib.Device(n)
	if err != nil {
		d.note(err)
		return
	}
	free, total, err := dev.MemInfo()
	if err = errors.Join(err, dev.Close()); err != nil {
		d.note(err)
		return
	}
	d.Driver = &Memory{total, free, total - min(free, total)}
}

func process(p driver.Process) Process {
	out := Process{PID: p.PID, UsedBytes: &p.Used, Self: p.Self}
	if s, err := proc.ReadStat(p.PID); err == nil && (p.Self || hasGPUOpen(p.PID)) {
		out.Name = &s.Name
	}
	return out
}

// hasGPUOpen reports whether the process with this PID has a GPU open. In a
// container NVML may report PIDs of the host, which belong to other processes
// here. Where the files of another user cannot be read, hasGPUOpen trusts only
// PIDs of the host's own namespace.
func hasGPUOpen(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		const first = "pid:[4026531836]" // the kernel's number for the host's own namespace
		own, _ := os.Readlink("/proc/self/ns/pid")
		return own == first
	}
	for _, f := range files {
		if to, _ := os.Readlink(filepath.Join(dir, f.Name())); strings.HasPrefix(to, "/dev/nvidia") {
			return true
		}
	}
	return false
}

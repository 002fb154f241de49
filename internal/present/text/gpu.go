package text

import (
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/gpu"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// GPU writes what the GPUs of a machine are doing.
func GPU(w io.Writer, info *gpu.Info, style Style) error {
	p := &page{w: w, style: style}
	p.line("%s, %s", gpuDriver(info.DriverVersion, info.CUDAVersion), plural(len(info.Devices), "GPU", "GPUs"))
	for _, n := range info.Notes {
		p.wrapped("  note: ", n)
	}
	for i := range info.Devices {
		p.gpuDevice(&info.Devices[i])
	}
	return p.err
}

func gpuDriver(version *string, cuda string) string {
	if version == nil {
		return "CUDA " + cuda
	}
	return "driver " + Clean(*version) + ", CUDA " + cuda
}

const gpuMemoryRow = "  %-14s %12s %12s %12s  %s"

func (p *page) gpuDevice(d *gpu.Device) {
	p.heading(fmt.Sprintf("%d: %s", d.Index, Clean(d.Name)), "")
	p.line("  compute capability %s, %s, %s", d.ComputeCapability, plural(d.Multiprocessors, "multiprocessor", "multiprocessors"), units.Size(d.TotalBytes))
	p.line("  %s at %s", Clean(d.UUID), Clean(d.PCIBusID))
	if d.Driver != nil || d.NVML != nil {
		p.line(gpuMemoryRow, "memory", "total", "free", "used", "")
	}
	p.gpuMemory("CUDA", d.Driver, "as programs see it")
	p.gpuMemory("NVML", d.NVML, "as nvidia-smi does")
	if d.GPUUtilisation != nil && d.MemoryUtilisation != nil {
		p.line("  %-14s a kernel ran %.0f %% of the time, memory was busy %.0f %%", "utilisation", 100**d.GPUUtilisation, 100**d.MemoryUtilisation)
	}
	if d.ContextBytes != nil {
		p.line("  %-14s %s: what each process takes before it allocates anything", "context", units.Size(*d.ContextBytes))
	} else if d.ContextNotMeasured != nil {
		p.wrapped(fmt.Sprintf("  %-14s not measured: ", "context"), *d.ContextNotMeasured)
	}
	p.gpuProcesses(d)
	for _, n := range d.Notes {
		p.wrapped("  note: ", n)
	}
}

func (p *page) gpuMemory(who string, m *gpu.Memory, what string) {
	if m != nil {
		p.line(gpuMemoryRow, "  "+who, units.Size(m.TotalBytes), units.Size(m.FreeBytes), units.Size(m.UsedBytes), what)
	}
}

func (p *page) gpuProcesses(d *gpu.Device) {
	const row = "  %-14s %12s %12s  %s"
	if len(d.Processes) == 0 {
		if d.NVML != nil && len(d.Notes) == 0 {
			p.line("  %-14s NVML sees none here", "processes")
		}
		return
	}
	p.line(row, "processes", "pid", "used", "")
	for _, q := range d.Processes {
		used, name := "not known", "not visible here"
		if q.UsedBytes != nil {
			used = units.Size(*q.UsedBytes)
		}
		if q.Name != nil {
			name = Clean(*q.Name)
		}
		if q.Self {
			name += " (this one)"
		}
		p.fitted(fmt.Sprintf("  %-14s %12s %12s  ", "", fmt.Sprint(q.PID), used), name)
	}
}

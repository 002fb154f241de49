package cuda

import (
	"errors"
	"os"
	"unsafe"

	"github.com/ashlar-mem/ashlar/driver"
)

// Usage is the use of a GPU by all processes together, as nvidia-smi shows it.
type Usage struct {
	Total, Free, Used uint64 // bytes; what the driver keeps for itself counts as used
	Utilization       bool   // whether the next two are known
	GPUBusy           int    // percent of the time in which a kernel ran
	MemoryBusy        int    // percent of the time in which memory was read or written
}

// Usage asks NVML how the n-th GPU is used. It needs no context.
func (l *Library) Usage(n int) (Usage, error) {
	info, err := l.Info(n)
	if err != nil {
		return Usage{}, err
	}
	return l.usage(info)
}

func (l *Library) usage(info Info) (Usage, error) {
	n := &l.nvml
	n.mu.Lock()
	defer n.mu.Unlock()
	h, err := n.find(info)
	if err != nil {
		return Usage{}, err
	}
	if err := n.do(nvmlMemory, h, uintptr(unsafe.Pointer(&n.memory))); err != nil {
		return Usage{}, err
	}
	u := Usage{Total: n.memory.total, Free: n.memory.free, Used: n.memory.used}
	// Cards that are partitioned do not report how busy they are.
	if n.do(nvmlUtilization, h, uintptr(unsafe.Pointer(&n.busy))) == nil {
		u.Utilization, u.GPUBusy, u.MemoryBusy = true, int(n.busy.gpu), int(n.busy.memory)
	}
	return u, nil
}

// Processes asks NVML which processes have a context on the n-th GPU and how
// much memory they hold.
func (l *Library) Processes(n int) ([]driver.Process, error) {
	info, err := l.Info(n)
	if err != nil {
		return nil, err
	}
	return l.processes(info)
}

// Processes lists who holds memory on the GPU.
func (d *Device) Processes() ([]driver.Process, error) { return d.lib.processes(d.info) }

// Usage asks NVML how the GPU is used.
func (d *Device) Usage() (Usage, error) { return d.lib.usage(d.info) }

func (l *Library) processes(info Info) ([]driver.Process, error) {
	l.nvml.mu.Lock()
	defer l.nvml.mu.Unlock()
	list, err := l.nvml.processes(info)
	if err != nil {
		return nil, err
	}
	self := os.Getpid()
	var all []driver.Process
	for _, p := range list {
		if p.used != nvmlUnknown {
			all = append(all, driver.Process{PID: int(p.pid), Used: p.used, Self: int(p.pid) == self})
		}
	}
	if len(all) == 0 && len(list) > 0 {
		return nil, errors.New("NVML sees processes on the GPU but does not tell here how much memory they hold")
	}
	return all, nil
}

// ownMemory returns the memory that this process holds on a GPU, according to NVML.
func (l *Library) ownMemory(info Info) (used uint64, known bool) {
	all, err := l.processes(info)
	if err != nil {
		return 0, false
	}
	for _, p := range all {
		if p.Self {
			return p.Used, true
		}
	}
	return 0, false
}

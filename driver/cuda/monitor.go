package cuda

import (
	"fmt"
	"unsafe"

	"github.com/ashlar-mem/ashlar/driver"
)

// Monitor asks NVML about the GPUs of this machine. It needs no driver of CUDA
// and makes no context.
type Monitor struct{ lib Library }

// MonitoredGPU is a GPU as NVML counts them, whatever CUDA_VISIBLE_DEVICES says.
type MonitoredGPU struct {
	Index      int
	Name, UUID string
}

// OpenMonitor loads NVML.
func OpenMonitor() (*Monitor, error) {
	m := new(Monitor)
	n := &m.lib.nvml
	n.mu.Lock()
	defer n.mu.Unlock()
	return m, n.start()
}

// GPUs lists the GPUs.
func (m *Monitor) GPUs() ([]MonitoredGPU, error) {
	n := &m.lib.nvml
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.do(nvmlCount, uintptr(unsafe.Pointer(&n.count))); err != nil {
		return nil, err
	}
	all := make([]MonitoredGPU, n.count)
	for i := range all {
		if err := n.do(nvmlByIndex, uintptr(i), uintptr(unsafe.Pointer(&n.out))); err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
		handle := n.out
		all[i] = MonitoredGPU{Index: i}
		for _, ask := range []struct {
			f  nvmlFunction
			to *string
		}{{nvmlUUID, &all[i].UUID}, {nvmlName, &all[i].Name}} {
			n.text = append(n.text[:0], make([]byte, nvmlTextRoom)...)
			if err := n.do(ask.f, handle, uintptr(unsafe.Pointer(unsafe.SliceData(n.text))), nvmlTextRoom); err != nil {
				return nil, fmt.Errorf("GPU %d: %w", i, err)
			}
			*ask.to = cString(unsafe.Pointer(unsafe.SliceData(n.text)))
		}
		n.device[all[i].UUID] = handle
	}
	return all, nil
}

// nvmlTextRoom is what the longest text of NVML needs.
const nvmlTextRoom = 96

// Usage asks how a GPU is used.
func (m *Monitor) Usage(g MonitoredGPU) (Usage, error) { return m.lib.usage(Info{UUID: g.UUID}) }

// Processes lists who holds memory on a GPU.
func (m *Monitor) Processes(g MonitoredGPU) ([]driver.Process, error) {
	return m.lib.processes(Info{UUID: g.UUID})
}

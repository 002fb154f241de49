package cuda

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"
)

// nvml is NVIDIA's management library, loaded when it is first asked. One
// mutex guards it all, also the memory through which it answers.
type nvml struct {
	mu     sync.Mutex
	tried  bool
	err    error
	addr   [nvmlFunctions]uintptr
	device map[string]uintptr // by UUID

	out    uintptr
	text   []byte
	memory struct{ total, free, used uint64 }
	busy   struct{ gpu, memory uint32 }
	count  uint32
	list   []nvmlProcess
}

// nvmlProcess is nvmlProcessInfo_t.
type nvmlProcess struct {
	pid      uint32
	used     uint64 // nvmlUnknown where the system does not report it
	instance [2]uint32
}

const (
	nvmlUnknown          = ^uint64(0)
	nvmlInsufficientSize = 7 // result code
)

// nvmlFunction is a function of NVML.
type nvmlFunction int

const (
	nvmlInit nvmlFunction = iota
	nvmlErrorString
	nvmlDriverVersion
	nvmlByUUID
	nvmlByPCI
	nvmlMemory
	nvmlUtilization
	nvmlProcesses3
	nvmlProcesses2
	nvmlCount
	nvmlByIndex
	nvmlUUID
	nvmlName
	nvmlFunctions
)

var nvmlNames = [nvmlFunctions]string{
	nvmlInit:          "nvmlInit_v2",
	nvmlErrorString:   "nvmlErrorString",
	nvmlDriverVersion: "nvmlSystemGetDriverVersion",
	nvmlByUUID:        "nvmlDeviceGetHandleByUUID",
	nvmlByPCI:         "nvmlDeviceGetHandleByPciBusId_v2",
	nvmlMemory:        "nvmlDeviceGetMemoryInfo",
	nvmlUtilization:   "nvmlDeviceGetUtilizationRates",
	nvmlProcesses3:    "nvmlDeviceGetComputeRunningProcesses_v3",
	nvmlProcesses2:    "nvmlDeviceGetComputeRunningProcesses_v2",
	nvmlCount:         "nvmlDeviceGetCount_v2",
	nvmlByIndex:       "nvmlDeviceGetHandleByIndex_v2",
	nvmlUUID:          "nvmlDeviceGetUUID",
	nvmlName:          "nvmlDeviceGetName",
}

// start loads NVML, once.
func (n *nvml) start() error {
	if n.tried {
		return n.err
	}
	n.tried = true
	name, from := "libnvidia-ml.so.1", ""
	if other := os.Getenv("ASHLAR_LIBNVML"); other != "" {
		name, from = other, " from ASHLAR_LIBNVML="+other
	}
	handle, err := open(name)
	if err != nil {
		n.err = fmt.Errorf("NVML, which knows how GPUs are used, cannot be loaded%s: %w", from, err)
		return n.err
	}
	n.device = map[string]uintptr{}
	for f := range n.addr {
		n.addr[f] = lookup(handle, nvmlNames[f])
	}
	n.err = n.do(nvmlInit)
	return n.err
}

func (n *nvml) raw(f nvmlFunction, args ...uintptr) int {
	return int(int32(invoke(n.addr[f], args...)))
}

func (n *nvml) do(f nvmlFunction, args ...uintptr) error {
	if n.addr[f] == 0 {
		return fmt.Errorf("%w: NVML has no %s", ErrOldDriver, nvmlNames[f])
	}
	return n.check(f, n.raw(f, args...))
}

// check makes a result of NVML an error.
func (n *nvml) check(f nvmlFunction, code int) error {
	if code == 0 {
		return nil
	}
	text := "no text"
	if n.addr[nvmlErrorString] != 0 {
		r := invoke(n.addr[nvmlErrorString], uintptr(code))
		if p := *(*unsafe.Pointer)(unsafe.Pointer(&r)); p != nil {
			text = cString(p)
		}
	}
	return fmt.Errorf("%s: %s (code %d)", nvmlNames[f], text, code)
}

// find returns NVML's handle of a GPU. NVML counts all GPUs and CUDA those it
// may use, in another order, so the UUID decides. An instance of a card that
// is shared out (MIG) has a UUID of its own.
func (n *nvml) find(info Info) (uintptr, error) {
	if err := n.start(); err != nil {
		return 0, err
	}
	if h := n.device[info.UUID]; h != 0 {
		return h, nil
	}
	var err error
	for _, try := range []struct {
		by   nvmlFunction
		name string
	}{
		{nvmlByUUID, info.UUID},
		{nvmlByUUID, "MIG-" + strings.TrimPrefix(info.UUID, "GPU-")},
		{nvmlByPCI, info.PCIBusID},
	} {
		n.text = append(append(n.text[:0], try.name...), 0)
		if err = n.do(try.by, uintptr(unsafe.Pointer(unsafe.SliceData(n.text))), uintptr(unsafe.Pointer(&n.out))); err == nil {
			n.device[info.UUID] = n.out
			return n.out, nil
		}
	}
	return 0, fmt.Errorf("NVML does not know GPU %s: %w", info.PCIBusID, err)
}

// processes lists who holds memory on the GPU.
func (n *nvml) processes(info Info) ([]nvmlProcess, error) {
	h, err := n.find(info)
	if err != nil {
		return nil, err
	}
	f := nvmlProcesses3
	if n.addr[f] == 0 {
		f = nvmlProcesses2
	}
	if len(n.list) == 0 {
		n.list = make([]nvmlProcess, 64)
	}
	for {
		n.count = uint32(len(n.list))
		if n.addr[f] == 0 {
			return nil, fmt.Errorf("%w: NVML has no %s", ErrOldDriver, nvmlNames[f])
		}
		code := n.raw(f, h, uintptr(unsafe.Pointer(&n.count)), uintptr(unsafe.Pointer(unsafe.SliceData(n.list))))
		if code == nvmlInsufficientSize {
			// Others may start meanwhile: leave room.
			n.list = make([]nvmlProcess, 2*max(int(n.count), len(n.list)))
			continue
		}
		if err := n.check(f, code); err != nil {
			return nil, err
		}
		return n.list[:min(int(n.count), len(n.list))], nil
	}
}

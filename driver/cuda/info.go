package cuda

import (
	"fmt"
	"unsafe"
)

// Info is what a GPU says about itself.
type Info struct {
	Index           int    // as CUDA counts, under CUDA_VISIBLE_DEVICES
	Name            string // NVIDIA H200
	UUID            string // GPU-01234567-89ab-...
	PCIBusID        string // 0000:19:00.0
	Major, Minor    int    // compute capability
	Multiprocessors int
	TotalMemory     uint64
	VirtualMemory   bool // can map memory into reserved ranges: expandable segments work
	RDMA            bool // mapped memory may be reached by GPUDirect RDMA
	MemoryPools     bool // has stream-ordered allocation
	Managed         bool // has managed memory
	PageFaults      bool // moves managed memory page by page, on demand and by Prefetch
}

// Attributes of a device.
const (
	attrMultiprocessors   = 16
	attrMajor             = 75
	attrMinor             = 76
	attrManaged           = 83
	attrConcurrentManaged = 89
	attrVirtualMemory     = 102
	attrRDMA              = 110
	attrMemoryPools       = 115
	attrHostNUMA          = 134
)

// Info describes the n-th GPU. It makes no context and takes no memory.
func (l *Library) Info(n int) (Info, error) {
	info, _, err := l.info(n)
	return info, err
}

// info also returns the driver's name for the device.
func (l *Library) info(n int) (Info, int32, error) {
	count, err := l.Devices()
	if err != nil {
		return Info{}, 0, err
	}
	if n < 0 || n >= count {
		return Info{}, 0, fmt.Errorf("%w %d: the driver shows %d, counted from 0", ErrNoDevice, n, count)
	}
	c := l.takeCall()
	defer l.putCall(c)
	if err := c.do(symDeviceGet, c.out(unsafe.Pointer(&c.i)), uintptr(n)); err != nil {
		return Info{}, 0, err
	}
	dev := c.i
	info := Info{Index: n}
	if info.Name, err = c.readText(symDeviceGetName, dev); err != nil {
		return Info{}, 0, err
	}
	if info.PCIBusID, err = c.readText(symDeviceGetPCIBusID, dev); err != nil {
		return Info{}, 0, err
	}
	if info.UUID, err = c.readUUID(dev); err != nil {
		return Info{}, 0, err
	}
	if err := c.do(symDeviceTotalMem, c.out(unsafe.Pointer(&c.a)), uintptr(dev)); err != nil {
		return Info{}, 0, err
	}
	info.TotalMemory = c.a
	for _, a := range []struct {
		attr int
		n    *int
		yes  *bool
	}{
		{attr: attrMajor, n: &info.Major},
		{attr: attrMinor, n: &info.Minor},
		{attr: attrMultiprocessors, n: &info.Multiprocessors},
		{attr: attrManaged, yes: &info.Managed},
		{attr: attrConcurrentManaged, yes: &info.PageFaults},
		{attr: attrVirtualMemory, yes: &info.VirtualMemory},
		{attr: attrRDMA, yes: &info.RDMA},
		{attr: attrMemoryPools, yes: &info.MemoryPools},
	} {
		value, err := c.attribute(a.attr, dev)
		if a.n != nil {
			if err != nil {
				return Info{}, 0, err
			}
			*a.n = int(value)
		} else {
			// A driver that does not know an ability does not have it.
			*a.yes = err == nil && value != 0
		}
	}
	return info, dev, nil
}

func (c *call) attribute(attr int, dev int32) (int32, error) {
	err := c.do(symDeviceGetAttribute, c.out(unsafe.Pointer(&c.i)), uintptr(attr), uintptr(dev))
	return c.i, err
}

func (c *call) readText(s symbol, dev int32) (string, error) {
	clear(c.text[:])
	if err := c.do(s, c.out(unsafe.Pointer(&c.text)), uintptr(len(c.text)-1), uintptr(dev)); err != nil {
		return "", err
	}
	return cString(unsafe.Pointer(&c.text)), nil
}

// readUUID prefers the call that distinguishes the instances of one card that is
// shared out (MIG).
func (c *call) readUUID(dev int32) (string, error) {
	s := symDeviceGetUUIDMIG
	if c.lib.addr[s] == 0 {
		s = symDeviceGetUUID
	}
	if err := c.do(s, c.out(unsafe.Pointer(&c.uuid)), uintptr(dev)); err != nil {
		return "", err
	}
	u := c.uuid
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}

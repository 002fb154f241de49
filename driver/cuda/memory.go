package cuda

import (
	"errors"
	"unsafe"
)

// MemInfo reports free and total memory of the GPU, for all processes.
func (d *Device) MemInfo() (free, total uint64, err error) {
	c, err := d.enterRelaxed()
	if err != nil {
		return 0, 0, err
	}
	defer c.leave()
	if err := c.do(symMemGetInfo, c.out(unsafe.Pointer(&c.a)), c.out(unsafe.Pointer(&c.b))); err != nil {
		return 0, 0, err
	}
	return c.a, c.b, nil
}

// Malloc gets memory with cuMemAlloc, of which the driver takes whole pages of
// 2 MiB.
func (d *Device) Malloc(size, _ uint64) (addr uint64, err error) {
	c, err := d.enterRelaxed()
	if err != nil {
		return 0, err
	}
	defer c.leave()
	if err := c.do(symMemAlloc, c.out(unsafe.Pointer(&c.a)), uintptr(size)); err != nil {
		return 0, err
	}
	return c.a, nil
}

// Free gives back memory got by Malloc or AllocManaged. The driver waits for
// all work of the device first.
func (d *Device) Free(addr, _ uint64) error {
	if addr == 0 {
		// The driver accepts it silently; here it is always a mistake.
		return errors.New("Free: address 0 was never allocated")
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symMemFree, uintptr(addr))
}

// AllocHost gets page-locked memory of the host, which every context of the
// process can copy from and to.
func (d *Device) AllocHost(size uint64) ([]byte, error) {
	const portable = 1
	c, err := d.enterRelaxed()
	if err != nil {
		return nil, err
	}
	defer c.leave()
	if err := c.do(symMemHostAlloc, c.out(unsafe.Pointer(&c.ptr)), uintptr(size), portable); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(c.ptr), size), nil
}

// FreeHost gives back memory got by AllocHost, all of it: mem must begin where
// it began.
func (d *Device) FreeHost(mem []byte) error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	c.ptr = unsafe.Pointer(unsafe.SliceData(mem))
	return c.do(symMemFreeHost, c.out(c.ptr))
}

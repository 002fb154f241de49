package cuda

import (
	"runtime"
	"unsafe"
)

// CopyToDevice queues a copy from memory of the host. Memory got by AllocHost
// is copied while the program goes on; from other memory the driver copies
// before it returns.
func (d *Device) CopyToDevice(dst uint64, src []byte, stream uint64) error {
	if len(src) == 0 {
		return nil
	}
	c, err := d.enterFor(stream)
	if err != nil {
		return err
	}
	defer c.leave()
	c.ptr = unsafe.Pointer(unsafe.SliceData(src)) // keeps src off the stack
	err = c.do(symMemcpyHtoDAsync, uintptr(dst), c.out(c.ptr), uintptr(len(src)), uintptr(stream))
	runtime.KeepAlive(src)
	return err
}

// CopyToHost queues a copy to memory of the host. Into memory that was not got
// by AllocHost the driver copies before it returns.
func (d *Device) CopyToHost(dst []byte, src, stream uint64) error {
	if len(dst) == 0 {
		return nil
	}
	c, err := d.enterFor(stream)
	if err != nil {
		return err
	}
	defer c.leave()
	c.ptr = unsafe.Pointer(unsafe.SliceData(dst))
	err = c.do(symMemcpyDtoHAsync, c.out(c.ptr), uintptr(src), uintptr(len(dst)), uintptr(stream))
	runtime.KeepAlive(dst)
	return err
}

// CopyOnDevice queues a copy between two places of the device.
func (d *Device) CopyOnDevice(dst, src, size, stream uint64) error {
	return d.write(symMemcpyDtoDAsync, dst, src, size, stream)
}

// Fill queues setting size bytes at addr to value.
func (d *Device) Fill(addr uint64, value byte, size, stream uint64) error {
	return d.write(symMemsetD8Async, addr, uint64(value), size, stream)
}

// write queues a call that writes size bytes at addr, by what is there or at
// source.
func (d *Device) write(s symbol, addr, source, size, stream uint64) error {
	if size == 0 {
		return nil
	}
	c, err := d.enterFor(stream)
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(s, uintptr(addr), uintptr(source), uintptr(size), uintptr(stream))
}

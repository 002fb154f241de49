package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ashlar-mem/ashlar/driver"
)

// Device is one GPU with its primary context. It is safe for concurrent use.
type Device struct {
	lib         *Library
	info        Info
	handle      int32
	context     uintptr
	granularity uint64 // 0 if memory cannot be mapped
	closed      atomic.Bool
	events      eventTable
	streams     streamTable
	pool        poolHandle
	host        hostPlaces
	captures    captureTable
}

var (
	_ driver.Driver         = (*Device)(nil)
	_ driver.Copier         = (*Device)(nil)
	_ driver.Capturer       = (*Device)(nil)
	_ driver.ProcessLister  = (*Device)(nil)
	_ driver.PhysicalMapper = (*Device)(nil)
)

// Device opens the n-th GPU. It makes the primary context if nobody in the
// process has made it yet, and else shares it.
func (l *Library) Device(n int) (*Device, error) {
	info, handle, err := l.info(n)
	if err != nil {
		return nil, err
	}
	context, err := l.retain(handle)
	if err != nil {
		return nil, fmt.Errorf("GPU %d (%s): %w", n, info.Name, err)
	}
	d := &Device{lib: l, info: info, handle: handle, context: context}
	if info.VirtualMemory {
		if d.granularity, err = d.queryGranularity(); err != nil {
			_ = d.Close()
			return nil, fmt.Errorf("GPU %d (%s): %w", n, info.Name, err)
		}
	}
	return d, nil
}

// retain takes a share of the primary context.
func (l *Library) retain(handle int32) (uintptr, error) {
	c := l.takeCall()
	defer l.putCall(c)
	if err := c.do(symPrimaryCtxRetain, c.out(unsafe.Pointer(&c.context)), uintptr(handle)); err != nil {
		return 0, err
	}
	return c.context, nil
}

// release gives the share back. The last one ends the context.
func (l *Library) release(handle int32) error {
	s := symPrimaryCtxRelease
	if l.addr[s] == 0 {
		s = symPrimaryCtxReleaseOld
	}
	c := l.takeCall()
	defer l.putCall(c)
	return c.do(s, uintptr(handle))
}

// Close gives back the device's events, the streams that were closed, and its
// share of the primary context. If the share was the last one, the context ends
// and all memory got from the device is gone. No other call may be under way.
// Closing again does nothing.
func (d *Device) Close() error {
	if d.closed.Load() {
		return nil
	}
	err := errors.Join(d.closeEvents(), d.closeCopies(), d.closeStreams())
	d.closed.Store(true)
	if r := d.lib.release(d.handle); err == nil {
		err = r
	}
	return err
}

// Info describes the GPU.
func (d *Device) Info() Info { return d.info }

// TotalMemory is the size of the GPU's memory.
func (d *Device) TotalMemory() uint64 { return d.info.TotalMemory }

// Granularity is the unit in which memory is mapped, 0 if it cannot be.
func (d *Device) Granularity() uint64 { return d.granularity }

// ContextCost measures how much memory a context takes on the n-th GPU before
// anything is allocated, by making one and giving it up again. It asks NVML
// what this process holds or, where NVML cannot distinguish processes, how much
// less of the GPU is free, which others may disturb. If there is a context
// already it returns [ErrContextExists].
func (l *Library) ContextCost(n int) (uint64, error) {
	info, handle, err := l.info(n)
	if err != nil {
		return 0, err
	}
	active, err := l.active(handle)
	if err != nil {
		return 0, err
	}
	if active {
		return 0, ErrContextExists
	}
	before, err := l.usage(info)
	if err != nil {
		return 0, err
	}
	if _, err := l.retain(handle); err != nil {
		return 0, err
	}
	own, known := l.ownMemory(info)
	after, err := l.usage(info)
	if r := l.release(handle); err == nil {
		err = r
	}
	switch {
	case err != nil:
		return 0, err
	case known:
		return own, nil
	case after.Used < before.Used:
		return 0, fmt.Errorf("the context of GPU %d cannot be measured: others gave back memory meanwhile; try again", n)
	}
	return after.Used - before.Used, nil
}

// active reports whether the process has a primary context on the device.
func (l *Library) active(handle int32) (bool, error) {
	c := l.takeCall()
	defer l.putCall(c)
	c.a, c.i = 0, 0
	err := c.do(symPrimaryCtxGetState, uintptr(handle), c.out(unsafe.Pointer(&c.a)), c.out(unsafe.Pointer(&c.i)))
	return c.i != 0, err
}

// poolHandle is the default pool for stream-ordered allocation, asked for once.
type poolHandle struct {
	mu     sync.Mutex
	handle uintptr
}

package cuda

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Capture modes of a thread.
const captureRelaxed = 2

// A call is one visit to the driver. It holds what the driver reads and writes
// through pointers: the driver must not be given a goroutine's stack, which
// moves when it grows. Calls are used again and cost nothing in steady state.
type call struct {
	lib     *Library
	context uintptr // current when the visit began
	pushed  bool    // another context was pushed for the visit
	relaxed bool    // the thread's capture mode was exchanged
	mode    int32   // the mode to put back

	args   [11]uintptr // as many as cuLaunchKernel has
	a, b   uint64
	i      int32
	f      float32
	ptr    unsafe.Pointer // host memory that the driver gets or gives
	prop   allocationProp
	access accessDesc
	uuid   [16]byte
	text   [256]byte
	params [maxArgs]uint64         // of a kernel
	where  [maxArgs]unsafe.Pointer // each of them
}

func (l *Library) takeCall() *call {
	if c, ok := l.calls.Get().(*call); ok {
		return c
	}
	return &call{lib: l}
}

func (l *Library) putCall(c *call) {
	c.ptr = nil
	l.calls.Put(c)
}

// out is the address of a field of c for the driver. c is on the heap and is
// kept alive by the put that ends every visit.
func (c *call) out(p unsafe.Pointer) uintptr { return uintptr(p) }

// raw calls the driver and returns its result code. The arguments go through
// memory of the call, because SyscallN lets its own escape to the heap.
func (c *call) raw(s symbol, args ...uintptr) int {
	n := copy(c.args[:], args)
	return int(int32(invoke(c.lib.addr[s], c.args[:n]...)))
}

// do calls the driver and makes its refusal an error.
func (c *call) do(s symbol, args ...uintptr) error {
	if c.lib.addr[s] == 0 {
		return fmt.Errorf("%w: CUDA %s has no %s", ErrOldDriver, c.lib.version, symbolNames[s])
	}
	if code := c.raw(s, args...); code != 0 {
		return c.lib.fail(s, code)
	}
	return nil
}

// enter begins a visit in the device's context. Every enter without an error
// is followed by a leave on the same goroutine.
func (d *Device) enter() (*call, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	runtime.LockOSThread()
	l := d.lib
	c := l.takeCall()
	c.pushed, c.relaxed = false, false
	c.context = 0
	code, s := c.raw(symCtxGetCurrent, c.out(unsafe.Pointer(&c.context))), symCtxGetCurrent
	if code == 0 && c.context != d.context {
		code, s = c.raw(symCtxPushCurrent, d.context), symCtxPushCurrent
		c.pushed = code == 0
	}
	if code != 0 {
		l.putCall(c)
		runtime.UnlockOSThread()
		return nil, l.fail(s, code)
	}
	return c, nil
}

// enterRelaxed is enter for calls that could break a capture.
func (d *Device) enterRelaxed() (*call, error) {
	c, err := d.enter()
	if err != nil {
		return nil, err
	}
	if err := c.relax(); err != nil {
		c.leave()
		return nil, err
	}
	return c, nil
}

// relax lets the rest of the visit make calls that could break a capture.
func (c *call) relax() error {
	c.mode = captureRelaxed
	err := c.do(symThreadExchangeCaptureMode, c.out(unsafe.Pointer(&c.mode)))
	c.relaxed = err == nil
	return err
}

// leave puts the thread back as enter found it. The results of the visit must
// have been read.
func (c *call) leave() {
	if c.relaxed {
		c.raw(symThreadExchangeCaptureMode, c.out(unsafe.Pointer(&c.mode)))
	}
	if c.pushed {
		c.raw(symCtxPopCurrent, c.out(unsafe.Pointer(&c.context)))
	}
	c.lib.putCall(c)
	runtime.UnlockOSThread()
}

// Bind makes the device's context current on the calling goroutine's thread
// and keeps the goroutine there until release is called, on the same
// goroutine. Calls in between find their context and are cheaper. Releasing
// again does nothing.
func (d *Device) Bind() (release func(), err error) {
	c, err := d.enter()
	if err != nil {
		return nil, err
	}
	return func() {
		if c != nil {
			c.leave()
			c = nil // another visit may have it by now
		}
	}, nil
}

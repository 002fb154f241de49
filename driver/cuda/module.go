package cuda

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// Module is code on the device.
type Module struct {
	dev    *Device
	handle uintptr
}

// Function is a kernel of a Module. It ends with it.
type Function struct {
	dev    *Device
	handle uintptr
}

const maxArgs = 16 // of a kernel

// Dim is the extent of a grid or block; a 0 counts as 1.
type Dim struct{ X, Y, Z uint32 }

// jit is what the driver's compiler reads and writes.
type jit struct {
	options [2]int32
	values  [2]uintptr
	source  []byte
	log     [8 << 10]byte
	module  uintptr
}

// LoadPTX lets the driver compile PTX for the device. The error carries the
// compiler's words.
func (d *Device) LoadPTX(text string) (*Module, error) {
	const errorLog, errorLogSize = 5, 6 // CU_JIT_ERROR_LOG_BUFFER and its size
	if strings.IndexByte(text, 0) >= 0 {
		return nil, errors.New("LoadPTX: the text contains a zero byte")
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return nil, err
	}
	defer c.leave()
	j := &jit{options: [2]int32{errorLog, errorLogSize}, source: append([]byte(text), 0)}
	c.ptr = unsafe.Pointer(j) // keeps j off the stack and alive
	j.values = [2]uintptr{c.out(unsafe.Pointer(&j.log)), uintptr(len(j.log) - 1)}
	err = c.do(symModuleLoadDataEx, c.out(unsafe.Pointer(&j.module)), c.out(unsafe.Pointer(unsafe.SliceData(j.source))),
		uintptr(len(j.options)), c.out(unsafe.Pointer(&j.options)), c.out(unsafe.Pointer(&j.values)))
	if err != nil {
		if log := strings.TrimSpace(cString(unsafe.Pointer(&j.log))); log != "" {
			err = fmt.Errorf("%w: %s", err, log)
		}
		return nil, err
	}
	return &Module{d, j.module}, nil
}

// Function finds a kernel by its name.
func (m *Module) Function(name string) (*Function, error) {
	c, err := m.dev.enter()
	if err != nil {
		return nil, err
	}
	defer c.leave()
	text := append([]byte(name), 0)
	c.ptr = unsafe.Pointer(unsafe.SliceData(text))
	if err := c.do(symModuleGetFunction, c.out(unsafe.Pointer(&c.a)), m.handle, c.out(c.ptr)); err != nil {
		return nil, fmt.Errorf("kernel %q: %w", name, err)
	}
	return &Function{m.dev, uintptr(c.a)}, nil
}

// Close unloads the module.
func (m *Module) Close() error {
	c, err := m.dev.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symModuleUnload, m.handle)
}

// Launch queues a kernel on stream. Every argument is passed as its lowest
// bytes: addresses and integers as they are, floats as their bits.
func (f *Function) Launch(stream uint64, grid, block Dim, args ...uint64) error {
	if len(args) > maxArgs {
		return fmt.Errorf("Launch: %d arguments, at most %d are possible", len(args), maxArgs)
	}
	c, err := f.dev.enterFor(stream)
	if err != nil {
		return err
	}
	defer c.leave()
	for i, a := range args {
		c.params[i] = a
		c.where[i] = unsafe.Pointer(&c.params[i])
	}
	one := func(v uint32) uintptr { return uintptr(max(v, 1)) }
	return c.do(symLaunchKernel, f.handle, one(grid.X), one(grid.Y), one(grid.Z), one(block.X), one(block.Y), one(block.Z),
		0, uintptr(stream), c.out(unsafe.Pointer(&c.where)), 0)
}

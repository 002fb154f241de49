package host

import (
	"fmt"
	"unsafe"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// CopyToDevice queues a copy from host memory.
func (d *Device) CopyToDevice(dst uint64, src []byte, stream uint64) error {
	return d.onMemory("copy to the device", []uint64{dst}, uint64(len(src)), stream, func(mem [][]byte) { copy(mem[0], src) })
}

// CopyToHost queues a copy to host memory.
func (d *Device) CopyToHost(dst []byte, src, stream uint64) error {
	return d.onMemory("copy to the host", []uint64{src}, uint64(len(dst)), stream, func(mem [][]byte) { copy(dst, mem[0]) })
}

// CopyOnDevice queues a copy within the device. The ranges may overlap.
func (d *Device) CopyOnDevice(dst, src, size, stream uint64) error {
	return d.onMemory("copy on the device", []uint64{dst, src}, size, stream, func(mem [][]byte) { copy(mem[0], mem[1]) })
}

// Fill queues setting bytes.
func (d *Device) Fill(addr uint64, value byte, size, stream uint64) error {
	return d.onMemory("fill", []uint64{addr}, size, stream, func(mem [][]byte) {
		if value == 0 {
			clear(mem[0])
			return
		}
		for i := range mem[0] {
			mem[0][i] = value
		}
	})
}

// onMemory queues work on ranges of the device's memory, all of one size.
func (d *Device) onMemory(doing string, addrs []uint64, size, stream uint64, f func(mem [][]byte)) error {
	if size == 0 {
		return nil
	}
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	mem := make([][]byte, len(addrs))
	for i, addr := range addrs {
		var err error
		if mem[i], err = d.bytes(addr, size); err != nil {
			return err
		}
	}
	return d.add(stream, work{doing: doing, moves: true, bytes: size, run: func() error {
		f(mem)
		return nil
	}})
}

// Bytes is the memory of a range of addresses, for functions that are given to
// Launch. It is no copy: after the range was freed or unmapped it must not be
// touched.
func (d *Device) Bytes(addr, size uint64) ([]byte, error) {
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	return d.bytes(addr, size)
}

// AllocHost gets host memory. Its pages need no lock, for nobody but this
// program reads them; it is Go's memory, so that the race detector watches it.
func (d *Device) AllocHost(size uint64) ([]byte, error) {
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if size == 0 {
		return nil, misuse("0 bytes of host memory")
	}
	if size > maxHost {
		return nil, fmt.Errorf("host: %w: %s of host memory, at most %s can be had at a time", driver.ErrOutOfMemory, units.Size(size), units.Size(maxHost))
	}
	mem := make([]byte, size)
	d.pinned[unsafe.SliceData(mem)] = len(mem)
	return mem, nil
}

// maxHost keeps a mistaken size from ending the program.
const maxHost = 1 << 30

// FreeHost gives host memory back.
func (d *Device) FreeHost(mem []byte) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	first := unsafe.SliceData(mem)
	if size, ok := d.pinned[first]; !ok || size != len(mem) {
		return misuse("%d bytes of host memory that AllocHost did not give", len(mem))
	}
	delete(d.pinned, first)
	return nil
}

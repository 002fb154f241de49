package tier

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ashlar-mem/ashlar/driver"
)

// counter is a driver that counts by itself what was taken and given back, knows what
// lies behind every address, and fails on demand.
type counter struct {
	driver.HostMapper

	mu       sync.Mutex
	handles  map[driver.Physical]*counted
	at       map[uint64]*counted // handles that are mapped, by address
	open     map[uint64]bool
	plain    map[uint64]uint64
	left     int // calls until one fails; 0 is none
	forever  bool
	failure  error
	injected int
}

type counted struct {
	id       driver.Physical
	size     uint64
	host     bool
	released bool
	mappings int
}

func newCounter(d driver.HostMapper) *counter {
	return &counter{HostMapper: d, handles: map[driver.Physical]*counted{}, at: map[uint64]*counted{}, open: map[uint64]bool{}, plain: map[uint64]uint64{}}
}

// fail makes the n-th call from now fail, and if forever is set all behind it.
func (c *counter) fail(n int, forever bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.forever, c.failure = n, forever, err
}

func (c *counter) heal() { c.fail(0, false, nil) }

// turn reports whether it is a call's turn to fail.
func (c *counter) turn() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return nil
	}
	if c.left > 1 {
		c.left--
		return nil
	}
	if !c.forever {
		c.left = 0
	}
	c.injected++
	return c.failure
}

var errInjected = errors.New("the driver fails")

// taken returns the memory that is held of the device and of the host.
func (c *counter) taken() (device, host uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, size := range c.plain {
		device += charge(size)
	}
	for _, h := range c.handles {
		switch {
		case h.released && h.mappings == 0:
		case h.host:
			host += h.size
		default:
			device += h.size
		}
	}
	return device, host
}

// behind returns what lies behind an address to which there is access.
func (c *counter) behind(addr uint64) (driver.Physical, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.at[addr]
	if h == nil || !c.open[addr] {
		return 0, false
	}
	return h.id, true
}

func (c *counter) do(call func() error, then func()) error {
	if err := c.turn(); err != nil {
		return err
	}
	if err := call(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	then()
	return nil
}

func (c *counter) Malloc(size, stream uint64) (addr uint64, err error) {
	err = c.do(func() (err error) { addr, err = c.HostMapper.Malloc(size, stream); return err }, func() { c.plain[addr] = size })
	return addr, err
}

func (c *counter) Free(addr, size uint64) error {
	return c.do(func() error { return c.HostMapper.Free(addr, size) }, func() { delete(c.plain, addr) })
}

func (c *counter) Reserve(size, stream uint64) (addr uint64, err error) {
	err = c.do(func() (err error) { addr, err = c.HostMapper.Reserve(size, stream); return err }, func() {})
	return addr, err
}

func (c *counter) Unreserve(addr, size uint64) error {
	return c.do(func() error { return c.HostMapper.Unreserve(addr, size) }, func() {})
}

func (c *counter) create(size uint64, out []driver.Physical, host bool, make func(uint64, []driver.Physical) error) error {
	return c.do(func() error { return make(size, out) }, func() {
		for _, id := range out {
			c.handles[id] = &counted{id: id, size: size, host: host}
		}
	})
}

func (c *counter) CreatePhysical(size uint64, out []driver.Physical) error {
	return c.create(size, out, false, c.HostMapper.CreatePhysical)
}

func (c *counter) CreateHostPhysical(size uint64, out []driver.Physical) error {
	return c.create(size, out, true, c.HostMapper.CreateHostPhysical)
}

func (c *counter) MapPhysical(addr, size uint64, of []driver.Physical) error {
	return c.do(func() error { return c.HostMapper.MapPhysical(addr, size, of) }, func() {
		for i, id := range of {
			h := c.handles[id]
			h.mappings++
			c.at[addr+uint64(i)*size] = h
		}
	})
}

func (c *counter) SetAccess(addr, size uint64) error {
	return c.do(func() error { return c.HostMapper.SetAccess(addr, size) }, func() {
		for at := addr; at < addr+size; at += c.at[at].size {
			c.open[at] = true
		}
	})
}

func (c *counter) UnmapPhysical(addr, size uint64) error {
	return c.do(func() error { return c.HostMapper.UnmapPhysical(addr, size) }, func() {
		for at := addr; at < addr+size; {
			h := c.at[at]
			h.mappings--
			delete(c.at, at)
			delete(c.open, at)
			at += h.size
		}
	})
}

func (c *counter) ReleasePhysical(of []driver.Physical) error {
	return c.do(func() error { return c.HostMapper.ReleasePhysical(of) }, func() {
		for _, id := range of {
			if c.handles[id].released {
				panic(fmt.Sprint("released twice: ", id))
			}
			c.handles[id].released = true
		}
	})
}

func (c *counter) Synchronize(stream uint64) error {
	return c.do(func() error { return c.HostMapper.Synchronize(stream) }, func() {})
}

func (c *counter) CopyMapped(dst, src, size uint64) error {
	return c.do(func() error { return c.HostMapper.CopyMapped(dst, src, size) }, func() {})
}

func (c *counter) SynchronizeDevice() error {
	return c.do(c.HostMapper.SynchronizeDevice, func() {})
}

func (c *counter) MemInfo() (free, total uint64, err error) {
	err = c.do(func() (err error) { free, total, err = c.HostMapper.MemInfo(); return err }, func() {})
	return free, total, err
}

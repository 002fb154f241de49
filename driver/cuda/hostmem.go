package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/ashlar-mem/ashlar/driver"
)

var _ driver.HostMapper = (*Device)(nil)

// Kinds of CUmemLocation in the host: any of its memory, and that of one NUMA node.
const (
	locationHost     = 2
	locationHostNUMA = 3
)

// hostPlaces is where this device's physical memory of the host can lie, the best
// place first, asked for once.
type hostPlaces struct {
	mu     sync.Mutex
	asked  bool
	places []hostPlace
	err    error // why there is none
	copies uint64
}

type hostPlace struct {
	location    memLocation
	granularity uint64
}

// CreateHostPhysical makes handles of size bytes each of the host's memory: all of
// them or none. It lies on the NUMA node next to the device while there is some, and
// else anywhere. It is page-locked and, unlike other memory of the host, already
// there: making it takes time.
func (d *Device) CreateHostPhysical(size uint64, handles []driver.Physical) error {
	places, err := d.hostPlaces()
	if err != nil {
		return err
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	for i := range handles {
		if err := c.createAt(places, size); err != nil {
			return errors.Join(err, c.releaseAll(handles[:i]))
		}
		handles[i] = driver.Physical(c.a)
	}
	return nil
}

// createAt makes a handle, c.a, in the first place that has the memory.
func (c *call) createAt(places []hostPlace, size uint64) error {
	var all error
	for _, p := range places {
		if size%p.granularity != 0 {
			return fmt.Errorf("CreateHostPhysical: %d bytes are no multiple of the %d that the driver makes at once", size, p.granularity)
		}
		c.prop = allocationProp{kind: 1, location: p.location}
		err := c.do(symMemCreate, c.out(unsafe.Pointer(&c.a)), uintptr(size), c.out(unsafe.Pointer(&c.prop)), 0)
		if err == nil {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

// hostPlaces asks the driver where it makes memory of the host.
func (d *Device) hostPlaces() ([]hostPlace, error) {
	h := &d.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked {
		return h.places, h.err
	}
	if d.granularity == 0 {
		return nil, fmt.Errorf("GPU %d (%s) cannot map memory", d.info.Index, d.info.Name)
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return nil, err
	}
	defer c.leave()
	locations := []memLocation{{locationHost, 0}}
	// A negative number says that the machine has no nodes.
	if node, err := c.attribute(attrHostNUMA, d.handle); err == nil && node >= 0 {
		locations = []memLocation{{locationHostNUMA, node}, {locationHost, 0}}
	}
	var refused error
	for _, at := range locations {
		c.prop = allocationProp{kind: 1, location: at}
		g, err := c.granularity()
		if err != nil {
			refused = errors.Join(refused, err)
			continue
		}
		h.places = append(h.places, hostPlace{at, g})
	}
	h.asked = true
	if len(h.places) == 0 {
		h.err = fmt.Errorf("GPU %d (%s) cannot map memory of the host, which drivers from 550 (CUDA 12.4) on can: %w",
			d.info.Index, d.info.Name, refused)
	}
	return h.places, h.err
}

// CopyMapped copies between ranges that are mapped and opened, whatever memory is
// behind them, and returns when the bytes are there. It has a stream of its own and
// waits for no other work.
func (d *Device) CopyMapped(dst, src, size uint64) error {
	if size == 0 {
		return nil
	}
	stream, err := d.copyStream()
	if err != nil {
		return err
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	if err := c.do(symMemcpyAsync, uintptr(dst), uintptr(src), uintptr(size), uintptr(stream)); err != nil {
		return err
	}
	return c.do(symStreamSynchronize, uintptr(stream))
}

// copyStream returns the stream of CopyMapped, made at its first use.
func (d *Device) copyStream() (uint64, error) {
	h := &d.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.copies != 0 {
		return h.copies, nil
	}
	s, err := d.NewStream()
	if err == nil {
		h.copies = s
	}
	return s, err
}

// closeCopies parks the stream of CopyMapped, so that it is destroyed with the others.
func (d *Device) closeCopies() error {
	h := &d.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.copies == 0 {
		return nil
	}
	s := h.copies
	h.copies = 0
	return d.CloseStream(s)
}

package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// memLocation is CUmemLocation.
type memLocation struct {
	kind int32 // 1: a device; 2 and 3: the host
	id   int32
}

// allocationProp is CUmemAllocationProp, 32 bytes.
type allocationProp struct {
	kind        int32 // 1: pinned, the only kind there is
	handleTypes int32 // 0: not exported to other processes
	location    memLocation
	win32       uintptr
	compression uint8
	rdma        uint8 // GPUDirect RDMA may reach it
	usage       uint16
	_           [4]uint8
}

// accessDesc is CUmemAccessDesc.
type accessDesc struct {
	location memLocation
	flags    int32 // 3: read and write
}

// fillProp sets the properties of physical memory, those that PyTorch gives
// its expandable segments.
func (d *Device) fillProp(p *allocationProp) {
	*p = allocationProp{kind: 1, location: memLocation{1, d.handle}}
	if d.info.RDMA {
		p.rdma = 1
	}
}

func (d *Device) queryGranularity() (uint64, error) {
	c, err := d.enterRelaxed()
	if err != nil {
		return 0, err
	}
	defer c.leave()
	d.fillProp(&c.prop)
	return c.granularity()
}

// granularity asks in which units memory with the properties c.prop is made.
func (c *call) granularity() (uint64, error) {
	const minimum = 0
	if err := c.do(symMemGetAllocationGranularity, c.out(unsafe.Pointer(&c.a)), c.out(unsafe.Pointer(&c.prop)), minimum); err != nil {
		return 0, err
	}
	if c.a == 0 {
		return 0, errors.New("the driver reports a granularity of 0")
	}
	return c.a, nil
}

// checkGranules checks that memory can be mapped in units of granule and that the
// range consists of them.
func (d *Device) checkGranules(call string, addr, size, granule uint64) error {
	switch {
	case d.granularity == 0:
		return fmt.Errorf("%s: GPU %d (%s) cannot map memory; do without expandable segments", call, d.info.Index, d.info.Name)
	case granule == 0 || granule%d.granularity != 0:
		return fmt.Errorf("%s: a granule of %d bytes is no multiple of the %d bytes that GPU %d (%s) maps at once",
			call, granule, d.granularity, d.info.Index, d.info.Name)
	case size == 0 || size%granule != 0:
		return fmt.Errorf("%s: %d bytes are no whole number of granules of %d bytes", call, size, granule)
	case addr%d.granularity != 0:
		return fmt.Errorf("%s: address %#x is no multiple of %d", call, addr, d.granularity)
	}
	return nil
}

// Reserve gets a range of addresses. The driver takes sizes in multiples of
// [Device.Granularity].
func (d *Device) Reserve(size, _ uint64) (addr uint64, err error) {
	c, err := d.enterRelaxed()
	if err != nil {
		return 0, err
	}
	defer c.leave()
	if err := c.do(symMemAddressReserve, c.out(unsafe.Pointer(&c.a)), uintptr(size), 0, 0, 0); err != nil {
		return 0, err
	}
	return c.a, nil
}

// Unreserve gives back a range got by Reserve.
func (d *Device) Unreserve(addr, size uint64) error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symMemAddressFree, uintptr(addr), uintptr(size))
}

// Map puts memory behind the range, one handle per granule, or changes nothing.
func (d *Device) Map(addr, size, granule uint64) error {
	if err := d.checkGranules("Map", addr, size, granule); err != nil {
		return err
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	d.fillProp(&c.prop)
	var done uint64
	for ; done < size && err == nil; done += granule {
		if err = c.mapHandle(addr+done, granule); err != nil {
			break
		}
	}
	if err == nil {
		c.access = accessDesc{memLocation{1, d.handle}, 3}
		err = c.do(symMemSetAccess, uintptr(addr), uintptr(size), c.out(unsafe.Pointer(&c.access)), 1)
	}
	if err != nil && done > 0 {
		if undo := c.do(symMemUnmap, uintptr(addr), uintptr(done)); undo != nil {
			err = errors.Join(err, fmt.Errorf("%d bytes stay mapped: %w", done, undo))
		}
	}
	return err
}

// mapHandle makes a handle of c.prop and maps it. The handle is released at
// once: the mapping keeps the memory.
func (c *call) mapHandle(addr, size uint64) error {
	if err := c.do(symMemCreate, c.out(unsafe.Pointer(&c.a)), uintptr(size), c.out(unsafe.Pointer(&c.prop)), 0); err != nil {
		return err
	}
	handle := uintptr(c.a)
	err := c.do(symMemMap, uintptr(addr), uintptr(size), 0, handle, 0)
	if r := c.do(symMemRelease, handle); r != nil && err == nil {
		// Nobody else has the handle: keep the rule that a failed call has
		// changed nothing.
		err = r
		if undo := c.do(symMemUnmap, uintptr(addr), uintptr(size)); undo != nil {
			err = errors.Join(err, undo)
		}
	}
	return err
}

// Unmap waits for stream and gives the memory behind the range back. During a
// capture of stream it returns [ErrCapturing].
func (d *Device) Unmap(addr, size, granule, stream uint64) error {
	if err := d.checkGranules("Unmap", addr, size, granule); err != nil {
		return err
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	if err := c.synchronize(stream); err != nil {
		return err
	}
	return c.do(symMemUnmap, uintptr(addr), uintptr(size))
}

package cuda

import (
	"errors"
	"unsafe"

	"github.com/ashlar-mem/ashlar/driver"
)

// Map and Unmap do all steps at once and are what an allocator needs. The methods
// here are the steps one by one, for whoever keeps memory that is mapped nowhere,
// or wants to know what each of them costs. As Map and Unmap they leave captures of
// other threads alone, but they wait for none.

// CreatePhysical makes handles of size bytes each: all of them or none.
func (d *Device) CreatePhysical(size uint64, handles []driver.Physical) error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	d.fillProp(&c.prop)
	for i := range handles {
		if err := c.do(symMemCreate, c.out(unsafe.Pointer(&c.a)), uintptr(size), c.out(unsafe.Pointer(&c.prop)), 0); err != nil {
			return errors.Join(err, c.releaseAll(handles[:i]))
		}
		handles[i] = driver.Physical(c.a)
	}
	return nil
}

// MapPhysical maps handles of size bytes each side by side from addr on: all
// of them or none. SetAccess opens the range.
func (d *Device) MapPhysical(addr, size uint64, handles []driver.Physical) error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	for i, h := range handles {
		err := c.do(symMemMap, uintptr(addr+uint64(i)*size), uintptr(size), 0, uintptr(h), 0)
		if err != nil && i > 0 {
			err = errors.Join(err, c.do(symMemUnmap, uintptr(addr), uintptr(uint64(i)*size)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SetAccess opens a mapped range for reading and writing by its own device.
func (d *Device) SetAccess(addr, size uint64) error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	c.access = accessDesc{memLocation{1, d.handle}, 3}
	return c.do(symMemSetAccess, uintptr(addr), uintptr(size), c.out(unsafe.Pointer(&c.access)), 1)
}

// UnmapPhysical takes the memory out of a range. It does not wait for work
// that uses it.
func (d *Device) UnmapPhysical(addr, size uint64) error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symMemUnmap, uintptr(addr), uintptr(size))
}

// ReleasePhysical gives handles back. The memory is free once it is also
// unmapped.
func (d *Device) ReleasePhysical(handles []driver.Physical) error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.releaseAll(handles)
}

func (c *call) releaseAll(handles []driver.Physical) error {
	var err error
	for _, h := range handles {
		err = errors.Join(err, c.do(symMemRelease, uintptr(h)))
	}
	return err
}

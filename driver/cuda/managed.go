package cuda

import (
	"fmt"
	"unsafe"
)

// Place is where managed memory should be.
type Place int

// The places of managed memory.
const (
	OnDevice Place = iota
	OnHost
)

// Advice tells the driver how managed memory will be used.
type Advice int

// The advice there is, with the driver's numbers.
const (
	ReadMostly      Advice = 1 // keep copies where it is read; the place is ignored
	NotReadMostly   Advice = 2
	PreferPlace     Advice = 3 // keep it there
	PreferNoPlace   Advice = 4
	AccessedFrom    Advice = 5 // keep it mapped there, wherever it is
	NotAccessedFrom Advice = 6
)

// AllocManaged gets memory that the host and the device reach at the same
// address; mem is that memory as the host sees it. Free gives it back.
//
// Where [Info].PageFaults is false the host must not touch any managed memory
// while the device works.
func (d *Device) AllocManaged(size uint64) (addr uint64, mem []byte, err error) {
	const everywhere = 1 // CU_MEM_ATTACH_GLOBAL
	c, err := d.enterRelaxed()
	if err != nil {
		return 0, nil, err
	}
	defer c.leave()
	if err := c.do(symMemAllocManaged, c.out(unsafe.Pointer(&c.ptr)), uintptr(size), everywhere); err != nil {
		return 0, nil, err
	}
	return uint64(uintptr(c.ptr)), unsafe.Slice((*byte)(c.ptr), size), nil
}

// Prefetch queues moving managed memory to a place.
func (d *Device) Prefetch(addr, size uint64, to Place, stream uint64) error {
	c, place, err := d.enterWithPlace(to)
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symMemPrefetchAsync, uintptr(addr), uintptr(size), place, uintptr(stream))
}

// Advise tells the driver how managed memory will be used, and where.
func (d *Device) Advise(addr, size uint64, advice Advice, where Place) error {
	c, place, err := d.enterWithPlace(where)
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symMemAdvise, uintptr(addr), uintptr(size), uintptr(advice), place)
}

// enterWithPlace begins a call that names a place.
func (d *Device) enterWithPlace(p Place) (*call, uintptr, error) {
	place, err := d.placeNumber(p)
	if err != nil {
		return nil, 0, err
	}
	c, err := d.enter()
	return c, place, err
}

// placeNumber is the driver's number for a place.
func (d *Device) placeNumber(p Place) (uintptr, error) {
	switch p {
	case OnDevice:
		return uintptr(d.handle), nil
	case OnHost:
		return uintptr(^uint32(0)), nil // CU_DEVICE_CPU, -1
	}
	return 0, fmt.Errorf("there is no place %d for managed memory", p)
}

package sim

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// hostMemory is the memory of the host that the device can map.
type hostMemory struct{ held, total uint64 }

// handles are the handles of physical memory.
type handles struct {
	byID map[driver.Physical]*handle
	last driver.Physical
}

// handle is physical memory. It lasts until it was released and is mapped nowhere.
type handle struct {
	size     uint64
	host     bool
	released bool
	mappings int
}

// placement is a handle that is mapped.
type placement struct {
	handle *handle
	open   bool // the device has access
}

// HostHeld returns the memory of the host that was taken and not given back.
func (d *Device) HostHeld() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.host.held
}

// CreatePhysical makes handles of the device's memory.
func (d *Device) CreatePhysical(size uint64, out []driver.Physical) error {
	if err := d.begin(CreatePhysical); err != nil {
		return err
	}
	defer d.mu.Unlock()
	all, err := handleBytes(CreatePhysical, size, out)
	if err != nil {
		return err
	}
	if err := d.fits(CreatePhysical, all); err != nil {
		return err
	}
	d.held += all
	d.cost += mapTime(all, size) / 2
	d.create(size, false, out)
	return nil
}

// CreateHostPhysical makes handles of the host's memory.
func (d *Device) CreateHostPhysical(size uint64, out []driver.Physical) error {
	if err := d.begin(CreateHostPhysical); err != nil {
		return err
	}
	defer d.mu.Unlock()
	all, err := handleBytes(CreateHostPhysical, size, out)
	if err != nil {
		return err
	}
	if free := d.host.total - d.host.held; all > free {
		return fmt.Errorf("sim: %w: %s of host memory with %s free", driver.ErrOutOfMemory, units.Size(all), units.Size(free))
	}
	d.host.held += all
	d.cost += atRate(all, hostMakeRate)
	d.create(size, true, out)
	return nil
}

func handleBytes(kind Kind, size uint64, out []driver.Physical) (uint64, error) {
	if size == 0 || size%page != 0 {
		return 0, fmt.Errorf("sim: %w: %v of %d bytes, no multiple of 2 MiB", ErrInvalidArgument, kind, size)
	}
	return size * uint64(len(out)), nil
}

func (d *Device) create(size uint64, host bool, out []driver.Physical) {
	for i := range out {
		d.handles.last++
		d.handles.byID[d.handles.last] = &handle{size: size, host: host}
		out[i] = d.handles.last
	}
}

// MapPhysical maps handles side by side.
func (d *Device) MapPhysical(addr, size uint64, of []driver.Physical) error {
	if err := d.begin(MapPhysical); err != nil {
		return err
	}
	defer d.mu.Unlock()
	all, err := handleBytes(MapPhysical, size, of)
	if err != nil {
		return err
	}
	v, err := d.pagesOf(MapPhysical, addr, all)
	if err != nil {
		return err
	}
	if n := v.count(addr, all); n > 0 {
		return misuse("map of %d bytes at %#x, where %d are mapped", all, addr, n*page)
	}
	if v.mapped > 0 && len(v.placed) == 0 {
		return misuse("map of handles at %#x, where memory without handles is mapped", addr)
	}
	for _, id := range of {
		if h := d.handles.byID[id]; h == nil || h.released || h.size != size {
			return misuse("map of handle %d with %d bytes, which there is not", id, size)
		}
	}
	if v.placed == nil {
		v.placed = map[uint64]*placement{}
	}
	for i, id := range of {
		h := d.handles.byID[id]
		h.mappings++
		v.placed[addr+uint64(i)*size] = &placement{handle: h}
	}
	v.eachWord(addr, all, func(word *uint64, mask uint64) { *word |= mask })
	v.mapped += all
	d.cost += atRate(all, remapRate) / 4
	return nil
}

// pagesOf returns the reservation that holds a range of whole pages.
func (d *Device) pagesOf(kind Kind, addr, size uint64) (*reservation, error) {
	i, ok := d.ranges.find(addr)
	if !ok || size == 0 || size > d.ranges.live[i].size-(addr-d.ranges.live[i].base) || addr%page != 0 || size%page != 0 {
		return nil, misuse("%v of %d bytes at %#x, which are no reserved pages", kind, size, addr)
	}
	return d.ranges.live[i], nil
}

// placedIn calls f for the handles mapped in a range, which must be nothing else.
func (d *Device) placedIn(kind Kind, addr, size uint64, f func(at uint64, p *placement)) (*reservation, error) {
	v, err := d.pagesOf(kind, addr, size)
	if err != nil {
		return nil, err
	}
	var found []uint64
	for at := addr; at < addr+size; {
		p := v.placed[at]
		if p == nil || at+p.handle.size > addr+size {
			return nil, misuse("%v of %d bytes at %#x, which are not whole handles", kind, size, addr)
		}
		found = append(found, at)
		at += p.handle.size
	}
	for _, at := range found {
		f(at, v.placed[at])
	}
	return v, nil
}

// SetAccess opens a range.
func (d *Device) SetAccess(addr, size uint64) error {
	if err := d.begin(SetAccess); err != nil {
		return err
	}
	defer d.mu.Unlock()
	_, err := d.placedIn(SetAccess, addr, size, func(_ uint64, p *placement) { p.open = true })
	if err == nil {
		d.cost += atRate(size, remapRate) / 2
	}
	return err
}

// UnmapPhysical takes handles out of a range.
func (d *Device) UnmapPhysical(addr, size uint64) error {
	if err := d.begin(UnmapPhysical); err != nil {
		return err
	}
	defer d.mu.Unlock()
	var at []uint64
	v, err := d.placedIn(UnmapPhysical, addr, size, func(a uint64, p *placement) {
		at = append(at, a)
		p.handle.mappings--
		d.drop(p.handle)
	})
	if err != nil {
		return err
	}
	for _, a := range at {
		delete(v.placed, a)
	}
	v.eachWord(addr, size, func(word *uint64, mask uint64) { *word &^= mask })
	v.mapped -= size
	d.cost += atRate(size, remapRate) / 4
	return nil
}

// drop gives the memory of a handle back once nothing holds it.
func (d *Device) drop(h *handle) {
	switch {
	case !h.released || h.mappings > 0:
	case h.host:
		d.host.held -= h.size
	default:
		d.held -= h.size
	}
}

// ReleasePhysical gives handles back.
func (d *Device) ReleasePhysical(of []driver.Physical) error {
	if err := d.begin(ReleasePhysical); err != nil {
		return err
	}
	defer d.mu.Unlock()
	for _, id := range of {
		if d.handles.byID[id] == nil {
			return misuse("release of handle %d, which there is not", id)
		}
	}
	for _, id := range of {
		h := d.handles.byID[id]
		h.released = true
		delete(d.handles.byID, id)
		d.drop(h)
	}
	return nil
}

// Synchronize completes the work of a stream.
func (d *Device) Synchronize(stream uint64) error {
	if err := d.begin(Synchronize); err != nil {
		return err
	}
	defer d.mu.Unlock()
	d.events.complete(stream)
	return nil
}

// CopyMapped copies between ranges to which the device has access. There are no
// bytes; only the time is counted, which is none within the device.
func (d *Device) CopyMapped(dst, src, size uint64) error {
	if err := d.begin(CopyMapped); err != nil {
		return err
	}
	defer d.mu.Unlock()
	host := false
	for _, addr := range [2]uint64{dst, src} {
		var closed bool
		_, err := d.placedIn(CopyMapped, addr, size, func(_ uint64, p *placement) {
			closed = closed || !p.open
			host = host || p.handle.host
		})
		if err != nil {
			return err
		}
		if closed {
			return misuse("copy of %d bytes at %#x, to which there is no access", size, addr)
		}
	}
	if host {
		d.cost += atRate(size, hostCopyRate)
	}
	return nil
}

// SynchronizeDevice completes the work of all streams.
func (d *Device) SynchronizeDevice() error {
	if err := d.begin(SynchronizeDevice); err != nil {
		return err
	}
	defer d.mu.Unlock()
	d.events.completeAll()
	return nil
}

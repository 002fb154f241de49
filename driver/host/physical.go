package host

import (
	"errors"
	"fmt"
	"os"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// physicalMemory are the handles of the device's memory and of the host's: parts of one
// file without a name, so that a handle can be mapped at several addresses.
type physicalMemory struct {
	file      *os.File // nil until the first handle is made
	size      int64
	spare     map[uint64][]int64 // by size: parts of the file that were given back
	handles   map[driver.Physical]*handle
	last      driver.Physical
	hostHeld  uint64
	hostTotal uint64
}

// handle is a part of the file. It lasts until it was released and is mapped nowhere.
type handle struct {
	offset   int64
	size     uint64
	host     bool
	released bool
	mappings int
}

// HostHeld returns the host's memory that was taken and not given back.
func (d *Device) HostHeld() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.physical.hostHeld
}

func (m *physicalMemory) close() error {
	if m.file == nil {
		return nil
	}
	file := m.file
	m.file, m.handles, m.spare, m.hostHeld, m.size = nil, nil, nil, 0, 0
	return file.Close()
}

// take makes one handle.
func (m *physicalMemory) take(size uint64, host bool) (driver.Physical, error) {
	if m.file == nil {
		file, err := openMemory()
		if err != nil {
			return 0, err
		}
		m.file, m.spare, m.handles = file, map[uint64][]int64{}, map[driver.Physical]*handle{}
	}
	h := &handle{size: size, host: host}
	if spare := m.spare[size]; len(spare) > 0 {
		h.offset, m.spare[size] = spare[len(spare)-1], spare[:len(spare)-1]
	} else {
		if err := m.file.Truncate(m.size + int64(size)); err != nil {
			return 0, err
		}
		h.offset = m.size
		m.size += int64(size)
	}
	m.last++
	m.handles[m.last] = h
	return m.last, nil
}

// CreatePhysical makes handles of the device's memory.
func (d *Device) CreatePhysical(size uint64, out []driver.Physical) error {
	return d.create("create physical", size, false, out)
}

// CreateHostPhysical makes handles of the host's memory.
func (d *Device) CreateHostPhysical(size uint64, out []driver.Physical) error {
	return d.create("create host physical", size, true, out)
}

func (d *Device) create(doing string, size uint64, host bool, out []driver.Physical) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if size == 0 || size%page != 0 {
		return misuse("%s of %d bytes, no multiple of 2 MiB", doing, size)
	}
	all := size * uint64(len(out))
	if host {
		if free := d.physical.hostTotal - d.physical.hostHeld; all > free {
			return fmt.Errorf("host: %w: %s of %s with %s free", driver.ErrOutOfMemory, doing, units.Size(all), units.Size(free))
		}
	} else if err := d.fits(doing, all); err != nil {
		return err
	}
	for i := range out {
		id, err := d.physical.take(size, host)
		if err != nil {
			for _, made := range out[:i] {
				d.release(made)
			}
			return fmt.Errorf("host: %w: %s of %s: %w", driver.ErrOutOfMemory, doing, units.Size(all), err)
		}
		out[i] = id
		if host {
			d.physical.hostHeld += size
		} else {
			d.held += size
		}
	}
	return nil
}

// anyPlaced reports whether a handle is mapped in a range.
func (s *space) anyPlaced(addr, size uint64) bool {
	for at, h := range s.placed {
		if at < addr+size && addr < at+h.size {
			return true
		}
	}
	return false
}

// reserved finds the reservation of a range of whole pages.
func (d *Device) reserved(doing string, addr, size uint64) (*space, error) {
	s := d.find(addr)
	if s == nil || s.mapped == nil || size == 0 || size > s.base+s.size-addr || addr%page != 0 || size%page != 0 {
		return nil, misuse("%s of %d bytes at %#x, which are no reserved pages", doing, size, addr)
	}
	return s, nil
}

// MapPhysical maps handles side by side, without access.
func (d *Device) MapPhysical(addr, size uint64, of []driver.Physical) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	all := size * uint64(len(of))
	s, err := d.reserved("map physical", addr, all)
	if err != nil {
		return err
	}
	pages := s.pages(addr, all)
	if !allPages(pages, pageEmpty) {
		return misuse("map physical of %d bytes at %#x, where not all is empty", all, addr)
	}
	for _, id := range of {
		if h := d.physical.handles[id]; h == nil || h.size != size {
			return misuse("map physical of handle %d with %d bytes, which there is not", id, size)
		}
	}
	for i, id := range of {
		h := d.physical.handles[id]
		if err := mapFile(s.mem[addr-s.base+uint64(i)*size:][:size], d.physical.file, h.offset); err != nil {
			if i > 0 {
				err = errors.Join(err, closePages(s.mem[addr-s.base:][:uint64(i)*size]))
			}
			return fmt.Errorf("host: map physical at %#x: %w", addr, err)
		}
	}
	if s.placed == nil {
		s.placed = map[uint64]*handle{}
	}
	for i, id := range of {
		h := d.physical.handles[id]
		h.mappings++
		s.placed[addr+uint64(i)*size] = h
	}
	setPages(pages, pageClosed)
	return nil
}

// placedIn finds the addresses of the handles mapped in a range, which must be nothing else.
func (d *Device) placedIn(doing string, addr, size uint64) (s *space, at []uint64, err error) {
	if s, err = d.reserved(doing, addr, size); err != nil {
		return nil, nil, err
	}
	for a := addr; a < addr+size; {
		h := s.placed[a]
		if h == nil || a+h.size > addr+size {
			return nil, nil, misuse("%s of %d bytes at %#x, which are not whole handles", doing, size, addr)
		}
		at = append(at, a)
		a += h.size
	}
	return s, at, nil
}

// SetAccess opens a range of mapped handles.
func (d *Device) SetAccess(addr, size uint64) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	_, _, err := d.setPlaced("set access", addr, size, openPages, pageMapped)
	return err
}

// setPlaced changes the pages of the handles mapped in a range, and their state.
func (d *Device) setPlaced(doing string, addr, size uint64, change func([]byte) error, to pageState) (s *space, at []uint64, err error) {
	if s, at, err = d.placedIn(doing, addr, size); err != nil {
		return nil, nil, err
	}
	if err := change(s.mem[addr-s.base:][:size]); err != nil {
		return nil, nil, fmt.Errorf("host: %s at %#x: %w", doing, addr, err)
	}
	setPages(s.pages(addr, size), to)
	return s, at, nil
}

// UnmapPhysical takes handles out of a range. It waits for no work.
func (d *Device) UnmapPhysical(addr, size uint64) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	s, at, err := d.setPlaced("unmap physical", addr, size, closePages, pageEmpty)
	if err != nil {
		return err
	}
	for _, a := range at {
		h := s.placed[a]
		delete(s.placed, a)
		h.mappings--
		d.drop(h)
	}
	return nil
}

// ReleasePhysical gives handles back.
func (d *Device) ReleasePhysical(of []driver.Physical) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	for _, id := range of {
		if d.physical.handles[id] == nil {
			return misuse("release of handle %d, which there is not", id)
		}
	}
	for _, id := range of {
		d.release(id)
	}
	return nil
}

func (d *Device) release(id driver.Physical) {
	h := d.physical.handles[id]
	delete(d.physical.handles, id)
	h.released = true
	d.drop(h)
}

// drop gives the memory of a handle back once nothing holds it.
func (d *Device) drop(h *handle) {
	if !h.released || h.mappings > 0 {
		return
	}
	m := &d.physical
	punchFile(m.file, h.offset, h.size)
	m.spare[h.size] = append(m.spare[h.size], h.offset)
	if h.host {
		m.hostHeld -= h.size
	} else {
		d.held -= h.size
	}
}

// CopyMapped copies between ranges, at once.
func (d *Device) CopyMapped(dst, src, size uint64) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	to, err := d.bytes(dst, size)
	if err != nil {
		return err
	}
	from, err := d.bytes(src, size)
	if err != nil {
		return err
	}
	copy(to, from)
	return nil
}

// SynchronizeDevice waits for the work that is queued on all streams.
func (d *Device) SynchronizeDevice() error {
	if err := d.begin(); err != nil {
		return err
	}
	waits := d.queuedWork()
	d.mu.Unlock()
	for _, wait := range waits {
		wait()
	}
	return nil
}

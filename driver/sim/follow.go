package sim

import "github.com/ashlar-mem/ashlar/driver"

// Placement is a plain segment obtained or given back, as a recording shows it.
type Placement struct {
	Addr, Size uint64
	Freed      bool
}

// SegmentsEnd is where the addresses of plain segments end. Recorded addresses
// are moved, all by the same distance, so that they end here too: only their
// order and their places in units of 32 MiB matter.
const SegmentsEnd = segmentsTop

// RangesBegin and RangesEnd are where the addresses of reservations lie.
const (
	RangesBegin = reserveBase
	RangesEnd   = reserveTop
)

var _ driver.Adopter = (*Device)(nil)

// followMalloc gives a request the address that the recording gave it, if all
// requests up to this one were those of the recording.
func (d *Device) followMalloc(size uint64) (addr uint64, ok bool) {
	if len(d.follow) == 0 {
		return 0, false
	}
	if next := d.follow[0]; !next.Freed && next.Size == size && d.segments.place(next.Addr, size) {
		d.follow = d.follow[1:]
		return next.Addr, true
	}
	d.follow = nil
	return 0, false
}

// followFree notes that a segment is given back.
func (d *Device) followFree(addr uint64) {
	if len(d.follow) == 0 {
		return
	}
	if next := d.follow[0]; next.Freed && next.Addr == addr {
		d.follow = d.follow[1:]
	} else {
		d.follow = nil
	}
}

// Adopt takes over a plain segment at its address.
func (d *Device) Adopt(addr, size uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.segments.place(addr, size) {
		return misuse("a segment of %d bytes at %#x cannot be adopted: the addresses are taken or out of range", size, addr)
	}
	d.held += roundUp(size, page)
	return nil
}

// AdoptRange takes over a reservation.
func (d *Device) AdoptRange(addr, size uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ranges.place(addr, size) {
		return misuse("a range of %d bytes at %#x cannot be adopted: it overlaps another or is out of range", size, addr)
	}
	return nil
}

// AdoptMapped takes over memory mapped into an adopted reservation.
func (d *Device) AdoptMapped(addr, size, granule uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.unmappedRange(addr, size, granule)
	if err == nil {
		d.mapRange(v, addr, size, granule)
	}
	return err
}

package sim

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Reservations lie apart from plain segments and go upwards: each takes the
// lowest free range in which it fits, rounded up to 32 MiB, as recorded on an
// H200. Few exist at a time.
const (
	reserveBase = 0x302000000
	reserveTop  = segmentsBase
	reserveUnit = 32 << 20
	// Above these addresses lies what a process has only with 57 bits.
	reserveFar    = 1 << 47
	reserveFarTop = 1 << 57
)

// reservations is the state of reserved ranges, lowest first.
type reservations struct {
	live []*reservation
	wide bool // addresses have 57 bits
}

type reservation struct {
	base, size uint64
	granule    uint64                // of the memory mapped in it
	mapped     uint64                // bytes
	pages      []uint64              // a bit for each mapped page; grows as needed
	placed     map[uint64]*placement // by address: handles that are mapped
}

// take finds a range.
func (r *reservations) take(size uint64) (base uint64, ok bool) {
	if size > reserveTop-reserveBase {
		return 0, false
	}
	i, base, ok := r.room(0, reserveBase, reserveTop, size)
	if !ok && r.wide {
		i, base, ok = r.room(i, reserveFar, reserveFarTop, size)
	}
	if ok {
		r.live = slices.Insert(r.live, i, &reservation{base: base, size: size})
	}
	return base, ok
}

// room finds the lowest range between base and top, and the place of its
// reservation. Those before place i lie below.
func (r *reservations) room(i int, base, top, size uint64) (place int, at uint64, ok bool) {
	for ; i < len(r.live) && r.live[i].base < top; i++ {
		v := r.live[i]
		if base+size <= v.base {
			break
		}
		base = v.base + roundUp(v.size, reserveUnit)
	}
	return i, base, base+size <= top
}

// place makes a reservation at a given address.
func (r *reservations) place(base, size uint64) bool {
	if base < reserveBase || size > reserveTop-reserveBase || base > reserveTop-size {
		return false
	}
	i := 0
	for i < len(r.live) && r.live[i].base < base {
		i++
	}
	if i > 0 && r.live[i-1].base+r.live[i-1].size > base || i < len(r.live) && base+size > r.live[i].base {
		return false
	}
	r.live = slices.Insert(r.live, i, &reservation{base: base, size: size})
	return true
}

// find returns the place of the reservation that holds addr.
func (r *reservations) find(addr uint64) (int, bool) {
	i, exact := slices.BinarySearchFunc(r.live, addr, func(v *reservation, addr uint64) int {
		switch {
		case v.base > addr:
			return 1
		case v.base+v.size <= addr:
			return -1
		}
		return 0
	})
	return i, exact
}

// within returns the reservation that holds [addr, addr+size), if that is
// whole granules of it.
func (r *reservations) within(kind Kind, addr, size, granule uint64) (*reservation, error) {
	if granule == 0 || size == 0 {
		return nil, misuse("%v of %d bytes in granules of %d", kind, size, granule)
	}
	if granule%page != 0 {
		return nil, fmt.Errorf("sim: %w: %v with granules of %d bytes, no multiple of 2 MiB", ErrInvalidArgument, kind, granule)
	}
	i, ok := r.find(addr)
	if !ok {
		return nil, misuse("%v at %#x, which is not reserved", kind, addr)
	}
	v := r.live[i]
	if size > v.size-(addr-v.base) {
		return nil, misuse("%v of %d bytes at %#x goes beyond its reservation [%#x, %#x)", kind, size, addr, v.base, v.base+v.size)
	}
	if (addr-v.base)%granule != 0 || size%granule != 0 {
		return nil, misuse("%v of %d bytes at offset %d is not whole granules of %d bytes", kind, size, addr-v.base, granule)
	}
	if len(v.placed) > 0 {
		return nil, misuse("%v at %#x, where handles are mapped", kind, addr)
	}
	if v.mapped > 0 && granule != v.granule {
		return nil, misuse("%v in granules of %d bytes where %d were used", kind, granule, v.granule)
	}
	return v, nil
}

// count returns how many pages of [addr, addr+size) are mapped.
func (v *reservation) count(addr, size uint64) (n uint64) {
	v.eachWord(addr, size, func(word *uint64, mask uint64) { n += uint64(bits.OnesCount64(*word & mask)) })
	return n
}

// eachWord calls f for the words of pages that cover a range, each with the
// bits that belong to the range.
func (v *reservation) eachWord(addr, size uint64, f func(word *uint64, mask uint64)) {
	first := (addr - v.base) / page
	end := first + size/page
	if words := int((end + 63) / 64); words > len(v.pages) {
		v.pages = append(v.pages, make([]uint64, words-len(v.pages))...)
	}
	for first < end {
		bit := first % 64
		n := min(64-bit, end-first)
		f(&v.pages[first/64], (^uint64(0)>>(64-n))<<bit)
		first += n
	}
}

// Reserve finds a range of addresses without memory.
func (d *Device) Reserve(size, stream uint64) (addr uint64, err error) {
	if err := d.begin(Reserve); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	if size == 0 {
		return 0, misuse("reserve of 0 bytes")
	}
	addr, ok := d.ranges.take(size)
	if !ok {
		return 0, fmt.Errorf("sim: %w: no addresses for a reserve of %s", driver.ErrOutOfMemory, units.Size(size))
	}
	return addr, nil
}

// Unreserve gives a range back.
func (d *Device) Unreserve(addr, size uint64) error {
	if err := d.begin(Unreserve); err != nil {
		return err
	}
	defer d.mu.Unlock()
	i, ok := d.ranges.find(addr)
	if !ok || d.ranges.live[i].base != addr {
		return misuse("unreserve of %#x, where no reservation begins", addr)
	}
	switch v := d.ranges.live[i]; {
	case v.size != size:
		return misuse("unreserve of %#x with %d bytes, it has %d", addr, size, v.size)
	case v.mapped > 0:
		return misuse("unreserve of %#x with %d bytes mapped in it", addr, v.mapped)
	}
	d.ranges.live = slices.Delete(d.ranges.live, i, i+1)
	return nil
}

// Map takes size bytes of physical memory.
func (d *Device) Map(addr, size, granule uint64) error {
	if err := d.begin(Map); err != nil {
		return err
	}
	defer d.mu.Unlock()
	v, err := d.unmappedRange(addr, size, granule)
	if err != nil {
		return err
	}
	if err := d.fits(Map, size); err != nil {
		return err
	}
	d.mapRange(v, addr, size, granule)
	d.cost += d.pauses.call(d.clock, mapTime(size, granule))
	return nil
}

// unmappedRange returns the reservation of a range that has no memory.
func (d *Device) unmappedRange(addr, size, granule uint64) (*reservation, error) {
	v, err := d.ranges.within(Map, addr, size, granule)
	if err != nil {
		return nil, err
	}
	if n := v.count(addr, size); n > 0 {
		return nil, misuse("map of %d bytes at %#x, where %d are mapped", size, addr, n*page)
	}
	return v, nil
}

// mapRange puts memory behind a range.
func (d *Device) mapRange(v *reservation, addr, size, granule uint64) {
	v.eachWord(addr, size, func(word *uint64, mask uint64) { *word |= mask })
	v.granule = granule
	v.mapped += size
	d.held += size
}

// Unmap gives the memory of a range back and completes the work of stream.
func (d *Device) Unmap(addr, size, granule, stream uint64) error {
	if err := d.begin(Unmap); err != nil {
		return err
	}
	defer d.mu.Unlock()
	v, err := d.ranges.within(Unmap, addr, size, granule)
	if err != nil {
		return err
	}
	if n := v.count(addr, size); n*page != size {
		return misuse("unmap of %d bytes at %#x, where %d are mapped", size, addr, n*page)
	}
	v.eachWord(addr, size, func(word *uint64, mask uint64) { *word &^= mask })
	v.mapped -= size
	d.held -= size
	d.cost += d.pauses.call(d.clock, unmapTime(size, granule))
	d.events.complete(stream)
	return nil
}

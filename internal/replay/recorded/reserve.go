package recorded

import (
	"fmt"
	"slices"
)

// span is a live reservation: the addresses [addr, addr+size).
type span struct{ addr, size uint64 }

// Reserve gives the address of the next segment_map of the stream that no live
// reservation holds. The range must not run into a live reservation either:
// the real one did not.
func (d *Driver) Reserve(size, stream uint64) (uint64, error) {
	rows := d.maps[stream]
	for len(rows) > 0 && rows[0] < d.cursor {
		rows = rows[1:]
	}
	d.maps[stream] = rows
	for _, i := range rows {
		addr := d.events.At(i).Addr
		at, free := d.place(addr, size)
		if free {
			d.reserved = slices.Insert(d.reserved, at, span{addr, size})
			return addr, nil
		}
	}
	return 0, d.Refuse("a reservation of %d bytes for stream %d, which no later segment_map starts", size, stream)
}

// Unreserve gives a reservation back.
func (d *Driver) Unreserve(addr, size uint64) error {
	at, free := d.place(addr, size)
	if free || d.reserved[at].addr != addr {
		return fmt.Errorf("recorded device: no reservation at %#x to give back", addr)
	}
	d.reserved = slices.Delete(d.reserved, at, at+1)
	return nil
}

// Adopt takes over a plain segment, which has no addresses of its own here.
func (d *Driver) Adopt(addr, size uint64) error { return nil }

// AdoptRange takes over a reservation that was made before the first event, so
// that it can be given back and no other one is made in it. One that overlaps
// another is not there.
func (d *Driver) AdoptRange(addr, size uint64) error {
	if at, free := d.place(addr, size); free {
		d.reserved = slices.Insert(d.reserved, at, span{addr, size})
	}
	return nil
}

// AdoptMapped takes over memory mapped before the first event.
func (d *Driver) AdoptMapped(addr, size, granule uint64) error { return nil }

// place finds where [addr, addr+size) stands among the live reservations: the
// position of the first that ends after addr, and whether the range is clear
// of it.
func (d *Driver) place(addr, size uint64) (at int, free bool) {
	at, _ = slices.BinarySearchFunc(d.reserved, addr, func(s span, a uint64) int {
		if s.addr+s.size <= a {
			return -1
		}
		return 1
	})
	if at == len(d.reserved) {
		return at, true
	}
	next := d.reserved[at].addr
	return at, addr < next && size <= next-addr
}

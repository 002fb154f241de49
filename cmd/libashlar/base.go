package main

// #include <stdint.h>
import "C"

// base finds the segment that contains an address. PyTorch asks for it to share memory
// with other processes or devices, which is done by whole segments, and so
// seldom that a walk over all of them will do. Memory that others may have does not
// move any more.
func (l *library) base(addr uint64) (start, size uint64) {
	for n := range l.slots {
		d := l.slots[n].Load()
		if d == nil {
			continue
		}
		for _, s := range d.alloc.Segments() {
			if s.Address <= addr && addr < s.Address+s.TotalSize {
				d.pin(addr)
				return s.Address, s.TotalSize
			}
		}
	}
	return 0, 0
}

//export ashlarGoBase
func ashlarGoBase(addr C.uint64_t, size *C.uint64_t) C.uint64_t {
	start, n := lib().base(uint64(addr))
	*size = C.uint64_t(n)
	return C.uint64_t(start)
}

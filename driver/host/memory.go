package host

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// space is a range of addresses: a plain segment, or a reservation with memory
// behind some of its pages.
type space struct {
	mem    []byte // all addresses; reading where nothing is mapped faults
	base   uint64
	size   uint64      // as asked for
	mapped []pageState // for each page of a reservation; nil for a plain segment

	placed map[uint64]*handle // by address: handles that are mapped
}

// pageState is what lies behind a page of a reservation.
type pageState uint8

const (
	pageEmpty pageState = iota
	pageMapped
	pageLeaving // an Unmap waits for work before it takes the memory away
	pageClosed  // a handle is mapped, but there is no access yet
)

// newSpace wraps pages; mem is not empty.
func newSpace(mem []byte, size uint64) *space {
	return &space{mem: mem, base: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))), size: size}
}

// mappedBytes counts the memory of a reservation.
func (s *space) mappedBytes() uint64 {
	n := uint64(0)
	for _, m := range s.mapped {
		if m != pageEmpty {
			n += page
		}
	}
	return n
}

// pages are the places in mapped of a range within the space.
func (s *space) pages(addr, size uint64) []pageState {
	first := (addr - s.base) / page
	last := (addr - s.base + size + page - 1) / page
	return s.mapped[first:last]
}

// Malloc gets a segment.
func (d *Device) Malloc(size, stream uint64) (addr uint64, err error) {
	if err := d.begin(); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	if size == 0 {
		return 0, misuse("malloc of 0 bytes")
	}
	if err := d.fits("malloc", size); err != nil {
		return 0, err
	}
	mem, err := mapPages(roundUp(size, page), true)
	if err != nil {
		return 0, fmt.Errorf("host: %w: malloc of %s: %w", driver.ErrOutOfMemory, units.Size(size), err)
	}
	s := newSpace(mem, size)
	d.insert(s)
	d.held += uint64(len(mem))
	return s.base, nil
}

// Free gives a segment back after all work that was queued before.
func (d *Device) Free(addr, size uint64) error {
	if err := d.begin(); err != nil {
		return err
	}
	s, err := d.findWhole(addr, size, false)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	// From here on no work can name the memory; what is queued is waited for.
	d.remove(s)
	waits := d.queuedWork()
	d.taking.Add(1)
	defer d.taking.Done()
	d.mu.Unlock()
	for _, wait := range waits {
		wait()
	}
	err = unmapPages(s.mem)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.insert(s)
		return fmt.Errorf("host: free of %#x: %w", addr, err)
	}
	d.held -= uint64(len(s.mem))
	return nil
}

// Reserve gets addresses.
func (d *Device) Reserve(size, stream uint64) (addr uint64, err error) {
	if err := d.begin(); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	if size == 0 || size%page != 0 {
		return 0, misuse("reserving %d bytes: only multiples of 2 MiB can be", size)
	}
	mem, err := mapPages(size, false)
	if err != nil {
		return 0, fmt.Errorf("host: %w: reserving %s of addresses: %w", driver.ErrOutOfMemory, units.Size(size), err)
	}
	s := newSpace(mem, size)
	s.mapped = make([]pageState, size/page)
	d.insert(s)
	return s.base, nil
}

// Unreserve gives addresses back.
func (d *Device) Unreserve(addr, size uint64) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	s, err := d.findWhole(addr, size, true)
	if err != nil {
		return err
	}
	if n := s.mappedBytes(); n > 0 {
		return misuse("unreserve of %#x with %s mapped in it", addr, units.Size(n))
	}
	if err := unmapPages(s.mem); err != nil {
		return fmt.Errorf("host: unreserve of %#x: %w", addr, err)
	}
	d.remove(s)
	return nil
}

// Map puts memory behind a range of a reservation.
func (d *Device) Map(addr, size, granule uint64) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	s, err := d.granules("map", addr, size, granule)
	if err != nil {
		return err
	}
	pages := s.pages(addr, size)
	if slices.Contains(pages, pageMapped) || slices.Contains(pages, pageClosed) {
		return misuse("map of %d bytes at %#x, where memory is mapped already", size, addr)
	}
	if slices.Contains(pages, pageLeaving) {
		return misuse("map of %d bytes at %#x, where an unmap has not returned yet", size, addr)
	}
	if err := d.fits("map", size); err != nil {
		return err
	}
	if err := openPages(s.mem[addr-s.base:][:size]); err != nil {
		return fmt.Errorf("host: %w: map of %s: %w", driver.ErrOutOfMemory, units.Size(size), err)
	}
	setPages(pages, pageMapped)
	d.held += size
	return nil
}

// Unmap takes memory away from a range of a reservation after the work queued
// on stream.
func (d *Device) Unmap(addr, size, granule, stream uint64) error {
	if err := d.begin(); err != nil {
		return err
	}
	s, err := d.granules("unmap", addr, size, granule)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	pages := s.pages(addr, size)
	if !allPages(pages, pageMapped) || s.anyPlaced(addr, size) {
		d.mu.Unlock()
		return misuse("unmap of %d bytes at %#x, where not all is mapped", size, addr)
	}
	wait, err := d.waiterFor(stream)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	setPages(pages, pageLeaving) // no more work for it from here on
	d.taking.Add(1)
	defer d.taking.Done()
	d.mu.Unlock()
	wait()
	err = closePages(s.mem[addr-s.base:][:size])
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		setPages(pages, pageMapped)
		return fmt.Errorf("host: unmap of %#x: %w", addr, err)
	}
	setPages(pages, pageEmpty)
	d.held -= size
	return nil
}

func setPages(pages []pageState, to pageState) {
	for i := range pages {
		pages[i] = to
	}
}

func allPages(pages []pageState, are pageState) bool {
	return !slices.ContainsFunc(pages, func(p pageState) bool { return p != are })
}

// fits checks the capacity.
func (d *Device) fits(doing string, size uint64) error {
	if free := d.total - d.held; size > free || roundUp(size, page) > free {
		return fmt.Errorf("host: %w: %s of %s with %s free", driver.ErrOutOfMemory, doing, units.Size(size), units.Size(free))
	}
	return nil
}

// granules finds the reservation of a range of whole granules.
func (d *Device) granules(doing string, addr, size, granule uint64) (*space, error) {
	if granule == 0 || granule%page != 0 {
		return nil, misuse("%s with granules of %d bytes, they must be multiples of 2 MiB", doing, granule)
	}
	s := d.find(addr)
	if s == nil || s.mapped == nil || size > s.base+s.size-addr {
		return nil, misuse("%s of %d bytes at %#x, which is not reserved", doing, size, addr)
	}
	if size == 0 || size%granule != 0 || (addr-s.base)%granule != 0 {
		return nil, misuse("%s of %d bytes at %#x, not whole granules of %d bytes", doing, size, addr, granule)
	}
	return s, nil
}

// findWhole finds the space that begins at addr and has the given size and kind.
func (d *Device) findWhole(addr, size uint64, reservation bool) (*space, error) {
	doing, what := "free", "segment"
	if reservation {
		doing, what = "unreserve", "reservation"
	}
	s := d.find(addr)
	if s == nil || s.base != addr || (s.mapped != nil) != reservation {
		return nil, misuse("%s of %#x, where no %s begins", doing, addr, what)
	}
	if s.size != size {
		return nil, misuse("%s of %#x with %d bytes, it has %d", doing, addr, size, s.size)
	}
	return s, nil
}

// bytes returns the memory of a range that lies in one space and has memory
// behind all of it.
func (d *Device) bytes(addr, size uint64) ([]byte, error) {
	s := d.find(addr)
	if s == nil || size > s.base+s.size-addr {
		return nil, misuse("%d bytes at %#x are not memory of the device", size, addr)
	}
	if s.mapped != nil && size > 0 && !allPages(s.pages(addr, size), pageMapped) {
		return nil, misuse("%d bytes at %#x: not all of them are mapped", size, addr)
	}
	return s.mem[addr-s.base:][:size:size], nil
}

// search finds the place of the space that holds addr, or where one that begins
// there belongs.
func (d *Device) search(addr uint64) (int, bool) {
	return slices.BinarySearchFunc(d.spaces, addr, func(s *space, addr uint64) int {
		if s.base <= addr && addr-s.base < s.size {
			return 0
		}
		return cmp.Compare(s.base, addr)
	})
}

func (d *Device) find(addr uint64) *space {
	if i, ok := d.search(addr); ok {
		return d.spaces[i]
	}
	return nil
}

func (d *Device) insert(s *space) {
	i, _ := d.search(s.base)
	d.spaces = slices.Insert(d.spaces, i, s)
}

func (d *Device) remove(s *space) {
	if i, ok := d.search(s.base); ok {
		d.spaces = slices.Delete(d.spaces, i, i+1)
	}
}

package policy

import (
	"errors"

	"github.com/ashlar-mem/ashlar/driver"
)

const (
	granule = 2 << 20 // the least memory that a driver maps
	unit    = 512     // to which requests are rounded
)

// A range of addresses is far larger than any device, as addresses cost nothing;
// a driver that has fewer is asked for half.
const (
	mostAddresses  = 1 << 40
	leastAddresses = 1 << 34
)

// span is a range of addresses with memory behind it from its beginning to end.
type span struct {
	a               *Allocator
	stream          uint64
	granule         uint64
	base, end, last uint64 // last is where the addresses end
}

// reserve gets the addresses, once.
func (s *span) reserve() error {
	if s.last != 0 {
		return nil
	}
	size := uint64(mostAddresses)
	for {
		base, err := s.a.driver.Reserve(size, s.stream)
		switch {
		case err == nil:
			s.base, s.end, s.last = base, base, base+size
			return nil
		case !errors.Is(err, driver.ErrOutOfMemory) || size <= leastAddresses:
			return err
		}
		size /= 2
	}
}

// grow puts memory behind at least size more bytes and returns how many.
func (s *span) grow(size uint64) (uint64, error) {
	if err := s.reserve(); err != nil {
		return 0, err
	}
	size = up(size, s.granule)
	if size > s.last-s.end {
		return 0, driver.ErrOutOfMemory
	}
	if err := s.mapAt(s.end, size); err != nil {
		return 0, err
	}
	s.end += size
	return size, nil
}

// shrink takes the memory from an address on away.
func (s *span) shrink(from uint64) error {
	if err := s.unmapAt(from, s.end-from); err != nil {
		return err
	}
	s.end = from
	return nil
}

func (s *span) mapAt(addr, size uint64) error {
	if err := s.a.room(size); err != nil {
		return err
	}
	if err := s.a.driver.Map(addr, size, s.granule); err != nil {
		return err
	}
	s.a.reserved += size
	s.a.allocs++
	return nil
}

func (s *span) unmapAt(addr, size uint64) error {
	if err := s.a.driver.Unmap(addr, size, s.granule, s.stream); err != nil {
		return err
	}
	s.a.reserved -= size
	s.a.frees++
	return nil
}

// up rounds up to a multiple.
func up(n, unit uint64) uint64 { return (n + unit - 1) / unit * unit }

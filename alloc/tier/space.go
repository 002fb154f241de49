package tier

import (
	"errors"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// Space is the memory of one allocator.
type Space struct{ name string }

// Name returns the space's name.
func (s *Space) Name() string { return s.name }

// Driver returns the driver that the space's allocator is made over. It has the
// optional interfaces of the store's device as far as the engine asks for them.
func (s *Space) Driver() driver.Driver { return nil }

// Attach makes the space known to the allocator that was made over its driver.
// Without it nothing moves and nothing overflows.
func (s *Space) Attach(a *alloc.Allocator) error { return errors.ErrUnsupported }

// Park gives the device's memory back: what the space holds goes to the host's
// memory if keep is set, and is lost otherwise; its addresses stay. Cached memory is
// released first. Memory that cannot be parked stays where it is and is in the report.
// After an error each handle is either parked or not, and the report says how much is;
// Restore brings it back.
func (s *Space) Park(keep bool) (Report, error) { return Report{}, errors.ErrUnsupported }

// Restore brings everything back to the device, to the same addresses. The bytes of
// what was dropped are undefined. If the device has no room, what is home stays home,
// and the error wraps [driver.ErrOutOfMemory].
func (s *Space) Restore() (Report, error) { return Report{}, errors.ErrUnsupported }

// ParkBlocks moves blocks to the host's memory: those handles all of whose live blocks
// are named. An address may lie anywhere in its block.
func (s *Space) ParkBlocks(addrs []uint64) (Report, error) { return Report{}, errors.ErrUnsupported }

// RestoreBlocks brings back the handles behind blocks.
func (s *Space) RestoreBlocks(addrs []uint64) (Report, error) {
	return Report{}, errors.ErrUnsupported
}

// Cold says that a block is seldom used: it goes to the host's memory before others
// do. It reports whether there is such a block. The hint ends with the block, or at
// the next mark after that.
func (s *Space) Cold(addr uint64) bool { return false }

// Pin keeps the handles of a block where they are until Unpin or, at the next mark, the
// end of the block: other processes, libraries or network cards may know them. It
// reports whether there is such a block.
func (s *Space) Pin(addr uint64) bool { return false }

// Unpin ends a Pin.
func (s *Space) Unpin(addr uint64) {}

// Where says what lies behind a live block; its parts may lie in different memory. ok is
// false if there is no such block.
func (s *Space) Where(addr uint64) (device, host, dropped uint64, ok bool) { return 0, 0, 0, false }

// Dropped reports whether any part of the block at an address was parked without
// being kept: there is no memory behind it until Restore.
func (s *Space) Dropped(addr uint64) bool { return false }

// SetOverflow lets requests that would fail be served with up to that many bytes of host
// memory, as far as the store's limit allows it; 0 ends it, and leaves what is there.
func (s *Space) SetOverflow(bytes uint64) {}

// Stats returns the space's numbers.
func (s *Space) Stats() Stats { return Stats{} }

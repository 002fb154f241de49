package tier

import (
	"errors"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
)

// Options set a store up. The zero value does.
type Options struct {
	// Host is the most host memory that is taken; 0 is half of [HostRoom].
	Host uint64

	// Overflow makes each new space begin with overflow, up to Host.
	Overflow bool

	// Quiet is called before each move, without any allocator's lock, and release
	// after it: nobody may begin work on the device in between. An error, for
	// instance of a capture that is on, keeps everything where it is. A cache in front
	// of an allocator is asked for its blocks by the move itself (alloc.Borrower), so
	// Quiet must not hold what the borrower's Recall needs. Without Quiet the caller of
	// Park, Restore and Step sees to it.
	Quiet func() (release func(), err error)

	// Alone reports whether the thread of the request that is about to fail is the only
	// one that has used the device since the last mark: only then may the request move
	// other memory. Without it none does.
	Alone func() bool

	// Budget is how long memory may take to come home in one Step; 0 is 20 ms, less
	// than 0 nothing comes home by itself.
	Budget time.Duration

	// Now is the clock; nil is time.Now.
	Now func() time.Time

	// Overflowed is called, without locks, after the first request of a space that
	// the host's memory served.
	Overflowed func(*Space, Overflow)
}

// Overflow describes the first request of a space that the host's memory served.
type Overflow struct {
	Size  uint64 // bytes asked for
	Moved uint64 // bytes of cold handles that made room; 0 if the block itself went to the host
}

// Store has the handles of one device. It is safe for concurrent use.
type Store struct{}

// New makes a store. The driver must be a [driver.HostMapper].
func New(dev driver.Driver, o Options) (*Store, error) {
	return nil, errors.ErrUnsupported
}

// Space returns the space of a name, which is made at first use.
func (s *Store) Space(name string) *Space { return nil }

// Spaces lists the spaces in the order in which they were made.
func (s *Store) Spaces() []*Space { return nil }

// Driver returns the store's device.
func (s *Store) Driver() driver.Driver { return nil }

// SetHostLimit changes how much host memory may be taken. Less than what is taken
// gives nothing back.
func (s *Store) SetHostLimit(bytes uint64) {}

// HostLimit returns how much host memory may be taken.
func (s *Store) HostLimit() uint64 { return 0 }

// SetDeviceLimit caps the device memory of all spaces together; 0 removes the cap.
// The limits of the allocators hold besides.
func (s *Store) SetDeviceLimit(bytes uint64) {}

// HostBytes returns the host memory that is taken: behind addresses, and kept for
// the next move.
func (s *Store) HostBytes() uint64 { return 0 }

// Trim gives back host memory that is kept for the next move. It returns how much.
func (s *Store) Trim() (uint64, error) { return 0, errors.ErrUnsupported }

// Step marks the end of a step of the program, a moment at which nobody uses the
// device: blocks grow older; if requests overflowed in the step, cold handles make
// room for them; and if there was room, memory comes home within the budget, hottest
// first. A step without anything to move calls neither Quiet nor the driver.
func (s *Store) Step() (Report, error) { return Report{}, errors.ErrUnsupported }

// Moves rises whenever a handle has moved, or a request was served with host memory: a
// cache in front of an allocator compares it with what it was when its blocks came.
func (s *Store) Moves() uint64 { return 0 }

// Stats returns the sums over all spaces.
func (s *Store) Stats() Stats { return Stats{} }

package tier

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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
//
// Locks are taken in this order: moving, an engine's, a space's, the ledger's.
type Store struct {
	dev     driver.HostMapper
	options Options
	moves   atomic.Uint64

	moving sync.Mutex // one move at a time
	stage  stage
	marks  uint64 // steps that have ended
	rest   rest
	lost   *brokenError // of a request since the last mark

	spilling sync.Mutex // held while host memory is mapped for a request, which the limits allow

	ledger ledger
	spaces []*Space // under the ledger's lock
}

// New makes a store. The driver must be a [driver.HostMapper].
func New(dev driver.Driver, o Options) (*Store, error) {
	d, ok := dev.(driver.HostMapper)
	if !ok {
		return nil, fmt.Errorf("tier: %T cannot map the host's memory", dev)
	}
	if o.Host == 0 {
		room, err := HostRoom()
		if err != nil {
			return nil, fmt.Errorf("tier: how much host memory there is cannot be found out; set Options.Host: %w", err)
		}
		o.Host = room / 2
	}
	if o.Budget == 0 {
		o.Budget = 20 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{dev: d, options: o, ledger: newLedger(o.Host), rest: rest{pause: leastPause}}, nil
}

// Space returns the space of a name, which is made at first use.
func (s *Store) Space(name string) *Space {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	if i := slices.IndexFunc(s.spaces, func(sp *Space) bool { return sp.name == name }); i >= 0 {
		return s.spaces[i]
	}
	sp := &Space{store: s, name: name}
	if s.options.Overflow {
		sp.overflow = s.ledger.hostLimit
	}
	s.spaces = append(s.spaces, sp)
	return sp
}

// Spaces lists the spaces in the order in which they were made.
func (s *Store) Spaces() []*Space {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return slices.Clone(s.spaces)
}

// Driver returns the store's device.
func (s *Store) Driver() driver.Driver { return s.dev }

// SetHostLimit changes how much host memory may be taken. Less than what is taken
// gives nothing back.
func (s *Store) SetHostLimit(bytes uint64) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	s.ledger.hostLimit = bytes
}

// HostLimit returns how much host memory may be taken.
func (s *Store) HostLimit() uint64 {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.ledger.hostLimit
}

// SetDeviceLimit caps the device memory of all spaces together; 0 removes the cap.
// The limits of the allocators hold besides.
func (s *Store) SetDeviceLimit(bytes uint64) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	s.ledger.deviceLimit = bytes
}

// SetOverflow caps what overflows of all spaces together, beside what [Space.SetOverflow] allows each. What is parked
// does not count.
func (s *Store) SetOverflow(bytes uint64) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	s.ledger.mostSpilt = bytes
}

// HostBytes returns the host memory that is taken: behind addresses, and kept for
// the next move.
func (s *Store) HostBytes() uint64 {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.ledger.hostTaken()
}

// HostInUse returns the host memory behind addresses.
func (s *Store) HostInUse() uint64 {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.ledger.host
}

// DeviceBytes returns the device memory that is taken.
func (s *Store) DeviceBytes() uint64 {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.ledger.device + s.ledger.doomedDevice
}

// Trim gives back host memory that is kept for the next move, and the addresses of
// moves. It returns how much memory; what the driver refuses to take back is tried
// again later.
func (s *Store) Trim() uint64 {
	s.moving.Lock()
	defer s.moving.Unlock()
	s.sweep()
	s.stage.dismantle(s)
	return s.dropKept()
}

// Pressed reports whether a request has failed, or would have, since the last mark.
func (s *Store) Pressed() bool {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return slices.ContainsFunc(s.spaces, func(sp *Space) bool { return sp.pressed })
}

// Moves rises whenever a handle has moved, or a request was served with host memory: a
// cache in front of an allocator compares it with what it was when its blocks came.
func (s *Store) Moves() uint64 { return s.moves.Load() }

// Stats returns the sums over all spaces.
func (s *Store) Stats() Stats {
	l := &s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	out := Stats{Device: l.device + l.doomedDevice, Host: l.host, Kept: l.keptBytes + l.doomedHost}
	for _, sp := range s.spaces {
		out.Overflows += sp.moved.Overflows
		out.Moves += sp.moved.Moves
		out.BytesOut += sp.moved.BytesOut
		out.BytesIn += sp.moved.BytesIn
		out.Time += sp.moved.Time
	}
	out.setCounts(&l.counts)
	return out
}

func (st *Stats) setCounts(c *counts) { st.Spilt, st.Broken, st.Dropped = c.spilt, c.broken, c.dropped }

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ashlar-mem/ashlar/driver"
)

// ledger stands between an allocator and its device. It counts the calls and
// knows what the device has given and not got back, so that a check can show
// what happened, that nothing is left over, and clean up after a run that was
// stopped in the middle.
type ledger struct {
	driver.Copier

	mu       sync.Mutex
	calls    calls
	segments map[uint64]uint64 // address -> size
	ranges   map[uint64]uint64
	mapped   map[uint64]uint64 // address of a granule -> its size
	events   map[driver.Event]bool
}

// calls is how often a device did something.
type calls struct {
	Segments  int64  `json:"segments_made"`
	Released  int64  `json:"segments_released"`
	Ranges    int64  `json:"ranges_reserved"`
	Maps      int64  `json:"maps"`
	Unmaps    int64  `json:"unmaps"`
	Refusals  int64  `json:"refusals"` // out of memory, said by the device itself
	Events    int64  `json:"events"`
	NotDone   int64  `json:"events_not_done"` // answers that the work before an event was still running
	GotBytes  uint64 `json:"got_bytes"`       // segments and mappings
	HeldBytes uint64 `json:"held_bytes"`      // of them at this moment
}

func newLedger(dev driver.Copier) *ledger {
	return &ledger{
		Copier:   dev,
		segments: map[uint64]uint64{}, ranges: map[uint64]uint64{}, mapped: map[uint64]uint64{},
		events: map[driver.Event]bool{},
	}
}

// count returns the calls up to now.
func (l *ledger) count() calls {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// note runs f under the lock if the call succeeded, and counts refusals.
func (l *ledger) note(err error, f func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		f()
	case errors.Is(err, driver.ErrOutOfMemory):
		l.calls.Refusals++
	}
	return err
}

func (l *ledger) got(size uint64) {
	l.calls.GotBytes += size
	l.calls.HeldBytes += size
}

func (l *ledger) Malloc(size, stream uint64) (uint64, error) {
	addr, err := l.Copier.Malloc(size, stream)
	return addr, l.note(err, func() {
		l.calls.Segments++
		l.got(size)
		l.segments[addr] = size
	})
}

func (l *ledger) Free(addr, size uint64) error {
	// The entry goes first: once the device has the address back another
	// thread may get it.
	l.mu.Lock()
	delete(l.segments, addr)
	l.mu.Unlock()
	err := l.Copier.Free(addr, size)
	if err != nil {
		l.mu.Lock()
		l.segments[addr] = size
		l.mu.Unlock()
	}
	return l.note(err, func() {
		l.calls.Released++
		l.calls.HeldBytes -= size
	})
}

func (l *ledger) Reserve(size, stream uint64) (uint64, error) {
	addr, err := l.Copier.Reserve(size, stream)
	return addr, l.note(err, func() {
		l.calls.Ranges++
		l.ranges[addr] = size
	})
}

func (l *ledger) Unreserve(addr, size uint64) error {
	return l.note(l.Copier.Unreserve(addr, size), func() { delete(l.ranges, addr) })
}

func (l *ledger) Map(addr, size, granule uint64) error {
	return l.note(l.Copier.Map(addr, size, granule), func() {
		l.calls.Maps++
		l.got(size)
		for at := addr; at < addr+size; at += granule {
			l.mapped[at] = granule
		}
	})
}

func (l *ledger) Unmap(addr, size, granule, stream uint64) error {
	return l.note(l.Copier.Unmap(addr, size, granule, stream), func() {
		l.calls.Unmaps++
		l.calls.HeldBytes -= size
		for at := addr; at < addr+size; at += granule {
			delete(l.mapped, at)
		}
	})
}

func (l *ledger) RecordEvent(stream, addr uint64) (driver.Event, error) {
	ev, err := l.Copier.RecordEvent(stream, addr)
	return ev, l.note(err, func() {
		l.calls.Events++
		l.events[ev] = true
	})
}

func (l *ledger) EventDone(ev driver.Event) (bool, error) {
	l.forget(ev) // as with Free: a finished event may be recycled at once
	done, err := l.Copier.EventDone(ev)
	if done && err == nil {
		return true, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[ev] = true
	if err == nil {
		l.calls.NotDone++
	}
	return done, err
}

func (l *ledger) WaitEvent(ev driver.Event) error {
	l.forget(ev)
	err := l.Copier.WaitEvent(ev)
	if err != nil {
		l.mu.Lock()
		l.events[ev] = true
		l.mu.Unlock()
	}
	return err
}

func (l *ledger) forget(ev driver.Event) {
	l.mu.Lock()
	delete(l.events, ev)
	l.mu.Unlock()
}

// left says what the device has not got back; empty if nothing.
func (l *ledger) left() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.segments)+len(l.ranges)+len(l.mapped)+len(l.events) == 0 {
		return ""
	}
	return fmt.Sprintf("%d segments, %d reserved ranges, %d mapped granules, %d events",
		len(l.segments), len(l.ranges), len(l.mapped), len(l.events))
}

// release gives back everything that is left, for a run that does not free
// what it allocated.
func (l *ledger) release() error {
	var errs []error
	for _, ev := range slices.Sorted(maps.Keys(l.events)) {
		errs = append(errs, l.WaitEvent(ev))
	}
	for addr, granule := range maps.Clone(l.mapped) {
		errs = append(errs, l.Unmap(addr, granule, granule, 0))
	}
	for addr, size := range maps.Clone(l.ranges) {
		errs = append(errs, l.Unreserve(addr, size))
	}
	for addr, size := range maps.Clone(l.segments) {
		errs = append(errs, l.Free(addr, size))
	}
	return errors.Join(errs...)
}

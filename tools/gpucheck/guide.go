package main

import (
	"slices"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

// What a device does on its own time is not decided by the operations: when
// the work of another stream has passed, and in which order blocks that become
// free together return (PyTorch walks a hash table of pointers there). guide
// carries these answers from the recorded device, which performs an operation
// first, to the real one. Both record the same events in the same order, so an
// event is known by its number.
type guide struct {
	blocks []uint64          // number of an event -> block it guards, in the reference run
	done   map[int]bool      // the reference run was told that the event is done
	passed map[uint64]bool   // in this operation: blocks that a capture may use again
	rank   map[uint64]int    // in this operation: order in which blocks returned
	ours   map[uint64]uint64 // block in the other run -> in the reference run, while events guard it
	match  *pairing

	held    int64 // answers "not done" that came from the recording alone
	waited  int64 // events that the recording had done and the device had not: it was waited for
	instant int64 // and those that the device had done as well
}

func newGuide(match *pairing) *guide {
	return &guide{done: map[int]bool{}, passed: map[uint64]bool{}, rank: map[uint64]int{}, ours: map[uint64]uint64{}, match: match}
}

// reset forgets what holds for one operation only.
func (g *guide) reset() {
	clear(g.passed)
	clear(g.rank)
}

// reference is the recorded device; it reports its answers to the guide.
type reference struct {
	*recorded.Driver
	guide *guide
	log   *opLog
	event map[driver.Event]int
}

func (d *reference) Reserve(size, stream uint64) (uint64, error) {
	addr, err := d.Driver.Reserve(size, stream)
	if err == nil {
		d.log.add(entry{Action: actionReserve, Addr: addr, Size: size, Stream: stream})
	}
	return addr, err
}

func (d *reference) Unreserve(addr, size uint64) error {
	err := d.Driver.Unreserve(addr, size)
	if err == nil {
		d.log.add(entry{Action: actionUnreserve, Addr: addr, Size: size})
	}
	return err
}

func (d *reference) RecordEvent(stream, addr uint64) (driver.Event, error) {
	ev, err := d.Driver.RecordEvent(stream, addr)
	if err == nil {
		d.event[ev] = len(d.guide.blocks)
		d.guide.blocks = append(d.guide.blocks, addr)
	}
	return ev, err
}

func (d *reference) EventDone(ev driver.Event) (bool, error) {
	done, err := d.Driver.EventDone(ev)
	if done && err == nil {
		d.guide.done[d.event[ev]] = true
		delete(d.event, ev)
	}
	return done, err
}

func (d *reference) WaitEvent(ev driver.Event) error {
	delete(d.event, ev)
	return d.Driver.WaitEvent(ev)
}

func (d *reference) Passed(stream, addr uint64) bool {
	passed := d.Driver.Passed(stream, addr)
	d.guide.passed[addr] = passed
	return passed
}

// guided is the real device under the guide. Its memory, streams and events
// are real. It says that an event is done when the recording says so, and then
// only after the device has finished the work: never too early.
type guided struct {
	driver.Copier
	total uint64 // of the recorded device: limits and ranges are scaled by it
	guide *guide
	log   *opLog
	event map[driver.Event]int
	n     int // events recorded
}

var (
	_ driver.Sequencer      = (*guided)(nil)
	_ driver.CaptureTracker = (*guided)(nil)
)

func (d *guided) TotalMemory() uint64 { return d.total }

func (d *guided) Reserve(size, stream uint64) (uint64, error) {
	addr, err := d.Copier.Reserve(size, stream)
	if err == nil {
		d.log.add(entry{Action: actionReserve, Addr: addr, Size: size, Stream: stream})
	}
	return addr, err
}

func (d *guided) Unreserve(addr, size uint64) error {
	err := d.Copier.Unreserve(addr, size)
	if err == nil {
		d.log.add(entry{Action: actionUnreserve, Addr: addr, Size: size})
	}
	return err
}

func (d *guided) RecordEvent(stream, addr uint64) (driver.Event, error) {
	ev, err := d.Copier.RecordEvent(stream, addr)
	if err != nil {
		return ev, err
	}
	d.event[ev] = d.n
	if d.n < len(d.guide.blocks) {
		d.guide.ours[addr] = d.guide.blocks[d.n]
	}
	d.n++
	return ev, nil
}

func (d *guided) EventDone(ev driver.Event) (bool, error) {
	n := d.event[ev]
	if !d.guide.done[n] {
		d.guide.held++
		return false, nil
	}
	done, err := d.Copier.EventDone(ev)
	if err != nil {
		return false, err
	}
	if done {
		d.guide.instant++
	} else {
		d.guide.waited++
		if err := d.Copier.WaitEvent(ev); err != nil {
			return false, err
		}
	}
	delete(d.event, ev)
	return true, nil
}

func (d *guided) WaitEvent(ev driver.Event) error {
	err := d.Copier.WaitEvent(ev)
	if err == nil {
		delete(d.event, ev)
	}
	return err
}

// inReference is the block of the reference run that corresponds to one of
// ours: by the event that guards it, else by its place.
func (d *guided) inReference(addr uint64) uint64 {
	if ref, ok := d.guide.ours[addr]; ok {
		return ref
	}
	ref, _ := d.guide.match.toRef(addr)
	return ref
}

// Sequence puts blocks about to be returned into the recorded order.
func (d *guided) Sequence(addrs []uint64) {
	rank := func(addr uint64) int {
		if r, ok := d.guide.rank[d.inReference(addr)]; ok {
			return r
		}
		return len(d.guide.rank)
	}
	slices.SortStableFunc(addrs, func(x, y uint64) int { return rank(x) - rank(y) })
}

// Mark has nothing to note: the reference run knows what becomes of the block.
func (d *guided) Mark(addr uint64, streams []uint64) {}

func (d *guided) Passed(stream, addr uint64) bool { return d.guide.passed[d.inReference(addr)] }

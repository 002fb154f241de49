package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/ashlar-mem/ashlar/driver"
)

// eventTable holds the events of a device, in use and free.
type eventTable struct {
	mu    sync.Mutex
	slots []eventSlot
	free  []uint32 // slots whose events can be used again
}

// eventSlot is one event of the driver. Its name is the slot and the number of
// its uses, so that an old name is recognised.
type eventSlot struct {
	handle uintptr
	uses   uint32
	busy   bool
}

func eventName(slot, uses uint32) driver.Event {
	return driver.Event(uint64(uses)<<32 | uint64(slot))
}

// reuse takes a free event out of the table.
func (t *eventTable) reuse() (ev driver.Event, handle uintptr, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		return 0, 0, false
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	s := &t.slots[i]
	s.uses++
	s.busy = true
	return eventName(i, s.uses), s.handle, true
}

// add puts a new event into the table, in use.
func (t *eventTable) add(handle uintptr) driver.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots = append(t.slots, eventSlot{handle: handle, uses: 1, busy: true})
	return eventName(uint32(len(t.slots)-1), 1)
}

// slot finds an event in use. The caller holds the lock.
func (t *eventTable) slot(ev driver.Event) *eventSlot {
	if i := uint64(ev) & 0xffffffff; i < uint64(len(t.slots)) {
		if s := &t.slots[i]; s.busy && s.uses == uint32(uint64(ev)>>32) {
			return s
		}
	}
	return nil
}

// find returns the driver's event.
func (t *eventTable) find(ev driver.Event) (uintptr, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.slot(ev); s != nil {
		return s.handle, nil
	}
	return 0, fmt.Errorf("event %#x is not in use: it was never recorded or is done already", uint64(ev))
}

// recycle makes an event free for the next use.
func (t *eventTable) recycle(ev driver.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.slot(ev); s != nil {
		s.busy = false
		t.free = append(t.free, uint32(uint64(ev)))
	}
}

// RecordEvent marks the work queued on stream up to now. On a closed stream the
// event is done.
func (d *Device) RecordEvent(stream, _ uint64) (driver.Event, error) {
	c, err := d.enter()
	if err != nil {
		return 0, err
	}
	defer c.leave()
	ev, handle, ok := d.events.reuse()
	if !ok {
		if err := c.relax(); err != nil {
			return 0, err
		}
		if handle, err = c.newEvent(eventWithoutTime); err != nil {
			return 0, err
		}
		ev = d.events.add(handle)
	}
	if d.streams.closed(stream) {
		return ev, nil // an event that is new, or was done, is done
	}
	if err := c.do(symEventRecord, handle, uintptr(stream)); err != nil {
		d.events.recycle(ev)
		return 0, err
	}
	return ev, nil
}

// EventDone reports whether the work before the event has finished.
func (d *Device) EventDone(ev driver.Event) (bool, error) {
	handle, err := d.events.find(ev)
	if err != nil {
		return false, err
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return false, err
	}
	defer c.leave()
	switch code := c.raw(symEventQuery, handle); code {
	case 0:
		d.events.recycle(ev)
		return true, nil
	case codeNotReady:
		return false, nil
	default:
		return false, c.lib.fail(symEventQuery, code)
	}
}

// WaitEvent waits until the work before the event has finished.
func (d *Device) WaitEvent(ev driver.Event) error {
	handle, err := d.events.find(ev)
	if err != nil {
		return err
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	if err := c.do(symEventSynchronize, handle); err != nil {
		return err
	}
	d.events.recycle(ev)
	return nil
}

// StreamWait lets work queued on stream from now on wait for the event. A
// closed stream has none.
func (d *Device) StreamWait(stream uint64, ev driver.Event) error {
	handle, err := d.events.find(ev)
	if err != nil || d.streams.closed(stream) {
		return err
	}
	c, err := d.enter()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symStreamWaitEvent, uintptr(stream), handle, 0)
}

// Flags of an event.
const (
	eventWithTime    = 0
	eventWithoutTime = 2
)

func (c *call) newEvent(flags uintptr) (uintptr, error) {
	if err := c.do(symEventCreate, c.out(unsafe.Pointer(&c.a)), flags); err != nil {
		return 0, err
	}
	return uintptr(c.a), nil
}

// closeEvents destroys all events of the table.
func (d *Device) closeEvents() error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	d.events.mu.Lock()
	defer d.events.mu.Unlock()
	var all []error
	for _, s := range d.events.slots {
		all = append(all, c.do(symEventDestroy, s.handle))
	}
	d.events.slots, d.events.free = nil, nil
	return errors.Join(all...)
}

package sim

import "github.com/ashlar-mem/ashlar/driver"

// EventMode says when the events of a device are done.
type EventMode int

const (
	// Immediate events are done when they are recorded.
	Immediate EventMode = iota
	// Manual events are done when Complete, CompleteAll or CompleteThrough
	// says so, or when a call waits for them.
	Manual
)

// events holds the events that the engine may still name. The work of a stream
// is done in order, so that one counter of a stream decides for all its events.
type events struct {
	mode    EventMode
	streams map[uint64]*stream
	slots   []eventSlot
	unused  []uint32 // slots to recycle
}

type stream struct {
	recorded uint64 // number of events recorded
	done     uint64 // number of those that are done
}

// eventSlot holds one event after the other. A [driver.Event] is the slot's
// number and, above bit 32, its turn, so that stale names are noticed.
type eventSlot struct {
	stream *stream
	number uint64 // the event's number in its stream, from 1
	turn   uint32
}

func newEvents(mode EventMode) events {
	return events{mode: mode, streams: map[uint64]*stream{}}
}

func (e *events) record(id uint64) driver.Event {
	s := e.streams[id]
	if s == nil {
		s = &stream{}
		e.streams[id] = s
	}
	s.recorded++
	if e.mode == Immediate {
		s.done = s.recorded
	}
	if len(e.unused) == 0 {
		e.unused = append(e.unused, uint32(len(e.slots)))
		e.slots = append(e.slots, eventSlot{})
	}
	i := e.unused[len(e.unused)-1]
	e.unused = e.unused[:len(e.unused)-1]
	slot := &e.slots[i]
	slot.stream, slot.number = s, s.recorded
	slot.turn++
	return driver.Event(slot.turn)<<32 | driver.Event(i)
}

func (e *events) find(ev driver.Event) (*eventSlot, error) {
	if i := uint64(uint32(ev)); i < uint64(len(e.slots)) {
		if slot := &e.slots[i]; slot.stream != nil && slot.turn == uint32(ev>>32) {
			return slot, nil
		}
	}
	return nil, misuse("event %#x was not recorded, or was done already", uint64(ev))
}

func (s *eventSlot) isDone() bool { return s.number <= s.stream.done }

func (s *eventSlot) complete() { s.stream.done = max(s.stream.done, s.number) }

// recycle takes an event that the engine knows to be done.
func (e *events) recycle(ev driver.Event) {
	e.slots[uint32(ev)].stream = nil
	e.unused = append(e.unused, uint32(ev))
}

func (e *events) complete(id uint64) {
	if s := e.streams[id]; s != nil {
		s.done = s.recorded
	}
}

func (e *events) completeAll() {
	if e.mode == Immediate {
		return
	}
	for _, s := range e.streams {
		s.done = s.recorded
	}
}

// RecordEvent marks the end of the work on a stream.
func (d *Device) RecordEvent(stream, addr uint64) (driver.Event, error) {
	if err := d.begin(RecordEvent); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	return d.events.record(stream), nil
}

// EventDone reports whether an event is done. After true the event is gone.
func (d *Device) EventDone(ev driver.Event) (bool, error) {
	if err := d.begin(EventDone); err != nil {
		return false, err
	}
	defer d.mu.Unlock()
	slot, err := d.events.find(ev)
	if err != nil || !slot.isDone() {
		return false, err
	}
	d.events.recycle(ev)
	return true, nil
}

// WaitEvent completes the event's stream through the event, which is gone then.
func (d *Device) WaitEvent(ev driver.Event) error {
	if err := d.begin(WaitEvent); err != nil {
		return err
	}
	defer d.mu.Unlock()
	slot, err := d.events.find(ev)
	if err != nil {
		return err
	}
	slot.complete()
	d.events.recycle(ev)
	return nil
}

// Complete finishes all work recorded on a stream.
func (d *Device) Complete(stream uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events.complete(stream)
}

// CompleteAll finishes all work on the device.
func (d *Device) CompleteAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events.completeAll()
}

// CompleteThrough finishes the work of the event's stream up to the event.
func (d *Device) CompleteThrough(ev driver.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	slot, err := d.events.find(ev)
	if err == nil {
		slot.complete()
	}
	return err
}

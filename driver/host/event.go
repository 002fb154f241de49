package host

import "github.com/ashlar-mem/ashlar/driver"

// event is a point in the work of a stream. Streams that wait for it keep it
// after the device has forgotten its name.
type event struct{ reached chan struct{} }

// RecordEvent marks the end of the work on a stream. On a closed one the event
// is done when the work is.
func (d *Device) RecordEvent(stream, addr uint64) (driver.Event, error) {
	if err := d.begin(); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	e := &event{reached: make(chan struct{})}
	queued, err := d.queueMark(stream, work{doing: "an event", run: func() error {
		close(e.reached)
		return nil
	}})
	if err != nil {
		return 0, err
	}
	if !queued {
		close(e.reached)
	}
	d.nextEvent++
	d.events[d.nextEvent] = e
	return d.nextEvent, nil
}

// EventDone reports whether an event is done. After true the event is gone.
func (d *Device) EventDone(ev driver.Event) (bool, error) {
	if err := d.begin(); err != nil {
		return false, err
	}
	defer d.mu.Unlock()
	e, err := d.findEvent(ev)
	if err != nil {
		return false, err
	}
	select {
	case <-e.reached:
		delete(d.events, ev)
		return true, nil
	default:
		return false, nil
	}
}

// WaitEvent waits for an event, which is gone then.
func (d *Device) WaitEvent(ev driver.Event) error {
	if err := d.begin(); err != nil {
		return err
	}
	e, err := d.findEvent(ev)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	<-e.reached
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.events, ev)
	return nil
}

// StreamWait lets a stream wait for an event. The event may be asked for, and
// so be gone, before the stream has come that far. A closed stream has no work
// that could wait.
func (d *Device) StreamWait(stream uint64, ev driver.Event) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	e, err := d.findEvent(ev)
	if err != nil {
		return err
	}
	_, err = d.queueMark(stream, work{doing: "waiting for an event", run: func() error {
		<-e.reached
		return nil
	}})
	return err
}

// findEvent finds an event. The device is locked.
func (d *Device) findEvent(ev driver.Event) (*event, error) {
	if e := d.events[ev]; e != nil {
		return e, nil
	}
	return nil, misuse("event %d was not recorded, or was done already", ev)
}

package cuda

import (
	"time"
	"unsafe"
)

// TimingEvent is a point in the work of a stream with its time.
type TimingEvent struct {
	dev    *Device
	handle uintptr
}

// NewTimingEvent makes an event for measuring.
func (d *Device) NewTimingEvent() (*TimingEvent, error) {
	c, err := d.enterRelaxed()
	if err != nil {
		return nil, err
	}
	defer c.leave()
	handle, err := c.newEvent(eventWithTime)
	if err != nil {
		return nil, err
	}
	return &TimingEvent{d, handle}, nil
}

// Record marks the work queued on stream up to now.
func (e *TimingEvent) Record(stream uint64) error {
	c, err := e.dev.enter()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symEventRecord, e.handle, uintptr(stream))
}

// Synchronize waits until the work before the event is done.
func (e *TimingEvent) Synchronize() error {
	c, err := e.dev.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symEventSynchronize, e.handle)
}

// Since is the time the device took from start to e, both of which must be
// done. The driver measures in steps of about half a microsecond.
func (e *TimingEvent) Since(start *TimingEvent) (time.Duration, error) {
	c, err := e.dev.enterRelaxed()
	if err != nil {
		return 0, err
	}
	defer c.leave()
	if err := c.do(symEventElapsedTime, c.out(unsafe.Pointer(&c.f)), start.handle, e.handle); err != nil {
		return 0, err
	}
	return time.Duration(float64(c.f) * float64(time.Millisecond)), nil
}

// Close gives the event back.
func (e *TimingEvent) Close() error {
	c, err := e.dev.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symEventDestroy, e.handle)
}

package main

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

// shadow is a device that gives the engine the recorded addresses and does
// everything it is asked on the real device too, at the real addresses. With
// it ties fall as they fell in the recording; if all is identical then, the
// order of addresses was the only thing that differed.
type shadow struct {
	*recorded.Driver
	dev     *ledger
	streams map[uint64]uint64
	places  pairing
	events  map[driver.Event]driver.Event
}

func newShadow(answers *recorded.Driver, dev *ledger, streams map[uint64]uint64) *shadow {
	return &shadow{Driver: answers, dev: dev, streams: streams, events: map[driver.Event]driver.Event{}}
}

// failed makes a failure of the real device visible as such: an engine that
// took it for a lack of memory would go on.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("on the device, %s: %v", doing, err)
}

func (d *shadow) real(addr uint64) (uint64, error) {
	at, ok := d.places.toDev(addr)
	if !ok {
		return 0, fmt.Errorf("no memory of the device stands for the recorded address %#x", addr)
	}
	return at, nil
}

func (d *shadow) Malloc(size, stream uint64) (uint64, error) {
	return d.get("getting a segment", size, stream, d.Driver.Malloc, d.dev.Malloc)
}

func (d *shadow) Free(addr, size uint64) error {
	return d.giveBack("giving a segment back", addr, size, d.Driver.Free, d.dev.Free)
}

func (d *shadow) Reserve(size, stream uint64) (uint64, error) {
	return d.get("reserving addresses", size, stream, d.Driver.Reserve, d.dev.Reserve)
}

func (d *shadow) Unreserve(addr, size uint64) error {
	return d.giveBack("giving addresses back", addr, size, d.Driver.Unreserve, d.dev.Unreserve)
}

// get asks the recording and the device and pairs their addresses.
func (d *shadow) get(doing string, size, stream uint64, recorded, real func(size, stream uint64) (uint64, error)) (uint64, error) {
	addr, err := recorded(size, stream)
	if err != nil {
		return 0, err
	}
	at, err := real(size, d.streams[stream])
	if err != nil {
		return 0, failed(doing, err)
	}
	d.places.add(addr, at, size)
	return addr, nil
}

// giveBack undoes get.
func (d *shadow) giveBack(doing string, addr, size uint64, recorded, real func(addr, size uint64) error) error {
	at, err := d.real(addr)
	if err != nil {
		return err
	}
	if err := real(at, size); err != nil {
		return failed(doing, err)
	}
	d.places.remove(addr)
	return recorded(addr, size)
}

func (d *shadow) Map(addr, size, granule uint64) error {
	if err := d.Driver.Map(addr, size, granule); err != nil {
		return err
	}
	at, err := d.real(addr)
	if err != nil {
		return err
	}
	return failed("mapping", d.dev.Map(at, size, granule))
}

func (d *shadow) Unmap(addr, size, granule, stream uint64) error {
	at, err := d.real(addr)
	if err != nil {
		return err
	}
	if err := d.dev.Unmap(at, size, granule, d.streams[stream]); err != nil {
		return failed("unmapping", err)
	}
	return d.Driver.Unmap(addr, size, granule, stream)
}

func (d *shadow) RecordEvent(stream, addr uint64) (driver.Event, error) {
	ev, err := d.Driver.RecordEvent(stream, addr)
	if err != nil {
		return 0, err
	}
	at, err := d.real(addr)
	if err != nil {
		return 0, err
	}
	if d.events[ev], err = d.dev.RecordEvent(d.streams[stream], at); err != nil {
		return 0, failed("recording an event", err)
	}
	return ev, nil
}

func (d *shadow) EventDone(ev driver.Event) (bool, error) {
	done, err := d.Driver.EventDone(ev)
	if done && err == nil {
		err = d.wait(ev)
	}
	return done, err
}

func (d *shadow) WaitEvent(ev driver.Event) error {
	if err := d.wait(ev); err != nil {
		return err
	}
	return d.Driver.WaitEvent(ev)
}

func (d *shadow) wait(ev driver.Event) error {
	real := d.events[ev]
	delete(d.events, ev)
	return failed("waiting for an event", d.dev.WaitEvent(real))
}

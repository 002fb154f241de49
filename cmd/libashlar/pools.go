package main

import (
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
)

// beginPool directs the requests of the streams that accept names to a pool.
// Several captures may share one, one after another; each is released by
// itself.
func (l *library) beginPool(n int, id alloc.PoolID, accept func(stream uint64) bool) error {
	if id == (alloc.PoolID{}) {
		return fmt.Errorf("pool %v is the default pool: captures need one of their own", id)
	}
	if _, err := l.device(n); err != nil {
		return err
	}
	// Before the first slot knows of it: from here on nothing moves, and what moves
	// now is waited for. Nor is there a new slot.
	l.mu.Lock()
	l.recording.Add(1)
	l.captured.Add(1)
	all, err := l.ofDevice(n)
	l.mu.Unlock()
	for _, d := range all {
		err = errors.Join(err, d.beginPool(id, accept))
	}
	if err != nil {
		l.recording.Add(-1)
	}
	return err
}

// beginPool does so for one tenant: nobody knows yet which streams a capture will
// have.
func (d *device) beginPool(id alloc.PoolID, accept func(stream uint64) bool) error {
	return d.withFrontOff(d.lib.frontCache(), func() error {
		c, err := d.alloc.BeginCapture(id, accept)
		if err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.captures[id] = append(d.captures[id], c)
		return nil
	})
}

// endPool stops directing requests to the pool.
func (l *library) endPool(n int, id alloc.PoolID) error {
	all, err := l.ofDevice(n)
	for _, d := range all {
		c := d.newest(id)
		switch {
		case c != nil:
			ended := d.withFrontOff(l.frontCache(), c.End)
			if ended == nil && d.index == n {
				l.recording.Add(-1)
			}
			err = errors.Join(err, ended)
		case d.index == n: // a tenant may be younger than the pool
			return &alloc.PoolError{ID: id, Problem: "does not receive allocations"}
		}
	}
	return err
}

// newest is the capture that was begun last for a pool: only that one can be
// the one that receives allocations.
func (d *device) newest(id alloc.PoolID) *alloc.Capture {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.captures[id]
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// releasePool pays back one beginPool. After the last one the pool's memory may
// be released.
func (l *library) releasePool(n int, id alloc.PoolID) error {
	all, err := l.ofDevice(n)
	for _, d := range all {
		err = errors.Join(err, d.releasePool(id))
	}
	return err
}

func (d *device) releasePool(id alloc.PoolID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.captures[id]
	if len(list) == 0 {
		if d.index != d.number {
			return nil // a tenant that is younger than the pool
		}
		return &alloc.PoolError{ID: id, Problem: "is not held by an ended capture"}
	}
	if err := list[0].Release(); err != nil {
		return err
	}
	if len(list) == 1 {
		delete(d.captures, id)
		return nil
	}
	d.captures[id] = list[1:]
	return nil
}

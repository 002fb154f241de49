package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// streamTable knows the streams that NewStream made. One that is closed is
// parked and not destroyed: the allocator may still name it, for a block that
// was used on it, and the driver must not be given the handle of a stream that
// is gone, which may even be somebody else's by then. NewStream hands parked
// streams out again.
type streamTable struct {
	parkedNow atomic.Int32 // how many; the one thing that queueing work looks at
	mu        sync.Mutex
	open      map[uint64]struct{}
	parked    []uint64
}

// reuse takes the stream that was parked last.
func (t *streamTable) reuse() (stream uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.parked)
	if n == 0 {
		return 0, false
	}
	stream = t.parked[n-1]
	t.parked = t.parked[:n-1]
	t.parkedNow.Add(-1)
	t.open[stream] = struct{}{}
	return stream, true
}

// add notes a new stream.
func (t *streamTable) add(stream uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[uint64]struct{}{}
	}
	t.open[stream] = struct{}{}
}

// park keeps an open stream for the next who wants one. It reports whose the
// stream was before.
func (t *streamTable) park(stream uint64) owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.open[stream]; !ok {
		if slices.Contains(t.parked, stream) {
			return nobody
		}
		return others
	}
	delete(t.open, stream)
	t.parked = append(t.parked, stream)
	t.parkedNow.Add(1)
	return caller
}

// owner says who may queue work on a stream.
type owner int

const (
	caller owner = iota // who got it from NewStream
	nobody              // it is parked
	others              // it was not made here
)

// closed reports whether the stream is parked. Where none is it costs a load.
func (t *streamTable) closed(stream uint64) bool {
	if t.parkedNow.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.parked, stream)
}

// enterFor is enter for calls that queue work: a stream that CloseStream has
// closed takes none.
func (d *Device) enterFor(stream uint64) (*call, error) {
	if d.streams.closed(stream) {
		return nil, fmt.Errorf("stream %#x: %w", stream, ErrStreamClosed)
	}
	return d.enter()
}

// NewStream makes a stream that does not wait for stream 0, or takes one that
// was closed.
func (d *Device) NewStream() (uint64, error) {
	const nonBlocking = 1
	c, err := d.enterRelaxed()
	if err != nil {
		return 0, err
	}
	defer c.leave()
	if stream, ok := d.streams.reuse(); ok {
		return stream, nil
	}
	if err := c.do(symStreamCreate, c.out(unsafe.Pointer(&c.a)), nonBlocking); err != nil {
		return 0, err
	}
	d.streams.add(c.a)
	return c.a, nil
}

// CloseStream waits for the work of a stream and reports what went wrong in
// it. The stream takes no more work then; the device keeps it for the next
// NewStream. While it is being captured it stays open, and the error is
// [ErrCapturing]. A stream that others made is destroyed: nobody may name it
// afterwards, so no block used on it may still be allocated.
func (d *Device) CloseStream(stream uint64) error {
	if stream == 0 {
		return errors.New("CloseStream: stream 0 always exists")
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	if err = c.synchronize(stream); errors.Is(err, ErrCapturing) {
		return err
	}
	switch d.streams.park(stream) {
	case nobody:
		return fmt.Errorf("CloseStream: stream %#x: %w", stream, ErrStreamClosed)
	case others:
		if err == nil {
			err = c.do(symStreamDestroy, uintptr(stream))
		}
	}
	return err
}

// closeStreams destroys the streams that are parked. Those that are open end
// with the context.
func (d *Device) closeStreams() error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	t := &d.streams
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []error
	for _, s := range t.parked {
		all = append(all, c.do(symStreamDestroy, uintptr(s)))
	}
	t.parked = nil
	t.parkedNow.Store(0)
	return errors.Join(all...)
}

// Synchronize waits until all work queued on stream is done. While stream is
// being captured it returns [ErrCapturing].
func (d *Device) Synchronize(stream uint64) error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.synchronize(stream)
}

// synchronize waits for a stream, unless it is being captured: asking to wait
// for it then would end the capture.
func (c *call) synchronize(stream uint64) error {
	capturing, err := c.capturing(stream)
	if err != nil {
		return err
	}
	if capturing {
		return fmt.Errorf("stream %#x: %w; wait until the capture has ended", stream, ErrCapturing)
	}
	return c.do(symStreamSynchronize, uintptr(stream))
}

// capturing reports whether the stream takes part in a capture, valid or not.
// Stream 0 does when it would have to wait for one that does.
func (c *call) capturing(stream uint64) (bool, error) {
	c.i = 0
	switch code := c.raw(symStreamIsCapturing, uintptr(stream), c.out(unsafe.Pointer(&c.i))); code {
	case 0:
		return c.i != 0, nil
	case codeCaptureImplicit:
		return true, nil
	default:
		return false, c.lib.fail(symStreamIsCapturing, code)
	}
}

package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// NewStream makes a stream that does not wait for stream 0.
func (d *Device) NewStream() (uint64, error) {
	const nonBlocking = 1
	c, err := d.enterRelaxed()
	if err != nil {
		return 0, err
	}
	defer c.leave()
	if err := c.do(symStreamCreate, c.out(unsafe.Pointer(&c.a)), nonBlocking); err != nil {
		return 0, err
	}
	return c.a, nil
}

// CloseStream ends a stream. It does not wait: what is queued is still done.
func (d *Device) CloseStream(stream uint64) error {
	if stream == 0 {
		return errors.New("CloseStream: stream 0 always exists")
	}
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symStreamDestroy, uintptr(stream))
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

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"
)

// CaptureMode says which calls of other threads would break a capture.
type CaptureMode int

// The capture modes, with the driver's numbers. PyTorch captures in
// CaptureGlobal unless told otherwise.
const (
	CaptureGlobal      CaptureMode = 0 // unsafe calls of any thread
	CaptureThreadLocal CaptureMode = 1 // unsafe calls of the capturing thread
	CaptureRelaxed     CaptureMode = captureRelaxed
)

// Graph is captured work, ready to be launched.
type Graph struct {
	dev         *Device
	graph, exec uintptr
}

// BeginCapture lets work queued on stream be collected instead of done. In
// every mode but CaptureRelaxed the capture must end on the thread that began
// it: the goroutine must stay on it ([Device.Bind]).
func (d *Device) BeginCapture(stream uint64, mode CaptureMode) error {
	c, err := d.enterFor(stream)
	if err != nil {
		return err
	}
	defer c.leave()
	d.captures.add(stream)
	err = c.do(symStreamBeginCapture, uintptr(stream), uintptr(mode))
	if err != nil {
		d.captures.remove(stream)
	}
	return err
}

// captureTable has the streams whose captures BeginCapture began. A wait for the
// whole device breaks captures, and no call of the driver tells whether there are any.
type captureTable struct {
	mu      sync.Mutex
	streams []uint64
}

func (t *captureTable) add(stream uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams = append(t.streams, stream)
}

func (t *captureTable) list() []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.streams)
}

func (t *captureTable) remove(stream uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.streams, stream); i >= 0 {
		t.streams = slices.Delete(t.streams, i, i+1)
	}
}

// SynchronizeDevice waits for all work of all streams of the context. While a capture
// that BeginCapture began goes on, or one of a stream that stream 0 waits for, it
// returns [ErrCapturing] and the capture goes on. The driver tells of no others: their
// owner must not call this meanwhile, it would break them, and the error is
// ErrCapturing too.
func (d *Device) SynchronizeDevice() error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	for _, s := range append(d.captures.list(), 0) {
		capturing, err := c.capturing(s)
		if err != nil {
			return err
		}
		if capturing {
			return fmt.Errorf("the whole device cannot be waited for: stream %#x: %w; wait until the capture has ended", s, ErrCapturing)
		}
		d.captures.remove(s) // it was broken, or ended elsewhere
	}
	err = c.do(symCtxSynchronize)
	var e *Error
	if errors.As(err, &e) && e.Code == codeCaptureUnsupported {
		return fmt.Errorf("%w: %w", ErrCapturing, err)
	}
	return err
}

// EndCapture ends the capture and makes a graph of what was collected.
func (d *Device) EndCapture(stream uint64) (*Graph, error) {
	c, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer c.leave()
	if err := c.do(symStreamEndCapture, uintptr(stream), c.out(unsafe.Pointer(&c.a))); err != nil {
		return nil, err
	}
	d.captures.remove(stream)
	g := &Graph{dev: d, graph: uintptr(c.a)}
	if err := c.do(symGraphInstantiateWithFlags, c.out(unsafe.Pointer(&c.a)), g.graph, 0); err != nil {
		_ = c.do(symGraphDestroy, g.graph)
		return nil, err
	}
	g.exec = uintptr(c.a)
	return g, nil
}

// Capturing reports whether the stream takes part in a capture. Stream 0 does
// when it would have to wait for a stream that does.
func (d *Device) Capturing(stream uint64) (bool, error) {
	c, err := d.enter()
	if err != nil {
		return false, err
	}
	defer c.leave()
	return c.capturing(stream)
}

// Launch queues the captured work on stream.
func (g *Graph) Launch(stream uint64) error {
	c, err := g.dev.enterFor(stream)
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symGraphLaunch, g.exec, uintptr(stream))
}

// Close gives the graph back.
func (g *Graph) Close() error {
	c, err := g.dev.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	err = c.do(symGraphExecDestroy, g.exec)
	if e := c.do(symGraphDestroy, g.graph); err == nil {
		err = e
	}
	return err
}

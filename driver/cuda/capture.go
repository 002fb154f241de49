package cuda

import "unsafe"

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
	return c.do(symStreamBeginCapture, uintptr(stream), uintptr(mode))
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

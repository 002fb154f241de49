package driver

// Passing passes all calls on to a driver, those of the optional interfaces of engines
// too: without them in the driver it does what the engine does without them.
// Drivers over other drivers embed it.
type Passing struct{ Driver }

var (
	_ Sequencer      = Passing{}
	_ CaptureTracker = Passing{}
	_ ProcessLister  = Passing{}
)

// Sequence reorders addresses if the driver does.
func (p Passing) Sequence(addrs []uint64) {
	if s, ok := p.Driver.(Sequencer); ok {
		s.Sequence(addrs)
	}
}

// Mark notes a block if the driver looks into captures.
func (p Passing) Mark(addr uint64, streams []uint64) {
	if t, ok := p.Driver.(CaptureTracker); ok {
		t.Mark(addr, streams)
	}
}

// Passed reports whether the driver says so; one that does not look into captures
// never does.
func (p Passing) Passed(stream, addr uint64) bool {
	t, ok := p.Driver.(CaptureTracker)
	return ok && t.Passed(stream, addr)
}

// Processes lists nothing if the driver does not.
func (p Passing) Processes() ([]Process, error) {
	if l, ok := p.Driver.(ProcessLister); ok {
		return l.Processes()
	}
	return nil, nil
}

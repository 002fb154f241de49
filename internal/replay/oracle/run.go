package oracle

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

// run drives the operations of a recording through an allocator whose device
// is the recorded one.
type run struct {
	*Performer
	dev *recorded.Driver
}

// newRun sets the allocator up; observe is called for every event. waited is
// passed to the device, which wrap, if it is not nil, dresses up as another.
func newRun(rec *Recording, waited []int, wrap func(*recorded.Driver) driver.Driver, observe func(alloc.Event)) (*run, error) {
	dev := recorded.New(recorded.Config{TotalMemory: rec.TotalMemory, Events: recorded.List(rec.Trace), Waited: waited})
	var d driver.Driver = dev
	if wrap != nil {
		d = wrap(dev)
	}
	a, err := rec.Allocator(d, alloc.WithObserver(func(e alloc.Event) {
		observe(e)
		dev.Advance()
	}))
	if err != nil {
		return nil, err
	}
	p, err := NewPerformer(rec, a, rec.Streams)
	return &run{p, dev}, err
}

// do performs operation i. For an allocation it returns the address.
func (r *run) do(i int) (uint64, error) {
	r.dev.BeginOp(i)
	return r.Do(i)
}

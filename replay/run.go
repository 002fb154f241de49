package replay

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/recorded"
	"github.com/ashlar-mem/ashlar/settings"
)

// run drives the operations of a recording through an allocator whose device
// is the recorded one.
type run struct {
	rec *Recording
	dev *recorded.Driver
	a   *alloc.Allocator

	tensors map[uint64]uint64 // number -> address
	pools   map[uint64]*alloc.MemPool
	graphs  map[uint64]*alloc.Capture

	seeded  bool   // a capture has been made before
	scratch uint64 // tensor that lives as long as the running capture
}

// What a capture allocates besides the recorded operations (spec 5.7): two
// tensors of the random number generator, once per process, and one tensor
// that the recorder itself made inside.
const (
	generatorTensors = 2
	generatorBytes   = 8
	scratchBytes     = 4096
)

// newRun sets the allocator up; observe is called for every event. waited is
// passed to the device.
func newRun(rec *Recording, waited []int, observe func(alloc.Event)) (*run, error) {
	conf, err := settings.Parse(rec.Conf)
	if err != nil {
		return nil, fmt.Errorf("settings %q: %w", rec.Conf, err)
	}
	r := &run{
		rec:     rec,
		dev:     recorded.New(recorded.Config{TotalMemory: rec.TotalMemory, Events: recorded.List(rec.Trace), Waited: waited}),
		tensors: map[uint64]uint64{},
		pools:   map[uint64]*alloc.MemPool{},
		graphs:  map[uint64]*alloc.Capture{},
	}
	r.a = alloc.New(r.dev, alloc.WithSettings(conf), alloc.WithObserver(func(e alloc.Event) {
		observe(e)
		r.dev.Advance()
	}))
	if rec.Fraction >= 0 {
		if err := r.a.SetMemoryFraction(rec.Fraction); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// do performs operation i. For an allocation it returns the address.
func (r *run) do(i int) (uint64, error) {
	r.dev.BeginOp(i)
	op := &r.rec.Ops[i]
	switch op.Kind {
	case OpAlloc:
		addr, err := r.a.Malloc(op.Size, r.rec.Streams[op.Stream])
		if err == nil {
			r.tensors[op.ID] = addr
		}
		return addr, err
	case OpFree:
		addr := r.tensors[op.ID]
		delete(r.tensors, op.ID)
		return 0, r.a.Free(addr)
	case OpRecordStream:
		return 0, r.a.RecordStream(r.tensors[op.ID], r.rec.Streams[op.Stream])
	case OpEmptyCache:
		return 0, r.a.EmptyCache()
	case OpNewPool:
		return 0, r.newPool(op)
	case OpEnterPool:
		return 0, r.pools[op.ID].Begin(0)
	case OpExitPool:
		return 0, r.pools[op.ID].End()
	case OpDeletePool:
		p := r.pools[op.ID]
		delete(r.pools, op.ID)
		return 0, p.Close()
	case OpBeginCapture:
		return 0, r.beginCapture(op)
	case OpEndCapture:
		return 0, r.endCapture(op)
	case OpDeleteGraph:
		g := r.graphs[op.ID]
		delete(r.graphs, op.ID)
		return 0, g.Release()
	case OpConfigure:
		return 0, r.a.Configure(op.Text)
	case OpFraction:
		return 0, r.a.SetMemoryFraction(op.Fraction)
	}
	return 0, nil // OpSynchronize, OpEnd, OpException: nothing is asked of the allocator
}

func (r *run) newPool(op *Op) error {
	p, err := r.a.NewMemPool(alloc.MemPoolOptions{UseOnOOM: op.Text == "oom", NoSplit: op.Text == "nosplit"})
	if err != nil {
		return err
	}
	r.pools[op.ID] = p
	return nil
}

func (r *run) beginCapture(op *Op) error {
	stream := r.rec.Streams[captureStream]
	if !r.seeded {
		r.seeded = true
		for range generatorTensors {
			if _, err := r.a.Malloc(generatorBytes, stream); err != nil {
				return err
			}
		}
	}
	var pool alloc.PoolID
	if op.Shared {
		pool = r.graphs[op.Share].Pool()
	}
	joined := r.rec.Streams[joinedStream]
	g, err := r.a.BeginCapture(pool, func(s uint64) bool { return s == stream || s == joined })
	if err != nil {
		return err
	}
	r.graphs[op.ID] = g
	r.scratch, err = r.a.Malloc(scratchBytes, stream)
	return err
}

func (r *run) endCapture(op *Op) error {
	if err := r.a.Free(r.scratch); err != nil {
		return err
	}
	return r.graphs[op.ID].End()
}

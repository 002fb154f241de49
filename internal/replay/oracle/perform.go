package oracle

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/settings"
)

// Allocator makes an allocator over a device as the recorded run had one: with
// the rules of its PyTorch, its settings and its memory fraction. The fraction is one of the total
// memory that d reports, which need not be the recorded device's.
func (rec *Recording) Allocator(d driver.Driver, opts ...alloc.Option) (*alloc.Allocator, error) {
	conf, err := settings.Parse(rec.Conf)
	if err != nil {
		return nil, fmt.Errorf("settings %q: %w", rec.Conf, err)
	}
	a := alloc.New(d, append([]alloc.Option{alloc.WithSettings(conf), alloc.WithVersion(rec.Version())}, opts...)...)
	if rec.Fraction >= 0 {
		if err := a.SetMemoryFraction(rec.Fraction); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Performer makes the calls that the operations of a recording stand for, on
// any allocator.
type Performer struct {
	rec       *Recording
	allocator *alloc.Allocator
	streams   []uint64 // handles, by position

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

// NewPerformer makes a Performer for an allocator in its first state. Streams
// are the handles that stand for the recorded ones, by position; there must be
// as many.
func NewPerformer(rec *Recording, a *alloc.Allocator, streams []uint64) (*Performer, error) {
	if len(streams) != len(rec.Streams) {
		return nil, fmt.Errorf("%d streams given for the %d of the recording", len(streams), len(rec.Streams))
	}
	return &Performer{
		rec: rec, allocator: a, streams: streams,
		tensors: map[uint64]uint64{}, pools: map[uint64]*alloc.MemPool{}, graphs: map[uint64]*alloc.Capture{},
	}, nil
}

// Do performs operation i; the operations are done in order, each once. For an
// allocation it returns the address.
func (p *Performer) Do(i int) (uint64, error) {
	op := &p.rec.Ops[i]
	switch op.Kind {
	case OpAlloc:
		addr, err := p.allocator.Malloc(op.Size, p.streams[op.Stream])
		if err == nil {
			p.tensors[op.ID] = addr
		}
		return addr, err
	case OpFree:
		addr := p.tensors[op.ID]
		delete(p.tensors, op.ID)
		return 0, p.allocator.Free(addr)
	case OpRecordStream:
		return 0, p.allocator.RecordStream(p.tensors[op.ID], p.streams[op.Stream])
	case OpEmptyCache:
		return 0, p.allocator.EmptyCache()
	case OpNewPool:
		return 0, p.newPool(op)
	case OpEnterPool:
		return 0, p.pools[op.ID].Begin(0)
	case OpExitPool:
		return 0, p.pools[op.ID].End()
	case OpDeletePool:
		pool := p.pools[op.ID]
		delete(p.pools, op.ID)
		return 0, pool.Close()
	case OpBeginCapture:
		return 0, p.beginCapture(op)
	case OpEndCapture:
		return 0, p.endCapture(op)
	case OpDeleteGraph:
		g := p.graphs[op.ID]
		delete(p.graphs, op.ID)
		return 0, g.Release()
	case OpConfigure:
		return 0, p.allocator.Configure(op.Text)
	case OpFraction:
		return 0, p.allocator.SetMemoryFraction(op.Fraction)
	}
	return 0, nil // OpSynchronize, OpEnd, OpException: nothing is asked of the allocator
}

func (p *Performer) newPool(op *Op) error {
	pool, err := p.allocator.NewMemPool(alloc.MemPoolOptions{UseOnOOM: op.Text == "oom", NoSplit: op.Text == "nosplit"})
	if err != nil {
		return err
	}
	p.pools[op.ID] = pool
	return nil
}

func (p *Performer) beginCapture(op *Op) error {
	stream := p.streams[captureStream]
	if !p.seeded {
		p.seeded = true
		for range generatorTensors {
			if _, err := p.allocator.Malloc(generatorBytes, stream); err != nil {
				return err
			}
		}
	}
	var pool alloc.PoolID
	if op.Shared {
		pool = p.graphs[op.Share].Pool()
	}
	joined := p.streams[joinedStream]
	g, err := p.allocator.BeginCapture(pool, func(s uint64) bool { return s == stream || s == joined })
	if err != nil {
		return err
	}
	p.graphs[op.ID] = g
	p.scratch, err = p.allocator.Malloc(scratchBytes, stream)
	return err
}

func (p *Performer) endCapture(op *Op) error {
	if err := p.allocator.Free(p.scratch); err != nil {
		return err
	}
	return p.graphs[op.ID].End()
}

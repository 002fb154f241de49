package replay

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

// CallKind is what a call of a [Program] does.
type CallKind uint8

// The calls that a trace shows.
const (
	CallAlloc      CallKind = iota // allocate a tensor
	CallFree                       // free it
	CallFreeLater                  // free it while another stream still uses it
	CallComplete                   // that stream is done with it
	CallTry                        // a request that failed in the recording
	CallEmptyCache                 // empty_cache()
	CallClosePool                  // a private pool is deleted
	CallSnapshot                   // a snapshot was taken
)

// Call is one call of the allocator.
type Call struct {
	Kind   CallKind
	Tensor int // what is allocated or freed; -1 if nothing is
	Size   uint64
	Stream uint64 // CallFreeLater and CallComplete have the number of a made-up one
	Pool   alloc.PoolID
	Event  int // that shows the call in the trace
}

// Program has the calls that a trace shows: a run without the answers of its
// allocator and its driver. It can run again under other settings, limits and
// devices.
//
// Running a Program does not change it; several goroutines may run it at once.
type Program struct {
	Trace *trace.Trace
	// Check says how well the engine reproduces the trace under its own settings;
	// nil if that was not asked for. The check also decides the pools of calls
	// and which releases are an empty_cache, as far as it went.
	Check *Result
	Start *start.State
	// Settings are those of the recording, or the defaults if it has none.
	Settings settings.Settings
	// Version is the release of PyTorch whose rules the program runs under; 0 is
	// [pytorch.Default].
	Version pytorch.Version
	// Ignored counts events that contradict the ones before them.
	Ignored int

	calls    []packed
	events   []int32 // call -> event
	early    int     // the number of calls that Early moved to the front
	places   []place
	tensors  int
	initial  []alloc.Segment   // Start.Segments, moved to where driver/sim has addresses
	reserved []alloc.Span      // of expandable segments, moved likewise
	order    map[uint64]uint32 // of the objects in initial, by address
	first    []uint64          // tensor -> address of its block in initial
	follow   []sim.Placement
	memory   uint64 // the device's, as far as it shows
	waits    int    // made-up streams for frees that are completed later
	freed    []wait // frees that were requested before the first call
	started  bool   // see Started
	external []ExternalRange
}

// packed is a Call: the kind in the lowest byte of where, above it the place
// or the made-up stream.
type packed struct {
	size   uint64
	tensor int32
	where  uint32
}

type place struct {
	stream uint64
	pool   alloc.PoolID
}

// wait is a tensor whose free waits for a made-up stream.
type wait struct {
	tensor int32
	stream int
}

const (
	kindBits  = 8
	maxPlaces = 1 << (32 - kindBits)
)

func (c packed) kind() CallKind { return CallKind(c.where & (1<<kindBits - 1)) }

func (c packed) placeOrStream() int { return int(c.where >> kindBits) }

// Len returns the number of calls.
func (p *Program) Len() int { return len(p.calls) }

// Tensors returns the number of tensors that calls name. Those allocated before
// the first call come first.
func (p *Program) Tensors() int { return p.tensors }

// Initial returns the number of tensors allocated before the first call.
func (p *Program) Initial() int { return len(p.first) }

// Call returns call i.
func (p *Program) Call(i int) Call {
	c := p.calls[i]
	out := Call{Kind: c.kind(), Tensor: int(c.tensor), Size: c.size, Event: int(p.events[i])}
	switch out.Kind {
	case CallAlloc, CallTry, CallClosePool:
		at := p.places[c.placeOrStream()]
		out.Stream, out.Pool = at.stream, at.pool
	case CallFreeLater, CallComplete:
		out.Stream = uint64(c.placeOrStream())
	}
	return out
}

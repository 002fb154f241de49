package verify

import (
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

// ReadProgram reads the calls off a trace as they stand, without a replay.
func ReadProgram(t *trace.Trace) *replay.Program {
	v := newVerifier(t, Options{})
	return v.reading(&player{config: v.config, pools: v.config.pools}).program()
}

// reading is how a replay took the events of a trace: what is needed to read
// the calls off them.
type reading struct {
	trace    *trace.Trace
	start    *start.State
	settings settings.Settings
	version  pytorch.Version
	numbers  map[uint64]uint32
	rows     *rows
	memory   uint64
	reserved []alloc.Span

	pos     int // up to here a replay decided; the rest is read as it stands
	pools   *poolMap
	waited  []int
	flushes []int32
	routed  map[int32]alloc.PoolID
}

func (v *verifier) reading(p *player) *reading {
	return &reading{
		trace: v.trace, start: v.start, settings: v.settings, version: p.config.version, numbers: p.numbers, rows: v.rows, memory: p.config.total, reserved: p.config.reserved,
		pos: p.pos, pools: p.pools, waited: p.config.waited, flushes: p.flushes, routed: p.routed,
	}
}

// program returns the calls of the trace.
func (g *reading) program() *replay.Program {
	r := reader{reading: g, live: map[uint64]int32{}, pending: map[uint64]wait{}}
	r.calls = replay.NewBuilder(g.trace, g.start, g.settings, r.count())
	r.begin()
	for i := 0; i < r.rows.Len(); {
		i = r.call(i)
	}
	p := r.calls.Program(replay.Device{Memory: g.memory, Reserved: g.reserved, Segments: r.placements(), Order: g.numbers})
	p.Ignored, p.Version = r.ignored, g.version
	return p
}

// reader turns the rows of a trace into calls.
type reader struct {
	*reading
	calls   *replay.Builder
	tensors int32
	live    map[uint64]int32
	pending map[uint64]wait
	waits   uint64   // made-up streams for frees that are completed later
	idle    []uint64 // those that nobody waits for
	flushed int      // entries of flushes used
	ignored int
}

// wait is a tensor whose free waits for a made-up stream.
type wait struct {
	tensor int32
	stream uint64
}

// count returns how many calls there will be, but for a few.
func (r *reader) count() int {
	n := len(r.flushes)
	for i := range r.rows.Len() {
		switch a := r.rows.Action(i); {
		case isCall(a):
			n++
		case a == alloc.ActionFreeCompleted && (i == 0 || r.rows.addr(i-1) != r.rows.addr(i)):
			n++
		}
	}
	return n
}

// begin names the blocks that are there before the first event.
func (r *reader) begin() {
	for i := range r.start.Segments {
		for _, block := range r.start.Segments[i].Blocks {
			tensor := r.tensor()
			if block.State != alloc.ActivePendingFree || block.Address == r.rows.cutFree() {
				r.live[block.Address] = tensor
				continue
			}
			r.pending[block.Address] = wait{tensor, r.waits}
			r.calls.FreedBefore(int(tensor), int(r.waits))
			r.waits++
		}
	}
}

func (r *reader) tensor() int32 {
	r.tensors++
	return r.tensors - 1
}

// call reads the call whose first row is i, with those that end before it, and
// returns the row behind it.
func (r *reader) call(i int) int {
	end := i
	released := -1
	for end < r.rows.Len() && !isCall(r.rows.Action(end)) {
		if released < 0 && r.rows.isRelease(end) {
			released = end
		}
		end++
	}
	own := i < end && i >= r.pos && r.ownRelease(i, released, end)
	late := r.late(i, end)
	for k := i; k < end; k++ {
		for own || r.flushed < len(r.flushes) && int(r.flushes[r.flushed]) <= k {
			if !own {
				r.flushed++
			}
			own = false
			r.release(k, end)
		}
		if r.rows.Action(k) == alloc.ActionFreeCompleted && k < late {
			r.complete(k, k)
		}
	}
	if end == r.rows.Len() {
		return end
	}
	next := r.request(end)
	for k := late; k < end; k++ {
		if r.rows.Action(k) == alloc.ActionFreeCompleted {
			r.complete(k, end)
		}
	}
	return next
}

// late returns the first row of frees that the call itself waited for: they were
// not complete when it began.
func (r *reader) late(i, end int) int {
	waited := r.waited
	if n, _ := slices.BinarySearch(waited, i); n < len(waited) && waited[n] < end {
		return waited[n]
	}
	return end
}

// request reads the call that a row stands for and returns the row behind it.
func (r *reader) request(end int) int {
	switch r.rows.Action(end) {
	case alloc.ActionAlloc:
		if target, next, ok := r.rows.hinted(end); ok {
			r.alloc(target) // where other settings put it is up to them
			return next
		}
		r.alloc(end)
	case alloc.ActionOOM:
		r.addFailed(end)
	case alloc.ActionFreeRequested:
		return r.free(end)
	case alloc.ActionSnapshot:
		r.add(replay.Call{Kind: replay.CallSnapshot, Tensor: -1}, end)
	}
	return end + 1
}

// ownRelease decides, where no replay did, whether the rows before a call were
// caused by an empty_cache: memory released inside an allocation has its stack.
func (r *reader) ownRelease(i, released, end int) bool {
	if end == r.rows.Len() || !r.rows.isMalloc(end) {
		return true
	}
	if released < 0 {
		return false
	}
	own, its := r.rows.stack(released), r.rows.stack(end)
	return own > trace.EmptyStack && its > trace.EmptyStack && own != its
}

func (r *reader) alloc(row int) {
	if r.size(row) == 0 {
		return
	}
	tensor := r.tensor()
	r.live[r.rows.addr(row)] = tensor
	r.add(replay.Call{Kind: replay.CallAlloc, Tensor: int(tensor), Size: r.size(row), Stream: r.stream(row), Pool: r.pools.poolOf(row)}, row)
}

func (r *reader) size(row int) uint64 { return r.trace.Events.Size.At(r.rows.event(row)) }

func (r *reader) stream(row int) uint64 {
	e := &r.trace.Events
	return e.Streams[e.Stream.At(r.rows.event(row))]
}

// add adds a call that shows in a row.
func (r *reader) add(c replay.Call, row int) {
	c.Event = r.rows.event(row)
	r.calls.Add(c)
}

// addFailed adds a request that failed. The trace does not show what the program
// would have done with the memory.
func (r *reader) addFailed(row int) {
	pool, ok := r.routed[int32(row)]
	if !ok {
		pool = r.pools.poolOf(row)
	}
	r.add(replay.Call{Kind: replay.CallTry, Tensor: -1, Size: r.size(row), Stream: r.stream(row), Pool: pool}, row)
}

// free reads a free and, if it follows at once, its completion.
func (r *reader) free(row int) int {
	addr := r.rows.addr(row)
	tensor, ok := r.live[addr]
	if !ok {
		r.ignored++
		return row + 1
	}
	delete(r.live, addr)
	if r.rows.atOnce(row) {
		r.add(replay.Call{Kind: replay.CallFree, Tensor: int(tensor)}, row)
		return row + 2
	}
	w := wait{tensor, r.waits}
	if n := len(r.idle); n > 0 {
		w.stream, r.idle = r.idle[n-1], r.idle[:n-1]
	} else {
		r.waits++
	}
	r.pending[addr] = w
	r.add(replay.Call{Kind: replay.CallFreeLater, Tensor: int(tensor), Stream: w.stream}, row)
	return row + 1
}

// complete reads the end of a free, which belongs to the call of row at. One
// that was requested before the first event is a free here.
func (r *reader) complete(row, at int) {
	addr := r.rows.addr(row)
	if w, ok := r.pending[addr]; ok {
		delete(r.pending, addr)
		r.idle = append(r.idle, w.stream)
		r.add(replay.Call{Kind: replay.CallComplete, Tensor: int(w.tensor), Stream: w.stream}, at)
		return
	}
	tensor, ok := r.live[addr]
	if !ok {
		r.ignored++
		return
	}
	delete(r.live, addr)
	r.add(replay.Call{Kind: replay.CallFree, Tensor: int(tensor)}, at)
}

// release is an empty_cache, or the end of the private pools whose segments go.
func (r *reader) release(i, end int) {
	var private []alloc.PoolID
	others := false
	for k := i; k < end; k++ {
		if !r.rows.isRelease(k) {
			continue
		}
		id := r.pools.poolOf(k)
		if id == (alloc.PoolID{}) {
			others = true
		} else if len(private) == 0 || private[len(private)-1] != id {
			private = append(private, id)
		}
	}
	for _, id := range private {
		r.add(replay.Call{Kind: replay.CallClosePool, Tensor: -1, Stream: r.stream(i), Pool: id}, i)
	}
	if others || len(private) != 1 {
		r.add(replay.Call{Kind: replay.CallEmptyCache, Tensor: -1}, i)
	}
}

// placements lists where the recording had its plain segments.
func (r *reader) placements() []sim.Placement {
	var out []sim.Placement
	for i := range r.rows.Len() {
		switch a := r.rows.Action(i); a {
		case alloc.ActionSegmentAlloc, alloc.ActionSegmentFree:
			out = append(out, sim.Placement{Addr: r.rows.addr(i), Size: r.size(i), Freed: a == alloc.ActionSegmentFree})
		}
	}
	return out
}

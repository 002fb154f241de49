package replay

import (
	"context"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
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
	Tensor int // names what is allocated and freed; -1 if the call is about none
	Size   uint64
	Stream uint64
	Pool   alloc.PoolID
	Event  int // of the trace: what the call shows there
}

// Program is what a trace shows of the calls that were made: all that is left
// of a run when the answers of its allocator and its driver are taken away. It
// can be run again under other answers: other settings, limits and devices.
//
// A Program is not changed by running it and may be run by several goroutines
// at once.
type Program struct {
	Trace *trace.Trace
	// Check is how well the engine reproduces the trace under its own settings;
	// nil if that was not asked for. The pools of the calls, and which memory
	// was released by empty_cache, are those of the check as far as it went.
	Check *Result
	Start *Start
	// Settings are those of the recording; Default if it does not tell.
	Settings settings.Settings
	// Ignored counts events that contradict the ones before them.
	Ignored int

	calls    []packed
	events   []int32 // call -> event
	early    int     // so many calls come first that the trace has later, see Early
	places   []place
	tensors  int
	initial  []alloc.Segment // Start.Segments, moved to where driver/sim has addresses
	reserved []alloc.Span    // of expandable segments, moved likewise
	first    []uint64        // tensor -> address of its block in initial
	follow   []sim.Placement
	memory   uint64 // the device's, as far as it shows
	waits    int    // made-up streams for frees that are completed later
	freed    []wait // tensors whose frees were requested before the first call
	started  bool   // see Started
	takings  []Taking
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

const (
	kindBits  = 8
	maxPlaces = 1 << (32 - kindBits)
)

func (c packed) kind() CallKind { return CallKind(c.where & (1<<kindBits - 1)) }

func (c packed) at() int { return int(c.where >> kindBits) }

// ReadProgram reads the calls off a trace as they stand, without a replay.
func ReadProgram(t *trace.Trace) *Program {
	v := newTraceVerifier(t)
	return v.program(&player{pools: v.config.pools})
}

// CheckProgram replays a trace as [VerifyTrace] does and returns the program
// that the replay shows.
func CheckProgram(ctx context.Context, t *trace.Trace) (*Program, error) {
	v := newTraceVerifier(t)
	p, err := v.best(ctx)
	if err != nil {
		return nil, err
	}
	r, err := v.checked(ctx, p)
	if err != nil {
		return nil, err
	}
	out := v.program(p)
	out.Check = r
	return out, nil
}

// program is the calls of the trace by the reading of a player.
func (v *traceVerifier) program(p *player) *Program {
	c := &p.config
	if c.start == nil {
		c = &v.config
	}
	b := builder{
		Program: &Program{Trace: v.t, Start: v.start, Settings: v.settings, memory: c.total, reserved: c.reserved},
		rows:    v.rows, player: p,
		live: map[uint64]int32{}, pending: map[uint64]wait{}, placeIDs: map[place]int{},
	}
	b.begin()
	n := b.count()
	b.calls, b.events = make([]packed, 0, n), make([]int32, 0, n)
	for i := 0; i < b.rows.Len(); {
		i = b.call(i)
	}
	b.placements()
	return b.Program
}

// Len is the number of calls.
func (p *Program) Len() int { return len(p.calls) }

// Tensors is the number of tensors that calls name, those first that are there
// before the first call.
func (p *Program) Tensors() int { return p.tensors }

// Initial is the number of tensors that are there before the first call.
func (p *Program) Initial() int { return len(p.first) }

// Call returns call i.
func (p *Program) Call(i int) Call {
	c := p.calls[i]
	out := Call{Kind: c.kind(), Tensor: int(c.tensor), Size: c.size, Event: int(p.events[i])}
	switch out.Kind {
	case CallAlloc, CallTry, CallClosePool:
		at := p.places[c.at()]
		out.Stream, out.Pool = at.stream, at.pool
	}
	return out
}

// builder turns the rows of a trace into calls.
type builder struct {
	*Program
	rows     *rows
	player   *player // whose reading is followed up to its position
	live     map[uint64]int32
	pending  map[uint64]wait
	idle     []int // made-up streams that nobody waits for
	placeIDs map[place]int
	flushed  int // entries of player.flushes used
}

type wait struct {
	tensor int32
	stream int
}

// count is how many calls there will be, but for a few.
func (b *builder) count() int {
	n := len(b.player.flushes)
	for i := range b.rows.Len() {
		switch a := b.rows.action(i); {
		case isCall(a):
			n++
		case a == alloc.ActionFreeCompleted && (i == 0 || b.rows.addr(i-1) != b.rows.addr(i)):
			n++
		}
	}
	return n
}

// begin names the blocks that are there before the first event.
func (b *builder) begin() {
	for i := range b.Start.Segments {
		for _, block := range b.Start.Segments[i].Blocks {
			tensor := b.tensor()
			b.first = append(b.first, block.Address)
			if block.State != alloc.ActivePendingFree || block.Address == b.rows.cutFree() {
				b.live[block.Address] = tensor
				continue
			}
			w := wait{tensor: tensor, stream: b.waits}
			b.waits++
			b.pending[block.Address] = w
			b.freed = append(b.freed, w)
		}
	}
}

func (b *builder) tensor() int32 {
	b.tensors++
	return int32(b.tensors - 1)
}

// call reads the call whose first row is i, with those that end before it, and
// returns the row behind it.
func (b *builder) call(i int) int {
	end := i
	released := -1
	for end < b.rows.Len() && !isCall(b.rows.action(end)) {
		if released < 0 && b.rows.isRelease(end) {
			released = end
		}
		end++
	}
	own := i < end && i >= b.player.pos && b.ownRelease(i, released, end)
	late := b.late(i, end)
	for k := i; k < end; k++ {
		for own || b.flushed < len(b.player.flushes) && int(b.player.flushes[b.flushed]) <= k {
			if !own {
				b.flushed++
			}
			own = false
			b.release(k, end)
		}
		if b.rows.action(k) == alloc.ActionFreeCompleted && k < late {
			b.complete(k, k)
		}
	}
	if end == b.rows.Len() {
		return end
	}
	next := b.request(end)
	for k := late; k < end; k++ {
		if b.rows.action(k) == alloc.ActionFreeCompleted {
			b.complete(k, end)
		}
	}
	return next
}

// late is the row from which on the frees completed in a call were waited for
// by the call itself: they were not done when it began.
func (b *builder) late(i, end int) int {
	waited := b.player.config.waited
	if n, _ := slices.BinarySearch(waited, i); n < len(waited) && waited[n] < end {
		return waited[n]
	}
	return end
}

// request reads the call that a row stands for and returns the row behind it.
func (b *builder) request(end int) int {
	switch b.rows.action(end) {
	case alloc.ActionAlloc:
		b.alloc(end)
	case alloc.ActionOOM:
		b.try(end)
	case alloc.ActionFreeRequested:
		return b.free(end)
	case alloc.ActionSnapshot:
		b.add(CallSnapshot, -1, 0, 0, end)
	}
	return end + 1
}

// ownRelease decides, where no replay did, whether the rows before a call were
// caused by an empty_cache: memory released inside an allocation has its stack.
func (b *builder) ownRelease(i, released, end int) bool {
	if end == b.rows.Len() || !b.rows.isMalloc(end) {
		return true
	}
	if released < 0 {
		return false
	}
	own, its := b.rows.stack(released), b.rows.stack(end)
	return own > trace.EmptyStack && its > trace.EmptyStack && own != its
}

func (b *builder) add(kind CallKind, tensor int32, size uint64, at, row int) {
	b.calls = append(b.calls, packed{size: size, tensor: tensor, where: uint32(at)<<kindBits | uint32(kind)})
	b.events = append(b.events, int32(b.rows.event(row)))
}

// place is the number of a stream and a pool.
func (b *builder) place(row int, pool alloc.PoolID) int {
	e := &b.Trace.Events
	at := place{e.Streams[e.Stream.At(b.rows.event(row))], pool}
	if n := len(b.calls); n > 0 {
		if last := b.calls[n-1]; last.kind() == CallAlloc && b.places[last.at()] == at {
			return last.at()
		}
	}
	id, ok := b.placeIDs[at]
	if !ok {
		id = min(len(b.places), maxPlaces-1)
		if id == len(b.places) {
			b.places = append(b.places, at)
		}
		b.placeIDs[at] = id
	}
	return id
}

func (b *builder) alloc(row int) {
	if b.size(row) == 0 {
		return
	}
	tensor := b.tensor()
	b.live[b.rows.addr(row)] = tensor
	b.add(CallAlloc, tensor, b.size(row), b.place(row, b.player.pools.at(row)), row)
}

func (b *builder) size(row int) uint64 { return b.Trace.Events.Size.At(b.rows.event(row)) }

// try is a request that failed. What would have been done with the memory the
// trace does not show.
func (b *builder) try(row int) {
	pool, ok := b.player.routed[int32(row)]
	if !ok {
		pool = b.player.pools.at(row)
	}
	b.add(CallTry, -1, b.size(row), b.place(row, pool), row)
}

// free reads a free and, if it follows at once, its completion.
func (b *builder) free(row int) int {
	addr := b.rows.addr(row)
	tensor, ok := b.live[addr]
	if !ok {
		b.Ignored++
		return row + 1
	}
	delete(b.live, addr)
	if b.rows.atOnce(row) {
		b.add(CallFree, tensor, 0, 0, row)
		return row + 2
	}
	w := wait{tensor: tensor, stream: b.waits}
	if n := len(b.idle); n > 0 {
		w.stream, b.idle = b.idle[n-1], b.idle[:n-1]
	} else {
		b.waits++
	}
	b.pending[addr] = w
	b.add(CallFreeLater, tensor, 0, w.stream, row)
	return row + 1
}

// complete reads the end of a free, which belongs to the call of row at. One
// that was requested before the first event is a free here.
func (b *builder) complete(row, at int) {
	addr := b.rows.addr(row)
	if w, ok := b.pending[addr]; ok {
		delete(b.pending, addr)
		b.idle = append(b.idle, w.stream)
		b.add(CallComplete, w.tensor, 0, w.stream, at)
		return
	}
	tensor, ok := b.live[addr]
	if !ok {
		b.Ignored++
		return
	}
	delete(b.live, addr)
	b.add(CallFree, tensor, 0, 0, at)
}

// release is an empty_cache, or the end of the private pools whose segments go.
func (b *builder) release(i, end int) {
	var private []alloc.PoolID
	others := false
	for k := i; k < end; k++ {
		if !b.rows.isRelease(k) {
			continue
		}
		id := b.player.pools.at(k)
		if id == (alloc.PoolID{}) {
			others = true
		} else if len(private) == 0 || private[len(private)-1] != id {
			private = append(private, id)
		}
	}
	for _, id := range private {
		b.add(CallClosePool, -1, 0, b.place(i, id), i)
	}
	if others || len(private) != 1 {
		b.add(CallEmptyCache, -1, 0, 0, i)
	}
}

// placements collects where the recording had its plain segments and moves all
// addresses to where driver/sim has its own.
func (b *builder) placements() {
	plain, mapped := span64{low: math.MaxUint64}, span64{low: math.MaxUint64}
	for i := range b.Start.Segments {
		s := &b.Start.Segments[i]
		if s.Expandable {
			mapped.add(s.Address, s.TotalSize)
		} else {
			plain.add(s.Address, s.TotalSize)
		}
	}
	for _, r := range b.reserved {
		mapped.add(r.Addr, r.Size)
	}
	for i := range b.rows.Len() {
		switch a := b.rows.action(i); a {
		case alloc.ActionSegmentAlloc, alloc.ActionSegmentFree:
			p := sim.Placement{Addr: b.rows.addr(i), Size: b.size(i), Freed: a == alloc.ActionSegmentFree}
			plain.add(p.Addr, p.Size)
			b.follow = append(b.follow, p)
		}
	}
	const unit = 32 << 20
	move := sim.SegmentsEnd - (plain.high+unit-1)/unit*unit
	for i := range b.follow {
		b.follow[i].Addr += move
	}
	moveMapped := uint64(0)
	if mapped.low < sim.RangesBegin || mapped.high > sim.RangesEnd {
		moveMapped = sim.RangesBegin - mapped.low
	}
	b.reserved = slices.Clone(b.reserved)
	for i := range b.reserved {
		b.reserved[i].Addr += moveMapped
	}
	for _, s := range b.Start.Segments {
		by := move
		if s.Expandable {
			by = moveMapped
		}
		blocks := make([]alloc.Block, len(s.Blocks))
		for i, block := range s.Blocks {
			block.Address += by
			blocks[i] = block
		}
		s.Address += by
		s.Blocks = blocks
		b.initial = append(b.initial, s)
	}
	n := 0
	for i := range b.initial {
		for _, block := range b.initial[i].Blocks {
			b.first[n] = block.Address
			n++
		}
	}
}

// span64 is the range that addresses lie in.
type span64 struct{ low, high uint64 }

func (s *span64) add(addr, size uint64) {
	s.low, s.high = min(s.low, addr), max(s.high, addr+size)
}

package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/private"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

// player makes the calls that a trace shows and compares what the engine does
// with it (spec 16): alloc and free_requested are calls; the addresses of
// segments and the completion of pending frees come from the trace; all else
// must come out of the engine.
type player struct {
	trace     *trace.Trace
	rows      *rows
	pools     *poolMap
	config    playConfig
	device    *watched
	allocator *alloc.Allocator

	pos     int    // identical so far
	doing   string // the call being made, and its row
	callRow int
	diff    *replay.Difference
	addrs   []uint64  // that the difference is about
	quiet   bool      // events are not compared: the start is being made
	half    bool      // the next event is not compared: it came before the first row
	guess   *conflict // what the pool inference should look at
	granted uint64    // the engine gave what only a limit below this can have refused; 0: it did not
	flushed bool      // the last call waited for all streams; known if garbage is collected
	waiting map[uint64]uint64
	idle    []uint64 // made-up streams free for use
	made    uint64
	private *private.Pools

	// What the replay decided about the calls; see reading.
	flushes []int32                // rows at which a release of its own begins
	routed  map[int32]alloc.PoolID // failed requests that were made under a route

	order   *startOrder       // nil if nothing of it is left open
	numbers map[uint64]uint32 // object at the start -> its place in the order that was found

	sizes *Sizes // nil if they are not wanted
	ooms  []FreeAtOOM
}

// playConfig is what one attempt at a trace assumes.
type playConfig struct {
	settings settings.Settings
	version  pytorch.Version
	start    *start.State
	total    uint64
	reserved []alloc.Span // the addresses of expandable segments at the start
	memory   *deviceMemory
	limit    uint64 // 0: none; the recorded refusals decide
	atMost   uint64 // the limit is this or less; 0 if unknown
	pools    *poolMap
	waited   []int // see recorded.Config
	sizes    bool  // of blocks are noted
	// unrefused: no limit explains what was refused, so that nothing was, and no
	// allocation released memory on its own account.
	unrefused bool
}

// setDevice sets the size of the device.
func (c *playConfig) setDevice(f *reservations, memory uint64) {
	c.total, c.reserved = memory, f.spans(memory)
}

func newPlayer(r *rows, c playConfig) (*player, error) {
	p := &player{
		trace: r.trace, rows: r, pools: c.pools, config: c,
		waiting: map[uint64]uint64{}, routed: map[int32]alloc.PoolID{},
	}
	p.device = &watched{
		Driver: recorded.New(recorded.Config{TotalMemory: c.total, Events: r, Waited: c.waited}),
		bounds: newBounds(), memory: c.memory, settings: c.settings, rules: alloc.RulesOf(c.settings, c.version), cut: c.start.Kind == start.Rebuilt,
	}
	options := []alloc.Option{alloc.WithDevice(r.trace.Device), alloc.WithSettings(c.settings), alloc.WithVersion(c.version), alloc.WithObserver(p.observe)}
	if c.settings.ExpandableSegments && c.settings.MaxSplitSize != settings.None {
		options = append(options, alloc.WithExplainer(p.device.grown))
	}
	p.allocator = alloc.New(p.device, append(options, p.ordered()...)...)
	p.private = private.New(p.allocator)
	if c.atMost != 0 {
		p.device.high, p.device.sure = c.atMost, c.atMost
	}
	if limit := cmp.Or(c.limit, c.atMost); limit != 0 {
		p.allocator.SetLimit(limit)
	}
	if err := p.allocator.Restore(c.start.Segments, c.reserved...); err != nil {
		return nil, err
	}
	for i := range c.start.Segments {
		s := &c.start.Segments[i]
		p.device.reserved += s.TotalSize
		if err := p.private.Hold(s.Pool); err != nil {
			return nil, err
		}
	}
	if err := p.freeWaiting(); err != nil {
		return nil, err
	}
	if c.sizes {
		before := p.allocator.Serial().Totals()
		p.sizes = &Sizes{events: &r.trace.Events, AllocatedBytes: before.Allocated, ActiveBytes: before.Active}
	}
	return p, nil
}

// freeWaiting frees the blocks whose frees were requested before the first
// event and are completed after it.
func (p *player) freeWaiting() error {
	p.quiet = true
	defer func() { p.quiet = false }()
	for i := range p.config.start.Segments {
		for _, b := range p.config.start.Segments[i].Blocks {
			if b.State == alloc.ActivePendingFree && b.Address != p.rows.cutFree() {
				if err := p.freeLater(b.Address); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// play goes through the whole trace, up to the first difference.
func (p *player) play(ctx context.Context, progress func(done, total int)) error {
	for n := 0; p.pos < p.rows.Len() && p.diff == nil; n++ {
		if n%1024 == 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if progress != nil {
				progress(p.pos, p.rows.Len())
			}
		}
		p.once()
	}
	p.settle()
	return nil
}

// once makes the next call and notes if it did not do what the trace shows.
func (p *player) once() {
	from := p.pos
	collects := p.config.settings.GarbageCollectionThreshold > 0
	p.device.begin()
	var syncs int64
	if collects {
		syncs = p.allocator.Stats().NumSyncAllStreams
	}
	err := p.step()
	p.flushed = collects && p.allocator.Stats().NumSyncAllStreams > syncs
	if p.diff != nil || err == nil && p.pos > from {
		return
	}
	expected := "no further event"
	if p.pos < p.rows.Len() {
		expected = p.rows.At(p.pos).String()
	}
	if err != nil {
		p.note(replay.DiffRefused, "the engine refused the call", expected, err.Error())
		return
	}
	p.note(replay.DiffEvent, "an event is missing", expected, "no event", AddressOf(p.rows.At(from).Action, p.rows.addr(from)))
}

// step makes the call that causes the event at the cursor.
func (p *player) step() error {
	i := p.pos
	if i == 0 && p.rows.cutFree() != 0 {
		p.doing, p.callRow, p.half = "free", 0, true
		return p.allocator.Free(p.rows.addr(0))
	}
	j := i
	for j < p.rows.Len() && !isCall(p.rows.Action(j)) {
		j++
	}
	if j > i && (j == p.rows.Len() || !p.rows.isMalloc(j) || p.flushedBefore(i, j)) {
		p.doing = "empty_cache"
		p.flushes = append(p.flushes, int32(i))
		return p.release(i, j)
	}
	e := p.rows.At(j)
	p.callRow = j
	switch e.Action {
	case alloc.ActionFreeRequested:
		p.doing = "free"
		return p.free(j)
	case alloc.ActionSnapshot:
		p.doing = "snapshot"
		p.allocator.Snapshot()
		return nil
	}
	p.doing = "allocate"
	if target, _, ok := p.rows.hinted(j); ok {
		return p.mallocAt(target)
	}
	return p.malloc(i, j)
}

// flushedBefore decides whether memory released in events i to j, just before
// an allocation, was released by a call of its own and not by the allocation.
// Stacks decide if there are any: a release inside malloc has the allocation's.
// Otherwise an allocation that finds a cached block does not release anything.
func (p *player) flushedBefore(i, j int) bool {
	for k := i; k < j; k++ {
		if !p.rows.isRelease(k) {
			continue
		}
		own, its := p.rows.stack(k), p.rows.stack(j)
		if own > trace.EmptyStack && its > trace.EmptyStack {
			return own != its
		}
		e := p.rows.At(j)
		return p.config.unrefused || p.allocator.Fits(p.pools.poolOf(j), e.Size, e.Stream)
	}
	return false
}

// release empties the cache, or deletes the one pool whose segments go.
func (p *player) release(i, j int) error {
	pools := map[alloc.PoolID]bool{}
	for k := i; k < j; k++ {
		if p.rows.isRelease(k) {
			pools[p.pools.poolOf(k)] = true
		}
	}
	for id := range pools {
		if len(pools) == 1 && p.private.Holds(id) {
			return p.private.Close(id)
		}
		if err := p.private.Release(id); err != nil {
			return err
		}
	}
	return p.allocator.EmptyCache()
}

// free frees a block. If the trace does not complete it at once another stream
// was using it: which one does not matter, each waits on a stream of its own.
func (p *player) free(j int) error {
	addr := p.rows.addr(j)
	atOnce := p.rows.atOnce(j)
	if !atOnce {
		return p.freeLater(addr)
	}
	return p.allocator.Free(addr)
}

// freeLater frees a block that a made-up stream is using.
func (p *player) freeLater(addr uint64) error {
	var stream uint64
	if n := len(p.idle); n > 0 {
		stream, p.idle = p.idle[n-1], p.idle[:n-1]
	} else {
		p.made++
		stream = 1<<63 + p.made
	}
	p.waiting[addr] = stream
	if err := p.allocator.RecordStream(addr, stream); err != nil {
		return err
	}
	return p.allocator.Free(addr)
}

// malloc makes the allocation at event j, whose own events begin at i.
func (p *player) malloc(i, j int) error {
	e := p.rows.At(j)
	pool := p.pools.poolOf(j)
	if e.Action == alloc.ActionOOM && i == j && pool == (alloc.PoolID{}) && p.allocator.Releasable() > 0 {
		// A flush would have released something, and there was none: the
		// request was made under a route (spec 8.4).
		pool = p.pools.last(j)
		p.routed[int32(j)] = pool
	}
	p.device.fails = e.Action == alloc.ActionOOM
	p.device.request = e.Size
	return p.expected(j, p.private.Route(pool, func() error {
		_, err := p.allocator.Malloc(e.Size, e.Stream)
		return err
	}))
}

// mallocAt makes the allocation in a row at the address that it has.
func (p *player) mallocAt(row int) error {
	p.callRow = row
	e := p.rows.At(row)
	return p.private.Route(p.pools.poolOf(row), func() error {
		ok, err := p.allocator.MallocAt(e.Size, e.Stream, e.Addr)
		if err == nil && !ok {
			err = fmt.Errorf("%d bytes at %#x are not free", e.Size, e.Addr)
		}
		return err
	})
}

// maxOOMs bounds how many failed requests are looked at.
const maxOOMs = 1000

// expected lets out-of-memory errors pass: the event in a row shows them.
func (p *player) expected(row int, err error) error {
	if err == nil {
		return nil
	}
	var oom *alloc.OutOfMemoryError
	if !errors.As(err, &oom) {
		return err
	}
	if p.pos > row && len(p.ooms) < maxOOMs {
		p.ooms = append(p.ooms, freeNow(p.allocator, p.rows.event(row)))
	}
	return nil
}

// observe compares an event with the one in the trace.
func (p *player) observe(e alloc.Event) {
	if p.diff != nil || p.quiet {
		return
	}
	if p.half {
		p.half = false // the request came before the first row
		return
	}
	if p.pos == p.rows.Len() {
		p.note(replay.DiffEvent, "an event too many", "no further event", e.String(), AddressOf(e.Action, e.Addr))
		return
	}
	want := p.rows.At(p.pos)
	if want.Action != e.Action || want.Addr != e.Addr || want.Size != e.Size || want.Stream != e.Stream {
		p.note(replay.DiffEvent, "another event", want.String(), e.String(), AddressOf(want.Action, want.Addr), AddressOf(e.Action, e.Addr))
		p.guess = &conflict{at: p.pos, want: want, got: e}
		if e.Action == alloc.ActionAlloc && p.device.unasked {
			p.granted = p.device.reserved + p.device.segment()
		}
		return
	}
	if e.Action == alloc.ActionFreeCompleted {
		if s, ok := p.waiting[e.Addr]; ok {
			delete(p.waiting, e.Addr)
			p.idle = append(p.idle, s)
		}
	}
	p.device.observe(e)
	if p.sizes != nil {
		p.sizes.add(p.rows.event(p.pos), e.Block-min(e.Size, e.Block))
	}
	p.pos++
	p.device.Advance()
}

// note keeps a difference. It may be found under the allocator's lock, so its
// surroundings are looked at later.
func (p *player) note(kind, what, expected, got string, addrs ...uint64) {
	p.diff = &replay.Difference{Kind: kind, Event: p.pos, Operation: p.pos, OperationText: p.call(), What: what, Expected: expected, Got: got}
	p.addrs = addrs
}

// call describes the call being made.
func (p *player) call() string {
	switch p.doing {
	case "free":
		return fmt.Sprintf("free %#x", p.rows.addr(p.callRow))
	case "allocate":
		e := p.rows.At(p.callRow)
		return fmt.Sprintf("allocate %d bytes on stream %d", e.Size, e.Stream)
	}
	return p.doing
}

// describe adds the surroundings to the difference.
func (p *player) describe() {
	if p.diff != nil {
		p.diff.State = Surroundings(p.allocator, p.device.Driver, p.rows, p.pos, p.addrs)
	}
}

package alloc

import (
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/driver"
)

// Malloc returns the address of at least size bytes for use on stream. A size
// of 0 gives address 0. If there is no memory the error is an
// [*OutOfMemoryError]; any other error comes from the driver.
func (a *Allocator) Malloc(size, stream uint64) (uint64, error) {
	return a.MallocOn(size, stream, 0)
}

// MallocOn is Malloc for a caller that says which thread it is: routes made by
// [MemPool.Begin] apply to one thread only.
func (a *Allocator) MallocOn(size, stream, thread uint64) (uint64, error) {
	if size == 0 {
		return 0, nil
	}
	if size >= maxRequest {
		return 0, &OutOfMemoryError{Device: a.device, Requested: size, TooLarge: true}
	}
	a.mu.Lock()
	id, err := a.mallocBlock(size, stream, thread, true)
	if err != nil {
		id, err = a.lastResort(err, size, stream, thread)
	}
	addr := a.blocks[id].addr // of noBlock: 0
	a.afterOperation()
	a.endRequest()
	if err != nil {
		return 0, a.notifyOOM(err)
	}
	return addr, nil
}

// notifyOOM calls the out-of-memory observers.
func (a *Allocator) notifyOOM(err error) error {
	var oom *OutOfMemoryError
	if errors.As(err, &oom) {
		for _, f := range a.onOOM {
			f(oom)
		}
	}
	return err
}

// request is one allocation on its way through the sequence of spec 3.
type request struct {
	size       uint64 // as asked for
	rounded    uint64
	segment    uint64 // size of a new plain segment for it
	stream     uint64
	streamPool *streamPool
	expandable bool  // flag E of the spec
	locked     bool  // the caller holds the lock
	refusal    error // of the driver, by the last attempt
}

// mallocBlock serves a request. If locked, the caller holds the lock, which may then
// be released to call other code.
func (a *Allocator) mallocBlock(size, stream, thread uint64, locked bool) (blockID, error) {
	var private *privatePool
	if len(a.routes) == 0 {
		if a.queued != 0 || len(a.deferred) != 0 {
			if err := a.processEvents(); err != nil {
				return noBlock, err
			}
		}
	} else {
		if err := a.beginRouted(stream); err != nil {
			return noBlock, err
		}
		private = a.routed(stream, thread)
	}
	rounded := a.rules.Round(size)
	kind := kindOf(rounded)
	p := a.pools[kind]
	expandable := a.cfg.ExpandableSegments
	if private != nil {
		p = private.pools[kind]
		expandable = expandable && private.source == nil
	}
	sp := a.streamPoolFor(p, stream)
	if a.explain != nil {
		a.explainRequest(size, rounded, sp, expandable)
	}
	id := a.search(sp, rounded, expandable)
	if id == noBlock {
		r := request{size: size, rounded: rounded, segment: a.rules.SegmentSize(rounded), stream: stream, streamPool: sp, expandable: expandable, locked: locked}
		var err error
		if id, err = a.miss(&r); err == errPoolDeleted {
			return a.mallocBlock(size, stream, thread, locked)
		} else if err != nil {
			return noBlock, err
		}
		expandable = r.expandable
	}
	return a.handOut(id, size, rounded, expandable), nil
}

// begin is what comes first in a request (spec 3 step 1).
func (a *Allocator) begin(stream uint64) error {
	if len(a.routes) != 0 {
		return a.beginRouted(stream)
	}
	return a.processEvents()
}

// home returns where a request looks for memory, in the default pools or in a
// private one, and whether it may use expandable segments there.
func (a *Allocator) home(private *privatePool, kind poolKind, stream uint64) (sp *streamPool, expandable bool) {
	if private == nil {
		return a.streamPoolFor(a.pools[kind], stream), a.cfg.ExpandableSegments
	}
	return a.streamPoolFor(private.pools[kind], stream), a.cfg.ExpandableSegments && private.source == nil
}

// beginRouted is begin while a route is active.
func (a *Allocator) beginRouted(stream uint64) error {
	if !a.capturing(stream) {
		return a.processEvents()
	}
	if a.cfg.GraphCaptureRecordStreamReuse {
		a.reuseInCapture(stream)
	}
	return nil
}

// search finds the free block to use, takes it out of the free set and
// returns it (spec 2.2).
func (a *Allocator) search(sp *streamPool, rounded uint64, expandable bool) blockID {
	if a.armed {
		sp.pool.searches++
	}
	id, why := a.candidate(sp, rounded, expandable)
	if a.explain != nil {
		a.explainSearch(sp, rounded, id, why, expandable)
	}
	if why != missNone {
		return noBlock
	}
	b := &a.blocks[id]
	sp.free.remove(b.size, b.rank)
	return id
}

// candidate returns the one free block that a search considers, and why it may not
// be used.
func (a *Allocator) candidate(sp *streamPool, rounded uint64, expandable bool) (blockID, MissReason) {
	id := sp.free.ceil(rounded)
	if a.choosy {
		id = a.chosen(sp, id, rounded, expandable)
	}
	if id == noBlock {
		return noBlock, TooSmall
	}
	b := &a.blocks[id]
	if b.expandable {
		if expandable {
			id = a.leastGrowable(sp, id)
		} else if id = a.nextPlain(sp, id); id == noBlock {
			return noBlock, OnlyExpandable
		}
		b = &a.blocks[id]
	}
	if rounded < a.cfg.MaxSplitSize {
		if b.size >= a.cfg.MaxSplitSize {
			return id, KeptForLarge
		}
	} else if b.size >= rounded+a.cfg.MaxNonSplitRounding {
		return id, TooMuchLarger
	}
	return id, missNone
}

// leastGrowable walks from a free block of an expandable segment to the first one
// whose successor is not smaller with the unmapped range that follows: a local descent, not the
// minimum (spec 2.2 step 3).
func (a *Allocator) leastGrowable(sp *streamPool, id blockID) blockID {
	least := a.growableSize(id)
	for a.blocks[id].expandable {
		next := a.freeAfter(sp, id)
		if next == noBlock {
			break
		}
		size := a.growableSize(next)
		if size >= least {
			break
		}
		id, least = next, size
	}
	return id
}

// growableSize is the size of a block and of the unmapped range that follows it.
func (a *Allocator) growableSize(id blockID) uint64 {
	b := &a.blocks[id]
	if n := &a.blocks[b.next]; n.state == stateUnmapped {
		return b.size + n.size
	}
	return b.size
}

// nextPlain skips free blocks of expandable segments.
func (a *Allocator) nextPlain(sp *streamPool, id blockID) blockID {
	for id != noBlock && a.blocks[id].expandable {
		id = a.freeAfter(sp, id)
	}
	return id
}

// miss gets a block when none is cached: steps 6 to 11 of spec 3.
func (a *Allocator) miss(r *request) (blockID, error) {
	if id, err := a.recalled(r, a.reclaimed(r.locked)); id != noBlock || err != nil {
		return id, err
	}
	if a.armed {
		if err := a.collect(); err != nil {
			return noBlock, err
		}
	}
	if a.explain != nil {
		a.explainSegment(r)
	}
	if id, err := a.obtain(r); id != noBlock || err != nil {
		return id, err
	}
	// What was freed while the lock was released for the driver.
	if id, err := a.recalled(r, false); id != noBlock || err != nil {
		return id, err
	}
	if !a.rules.OverflowLast {
		if id := a.searchOverflow(r); id != noBlock {
			return id, nil
		}
	}
	if a.spilled {
		if id := a.searchSpilled(r); id != noBlock {
			return id, nil
		}
	}
	if enough, err := a.makeSpace(r); err != nil {
		return noBlock, err
	} else if enough {
		if id, err := a.obtain(r); id != noBlock || err != nil {
			return id, err
		}
	}
	if enough, err := a.releaseTargeted(r); err != nil {
		return noBlock, err
	} else if enough {
		if id, err := a.obtain(r); id != noBlock || err != nil {
			return id, err
		}
	}
	if !a.capturing(r.stream) {
		if a.explain != nil {
			a.explain(FullRelease{Retry: true})
		}
		if err := a.releaseCached(false); err != nil {
			return noBlock, err
		}
		// The free sets are not searched again, even if the release made
		// a block that would fit (spec 3, note after step 12).
		a.stats.allocRetries++
		if id, err := a.obtain(r); id != noBlock || err != nil {
			return id, err
		}
	}
	if a.rules.OverflowLast {
		if id := a.searchOverflow(r); id != noBlock {
			return id, nil
		}
	}
	if len(a.private.orphans) != 0 {
		if freed, err := a.rescue(); err != nil {
			return noBlock, err
		} else if freed {
			if id, err := a.obtain(r); id != noBlock || err != nil {
				return id, err
			}
		}
	}
	return noBlock, a.outOfMemory(r)
}

// recalled takes back the borrower's blocks, and searches again if that freed
// anything or freed is set.
func (a *Allocator) recalled(r *request, freed bool) (blockID, error) {
	more, err := a.recall(true)
	if err != nil {
		return noBlock, err
	}
	if a.deleted(r.streamPool.pool) {
		return noBlock, errPoolDeleted
	}
	if !freed && !more {
		return noBlock, nil
	}
	return a.search(r.streamPool, r.rounded, r.expandable), nil
}

// errPoolDeleted means that the pool of a request was deleted while the lock was
// released to call other code: the request starts again, maybe in another pool.
var errPoolDeleted = errors.New("the pool was deleted during an allocation")

// deleted reports whether a pool was deleted, which can happen only while the lock
// is released.
func (a *Allocator) deleted(p *pool) bool {
	return p.private != nil && a.private.byID[p.private.id] != p.private
}

// reclaimed runs the reclaimers without the lock, since they may free memory. As
// with askUnlocked a panic leaves the lock free.
func (a *Allocator) reclaimed(locked bool) bool {
	if len(a.reclaim) == 0 {
		return false
	}
	if locked {
		a.mu.Unlock()
	}
	freed := false
	for _, f := range a.reclaim {
		freed = f() || freed
	}
	if locked {
		a.mu.Lock()
	}
	return freed
}

// searchOverflow looks for a cached block in the pools registered with
// use_on_oom (spec 3 step 9). From there on the request belongs to that pool
// and expandable segments are off for it. A request for a private pool finds none.
func (a *Allocator) searchOverflow(r *request) blockID {
	if r.streamPool.pool.private != nil {
		return noBlock
	}
	kind := r.streamPool.pool.kind
	found := noBlock
	a.private.overflow.each(func(p PoolID) bool {
		if pp := a.private.byID[p]; pp != nil {
			found = a.search(a.streamPoolFor(pp.pools[kind], r.stream), r.rounded, false)
		}
		return found == noBlock
	})
	if found != noBlock {
		r.expandable = false
	}
	return found
}

// obtain makes one attempt to get new memory (spec 3.1). It returns noBlock if
// the limit or the driver refuses.
func (a *Allocator) obtain(r *request) (blockID, error) {
	r.refusal = nil
	if a.deleted(r.streamPool.pool) {
		return noBlock, errPoolDeleted
	}
	if a.limited && (a.reserved > a.limit || r.segment > a.limit-a.reserved) {
		if wanted := a.reserved + r.segment; a.refused == 0 || wanted < a.refused {
			a.refused = wanted
		}
		if a.explain != nil {
			a.explain(LimitRefusal{Reserved: a.reserved, Segment: r.segment, Limit: a.limit})
		}
		return noBlock, nil
	}
	if r.expandable && !(a.rules.PlainPrivate && r.streamPool.pool.private != nil) {
		return a.grow(r)
	}
	return a.obtainSegment(r)
}

// obtainSegment gets a plain segment from the driver, as one block that is in
// no set yet.
func (a *Allocator) obtainSegment(r *request) (blockID, error) {
	p := r.streamPool.pool
	addr, err := a.driverMalloc(r)
	if errors.Is(err, driver.ErrOutOfMemory) {
		r.refusal = err
		if a.explain != nil {
			a.explain(DriverRefusal{Size: r.segment})
		}
		return noBlock, nil
	}
	if err != nil {
		return noBlock, fmt.Errorf("getting a segment of %d bytes: %w", r.segment, err)
	}
	if err := checkRange(addr, r.segment); err != nil {
		return noBlock, errors.Join(fmt.Errorf("the driver returned %w", err), a.driverFree(p.private, addr, r.segment))
	}
	if a.deleted(p) {
		if err := a.driverFree(p.private, addr, r.segment); err != nil {
			return noBlock, err
		}
		return noBlock, errPoolDeleted
	}
	if p.private != nil {
		p.private.segments++
		p.private.bytes += r.segment
	}
	seg := a.newSegment(segment{base: addr, size: r.segment, streamPool: r.streamPool.id})
	id := a.newBlock()
	a.segments[seg].head = id
	a.blocks[id] = block{addr: addr, size: r.segment, streamPool: r.streamPool.id, seg: seg, rank: a.created}
	a.reserved += r.segment
	a.stats.add(p.kind, statSegment, 1)
	a.stats.add(p.kind, statReservedBytes, int64(r.segment))
	if r.segment >= a.cfg.MaxSplitSize {
		a.stats.oversizeSegments.add(1)
	}
	a.stats.deviceAllocs++
	a.emit(ActionSegmentAlloc, addr, r.segment, r.streamPool)
	if a.explain != nil {
		a.explain(NewSegment{Span{addr, r.segment}})
	}
	return id, nil
}

// checkRange refuses memory whose blocks the free sets could not order.
func checkRange(addr, size uint64) error {
	if size >= maxBlockSize || addr >= maxAddress || addr+size > maxAddress {
		return fmt.Errorf("%d bytes at %#x: addresses must end below %#x and segments must be smaller than %d bytes",
			size, addr, maxAddress, maxBlockSize)
	}
	return nil
}

// driverMalloc asks the driver, or the private pool's own source.
func (a *Allocator) driverMalloc(r *request) (uint64, error) {
	if r.locked && a.cfg.ReleaseLockOnMalloc {
		a.mu.Unlock()
		defer a.mu.Lock()
	}
	if p := r.streamPool.pool.private; p != nil && p.source != nil {
		return p.source.Malloc(r.segment, r.stream)
	}
	return a.dev.Malloc(r.segment, r.stream)
}

func (a *Allocator) driverFree(p *privatePool, addr, size uint64) error {
	if p != nil && p.source != nil {
		return p.source.Free(addr, size)
	}
	return a.dev.Free(addr, size)
}

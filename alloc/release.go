package alloc

import (
	"cmp"
	"fmt"
	"slices"
)

// EmptyCache gives all cached memory that can be given back to the driver:
// PyTorch's torch.cuda.empty_cache() for this device.
func (a *Allocator) EmptyCache() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.recall(true); err != nil {
		return err
	}
	if a.explain != nil {
		a.explain(FullRelease{})
	}
	capturing := a.capturingAny()
	err := a.releaseCached(capturing)
	if err == nil && !capturing { // it waits for streams
		err = a.releaseWithheld()
	}
	a.afterOperation()
	return err
}

// releaseCached is the full release of spec 7.2: the default pools unless a
// route keeps them, and the private pools that nobody uses any more.
func (a *Allocator) releaseCached(capturing bool) error {
	if !capturing {
		if err := a.synchronize(nil); err != nil {
			return err
		}
		for _, k := range [...]poolKind{large, small} {
			if err := a.releasePool(a.pools[k]); err != nil {
				return err
			}
		}
	}
	return a.private.freeable.sweep(func(id PoolID) (bool, error) {
		return a.releasePrivate(a.private.byID[id])
	})
}

// releasePrivate releases the cached memory of a pool that nobody uses and
// deletes the pool if nothing is left. It reports whether it did.
func (a *Allocator) releasePrivate(p *privatePool) (deleted bool, err error) {
	for _, k := range [...]poolKind{small, large} {
		if err := a.releasePool(p.pools[k]); err != nil {
			return false, err
		}
	}
	if p.segments != 0 {
		return false, nil
	}
	if p.bytes == 0 {
		if err := a.dropPrivate(p); err != nil {
			return false, err
		}
	} else {
		// PyTorch's count went wrong: it deletes a pool with live blocks. It
		// goes wrong when one of them is freed; see giveBack.
		p.orphan = true
		a.private.orphans = append(a.private.orphans, p)
	}
	delete(a.private.byID, p.id)
	return true, nil
}

// dropPrivate forgets the stream pools of a pool without memory, and the addresses
// reserved there for an attempt that failed.
func (a *Allocator) dropPrivate(p *privatePool) error {
	for _, q := range p.pools {
		for _, sp := range q.streamPools {
			for len(sp.unmapped) > 0 {
				if err := a.unreserve(sp.unmapped[0]); err != nil {
					return err
				}
			}
		}
		a.dropStreamPools(q)
	}
	return nil
}

// rescue is the last resort before an out-of-memory error: it releases what
// has become free in pools that PyTorch would have lost. It reports whether
// anything was released.
func (a *Allocator) rescue() (bool, error) {
	before := a.reserved
	kept := a.private.orphans[:0]
	var failed error
	for _, p := range a.private.orphans {
		for _, q := range p.pools {
			if failed == nil {
				failed = a.releasePool(q)
			}
		}
		if p.bytes == 0 && failed == nil {
			failed = a.dropPrivate(p)
		} else {
			kept = append(kept, p)
		}
	}
	a.private.orphans = kept
	return a.reserved < before, failed
}

// releasePool releases the free memory of one pool in the order of its free
// set: plain segments at once, expandable memory after the walk.
func (a *Allocator) releasePool(p *pool) error {
	ids := a.scratch[:0]
	if a.explain == nil {
		ids = a.freshBlocks(p, ids)
	} else {
		ids = p.freeBlocks(ids) // it tells what stays, too
	}
	a.scratch = ids
	a.orderTies(ids)
	expandable := ids[:0]
	for _, id := range ids {
		switch b := &a.blocks[id]; {
		case b.expandable:
			expandable = append(expandable, id)
		case !b.split():
			if err := a.releaseSegment(id); err != nil {
				return err
			}
		case a.explain != nil:
			a.explainPinned(b)
		}
	}
	if a.rules.unaligned {
		slices.SortStableFunc(expandable, func(x, y blockID) int { return cmp.Compare(a.blocks[x].size, a.blocks[y].size) })
	}
	for _, id := range expandable {
		if err := a.unmap(id); err != nil {
			return err
		}
	}
	p.forgetFresh()
	return nil
}

// Releasable returns the bytes that a full release would give back to the
// driver from the default pools.
func (a *Allocator) Releasable() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.releasableBytes()
}

func (a *Allocator) releasableBytes() uint64 {
	var bytes uint64
	for _, p := range a.pools {
		for _, id := range p.freeBlocks(nil) {
			bytes += a.releasableOf(id)
		}
	}
	return bytes
}

// releasableOf returns the bytes of a free block that a full release would give back.
func (a *Allocator) releasableOf(id blockID) uint64 {
	switch b := &a.blocks[id]; {
	case b.expandable:
		seg := &a.segments[b.seg]
		start, end := wholeGranules(seg.base, b.span(), seg.granule)
		return end - start
	case !b.split():
		return b.size
	}
	return 0
}

// releaseSegment gives the plain segment of an unsplit free block back to the
// driver (spec 7.4).
func (a *Allocator) releaseSegment(id blockID) error {
	b := &a.blocks[id]
	sp := a.streamPools[b.streamPool]
	p := sp.pool
	addr, size := b.addr, b.size
	if err := a.driverFree(p.private, addr, size); err != nil {
		return fmt.Errorf("giving back a segment of %d bytes at %#x: %w", size, addr, err)
	}
	if a.explain != nil {
		a.explain(Released{Span{addr, size}})
	}
	a.stats.deviceFrees++
	a.emit(ActionSegmentFree, addr, size, sp)
	a.reserved -= size
	if p.private != nil {
		p.private.bytes -= size
		a.dropSegmentCount(p.private)
	}
	a.stats.add(p.kind, statSegment, -1)
	a.stats.add(p.kind, statReservedBytes, -int64(size))
	if size >= a.cfg.MaxSplitSize {
		a.stats.oversizeSegments.add(-1)
	}
	a.removeFree(id)
	a.dropSegment(b.seg)
	a.dropBlock(id)
	return nil
}

// releaseTargeted gives back oversize segments so that a new one of the wanted
// size may fit: the smallest that is large enough, or else the largest ones
// until their sum is (spec 7.1). It reports whether enough was released.
func (a *Allocator) releaseTargeted(r *request) (bool, error) {
	if !a.maxSplitSet() {
		return false, nil
	}
	want := max(r.rounded, a.cfg.MaxSplitSize)
	if a.explain != nil {
		a.explain(TargetedRelease{Want: want})
	}
	set := &r.streamPool.free
	id := set.ceil(want)
	a.assertPlain(id)
	if id != noBlock && a.releasable(id) {
		return true, a.releaseSegment(id)
	}
	size, rank := want, uint64(0)
	for released := uint64(0); released < want; {
		id = set.before(size, rank)
		if id == noBlock || a.blocks[id].size < a.cfg.MaxSplitSize {
			return false, nil
		}
		size, rank = a.blocks[id].size, a.blocks[id].rank
		a.assertPlain(id)
		if a.releasable(id) {
			if err := a.releaseSegment(id); err != nil {
				return false, err
			}
			released += size
		}
	}
	return true, nil
}

// assertPlain notes where a release of PyTorch stops that cannot tell expandable
// memory apart when it looks for a segment to give back.
func (a *Allocator) assertPlain(id blockID) {
	if b := &a.blocks[id]; a.rules.ExpandableAsserts && b.expandable {
		a.setUndefined(PoolID{}, fmt.Sprintf("the block at %#x is to be given back as a segment, and is in an expandable one (internal assert !expandable_segment_)", b.addr))
	}
}

// releasable reports whether a free block is a whole plain segment. Oversize
// blocks always are, unless max_split was lowered at run time.
func (a *Allocator) releasable(id blockID) bool {
	b := &a.blocks[id]
	return !b.expandable && !b.split()
}

package alloc

// splitReason decides whether the rest of a block becomes a block of its own
// (spec 4.1). The flag expandable is the request's, not the block's.
func (a *Allocator) splitReason(p *pool, rounded, rest uint64, expandable bool) SplitReason {
	switch {
	case p.noSplit:
		return PoolNeverSplits
	case p.kind == small || expandable:
		if rest >= MinBlock {
			return RestIsBlock
		}
		return RestBelowMinimum
	case rounded >= a.cfg.MaxSplitSize:
		return RequestIsLarge
	case rest > UnsplitMax:
		return RestAboveBound
	default:
		return RestNotAboveBound
	}
}

// handOut hands out a block that is in no set, splitting it if that is due, and
// returns what was handed out.
func (a *Allocator) handOut(id blockID, size, rounded uint64, expandable bool) blockID {
	b := &a.blocks[id]
	why := a.splitReason(a.streamPools[b.streamPool].pool, rounded, b.size-rounded, expandable)
	if a.explain != nil {
		a.explainSplit(b, rounded, why)
	}
	return a.handOutSplit(id, size, rounded, why.Split())
}

// handOutSplit hands out a block that is in no set, or its first rounded bytes
// (spec 4.2), and returns what was handed out.
func (a *Allocator) handOutSplit(id blockID, size, rounded uint64, split bool) blockID {
	b := &a.blocks[id]
	sp := a.streamPools[b.streamPool]
	p := sp.pool
	if split {
		rest := b.size - rounded
		if !b.expandable {
			if b.split() {
				a.stats.addSplit(p.kind, 0, -int64(rounded))
			} else {
				a.stats.addSplit(p.kind, 1, int64(rest))
			}
		}
		front := a.newBlock()
		b = &a.blocks[id]
		f := &a.blocks[front]
		f.addr, f.size = b.addr, rounded
		f.streamPool, f.seg, f.expandable = b.streamPool, b.seg, b.expandable
		f.events, f.uses, f.rank = 0, noUses, a.created
		a.linkBefore(id, front)
		b.addr += rounded
		b.size = rest
		b.state = stateFree
		b.entered = uint32(p.searches)
		sp.free.insert(rest, a.ranked(b), id)
		if b.expandable && len(sp.fresh) < mostFresh {
			sp.addFresh(id)
		}
		id, b = front, f
	} else if b.split() && !b.expandable {
		a.stats.addSplit(p.kind, -1, -int64(b.size))
	}
	b.state = stateAllocated
	b.requested = size
	a.served++
	b.entered = a.served
	a.table.insert(b.addr, id)
	if a.tracing() {
		a.emitAt(a.tick(), ActionAlloc, b.addr, size, b.size, sp)
	}
	a.stats.handOut(p.kind, int64(b.size), int64(size))
	if b.size >= a.cfg.MaxSplitSize {
		a.stats.oversizeAllocations.add(1)
	}
	if a.spiller != nil {
		used := a.inUse()
		a.mostInUse = max(a.mostInUse, used)
		a.course.note(a.served, used+a.liveElsewhere())
	}
	return id
}

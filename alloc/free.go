package alloc

import (
	"fmt"
	"slices"
)

// Free gives back memory that Malloc returned. Blocks that other streams use
// become reusable when those streams have passed this point. Address 0 is
// ignored. An address that is not allocated gives an [*InvalidPointerError];
// after any other error, which comes from the driver, the block is freed all
// the same and becomes reusable as soon as the driver answers again.
func (a *Allocator) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	a.mu.Lock()
	err := a.free(addr)
	a.afterOperation()
	a.mu.Unlock()
	return err
}

func (a *Allocator) free(addr uint64) error {
	id := a.table.take(addr, a.blocks)
	if id == noBlock {
		return &InvalidPointerError{Addr: addr}
	}
	return a.freeBlock(id)
}

// freeBlock frees a block that is in the address table no longer.
func (a *Allocator) freeBlock(id blockID) error {
	b := &a.blocks[id]
	sp := a.streamPools[b.streamPool]
	b.state = statePending
	var tick int64
	if a.tracing() {
		tick = a.tick()
		a.emitAt(tick, ActionFreeRequested, b.addr, b.requested, b.size, sp)
	}
	if b.size >= a.cfg.MaxSplitSize {
		a.stats.oversizeAllocations.add(-1)
	}
	if b.uses == noUses {
		a.stats.freed(sp.pool.kind, int64(b.size), int64(b.requested))
		a.giveBack(id, b, sp, tick)
		return nil
	}
	a.stats.freeRequested(sp.pool.kind, int64(b.size))
	if a.explain != nil {
		a.explain(Pending{Block: b.span(), Streams: slices.Clone(a.uses[b.uses].streams)})
	}
	a.waiting[sp.pool.kind] += int64(b.requested)
	if a.capturing(sp.stream) {
		a.deferFree(id)
		return nil
	}
	return a.insertEvents(id)
}

// giveBack returns a block to its pool and merges it with its free neighbours
// (spec 4.4). tick is the time of the event. The caller has counted it.
func (a *Allocator) giveBack(id blockID, b *block, sp *streamPool, tick int64) {
	if a.tracing() {
		a.emitAt(tick, ActionFreeCompleted, b.addr, b.requested, b.size, sp)
	}
	if b.elsewhere {
		a.giveBackElsewhere(id)
		return
	}
	if p := sp.pool.private; p != nil && p.orphan {
		a.setUndefined(p.id, fmt.Sprintf("a block at %#x is returned to pool %v, which was deleted while the block was in use", b.addr, p.id))
	}
	size := b.size
	addr := b.addr
	var splits, bytes int64
	left, right := b.prev, b.next
	if l := &a.blocks[left]; l.state == stateFree {
		splits--
		bytes -= int64(l.size)
		sp.free.remove(l.size, l.rank)
		a.absorb(id, left)
	}
	if r := &a.blocks[right]; r.state == stateFree {
		splits--
		bytes -= int64(r.size)
		sp.free.remove(r.size, r.rank)
		a.absorb(id, right)
	}
	b.state = stateFree
	b.entered = uint32(sp.pool.searches)
	sp.free.insert(b.size, a.ranked(b), id)
	if len(sp.fresh) < mostFresh {
		sp.addFresh(id)
	}
	if a.explain != nil {
		a.explainReturn(b, sp, addr, size)
	}
	if !b.expandable {
		if b.split() {
			splits++
			bytes += int64(b.size)
		}
		// Only the net change counts: one rise or one fall each.
		a.stats.addSplit(sp.pool.kind, splits, bytes)
	}
}

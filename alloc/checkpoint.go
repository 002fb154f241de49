package alloc

import (
	"errors"
	"fmt"
	"slices"
)

// Checkpoint is the layout of a private pool at one moment: what CUDA graph
// trees go back to when they replay another branch (spec 5.8).
type Checkpoint struct {
	pool     PoolID
	segments []checkpointRun
}

// checkpointRun is a segment, or the mapped memory of an expandable one up to
// its first unmapped range.
type checkpointRun struct {
	seg    segmentID
	addr   uint64
	blocks []checkpointBlock
}

type checkpointBlock struct {
	size uint64
	live bool
}

// CheckpointDelta lists what RestoreCheckpoint changed for the caller.
type CheckpointDelta struct {
	Freed     []uint64 // addresses that were allocated before
	Allocated []uint64 // addresses that are allocated now
}

// Checkpoint notes the layout of a private pool.
func (a *Allocator) Checkpoint(pool PoolID) (*Checkpoint, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, err := a.checkpointPool(pool)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{pool: pool}
	for _, seg := range a.segmentsOf(p) {
		run := checkpointRun{seg: seg, addr: a.segments[seg].base}
		id := a.segments[seg].head
		for ; id != noBlock && a.blocks[id].state != stateUnmapped; id = a.blocks[id].next {
			run.blocks = append(run.blocks, checkpointBlock{a.blocks[id].size, a.blocks[id].state == stateAllocated})
		}
		if id != noBlock && a.blocks[id].next != noBlock {
			return nil, &PoolError{ID: pool, Problem: "has a hole in an expandable segment; it cannot be checkpointed"}
		}
		c.segments = append(c.segments, run)
	}
	return c, nil
}

// RestoreCheckpoint brings a private pool back to a noted layout: everything
// allocated in it is freed; the noted blocks are allocated one after another
// from the front of their segments, whatever the rules for splitting say; and
// those that were free are freed again. Blocks made so have their own size as
// requested size.
func (a *Allocator) RestoreCheckpoint(c *Checkpoint) (*CheckpointDelta, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.afterOperation()
	p, err := a.checkpointPool(c.pool)
	if err != nil {
		return nil, err
	}
	if err := a.checkLayout(p, c); err != nil {
		return nil, err
	}
	delta := &CheckpointDelta{}
	for _, seg := range a.segmentsOf(p) {
		for _, addr := range a.allocatedIn(seg) {
			if err := a.free(addr); err != nil {
				return delta, err
			}
			delta.Freed = append(delta.Freed, addr)
		}
	}
	for _, run := range c.segments {
		id := a.segments[run.seg].head
		var dead []uint64
		for _, b := range run.blocks {
			a.removeFree(id)
			addr := a.blocks[a.handOutSplit(id, b.size, b.size, b.size < a.blocks[id].size)].addr
			if b.live {
				delta.Allocated = append(delta.Allocated, addr)
			} else {
				dead = append(dead, addr)
			}
			id = a.blocks[a.table.lookup(addr, a.blocks)].next
		}
		for _, addr := range dead {
			if err := a.free(addr); err != nil {
				return delta, err
			}
		}
	}
	return delta, nil
}

// checkpointPool finds a pool whose blocks all have one state: none may be
// waiting for other streams.
func (a *Allocator) checkpointPool(id PoolID) (*privatePool, error) {
	p := a.private.byID[id]
	if p == nil {
		return nil, &PoolError{ID: id, Problem: "does not exist"}
	}
	if !a.capturingAny() {
		if err := a.processDeferred(); err != nil {
			return nil, err
		}
	}
	for _, seg := range a.segmentsOf(p) {
		for b := a.segments[seg].head; b != noBlock; b = a.blocks[b].next {
			if a.blocks[b].state == statePending || a.blocks[b].uses != noUses {
				return nil, &PoolError{ID: id, Problem: "has blocks that other streams use; it cannot be checkpointed"}
			}
		}
	}
	return p, nil
}

// checkLayout makes sure that every noted block still has its memory.
func (a *Allocator) checkLayout(p *privatePool, c *Checkpoint) error {
	mine := a.segmentsOf(p)
	for _, run := range c.segments {
		if !slices.Contains(mine, run.seg) || a.segments[run.seg].base != run.addr {
			return fmt.Errorf("restoring a checkpoint of pool %v: its segment at %#x is gone", c.pool, run.addr)
		}
		var noted, there uint64
		for _, b := range run.blocks {
			noted += b.size
		}
		for id := a.segments[run.seg].head; id != noBlock && a.blocks[id].state != stateUnmapped; id = a.blocks[id].next {
			there += a.blocks[id].size
		}
		if noted > there {
			return errors.New("restoring a checkpoint: memory of it was unmapped")
		}
	}
	return nil
}

// segmentsOf lists the segments of a private pool by address.
func (a *Allocator) segmentsOf(p *privatePool) []segmentID {
	var out []segmentID
	for id := range a.segments {
		if s := &a.segments[id]; s.size != 0 && a.streamPools[s.streamPool].pool.private == p {
			out = append(out, segmentID(id))
		}
	}
	slices.SortFunc(out, func(x, y segmentID) int {
		if a.segments[x].base < a.segments[y].base {
			return -1
		}
		return 1
	})
	return out
}

func (a *Allocator) allocatedIn(seg segmentID) []uint64 {
	var out []uint64
	for id := a.segments[seg].head; id != noBlock; id = a.blocks[id].next {
		if a.blocks[id].state == stateAllocated {
			out = append(out, a.blocks[id].addr)
		}
	}
	return out
}

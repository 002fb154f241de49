package alloc

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/driver"
)

type usesID uint32

const noUses usesID = 0

// streamUses are the streams recorded on a block: other streams than its own
// that may be using it when it is freed.
type streamUses struct {
	streams []uint64
	routed  []uint64 // those recorded while a route was active
}

// eventQueue holds, first in first out, the events of one stream that guard
// freed blocks.
type eventQueue struct {
	stream uint64
	items  []guard
	head   int
}

type guard struct {
	event driver.Event
	block blockID
}

// RecordStream says that the memory at addr is also used on stream: once freed
// it stays untouched until that stream has passed the point of the free. It
// does nothing for address 0, for addresses of others and for the stream the
// memory was allocated on (spec 5.1).
func (a *Allocator) RecordStream(addr, stream uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := a.table.lookup(addr, a.blocks)
	if addr == 0 || id == noBlock {
		return nil
	}
	a.recordStream(id, stream)
	return nil
}

func (a *Allocator) recordStream(id blockID, stream uint64) {
	b := &a.blocks[id]
	own := a.streamPools[b.streamPool].stream == stream
	if a.explain != nil {
		a.explain(StreamUse{Block: b.span(), Stream: stream, Own: own})
	}
	if own {
		return
	}
	if b.uses == noUses {
		b.uses = a.newUses()
	}
	u := &a.uses[b.uses]
	u.streams = addStream(u.streams, stream)
	if a.capturing(stream) {
		u.routed = addStream(u.routed, stream)
	}
}

func addStream(list []uint64, stream uint64) []uint64 {
	if slices.Contains(list, stream) {
		return list
	}
	return append(list, stream)
}

func (a *Allocator) newUses() usesID {
	if n := len(a.spareUses); n > 0 {
		id := a.spareUses[n-1]
		a.spareUses = a.spareUses[:n-1]
		return id
	}
	a.uses = append(a.uses, streamUses{})
	return usesID(len(a.uses) - 1)
}

func (a *Allocator) dropUses(b *block) {
	u := &a.uses[b.uses]
	u.streams, u.routed = u.streams[:0], u.routed[:0]
	a.spareUses = append(a.spareUses, b.uses)
	b.uses = noUses
}

// insertEvents records an event on every stream that uses a freed block
// (spec 5.2). If the driver fails the block waits among the deferred ones
// with the streams that are left.
func (a *Allocator) insertEvents(id blockID) error {
	b := &a.blocks[id]
	u := &a.uses[b.uses]
	for i, s := range u.streams {
		ev, err := a.dev.RecordEvent(s, b.addr)
		if err != nil {
			u.streams = slices.Delete(u.streams, 0, i)
			a.deferred = append(a.deferred, id)
			return fmt.Errorf("recording an event on stream %#x: %w", s, err)
		}
		q := a.queue(s)
		q.items = append(q.items, guard{ev, id})
		a.queued++
		b.events++
	}
	a.dropUses(b)
	return nil
}

func (a *Allocator) queue(stream uint64) *eventQueue {
	i, found := slices.BinarySearchFunc(a.queues, stream, func(q *eventQueue, s uint64) int { return cmp.Compare(q.stream, s) })
	if !found {
		a.queues = slices.Insert(a.queues, i, &eventQueue{stream: stream})
	}
	return a.queues[i]
}

// pop removes the head of a queue, which is done, and reports whether its
// block can be returned.
func (a *Allocator) pop(q *eventQueue) (blockID, bool) {
	id := q.items[q.head].block
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	a.queued--
	b := &a.blocks[id]
	b.events--
	return id, b.events == 0 && b.uses == noUses
}

// ProcessEvents takes back the freed blocks whose streams have passed them, as
// the next request would. It waits for nothing, and does nothing while a route is
// active.
func (a *Allocator) ProcessEvents() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.routes) != 0 {
		return nil
	}
	err := a.processEvents()
	a.afterOperation()
	return err
}

// processEvents returns the freed blocks whose streams have passed them
// (spec 5.3). It runs at the start of a malloc without a route.
func (a *Allocator) processEvents() error {
	if err := a.processDeferred(); err != nil {
		return err
	}
	ready := a.scratch[:0]
	var failed error
	for _, q := range a.queues {
		for q.head < len(q.items) && failed == nil {
			done, err := a.dev.EventDone(q.items[q.head].event)
			if err != nil {
				failed = fmt.Errorf("asking for an event on stream %#x: %w", q.stream, err)
			}
			if !done && err == nil && a.explain != nil {
				a.explain(StillPending{Block: a.blocks[q.items[q.head].block].span(), Stream: q.stream})
			}
			if !done || err != nil {
				break
			}
			if id, ok := a.pop(q); ok {
				ready = append(ready, id)
			}
		}
	}
	a.giveBackAll(ready)
	return failed
}

// synchronize waits for all events, or for those that guard blocks of one
// private pool, and returns their blocks (spec 5.4).
func (a *Allocator) synchronize(only *privatePool) error {
	a.stats.syncs++
	if err := a.processDeferred(); err != nil {
		return err
	}
	ready := a.scratch[:0]
	var failed error
	for _, q := range a.queues {
		kept := q.items[:0]
		for _, g := range q.items[q.head:] {
			b := &a.blocks[g.block]
			if failed != nil || only != nil && a.streamPools[b.streamPool].pool.private != only {
				kept = append(kept, g)
				continue
			}
			if err := a.dev.WaitEvent(g.event); err != nil {
				failed = fmt.Errorf("waiting for stream %#x: %w", q.stream, err)
				kept = append(kept, g)
				continue
			}
			a.queued--
			if b.events--; b.events == 0 && b.uses == noUses {
				ready = append(ready, g.block)
			}
		}
		q.items, q.head = kept, 0
	}
	a.giveBackAll(ready)
	return failed
}

// giveBackAll returns blocks that became free together. PyTorch's order comes
// from hash tables whose keys nobody outside can see (spec 8.6); a driver that
// knows it is asked.
func (a *Allocator) giveBackAll(ready []blockID) {
	a.scratch = ready
	if seq, ok := a.dev.(driver.Sequencer); ok && len(ready) > 1 {
		byAddr := make(map[uint64]blockID, len(ready))
		addrs := make([]uint64, len(ready))
		for i, id := range ready {
			addrs[i] = a.blocks[id].addr
			byAddr[addrs[i]] = id
		}
		seq.Sequence(addrs)
		for i, addr := range addrs {
			ready[i] = byAddr[addr]
		}
	}
	for _, id := range ready {
		b := &a.blocks[id]
		if a.explain != nil {
			a.explain(Passed{Block: b.span()})
		}
		sp := a.streamPools[b.streamPool]
		a.waiting[sp.pool.kind] -= int64(b.requested)
		a.stats.freeCompleted(sp.pool.kind, int64(b.size), int64(b.requested))
		a.giveBack(id, b, sp, a.tick())
	}
}

// deferFree keeps a freed block that other streams use until no route is
// active: events cannot be recorded in a capture.
func (a *Allocator) deferFree(id blockID) {
	a.deferred = append(a.deferred, id)
	if !a.cfg.GraphCaptureRecordStreamReuse {
		return
	}
	if t, ok := a.dev.(driver.CaptureTracker); ok {
		b := &a.blocks[id]
		t.Mark(b.addr, append([]uint64{a.streamPools[b.streamPool].stream}, a.uses[b.uses].streams...))
	}
}

// processDeferred takes care of the blocks freed while a route was active (spec 5.5):
// streams recorded under the route are forgotten, the others get events, and
// blocks without any are returned.
func (a *Allocator) processDeferred() error {
	if len(a.deferred) == 0 {
		return nil
	}
	blocks := a.deferred
	a.deferred = nil
	ready := a.scratch[:0]
	var failed error
	for i, id := range blocks {
		b := &a.blocks[id]
		u := &a.uses[b.uses]
		if !a.rules.KeptStreams {
			u.streams = slices.DeleteFunc(u.streams, func(s uint64) bool { return slices.Contains(u.routed, s) })
		}
		if err := a.insertEvents(id); err != nil {
			a.deferred = append(a.deferred, blocks[i+1:]...)
			failed = err
			break
		}
		if b.events == 0 {
			ready = append(ready, id)
		}
	}
	if failed == nil {
		a.deferred = blocks[:0]
	}
	a.giveBackAll(ready)
	return failed
}

// reuseInCapture returns the deferred blocks of a stream whose captured work
// has come after every use of them (spec 5.6).
func (a *Allocator) reuseInCapture(stream uint64) {
	t, ok := a.dev.(driver.CaptureTracker)
	if !ok {
		return
	}
	ready := a.scratch[:0]
	a.deferred = slices.DeleteFunc(a.deferred, func(id blockID) bool {
		b := &a.blocks[id]
		if a.streamPools[b.streamPool].stream != stream || b.events != 0 || !t.Passed(stream, b.addr) {
			return false
		}
		a.dropUses(b)
		ready = append(ready, id)
		return true
	})
	a.giveBackAll(ready)
}

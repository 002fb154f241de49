package alloc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/driver"
)

// Free memory that is not on the device is withheld: it is in no free set, so that a
// search neither finds it nor pays for it. A withheld block lies in one place.

// segmentAt returns the segment that holds an address.
func (a *Allocator) segmentAt(addr uint64) *segment {
	for i := range a.segments {
		if s := &a.segments[i]; s.size != 0 && addr >= s.base && addr-s.base < s.size {
			return s
		}
	}
	return nil
}

// placeOf returns the place of the granule that an address of an expandable segment lies in.
func (a *Allocator) placeOf(seg *segment, addr uint64) Place {
	return a.places[seg.base+(addr-seg.base)/seg.granule*seg.granule]
}

// move notes where a range of granules lies now.
func (a *Allocator) move(seg *segment, r Span, to Place) {
	if a.places == nil {
		a.places = map[uint64]Place{}
	}
	kind := a.streamPools[seg.streamPool].pool.kind
	for at := r.Addr; at < r.End(); at += seg.granule {
		a.setPlace(kind, at, seg.granule, to)
	}
	a.moved++
	// Free blocks go to the sets of their new place, live ones are marked.
	for id := a.blockAt(seg, r.Addr); id != noBlock && a.blocks[id].addr < r.End(); {
		b := &a.blocks[id]
		next, end := b.next, b.addr+b.size
		switch b.state {
		case stateFree:
			a.removeFree(id)
			a.settle(id)
		case stateWithheld:
			a.removeWithheld(id)
			a.settle(id)
		case stateAllocated, statePending:
			b.elsewhere = a.partElsewhere(seg, b)
		}
		if next != noBlock && a.blocks[next].state == stateNone { // it was absorbed
			next = a.blockAt(seg, end)
		}
		id = next
	}
}

// setPlace books one granule.
func (a *Allocator) setPlace(kind poolKind, addr, granule uint64, to Place) {
	from := a.places[addr]
	switch {
	case to == OnDevice:
		delete(a.places, addr)
	default:
		a.places[addr] = to
	}
	if from == OnDevice && to != OnDevice {
		a.book(-int64(granule))
		a.reserved -= granule
		a.elsewhere += granule
		a.stats.add(kind, statReservedBytes, -int64(granule))
	}
	if from != OnDevice && to == OnDevice {
		if a.claimed >= granule {
			a.claimed -= granule
		} else {
			a.book(int64(granule))
		}
		a.reserved += granule
		a.elsewhere -= granule
		a.stats.add(kind, statReservedBytes, int64(granule))
	}
}

// book tells a driver that counts of memory that left the device, or came to it.
func (a *Allocator) book(bytes int64) {
	if b, ok := a.dev.(driver.Booker); ok {
		b.Book(bytes)
	}
}

// blockAt returns the block of a segment that an address lies in; noBlock at its end.
func (a *Allocator) blockAt(seg *segment, addr uint64) blockID {
	id := seg.head
	for id != noBlock && a.blocks[id].addr+a.blocks[id].size <= addr {
		id = a.blocks[id].next
	}
	return id
}

func (a *Allocator) partElsewhere(seg *segment, b *block) bool {
	for at := b.addr; at < b.addr+b.size; at += seg.granule {
		if a.placeOf(seg, at) != OnDevice {
			return true
		}
	}
	return a.placeOf(seg, b.addr+b.size-1) != OnDevice
}

// settle returns a block that is in no set to the sets of what lies behind it, part by
// part, and merges each part with its neighbours in the same set.
func (a *Allocator) settle(id blockID) {
	for id != noBlock {
		b := &a.blocks[id]
		b.state = statePending // in no set
		seg := &a.segments[b.seg]
		place := a.placeOf(seg, b.addr)
		end := b.addr + b.size
		at := seg.base + (b.addr-seg.base)/seg.granule*seg.granule + seg.granule
		for at < end && a.places[at] == place {
			at += seg.granule
		}
		rest := noBlock
		if at < end {
			rest = a.cut(id, at, end-at, a.linkAfter)
			a.blocks[rest].state = statePending
			b = &a.blocks[id]
		}
		for _, n := range [2]blockID{b.prev, b.next} {
			switch o := &a.blocks[n]; {
			case n == noBlock || n == rest:
			case o.state == stateFree && place == OnDevice:
				a.removeFree(n)
				a.absorb(id, n)
			case o.state == stateWithheld && place != OnDevice && a.placeOf(seg, o.addr) == place:
				a.removeWithheld(n)
				a.absorb(id, n)
			}
		}
		if place == OnDevice {
			a.insertFree(id)
		} else {
			a.insertWithheld(id)
		}
		id = rest
	}
}

// giveBackElsewhere is giveBack for a block of which not all is on the device.
func (a *Allocator) giveBackElsewhere(id blockID) {
	a.blocks[id].elsewhere = false
	a.settle(id)
}

func (a *Allocator) insertWithheld(id blockID) {
	b := &a.blocks[id]
	b.state = stateWithheld
	a.withheld += b.size
	a.insertByAddress(&a.streamPools[b.streamPool].withheld, id)
}

func (a *Allocator) removeWithheld(id blockID) {
	b := &a.blocks[id]
	a.withheld -= b.size
	a.removeByAddress(&a.streamPools[b.streamPool].withheld, id)
}

// relief is a request that the spiller has served, and what it moved for it.
type relief struct{ size, moved uint64 }

// spill serves a request that failed with err by the spiller: it may make room on the
// device, and else the block itself lies in the host's memory. The lock is
// held, and released while the spiller is asked.
func (a *Allocator) spill(err error, size, stream, thread uint64) (blockID, error) {
	var oom *OutOfMemoryError
	s := a.spiller
	if !errors.As(err, &oom) || oom.Pool != (PoolID{}) || !a.cfg.ExpandableSegments {
		return noBlock, err
	}
	a.mu.Unlock()
	moved := s.MakeRoom(oom)
	a.mu.Lock()
	if moved > 0 {
		id, retried := a.mallocBlock(size, stream, thread, true)
		if retried == nil {
			a.relief = relief{size, moved}
		}
		if retried == nil || !errors.As(retried, &oom) {
			return id, retried
		}
	}
	// Routes and settings may have changed meanwhile.
	if a.spiller == nil || !a.cfg.ExpandableSegments || a.routed(stream, thread) != nil || a.capturing(stream) {
		return noBlock, err
	}
	rounded := a.rules.Round(size)
	sp := a.streamPoolFor(a.pools[kindOf(rounded)], stream)
	id := a.takeWithheld(sp, rounded)
	if id == noBlock {
		var failed error
		if id, failed = a.growOnHost(sp, rounded); failed != nil {
			return noBlock, failed
		} else if id == noBlock {
			return noBlock, err
		}
	}
	a.spilled = true
	a.relief = relief{size, 0}
	return a.handOut(id, size, rounded, true), nil
}

// searchSpilled serves a request that the device refuses from host memory that is there, once
// a request of the step was spilled: releasing the cache for each of them would cost more.
func (a *Allocator) searchSpilled(r *request) blockID {
	if r.streamPool.pool.private != nil || !r.expandable {
		return noBlock
	}
	id := a.takeWithheld(r.streamPool, r.rounded)
	if id != noBlock {
		a.relief = relief{r.size, 0}
	}
	return id
}

// leastSpace is what of the cache is given back at least: the stream is waited for each time.
const leastSpace = 256 << 20

// makeSpace gives as much of the cache back as a request lacks, if there is a spiller: a job that needs more than
// the device has comes here in every step, and would map again what a full release has unmapped. It reports whether
// the cache had enough.
func (a *Allocator) makeSpace(r *request) (bool, error) {
	if a.spiller == nil || !r.expandable || r.streamPool.pool.private != nil || a.capturing(r.stream) {
		return false, nil
	}
	lacking := a.lacking(r)
	releasable := a.releasableBytes()
	if lacking == 0 || releasable < lacking {
		return false, nil
	}
	a.stats.allocRetries++
	return true, a.shrink(min(releasable, max(lacking, leastSpace)))
}

// lacking returns how much device memory a request that was refused lacks, as far as can be told.
func (a *Allocator) lacking(r *request) uint64 {
	if r.refusal == nil {
		want := a.reserved + r.segment
		if !a.limited {
			return 0
		}
		return want - min(want, a.limit)
	}
	need := roundUp(r.rounded, a.rules.Granule(r.streamPool.pool.kind == large))
	if free, _, err := a.dev.MemInfo(); err == nil && free < need {
		return need - free
	}
	return need // a limit that the device does not tell of
}

// takeWithheld takes rounded bytes out of the smallest withheld block on the host that has them.
func (a *Allocator) takeWithheld(sp *streamPool, rounded uint64) blockID {
	best := noBlock
	for _, id := range sp.withheld {
		b := &a.blocks[id]
		if b.size >= rounded && (best == noBlock || b.size < a.blocks[best].size) && a.placeOf(&a.segments[b.seg], b.addr) == OnHost {
			best = id
		}
	}
	if best == noBlock {
		return noBlock
	}
	a.removeWithheld(best)
	b := &a.blocks[best]
	if rest := b.size - rounded; rest > 0 {
		a.insertWithheld(a.cut(best, b.addr+rounded, rest, a.linkAfter))
		b = &a.blocks[best]
	}
	b.state = statePending // in no set
	b.elsewhere = true
	return best
}

// growOnHost maps host memory at the end of the highest free addresses: those
// that follow the device's memory stay free for its growth.
func (a *Allocator) growOnHost(sp *streamPool, rounded uint64) (blockID, error) {
	granule := a.rules.Granule(sp.pool.kind == large)
	id := noBlock
	for _, u := range slices.Backward(sp.unmapped) {
		granule := a.segments[a.blocks[u].seg].granule
		if a.blocks[u].size >= roundUp(rounded, granule) {
			id = u
			break
		}
	}
	if id == noBlock {
		if rounded > ReservationSize(a.dev.TotalMemory(), granule) {
			return noBlock, nil
		}
		var err error
		if id, err = a.reserve(sp); id == noBlock || err != nil {
			return noBlock, err
		}
	}
	b := &a.blocks[id]
	granule = a.segments[b.seg].granule
	size := roundUp(rounded, granule)
	addr := b.addr + b.size - size
	err := a.spiller.MapHost(addr, size, granule)
	if errors.Is(err, driver.ErrOutOfMemory) {
		return noBlock, nil
	}
	if err != nil {
		return noBlock, fmt.Errorf("mapping %d bytes of host memory at %#x: %w", size, addr, err)
	}
	if size < b.size {
		id = a.cut(id, addr, size, a.linkAfter)
	} else {
		a.removeUnmapped(id)
	}
	if a.places == nil {
		a.places = map[uint64]Place{}
	}
	for at := addr; at < addr+size; at += granule {
		a.places[at] = OnHost
	}
	a.elsewhere += size
	a.stats.deviceAllocs++
	a.emit(ActionSegmentMap, addr, size, sp)
	a.settle(id)
	return a.takeWithheld(sp, rounded), nil
}

// releaseWithheld gives back the whole granules of withheld blocks.
func (a *Allocator) releaseWithheld() error {
	if a.elsewhere == 0 {
		return nil
	}
	for _, sp := range a.streamPools {
		if sp == nil {
			continue
		}
		for _, id := range slices.Clone(sp.withheld) {
			if err := a.unmapWithheld(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// unmapWithheld gives back the whole granules inside a withheld block.
func (a *Allocator) unmapWithheld(id blockID) error {
	b := &a.blocks[id]
	seg := &a.segments[b.seg]
	start, end := wholeGranules(seg.base, b.span(), seg.granule)
	if start == end {
		return nil
	}
	size := end - start
	a.book(int64(size)) // which Unmap counts down again
	if err := a.dev.Unmap(start, size, seg.granule, a.streamPools[b.streamPool].stream); err != nil {
		a.book(-int64(size))
		return fmt.Errorf("unmapping %d bytes at %#x: %w", size, start, err)
	}
	a.removeWithheld(id)
	for at := start; at < end; at += seg.granule {
		delete(a.places, at)
	}
	a.elsewhere -= size
	if front := start - b.addr; front > 0 {
		a.insertWithheld(a.cut(id, b.addr, front, a.linkBefore))
	}
	b = &a.blocks[id]
	if back := b.addr + b.size - end; back > 0 {
		a.insertWithheld(a.cut(id, end, back, a.linkAfter))
	}
	return a.unmapped(id)
}

// liveElsewhere returns the bytes in use that are not on the device.
func (a *Allocator) liveElsewhere() uint64 { return a.elsewhere - a.withheld }

// inUse returns the bytes of the device that are in use, or wait for other streams.
func (a *Allocator) inUse() uint64 {
	active := a.stats.kinds[small].current(statActiveBytes) + a.stats.kinds[large].current(statActiveBytes)
	return uint64(active) - a.liveElsewhere()
}

// shrink gives back whole granules of cached memory until about that many bytes are: large ones first, of each free
// block the last.
func (a *Allocator) shrink(bytes uint64) error {
	if err := a.synchronize(nil); err != nil {
		return err
	}
	before := a.reserved
	for _, k := range [...]poolKind{large, small} {
		ids := a.pools[k].freeBlocks(a.scratch[:0])
		a.scratch = ids
		for _, id := range slices.Backward(ids) { // the largest blocks first
			given := before - a.reserved
			if given >= bytes {
				return nil
			}
			if !a.blocks[id].expandable {
				continue
			}
			if err := a.unmapLast(id, bytes-given); err != nil {
				return err
			}
		}
	}
	return nil
}

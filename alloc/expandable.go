package alloc

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/settings"
)

// grow gets memory for a request by mapping into an expandable segment
// (spec 6.2). It returns a mapped block that is in no set, or noBlock if the
// driver is out of memory; what was mapped before that stays, free.
func (a *Allocator) grow(r *request) (blockID, error) {
	sp, rounded := r.streamPool, r.rounded
	id, err := a.findGrowable(sp, rounded)
	if id == noBlock || err != nil {
		return noBlock, err
	}
	if a.explain != nil {
		a.explainGrowth(id, rounded)
	}
	if b := &a.blocks[id]; b.state == stateUnmapped {
		if ok, err := a.mapFront(r, id, min(b.size, rounded)); !ok || err != nil {
			return noBlock, err
		}
	}
	for a.blocks[id].size < rounded {
		next := a.blocks[id].next
		if a.blocks[next].state != stateUnmapped {
			return noBlock, nil // a request larger than the reservation
		}
		if ok, err := a.mapFront(r, next, min(rounded-a.blocks[id].size, a.blocks[next].size)); !ok || err != nil {
			return noBlock, err
		}
		id = next // the newly mapped block absorbed the candidate
	}
	a.removeFree(id)
	if p := sp.pool.private; p != nil {
		p.segments++
	}
	return id, nil
}

// findGrowable returns the block at which enough available addresses begin: an
// unmapped block or the free block before one (spec 6.2 step 1). If there is none,
// it reserves a new expandable segment.
func (a *Allocator) findGrowable(sp *streamPool, rounded uint64) (blockID, error) {
	for _, start := range sp.unmapped {
		if prev := a.blocks[start].prev; a.blocks[prev].state == stateFree {
			start = prev
		}
		available := uint64(0)
		for at := start; at != noBlock; at = a.blocks[at].next {
			b := &a.blocks[at]
			if b.state != stateFree && b.state != stateUnmapped {
				break
			}
			if available += b.size; available >= rounded {
				return start, nil
			}
		}
	}
	// No reservation is large enough for what is larger than the device. PyTorch
	// makes another one for each try and never gives them back; one that holds
	// nothing serves as well, since the mapping fails.
	for _, id := range sp.unmapped {
		if !a.blocks[id].split() {
			return id, nil
		}
	}
	return a.reserve(sp)
}

// reserve makes a new expandable segment: one unmapped block over addresses
// for nine eighths of the device's memory (spec 6.1).
func (a *Allocator) reserve(sp *streamPool) (blockID, error) {
	granule := a.rules.Granule(sp.pool.kind == large)
	size := ReservationSize(a.dev.TotalMemory(), granule)
	base, err := a.dev.Reserve(size, sp.stream)
	if errors.Is(err, driver.ErrOutOfMemory) {
		return noBlock, nil
	}
	if err != nil {
		return noBlock, fmt.Errorf("reserving %d bytes of addresses: %w", size, err)
	}
	if err := checkRange(base, size); err != nil {
		return noBlock, errors.Join(fmt.Errorf("the driver returned %w", err), a.dev.Unreserve(base, size))
	}
	seg := a.newSegment(segment{base: base, size: size, granule: granule, streamPool: sp.id})
	id := a.newBlock()
	a.segments[seg].head = id
	a.blocks[id] = block{addr: base, size: size, streamPool: sp.id, seg: seg, expandable: true, rank: a.created}
	a.insertUnmapped(id)
	if a.explain != nil {
		a.explain(Reservation{Range: Span{base, size}, Granule: granule, Large: sp.pool.kind == large, Stream: sp.stream})
	}
	return id, nil
}

// MappingProblem returns why nothing can be mapped under the given settings; empty
// if memory can. CUDA maps in multiples of 2 MiB, and a granule of the large pool
// is as large as large_segment_size_mb says.
func MappingProblem(s settings.Settings) string {
	if !s.ExpandableSegments || s.LargeSegmentSize%SmallSegment == 0 {
		return ""
	}
	return fmt.Sprintf("large_segment_size_mb:%d with expandable segments: CUDA maps memory in multiples of 2 MiB, so PyTorch fails at the first mapping",
		s.LargeSegmentSize>>20)
}

// mapFront puts memory behind the first n bytes of an unmapped block, rounded
// up to whole granules (spec 6.3). It reports false if the driver is out of
// memory; then nothing changed.
func (a *Allocator) mapFront(r *request, id blockID, n uint64) (bool, error) {
	b := &a.blocks[id]
	sp := a.streamPools[b.streamPool]
	granule := a.segments[b.seg].granule
	addr, size := b.addr, roundUp(n, granule)
	err := a.dev.Map(addr, size, granule)
	if errors.Is(err, driver.ErrOutOfMemory) {
		r.refusal = err
		if a.explain != nil {
			a.explain(DriverRefusal{Size: size, Mapping: true})
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("mapping %d bytes at %#x: %w", size, addr, err)
	}
	a.removeUnmapped(id)
	if size < b.size {
		rest := a.newBlock()
		b = &a.blocks[id]
		a.blocks[rest] = block{addr: addr + size, size: b.size - size, streamPool: b.streamPool, seg: b.seg, expandable: true, rank: a.created}
		b.size = size
		a.linkAfter(id, rest)
		a.insertUnmapped(rest)
	}
	for _, n := range [2]blockID{b.prev, b.next} {
		if a.blocks[n].state == stateFree {
			a.removeFree(n)
			a.absorb(id, n)
		}
	}
	a.insertFree(id)
	a.reserved += size
	if p := sp.pool.private; p != nil {
		p.bytes += size
	}
	a.stats.add(sp.pool.kind, statReservedBytes, int64(size))
	a.stats.deviceAllocs++
	a.emit(ActionSegmentMap, addr, size, sp)
	if a.explain != nil {
		a.explain(Mapping{Mapped: Span{addr, size}, Missing: n, Granule: granule})
	}
	return true, nil
}

// unmap gives back the whole granules inside a free block (spec 6.4). A
// segment that is entirely unmapped then is dropped.
func (a *Allocator) unmap(id blockID) error { return a.unmapLast(id, math.MaxUint64) }

// unmapLast is unmap for no more than the last granules that have that many bytes.
func (a *Allocator) unmapLast(id blockID, bytes uint64) error {
	b := &a.blocks[id]
	sp := a.streamPools[b.streamPool]
	seg := &a.segments[b.seg]
	start, end := wholeGranules(seg.base, b.span(), seg.granule)
	if start == end {
		if a.explain != nil {
			a.explainPinned(b)
		}
		return nil
	}
	if bytes < end-start {
		start = end - min(end-start, roundUp(bytes, seg.granule))
	}
	size := end - start
	if err := a.dev.Unmap(start, size, seg.granule, sp.stream); err != nil {
		return fmt.Errorf("unmapping %d bytes at %#x: %w", size, start, err)
	}
	if a.explain != nil {
		a.explain(Unmapping{Block: b.span(), Unmapped: Span{start, size}, Granule: seg.granule})
	}
	a.removeFree(id)
	if front := start - b.addr; front > 0 {
		a.insertFree(a.cut(id, b.addr, front, a.linkBefore))
	}
	b = &a.blocks[id]
	if back := b.addr + b.size - end; back > 0 {
		a.insertFree(a.cut(id, end, back, a.linkAfter))
	}
	a.reserved -= size
	a.stats.add(sp.pool.kind, statReservedBytes, -int64(size))
	if p := sp.pool.private; p != nil {
		p.bytes -= size
		a.dropSegmentCount(p)
	}
	return a.unmapped(id)
}

// unmapped notes that the driver has taken the memory behind a block away, which is
// in no set.
func (a *Allocator) unmapped(id blockID) error {
	b := &a.blocks[id]
	sp := a.streamPools[b.streamPool]
	start, size := b.addr, b.size
	b.state = statePending // in no set while it merges
	for _, n := range [2]blockID{b.prev, b.next} {
		if a.blocks[n].state == stateUnmapped {
			a.removeUnmapped(n)
			a.absorb(id, n)
		}
	}
	a.insertUnmapped(id)
	a.stats.deviceFrees++
	a.emit(ActionSegmentUnmap, start, size, sp)
	if !b.split() {
		return a.unreserve(id)
	}
	return nil
}

// cut makes a block, which is in no set yet, of one end of a block.
func (a *Allocator) cut(id blockID, addr, size uint64, link func(at, id blockID)) blockID {
	cut := a.newBlock()
	b := &a.blocks[id]
	a.blocks[cut] = block{addr: addr, size: size, streamPool: b.streamPool, seg: b.seg, expandable: true, rank: a.created}
	if addr == b.addr {
		b.addr += size
	}
	b.size -= size
	link(id, cut)
	return cut
}

// unreserve drops an expandable segment whose one block is unmapped.
func (a *Allocator) unreserve(id blockID) error {
	b := &a.blocks[id]
	seg := &a.segments[b.seg]
	if err := a.dev.Unreserve(seg.base, seg.size); err != nil {
		return fmt.Errorf("giving back %d bytes of addresses at %#x: %w", seg.size, seg.base, err)
	}
	a.removeUnmapped(id)
	a.dropSegment(b.seg)
	a.dropBlock(id)
	return nil
}

// insertUnmapped puts a block into its stream pool's list of unmapped blocks.
func (a *Allocator) insertUnmapped(id blockID) {
	b := &a.blocks[id]
	b.state = stateUnmapped
	a.insertByAddress(&a.streamPools[b.streamPool].unmapped, id)
}

func (a *Allocator) removeUnmapped(id blockID) {
	a.removeByAddress(&a.streamPools[a.blocks[id].streamPool].unmapped, id)
}

func (a *Allocator) insertByAddress(list *[]blockID, id blockID) {
	i, _ := a.findByAddress(*list, a.blocks[id].addr)
	*list = slices.Insert(*list, i, id)
}

func (a *Allocator) removeByAddress(list *[]blockID, id blockID) {
	i, _ := a.findByAddress(*list, a.blocks[id].addr)
	*list = slices.Delete(*list, i, i+1)
}

// findByAddress returns where in a list by address the block at addr is, or would be.
func (a *Allocator) findByAddress(list []blockID, addr uint64) (int, bool) {
	return slices.BinarySearchFunc(list, addr, func(id blockID, addr uint64) int {
		return cmp.Compare(a.blocks[id].addr, addr)
	})
}

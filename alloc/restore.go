package alloc

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/driver"
)

// Restore gives a new allocator the state of one that was already running: the
// segments, and in each of them the active blocks; what lies between is free.
// Inactive blocks may be listed, for the requested size that a free block keeps
// from its last use. A block of size 0 gets the size that the rules imply for
// its request where it lies.
//
// The segments count as obtained earlier, under the same settings: the driver is
// not asked for memory, only informed if it is a [driver.Adopter], and no events
// are emitted. Statistics start from the restored state. Each mapped run of an
// expandable segment is given as one segment; the addresses reserved for it may be
// given too. Without them, runs of one pool and stream that are close enough count
// as one reservation, which begins where the first run does.
func (a *Allocator) Restore(segments []Segment, reserved ...Span) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.blocks) > 1 || len(a.private.byID) > 0 {
		return errors.New("restoring a state: the allocator has been used already")
	}
	byAddress := func(x, y Segment) int { return cmp.Compare(x.Address, y.Address) }
	if !slices.IsSortedFunc(segments, byAddress) {
		segments = slices.Clone(segments)
		slices.SortFunc(segments, byAddress)
	}
	blocks := 0
	for i := range segments {
		blocks += len(segments[i].Blocks)
	}
	a.segments, a.blocks = slices.Grow(a.segments, len(segments)), slices.Grow(a.blocks, blocks)
	for i := range segments {
		s := &segments[i]
		if err := checkWhole("segment", Span{s.Address, s.TotalSize}); err != nil {
			return fmt.Errorf("restoring a state: %w", err)
		}
		if i > 0 && segments[i-1].Address+segments[i-1].TotalSize > s.Address {
			return fmt.Errorf("restoring a state: the segments at %#x and %#x overlap", segments[i-1].Address, s.Address)
		}
		if err := a.restoreSegment(s, a.reservation(segments, i, reserved)); err != nil {
			return fmt.Errorf("restoring the segment at %#x: %w", s.Address, err)
		}
	}
	a.restoredOrder()
	a.stats.updatePeaks()
	a.afterOperation()
	return nil
}

// checkWhole refuses what no segment or reservation can be. The end of one that
// passes can be computed.
func checkWhole(what string, s Span) error {
	if err := checkRange(s.Addr, s.Size); err != nil {
		return fmt.Errorf("a %s of %w", what, err)
	}
	if s.Size == 0 || s.Size%MinBlock != 0 {
		return fmt.Errorf("a %s of %d bytes at %#x: the size must be a multiple of %d, and not 0", what, s.Size, s.Addr, MinBlock)
	}
	return nil
}

// reservation is the addresses that were reserved for an expandable segment, of
// which one mapped run is given.
func (a *Allocator) reservation(segments []Segment, i int, given []Span) Span {
	s := &segments[i]
	if !s.Expandable {
		return Span{}
	}
	for _, g := range given {
		if g.Addr <= s.Address && s.Address+s.TotalSize <= g.End() {
			return g
		}
	}
	granule := a.rules.Granule(s.Large)
	size := max(ReservationSize(a.dev.TotalMemory(), granule), roundUp(s.TotalSize, granule))
	if available := (maxSegmentEnd(segments, i) - s.Address) / granule * granule; available >= s.TotalSize {
		size = min(size, available)
	}
	return Span{s.Address, size}
}

func kindOfSegment(s *Segment) poolKind {
	if s.Large {
		return large
	}
	return small
}

// maxSegmentEnd returns the latest end of the expandable segment that contains a
// run: where the next one of another pool or stream begins.
func maxSegmentEnd(segments []Segment, i int) uint64 {
	s := &segments[i]
	for _, t := range segments[i+1:] {
		if t.Expandable && (t.Stream != s.Stream || t.Pool != s.Pool || t.Large != s.Large) {
			return t.Address
		}
	}
	return math.MaxUint64
}

func (a *Allocator) restoreSegment(s *Segment, reserved Span) error {
	kind := kindOfSegment(s)
	p := a.pools[kind]
	if s.Pool != (PoolID{}) {
		private := a.private.byID[s.Pool]
		if private == nil {
			var err error
			if private, err = a.addPoolUse(s.Pool); err != nil {
				return err
			}
		}
		private.segments++
		private.bytes += s.TotalSize
		p = private.pools[kind]
	}
	sp := a.streamPoolFor(p, s.Stream)
	r := restorer{a: a, sp: sp, at: s.Address}
	if s.Expandable {
		var err error
		if r.seg, r.last, err = a.reservationFor(sp, s, reserved); err != nil {
			return err
		}
	} else {
		if ad, ok := a.dev.(driver.Adopter); ok {
			if err := ad.Adopt(s.Address, s.TotalSize); err != nil {
				return err
			}
		}
		r.seg = a.newSegment(segment{base: s.Address, size: s.TotalSize, streamPool: sp.id})
		a.stats.add(kind, statSegment, 1)
		if s.TotalSize >= a.cfg.MaxSplitSize {
			a.stats.oversizeSegments.add(1)
		}
	}
	a.reserved += s.TotalSize
	a.stats.add(kind, statReservedBytes, int64(s.TotalSize))
	return r.blocks(s)
}

// reservationFor finds or makes the expandable segment that a mapped run lies
// in, and returns it with the block that the run follows. What is left of the
// reservation behind the run is unmapped again.
func (a *Allocator) reservationFor(sp *streamPool, s *Segment, reserved Span) (segmentID, blockID, error) {
	rest := a.unmappedAt(sp, s.Address)
	seg := a.blocks[rest].seg
	if rest == noBlock {
		if err := checkWhole("reservation", reserved); err != nil {
			return 0, noBlock, err
		}
		if ad, ok := a.dev.(driver.Adopter); ok {
			if err := ad.AdoptRange(reserved.Addr, reserved.Size); err != nil {
				return 0, noBlock, err
			}
		}
		seg = a.newSegment(segment{base: reserved.Addr, size: reserved.Size, granule: a.rules.Granule(s.Large), streamPool: sp.id})
		rest = a.restoreUnmapped(sp, seg, reserved.Addr, reserved.End())
		a.segments[seg].head = rest
	}
	// The run cuts the unmapped rest in up to three.
	b := &a.blocks[rest]
	end := b.addr + b.size
	if s.Address < b.addr || s.Address+s.TotalSize > end || (s.Address-b.addr)%MinBlock != 0 {
		return 0, noBlock, fmt.Errorf("its %d bytes do not fit what is reserved, %#x to %#x", s.TotalSize, b.addr, end)
	}
	a.removeUnmapped(rest)
	last := rest
	if gap := s.Address - b.addr; gap > 0 {
		b.size = gap
		a.insertUnmapped(rest)
	} else {
		if last = b.prev; last != noBlock {
			return 0, noBlock, errors.New("it touches the mapped run before it: give both as one segment")
		}
		a.dropBlock(rest)
	}
	a.restoreUnmapped(sp, seg, s.Address+s.TotalSize, end)
	return seg, last, a.adoptMapped(s, a.segments[seg].granule)
}

// unmappedAt is the unmapped block that a run begins in; noBlock if the address is
// not reserved yet.
func (a *Allocator) unmappedAt(sp *streamPool, addr uint64) blockID {
	if n := len(sp.unmapped); n > 0 {
		id := sp.unmapped[n-1]
		if b := &a.blocks[id]; b.addr <= addr && addr < b.addr+b.size {
			return id
		}
	}
	return noBlock
}

// adoptMapped informs the driver of a mapped run.
func (a *Allocator) adoptMapped(s *Segment, granule uint64) error {
	if ad, ok := a.dev.(driver.Adopter); ok {
		return ad.AdoptMapped(s.Address, s.TotalSize, granule)
	}
	return nil
}

// restoreUnmapped makes the unmapped rest of a reservation. It is linked to the
// run in front of it when the run's blocks are there.
func (a *Allocator) restoreUnmapped(sp *streamPool, seg segmentID, from, to uint64) blockID {
	if from == to {
		return noBlock
	}
	id := a.newBlock()
	a.blocks[id] = block{addr: from, size: to - from, streamPool: sp.id, seg: seg, expandable: true, rank: a.created}
	a.insertUnmapped(id)
	return id
}

// restorer lays out the blocks of one segment from left to right.
type restorer struct {
	a    *Allocator
	sp   *streamPool
	seg  segmentID
	last blockID // left neighbour of what comes next
	at   uint64
}

func (r *restorer) blocks(s *Segment) error {
	a, end := r.a, s.Address+s.TotalSize
	listed := slices.Clone(s.Blocks)
	slices.SortFunc(listed, func(x, y Block) int { return cmp.Compare(x.Address, y.Address) })
	stale := map[uint64]uint64{}
	active := listed[:0]
	for _, b := range listed {
		if b.State == Inactive {
			stale[b.Address] = b.RequestedSize
		} else {
			active = append(active, b)
		}
	}
	unit := a.rules.unit()
	for i, b := range active {
		limit := end
		if i+1 < len(active) {
			limit = min(limit, active[i+1].Address)
		}
		if b.Address < r.at || b.Address >= end {
			return fmt.Errorf("the block at %#x overlaps another or lies outside", b.Address)
		}
		if b.Size == 0 {
			b.Size = a.impliedSize(r.sp.pool, b.RequestedSize, limit-b.Address)
		}
		if b.Size == 0 || b.Size%unit != 0 || (b.Address-s.Address)%unit != 0 || b.Size > limit-b.Address || b.RequestedSize > b.Size {
			return fmt.Errorf("a block of %d bytes for a request of %d does not fit at %#x", b.Size, b.RequestedSize, b.Address)
		}
		r.appendFree(b.Address, stale)
		r.appendActive(b)
	}
	r.appendFree(end, stale)
	return r.finish(s)
}

// impliedSize is the size of an allocated block with available bytes up to the next one:
// its rounded request, unless the rest is too small to have been split off.
func (a *Allocator) impliedSize(p *pool, request, available uint64) uint64 {
	rounded := a.rules.Round(max(request, 1))
	if rounded > available || !a.splitReason(p, rounded, available-rounded, a.cfg.ExpandableSegments).Split() {
		return available
	}
	return rounded
}

func (r *restorer) appendBlock(b block) blockID {
	id := r.a.newBlock()
	b.prev, b.streamPool, b.seg, b.rank = r.last, r.sp.id, r.seg, r.a.created
	b.expandable = r.a.segments[r.seg].expandable()
	r.a.blocks[id] = b
	if r.last == noBlock {
		r.a.segments[r.seg].head = id
	} else {
		r.a.blocks[r.last].next = id
	}
	r.last, r.at = id, b.addr+b.size
	return id
}

// appendFree fills the space up to an address with a free block.
func (r *restorer) appendFree(to uint64, stale map[uint64]uint64) {
	if to > r.at {
		at := r.at
		r.a.insertFree(r.appendBlock(block{addr: at, size: to - at, requested: stale[at]}))
	}
}

func (r *restorer) appendActive(b Block) {
	a, k := r.a, r.sp.pool.kind
	id := r.appendBlock(block{addr: b.Address, size: b.Size, requested: b.RequestedSize, state: stateAllocated})
	a.table.insert(b.Address, id)
	a.stats.handOut(k, int64(b.Size), int64(b.RequestedSize))
	if b.Size >= a.cfg.MaxSplitSize {
		a.stats.oversizeAllocations.add(1)
	}
}

// finish links the unmapped rest of a reservation and counts split free blocks.
func (r *restorer) finish(s *Segment) error {
	a := r.a
	if s.Expandable {
		if i, found := a.findByAddress(r.sp.unmapped, s.Address+s.TotalSize); found {
			rest := r.sp.unmapped[i]
			a.blocks[rest].prev = r.last
			a.blocks[r.last].next = rest
		}
		return nil
	}
	for id := a.segments[r.seg].head; id != noBlock; id = a.blocks[id].next {
		if b := &a.blocks[id]; b.state == stateFree && b.split() {
			a.stats.addSplit(r.sp.pool.kind, 1, int64(b.size))
		}
	}
	return nil
}

// Fits reports whether a cached block of the pool would serve a request, without
// new memory from the driver or a release.
func (a *Allocator) Fits(pool PoolID, size, stream uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	rounded := a.rules.Round(size)
	p := a.pools[kindOf(rounded)]
	expandable := a.cfg.ExpandableSegments
	if pool != (PoolID{}) {
		private := a.private.byID[pool]
		if private == nil {
			return false
		}
		p = private.pools[kindOf(rounded)]
		expandable = expandable && private.source == nil
	}
	i, found := p.find(stream)
	if !found {
		return false
	}
	choosy := a.choosy
	a.choosy = a.rules.unaligned // the question is not which one
	_, why := a.candidate(p.streamPools[i], rounded, expandable)
	a.choosy = choosy
	return why == missNone
}

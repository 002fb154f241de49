package alloc

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/invariants"
)

// afterOperation checks the invariants in builds that ask for it.
func (a *Allocator) afterOperation() {
	if invariants.Enabled {
		if err := a.check(); err != nil {
			panic("alloc: invariant violated: " + err.Error())
		}
	}
}

// CheckInvariants verifies that the allocator's structures agree with each
// other. It takes time proportional to the number of blocks and is meant for
// tests and for bug reports.
func (a *Allocator) CheckInvariants() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.check()
}

// tally is what a walk over all segments adds up.
type tally struct {
	current  [numKinds][numFamilies]int64
	free     map[streamPoolID]int
	unmapped map[streamPoolID]int
	withheld map[streamPoolID]int
	idle     uint64 // bytes of those
	away     uint64 // bytes that are not on the device
	bytes    map[*privatePool]uint64
	events   map[blockID]uint32
	deferred map[blockID]bool
	records  int
	live     int
	reserved uint64
}

func (a *Allocator) check() error {
	t := tally{
		free: map[streamPoolID]int{}, unmapped: map[streamPoolID]int{}, withheld: map[streamPoolID]int{}, bytes: map[*privatePool]uint64{},
		events: map[blockID]uint32{}, deferred: map[blockID]bool{},
	}
	for _, q := range a.queues {
		for _, g := range q.items[q.head:] {
			t.events[g.block]++
		}
	}
	for _, id := range a.deferred {
		t.deferred[id] = true
	}
	for id := range a.segments {
		if a.segments[id].size == 0 {
			continue
		}
		if err := a.checkSegment(segmentID(id), &t); err != nil {
			return fmt.Errorf("segment at %#x: %w", a.segments[id].base, err)
		}
	}
	for _, f := range []func(*tally) error{a.checkStreamPools, a.checkRecords, a.checkStats} {
		if err := f(&t); err != nil {
			return err
		}
	}
	return nil
}

// checkSegment: the blocks tile the segment, are linked both ways, and no two
// neighbours could have been merged.
func (a *Allocator) checkSegment(seg segmentID, t *tally) error {
	s := &a.segments[seg]
	sp := a.streamPools[s.streamPool]
	if sp == nil {
		return fmt.Errorf("its stream pool %d is gone", s.streamPool)
	}
	addr, prev := s.base, noBlock
	for id := s.head; id != noBlock; id = a.blocks[id].next {
		b := &a.blocks[id]
		t.records++
		switch {
		case b.addr != addr || b.size == 0 || b.size%a.rules.unit() != 0:
			return fmt.Errorf("block at %#x size %d does not follow on %#x", b.addr, b.size, addr)
		case b.prev != prev:
			return fmt.Errorf("block at %#x is linked to %d on its left, want %d", b.addr, b.prev, prev)
		case b.seg != seg || b.streamPool != s.streamPool || b.expandable != s.expandable():
			return fmt.Errorf("block at %#x belongs elsewhere", b.addr)
		case prev != noBlock && b.state == a.blocks[prev].state && (b.state == stateFree || b.state == stateUnmapped):
			return fmt.Errorf("blocks at %#x and %#x are not merged", a.blocks[prev].addr, b.addr)
		case prev != noBlock && b.state == stateWithheld && a.blocks[prev].state == stateWithheld && a.placeOf(s, b.addr) == a.placeOf(s, a.blocks[prev].addr):
			return fmt.Errorf("withheld blocks at %#x and %#x are not merged", a.blocks[prev].addr, b.addr)
		}
		if err := a.checkBlock(id, sp, t); err != nil {
			return fmt.Errorf("block at %#x: %w", b.addr, err)
		}
		addr, prev = b.addr+b.size, id
	}
	if addr != s.base+s.size {
		return fmt.Errorf("its blocks end at %#x, not at %#x", addr, s.base+s.size)
	}
	if !s.expandable() {
		t.current[sp.pool.kind][statSegment]++
	}
	return nil
}

// checkBlock: a block is where its state says, and is added to the tally.
func (a *Allocator) checkBlock(id blockID, sp *streamPool, t *tally) error {
	b := &a.blocks[id]
	cur := &t.current[sp.pool.kind]
	if b.events != t.events[id] {
		return fmt.Errorf("%d outstanding events, %d queued", b.events, t.events[id])
	}
	if b.state != stateUnmapped {
		away := a.awayBytes(b)
		t.away += away
		t.reserved += b.size - away
		cur[statReservedBytes] += int64(b.size - away)
		switch live := b.state == stateAllocated || b.state == statePending; {
		case live && b.elsewhere != (away > 0), !live && b.elsewhere:
			return fmt.Errorf("%d bytes are not on the device, but elsewhere is %v", away, b.elsewhere)
		case b.state == stateFree && away != 0, b.state == stateWithheld && away != b.size:
			return fmt.Errorf("state %d with %d of %d bytes not on the device", b.state, away, b.size)
		}
		if sp.pool.private != nil {
			t.bytes[sp.pool.private] += b.size
		}
	}
	if b.state == stateAllocated || b.state == statePending {
		cur[statActive]++
		cur[statActiveBytes] += int64(b.size)
		cur[statRequestedBytes] += int64(b.requested)
		if b.requested > b.size {
			return fmt.Errorf("size %d is smaller than the request of %d", b.size, b.requested)
		}
	}
	switch b.state {
	case stateAllocated:
		t.live++
		cur[statAllocation]++
		cur[statAllocatedBytes] += int64(b.size)
		if a.table.lookup(b.addr, a.blocks) != id {
			return fmt.Errorf("not in the address table")
		}
		if b.events != 0 {
			return fmt.Errorf("allocated with outstanding events")
		}
	case statePending:
		if b.events == 0 && !t.deferred[id] {
			return fmt.Errorf("waits for nothing")
		}
		if (b.uses != noUses) != t.deferred[id] {
			return fmt.Errorf("uses %d but deferred %v", b.uses, t.deferred[id])
		}
	case stateFree:
		t.free[sp.id]++
		if !b.expandable && b.split() {
			cur[statInactiveSplit]++
			cur[statInactiveSplitBytes] += int64(b.size)
		}
	case stateUnmapped:
		t.unmapped[sp.id]++
		if !b.expandable {
			return fmt.Errorf("unmapped in a plain segment")
		}
	case stateWithheld:
		t.withheld[sp.id]++
		t.idle += b.size
		if _, listed := a.findByAddress(sp.withheld, b.addr); !listed {
			return fmt.Errorf("withheld, but not in the list")
		}
	default:
		return fmt.Errorf("state %d", b.state)
	}
	if (b.state == stateFree || b.state == stateUnmapped || b.state == stateWithheld) && (b.uses != noUses || b.events != 0) {
		return fmt.Errorf("free with uses or events")
	}
	return nil
}

// awayBytes returns how much of a block is not on the device.
func (a *Allocator) awayBytes(b *block) uint64 {
	if !b.expandable || len(a.places) == 0 {
		return 0
	}
	var away uint64
	(&Placement{a}).PlaceOf(b.span(), func(part Span, place Place) {
		if place != OnDevice {
			away += part.Size
		}
	})
	return away
}

// checkStreamPools: free sets and unmapped lists hold exactly the blocks in those
// states, in order.
func (a *Allocator) checkStreamPools(t *tally) error {
	for _, sp := range a.streamPools {
		if sp == nil {
			continue
		}
		ids := sp.free.appendAll(nil)
		if len(ids) != t.free[sp.id] || len(sp.unmapped) != t.unmapped[sp.id] || len(sp.withheld) != t.withheld[sp.id] {
			return fmt.Errorf("stream pool %d lists %d free, %d unmapped and %d withheld blocks, has %d, %d and %d",
				sp.id, len(ids), len(sp.unmapped), len(sp.withheld), t.free[sp.id], t.unmapped[sp.id], t.withheld[sp.id])
		}
		for i, id := range ids {
			b := &a.blocks[id]
			if b.state != stateFree || b.streamPool != sp.id {
				return fmt.Errorf("block at %#x in state %d is in a free set", b.addr, b.state)
			}
			if i > 0 {
				p := &a.blocks[ids[i-1]]
				if ps, bs := p.size>>unitBits, b.size>>unitBits; ps > bs || ps == bs && p.rank >= b.rank {
					return fmt.Errorf("free set out of order at %#x", b.addr)
				}
				if sp.free.after(p.size, p.rank) != id || sp.free.before(b.size, b.rank) != ids[i-1] {
					return fmt.Errorf("free set cannot be walked at %#x", b.addr)
				}
			}
		}
		if listed := slices.Contains(sp.pool.touched, sp); listed != (len(sp.fresh) > 0) {
			return fmt.Errorf("stream pool %d has %d fresh blocks, and is listed: %v", sp.id, len(sp.fresh), listed)
		}
		for _, id := range ids {
			if n := a.releasableOf(id); n > 0 && len(sp.fresh) < mostFresh && !slices.Contains(sp.fresh, id) {
				return fmt.Errorf("%d bytes of the free block at %#x can be released, and it is not fresh", n, a.blocks[id].addr)
			}
		}
		for i, id := range sp.unmapped {
			b := &a.blocks[id]
			if b.state != stateUnmapped || b.streamPool != sp.id || i > 0 && a.blocks[sp.unmapped[i-1]].addr >= b.addr {
				return fmt.Errorf("unmapped list is wrong at %#x", b.addr)
			}
		}
	}
	for p, bytes := range t.bytes {
		if p.bytes != bytes || a.private.byID[p.id] != p && !p.orphan {
			return fmt.Errorf("pool %v holds %d bytes, counts %d", p.id, bytes, p.bytes)
		}
	}
	return nil
}

// checkRecords: no record is lost or used twice.
func (a *Allocator) checkRecords(t *tally) error {
	spare := 0
	for id := a.spare; id != noBlock; id = a.blocks[id].next {
		if spare++; a.blocks[id].state != stateNone {
			return fmt.Errorf("spare record %d is in use", id)
		}
	}
	if used := len(a.blocks) - 1 - spare; used != t.records {
		return fmt.Errorf("%d block records in use, %d in segments", used, t.records)
	}
	if a.table.n != t.live {
		return fmt.Errorf("%d addresses in the table, %d blocks allocated", a.table.n, t.live)
	}
	queued := 0
	for _, n := range t.events {
		queued += int(n)
	}
	if a.queued != queued {
		return fmt.Errorf("%d events queued, counted %d", queued, a.queued)
	}
	return nil
}

// checkStats: the currents are the sums over the blocks, and no peak is below
// its current.
func (a *Allocator) checkStats(t *tally) error {
	if a.reserved != t.reserved {
		return fmt.Errorf("%d bytes reserved, counted %d", t.reserved, a.reserved)
	}
	if a.elsewhere != t.away {
		return fmt.Errorf("%d bytes elsewhere, counted %d", t.away, a.elsewhere)
	}
	if a.withheld != t.idle {
		return fmt.Errorf("%d bytes withheld, counted %d", t.idle, a.withheld)
	}
	stats := a.stats // reading the peaks must not bring a.stats up to date
	stats.updatePeaks()
	for f := range numFamilies {
		var sum int64
		for k := range stats.kinds {
			c := &stats.kinds[k]
			sum += c.current(f)
			if got, want := c.current(f), t.current[k][f]; got != want {
				return fmt.Errorf("%s of kind %d is %d, blocks add up to %d", familyNames[f], k, got, want)
			}
			if c.peak[f] < c.current(f) {
				return fmt.Errorf("%s of kind %d has peak %d below %d", familyNames[f], k, c.peak[f], c.current(f))
			}
		}
		if stats.peak[f] < sum {
			return fmt.Errorf("%s has peak %d below %d", familyNames[f], stats.peak[f], sum)
		}
	}
	return nil
}

package alloc

import "github.com/ashlar-mem/ashlar/settings"

// Shortage is the free memory of an allocator after a failed request, by the reason
// why it could not serve the request.
type Shortage struct {
	// Bytes in free blocks, by what kept the request from them.
	Usable  uint64 // its own pool and stream: none is large enough
	Largest uint64 // the largest of them
	Streams uint64 // the same pool, but other streams
	Kinds   uint64 // the other kind of pool: small for a large request and the reverse
	Private uint64 // pools of graphs and MemPools, or the default ones for a request of such a pool

	Waiting    uint64 // freed, but still in use on other streams
	Routed     bool   // a pool receives allocations, so that nothing could be released
	Expandable bool   // whether expandable segments are on

	// ExpandableServes: expandable segments are off, and with them there would be
	// room for the request, as far as granules go: what is in use, packed into
	// whole granules of each pool and stream, and the request beside it.
	ExpandableServes bool
}

// Free returns the sum over all free blocks.
func (s Shortage) Free() uint64 { return s.Usable + s.Streams + s.Kinds + s.Private }

// Shortage describes the state after a request failed. Call it right after the
// failure: it describes the current state.
func (a *Allocator) Shortage(e *OutOfMemoryError) Shortage {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Shortage{Routed: a.capturing(e.Stream), Expandable: a.cfg.ExpandableSegments}
	kind := kindOf(e.Rounded)
	for _, sp := range a.streamPools {
		if sp == nil {
			continue
		}
		var free uint64
		for _, id := range sp.free.appendAll(nil) {
			free += a.blocks[id].size
		}
		var id PoolID
		if p := sp.pool.private; p != nil {
			id = p.id
		}
		switch {
		case id != e.Pool:
			s.Private += free
		case sp.pool.kind != kind:
			s.Kinds += free
		case sp.stream != e.Stream:
			s.Streams += free
		default:
			s.Usable += free
			if largest := sp.free.before(maxBlockSize, 0); largest != noBlock {
				s.Largest = a.blocks[largest].size
			}
		}
	}
	for k := range a.stats.kinds {
		c := &a.stats.kinds[k]
		s.Waiting += uint64(c.current(statActiveBytes) - c.current(statAllocatedBytes))
	}
	s.ExpandableServes = !s.Expandable && !s.Routed && a.expandableServes(e)
	return s
}

// expandableServes reports whether granules leave room for a request that failed
// in plain segments.
func (a *Allocator) expandableServes(e *OutOfMemoryError) bool {
	cfg := a.cfg
	cfg.ExpandableSegments = true
	if e.TooLarge || MappingProblem(cfg) != "" {
		return false
	}
	mapped, more := a.packed(e, &a.rules)
	if more == 0 {
		return true
	}
	if e.Limited && mapped+e.Segment > e.Limit { // the limit is checked as for a plain segment (spec 3.1)
		return false
	}
	return mapped+more <= e.DeviceFree+e.Reserved
}

// MappedWith returns how much device memory expandable segments with other settings would have mapped to serve a
// request that failed, too, if free pieces were no obstacle.
func (a *Allocator) MappedWith(e *OutOfMemoryError, s settings.Settings) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	rules := a.rules.Differences.rules(s)
	mapped, more := a.packed(e, &rules)
	return mapped + more
}

// packed returns how much granules take of what is in use on the device, and how much more the request does that failed. Every pool
// and stream has its own granules (spec 6.1), so many streams with little in each may need more than plain segments do.
func (a *Allocator) packed(e *OutOfMemoryError, rules *Rules) (mapped, more uint64) {
	used := make([]uint64, len(a.streamPools))
	for i := range a.blocks {
		if b := &a.blocks[i]; (b.state == stateAllocated || b.state == statePending) && !b.elsewhere {
			used[b.streamPool] += b.size
		}
	}
	tail := uint64(0) // what is left in the granules of the request's own
	for i, sp := range a.streamPools {
		switch {
		case sp == nil:
		case sp.pool.private != nil && sp.pool.private.source != nil: // its segments stay what they are
			mapped += used[i]
		default:
			size := rules.MappedSize(used[i], sp.pool.kind == large)
			mapped += size
			if sp.pool == a.poolOf(e) && sp.stream == e.Stream {
				tail = size - used[i]
			}
		}
	}
	if tail >= e.Rounded {
		return mapped, 0
	}
	return mapped, rules.MappedSize(e.Rounded-tail, kindOf(e.Rounded) == large)
}

// poolOf returns the pool of a request that failed; nil if it is gone.
func (a *Allocator) poolOf(e *OutOfMemoryError) *pool {
	kind := kindOf(e.Rounded)
	if e.Pool == (PoolID{}) {
		return a.pools[kind]
	}
	if p := a.private.byID[e.Pool]; p != nil {
		return p.pools[kind]
	}
	return nil
}

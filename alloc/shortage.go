package alloc

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
}

// Free returns the sum over all free blocks.
func (s Shortage) Free() uint64 { return s.Usable + s.Streams + s.Kinds + s.Private }

// Shortage describes the state after a request failed. Call it right after the
// failure: it describes the current state.
func (a *Allocator) Shortage(e *OutOfMemoryError) Shortage {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Shortage{Routed: len(a.routes) != 0, Expandable: a.cfg.ExpandableSegments}
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
	return s
}

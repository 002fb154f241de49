package alloc

// collect is the garbage collection of spec 7.3: while more than the
// threshold is reserved, whole segments of the default large pool that have
// gone unused for at least the average time are given back, in rounds. Time is
// counted in searches of that pool.
func (a *Allocator) collect() error {
	threshold := uint64(a.cfg.GarbageCollectionThreshold * float64(a.limit))
	if a.reserved <= threshold {
		if a.explain != nil {
			a.explain(Collection{Reserved: a.reserved, Threshold: threshold, Limit: a.limit})
		}
		return nil
	}
	target := a.reserved - threshold
	p := a.pools[large]
	age := func(id blockID) uint64 { return uint64(uint32(p.searches) - a.blocks[id].entered) }

	candidates := p.freeBlocks(a.scratch[:0])
	a.scratch = candidates
	var ages uint64
	kept := candidates[:0]
	for _, id := range candidates {
		if a.releasable(id) {
			kept = append(kept, id)
			ages += age(id)
		}
	}
	candidates = kept
	a.orderTies(candidates)
	if a.explain != nil {
		a.explain(Collection{Reserved: a.reserved, Threshold: threshold, Limit: a.limit, Candidates: len(candidates)})
	}
	for reclaimed, progress := uint64(0), true; reclaimed < target && progress && len(candidates) > 0; {
		average := float64(ages) / float64(len(candidates))
		progress = false
		kept := candidates[:0]
		for _, id := range candidates {
			young := float64(age(id)) < average
			if a.explain != nil {
				a.explain(Aging{Segment: a.blocks[id].span(), Age: age(id), Average: average, Released: !young})
			}
			if young {
				kept = append(kept, id)
				continue
			}
			progress = true
			reclaimed += a.blocks[id].size
			ages -= age(id)
			if err := a.releaseSegment(id); err != nil {
				return err
			}
		}
		candidates = kept
	}
	return nil
}

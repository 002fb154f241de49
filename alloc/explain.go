package alloc

// WithExplainer calls f for every [Decision], in order. f runs under the
// allocator's lock and must not call the allocator. Without it a decision costs
// one comparison.
func WithExplainer(f func(Decision)) Option {
	return func(a *Allocator) { a.explain = f }
}

// The functions below are called only with an explainer. They are apart from the
// functions that decide, so that those stay short.

func (b *block) span() Span { return Span{b.addr, b.size} }

func (a *Allocator) explainRequest(size, rounded uint64, sp *streamPool, expandable bool) {
	r := Rounding{Request: size, Rounded: rounded, Unit: MinBlock}
	if d := a.rules.divisionsOf(size); d > 0 {
		r.Divisions, r.Unit = d, divisionStep(size, d)
	}
	a.explain(r)
	c := PoolChoice{Rounded: rounded, SmallMax: SmallMax, Large: sp.pool.kind == large, Stream: sp.stream, Expandable: expandable}
	if p := sp.pool.private; p != nil {
		c.Pool = p.id
	}
	a.explain(c)
}

// explainSearch reports how a search ended: with a block that it uses, or why it
// uses none. It is called before the block leaves the free set.
func (a *Allocator) explainSearch(sp *streamPool, rounded uint64, id blockID, why MissReason, expandable bool) {
	if why == missNone {
		smallest := sp.free.ceil(rounded)
		fit := BestFit{Rounded: rounded, Block: a.blocks[id].span(), Smallest: a.blocks[smallest].span(), Expandable: expandable}
		if expandable && a.blocks[smallest].expandable {
			fit.GrowableSize = a.growableSize(id)
		}
		a.explain(fit)
		return
	}
	n := NoFit{Rounded: rounded, Large: sp.pool.kind == large, Stream: sp.stream, Reason: why}
	switch why {
	case KeptForLarge:
		n.Bound = a.cfg.MaxSplitSize
	case TooMuchLarger:
		n.Bound = rounded + a.cfg.MaxNonSplitRounding
	}
	if id != noBlock {
		n.Refused = a.blocks[id].span()
	}
	for _, f := range sp.free.appendAll(nil) {
		n.Free += a.blocks[f].size
		n.Blocks++
		n.Largest = max(n.Largest, a.blocks[f].size)
	}
	for _, other := range sp.pool.streamPools {
		if other == sp {
			continue
		}
		if f := other.free.before(maxBlockSize, 0); f != noBlock && a.blocks[f].size > n.Elsewhere.Size {
			n.Elsewhere, n.OtherStream = a.blocks[f].span(), other.stream
		}
	}
	a.explain(n)
}

func (a *Allocator) explainSplit(b *block, rounded uint64, why SplitReason) {
	s := Splitting{Block: b.span(), Rounded: rounded, Rest: b.size - rounded, Reason: why}
	switch why {
	case RestBelowMinimum, RestIsBlock:
		s.Bound = MinBlock
	case RestNotAboveBound, RestAboveBound:
		s.Bound = UnsplitMax
	case RequestIsLarge:
		s.Bound = a.cfg.MaxSplitSize
	}
	a.explain(s)
}

// explainReturn reports a block that had the given address and size before it merged.
func (a *Allocator) explainReturn(b *block, sp *streamPool, addr, size uint64) {
	before, behind := a.blocks[b.prev].state, a.blocks[b.next].state
	a.explain(Return{
		Block: Span{addr, size}, Left: addr - b.addr, Right: b.addr + b.size - (addr + size),
		Whole: !b.split(), Large: sp.pool.kind == large, Stream: sp.stream,
		Grows: behind == stateUnmapped,
		Apart: b.expandable && (before == stateNone || before == stateUnmapped) && (behind == stateNone || behind == stateUnmapped),
	})
}

func (a *Allocator) explainSegment(r *request) {
	s := SegmentChoice{Rounded: r.rounded, Segment: r.segment, Rule: segmentRule(r.rounded), Expandable: r.expandable, Limited: a.limited}
	switch s.Rule {
	case SmallSegments:
		s.To = SmallMax + MinBlock
	case MediumSegments:
		s.From, s.To = SmallMax+MinBlock, OwnSegmentMin
	case OwnSegment:
		s.From, s.Unit = OwnSegmentMin, SegmentUnit
	}
	a.explain(s)
}

func (a *Allocator) explainGrowth(id blockID, rounded uint64) {
	b := &a.blocks[id]
	g := Growth{Addr: b.addr, Rounded: rounded}
	if b.state == stateFree {
		g.Free = b.size
	}
	a.explain(g)
}

// explainPinned reports a free block that a release leaves in place.
func (a *Allocator) explainPinned(b *block) {
	a.explain(Pinned{Block: b.span(), Granule: a.segments[b.seg].granule})
}

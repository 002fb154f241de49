package alloc

import (
	"cmp"
	"slices"
)

// poolKind distinguishes the two pools of a pair.
type poolKind uint8

const (
	small poolKind = iota
	large
	numKinds
)

// pool is the small or the large half of a pool pair (spec 0.1). The device
// has a default pair; every private pool has one of its own.
type pool struct {
	kind        poolKind
	noSplit     bool          // spec 4.1 step 1
	private     *privatePool  // nil for the default pair
	searches    uint64        // counted while garbage collection is armed (spec 2.3)
	streamPools []*streamPool // ascending by stream
	last        *streamPool   // the one used last
	touched     []*streamPool // those with fresh blocks
}

type streamPoolID uint32

// streamPool holds the free blocks of one pool and one stream. PyTorch keeps one set
// ordered by stream first; blocks of different streams never meet, so one set per
// stream is equivalent and faster.
type streamPool struct {
	id       streamPoolID
	stream   uint64
	pool     *pool
	free     freeSet
	fresh    []blockID // those that have entered it since the last release, if they are fewer than mostFresh
	unmapped []blockID // ascending by address
	withheld []blockID // ascending by address
}

// streamPoolFor returns the pool's streamPool for stream, making it at first use.
func (a *Allocator) streamPoolFor(p *pool, stream uint64) *streamPool {
	if p.last != nil && p.last.stream == stream {
		return p.last
	}
	i, found := p.find(stream)
	if !found {
		sp := &streamPool{stream: stream, pool: p, free: freeSet{forest: &a.forest}}
		if n := len(a.spareStreamPools); n > 0 {
			sp.id = a.spareStreamPools[n-1]
			a.spareStreamPools = a.spareStreamPools[:n-1]
			a.streamPools[sp.id] = sp
		} else {
			sp.id = streamPoolID(len(a.streamPools))
			a.streamPools = append(a.streamPools, sp)
		}
		p.streamPools = slices.Insert(p.streamPools, i, sp)
	}
	p.last = p.streamPools[i]
	return p.last
}

func (p *pool) find(stream uint64) (int, bool) {
	return slices.BinarySearchFunc(p.streamPools, stream, func(sp *streamPool, s uint64) int { return cmp.Compare(sp.stream, s) })
}

// dropStreamPools forgets the stream pools of a pool that has no blocks any more.
func (a *Allocator) dropStreamPools(p *pool) {
	for _, sp := range p.streamPools {
		a.streamPools[sp.id] = nil
		a.spareStreamPools = append(a.spareStreamPools, sp.id)
	}
	p.streamPools, p.touched, p.last = nil, nil, nil
}

// insertFree puts a block into its stream pool's free set (spec 2.3).
func (a *Allocator) insertFree(id blockID) {
	b := &a.blocks[id]
	sp := a.streamPools[b.streamPool]
	b.state = stateFree
	b.entered = uint32(sp.pool.searches)
	sp.free.insert(b.size, a.ranked(b), id)
	if len(sp.fresh) < mostFresh {
		sp.addFresh(id)
	}
}

// mostFresh is how many fresh blocks a stream pool lists; from then on all of its blocks count as fresh.
const mostFresh = 256

// addFresh notes that a block has entered the free set, or has become smaller there. What a release leaves is
// split, or less than a granule, until then: so the next one need not look at it again, of which there may be very much.
func (sp *streamPool) addFresh(id blockID) {
	if len(sp.fresh) == 0 {
		sp.pool.touched = append(sp.pool.touched, sp)
	}
	sp.fresh = append(sp.fresh, id)
}

// forgetFresh notes that all that can be released was.
func (p *pool) forgetFresh() {
	for _, sp := range p.touched {
		sp.fresh = sp.fresh[:0]
	}
	p.touched = p.touched[:0]
}

// freshBlocks appends the pool's fresh blocks that are free, in the order of freeBlocks.
func (a *Allocator) freshBlocks(p *pool, ids []blockID) []blockID {
	slices.SortFunc(p.touched, func(x, y *streamPool) int { return cmp.Compare(x.stream, y.stream) })
	for _, sp := range p.touched {
		if len(sp.fresh) == mostFresh {
			ids = sp.free.appendAll(ids)
			continue
		}
		// A record may have entered more than once, and be another block's by now.
		begin := len(ids)
		for _, id := range sp.fresh {
			if b := &a.blocks[id]; b.state == stateFree && b.streamPool == sp.id {
				ids = append(ids, id)
			}
		}
		slices.SortFunc(ids[begin:], func(x, y blockID) int {
			b, c := &a.blocks[x], &a.blocks[y]
			return cmp.Or(cmp.Compare(b.size>>unitBits, c.size>>unitBits), cmp.Compare(b.rank, c.rank))
		})
		ids = ids[:begin+len(slices.Compact(ids[begin:]))]
	}
	return ids
}

// removeFree takes a block out of its stream pool's free set.
func (a *Allocator) removeFree(id blockID) {
	b := &a.blocks[id]
	a.streamPools[b.streamPool].free.remove(b.size, b.rank)
}

// freeAfter returns the free block that follows another in the order of its
// stream pool's set.
func (a *Allocator) freeAfter(sp *streamPool, id blockID) blockID {
	b := &a.blocks[id]
	return sp.free.after(b.size, b.rank)
}

// leastUnaligned returns the smallest block of at least size bytes, of those the
// first, starting at where the free set has the size. The set counts in whole
// units, so blocks of sizes that begin with the same unit are in no order.
func (a *Allocator) leastUnaligned(sp *streamPool, id blockID, size uint64) blockID {
	best := noBlock
	for ; id != noBlock; id = a.freeAfter(sp, id) {
		b := &a.blocks[id]
		if best != noBlock && b.size>>unitBits > a.blocks[best].size>>unitBits {
			break
		}
		if b.size >= size && (best == noBlock || b.size < a.blocks[best].size) {
			best = id
		}
	}
	return best
}

// freeBlocks returns the free blocks of all pools.
func (a *Allocator) freeBlocks() []blockID {
	var ids []blockID
	for _, sp := range a.streamPools {
		if sp != nil {
			ids = sp.free.appendAll(ids)
		}
	}
	return ids
}

// freeBlocks appends the pool's free blocks in set order: stream, size, rank.
func (p *pool) freeBlocks(ids []blockID) []blockID {
	for _, sp := range p.streamPools {
		ids = sp.free.appendAll(ids)
	}
	return ids
}

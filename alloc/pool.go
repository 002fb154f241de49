package alloc

import (
	"cmp"
	"slices"
)

// poolKind tells the two pools of a pair apart.
type poolKind uint8

const (
	small poolKind = iota
	large
	numKinds
)

// pool is the small or the large half of a pool pair (spec 0.1). The device
// has a default pair; every private pool has one of its own.
type pool struct {
	kind     poolKind
	noSplit  bool         // spec 4.1 step 1
	private  *privatePool // nil for the default pair
	searches uint64       // counted while garbage collection is armed (spec 2.3)
	homes    []*home      // ascending by stream
	last     *home        // the one used last
}

type homeID uint32

// home is where the blocks of one pool and one stream live when nobody uses
// them. PyTorch keeps one set ordered by stream first; blocks of different
// streams never meet, so a set for each stream is the same and faster.
type home struct {
	id       homeID
	stream   uint64
	pool     *pool
	free     freeSet
	unmapped []blockID // ascending by address
}

// homeFor returns the pool's home for a stream, making it at first use.
func (a *Allocator) homeFor(p *pool, stream uint64) *home {
	if p.last != nil && p.last.stream == stream {
		return p.last
	}
	i, found := p.find(stream)
	if !found {
		h := &home{stream: stream, pool: p, free: freeSet{forest: &a.forest}}
		if n := len(a.spareHomes); n > 0 {
			h.id = a.spareHomes[n-1]
			a.spareHomes = a.spareHomes[:n-1]
			a.homes[h.id] = h
		} else {
			h.id = homeID(len(a.homes))
			a.homes = append(a.homes, h)
		}
		p.homes = slices.Insert(p.homes, i, h)
	}
	p.last = p.homes[i]
	return p.last
}

func (p *pool) find(stream uint64) (int, bool) {
	return slices.BinarySearchFunc(p.homes, stream, func(h *home, s uint64) int { return cmp.Compare(h.stream, s) })
}

// dropHomes forgets the homes of a pool that has no blocks any more.
func (a *Allocator) dropHomes(p *pool) {
	for _, h := range p.homes {
		a.homes[h.id] = nil
		a.spareHomes = append(a.spareHomes, h.id)
	}
	p.homes, p.last = nil, nil
}

// enter puts a block into its home's free set (spec 2.3).
func (a *Allocator) enter(id blockID) {
	b := &a.blocks[id]
	h := a.homes[b.home]
	b.state = stateFree
	b.entered = h.pool.searches
	h.free.insert(b.size, b.addr, id)
}

// leave takes a block out of its home's free set.
func (a *Allocator) leave(id blockID) {
	b := &a.blocks[id]
	a.homes[b.home].free.remove(b.size, b.addr)
}

// freeBlocks appends the pool's free blocks in set order: stream, size, address.
func (p *pool) freeBlocks(ids []blockID) []blockID {
	for _, h := range p.homes {
		ids = h.free.appendAll(ids)
	}
	return ids
}

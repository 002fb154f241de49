package private

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
)

// Pools holds the private pools of one allocator.
type Pools struct {
	allocator *alloc.Allocator
	held      map[alloc.PoolID]*alloc.Capture
}

// New returns the pools of an allocator, none of them held.
func New(a *alloc.Allocator) *Pools {
	return &Pools{allocator: a, held: map[alloc.PoolID]*alloc.Capture{}}
}

// Route directs what malloc allocates to a pool and holds the pool from then
// on. The zero pool is the default one, for which nothing is directed.
func (p *Pools) Route(id alloc.PoolID, malloc func() error) error {
	if id == (alloc.PoolID{}) {
		return malloc()
	}
	begin := p.allocator.BeginCapture
	if id.First == 0 {
		begin = p.allocator.RouteStreams // a MemPool's
	}
	c, err := begin(id, func(uint64) bool { return true })
	if err != nil {
		return err
	}
	failed := malloc()
	if err := p.hold(id, c); err != nil {
		return err
	}
	return failed
}

// Hold keeps a pool alive that has memory already.
func (p *Pools) Hold(id alloc.PoolID) error {
	if id == (alloc.PoolID{}) || p.held[id] != nil {
		return nil
	}
	c, err := p.allocator.BeginCapture(id, func(uint64) bool { return false })
	if err != nil {
		return err
	}
	return p.hold(id, c)
}

// hold ends a capture. One capture is enough to hold a pool.
func (p *Pools) hold(id alloc.PoolID, c *alloc.Capture) error {
	if err := c.End(); err != nil {
		return err
	}
	if p.held[id] != nil {
		return c.Release()
	}
	p.held[id] = c
	return nil
}

// Holds reports whether a pool is held.
func (p *Pools) Holds(id alloc.PoolID) bool { return p.held[id] != nil }

// Release gives a pool up, if it is held: emptying the cache releases its
// memory too from then on.
func (p *Pools) Release(id alloc.PoolID) error { return p.drop(id, (*alloc.Capture).Release) }

// Close gives a pool up, if it is held, and releases its memory at once.
func (p *Pools) Close(id alloc.PoolID) error { return p.drop(id, (*alloc.Capture).Close) }

// CloseAll closes the pools that are held, in the order of their ids.
func (p *Pools) CloseAll() error {
	ids := slices.SortedFunc(maps.Keys(p.held), func(a, b alloc.PoolID) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Second, b.Second))
	})
	for _, id := range ids {
		if err := p.Close(id); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pools) drop(id alloc.PoolID, end func(*alloc.Capture) error) error {
	c := p.held[id]
	if c == nil {
		return nil
	}
	delete(p.held, id)
	return end(c)
}

package alloc

import (
	"fmt"
	"slices"
)

// PoolID names a pool. The zero value is the default pool; pools made by graph
// captures are (n, 0), those made by [Allocator.NewMemPool] are (0, n).
type PoolID struct {
	First, Second uint64
}

func (p PoolID) String() string { return fmt.Sprintf("(%d,%d)", p.First, p.Second) }

// privatePools are the pools beside the default one.
type privatePools struct {
	byID     map[PoolID]*privatePool
	freeable hashOrder // use count 0, waiting for their memory to come back
	overflow hashOrder // registered with use_on_oom
	captures uint64    // ids given out, (n, 0)
	memPools uint64    // ids given out, (0, n)

	// Pools that PyTorch deletes although blocks of them are in use. Nothing
	// is allocated from them any more; see Allocator.rescue.
	orphans []*privatePool
}

type privatePool struct {
	id       PoolID
	uses     int // MemPool object, routes and graphs that hold it
	segments int // PyTorch's count: +1 per attempt to get memory, -1 per release
	bytes    uint64
	source   SegmentSource
	pools    [numKinds]*pool
	orphan   bool
}

// SegmentSource gives a MemPool its segments instead of the driver. A Malloc
// that fails with driver.ErrOutOfMemory leads to the usual out-of-memory path.
type SegmentSource interface {
	Malloc(size, stream uint64) (addr uint64, err error)
	Free(addr, size uint64) error
}

// route redirects allocations to a private pool (spec 8.3).
type route struct {
	pool    *privatePool
	accept  func(stream, thread uint64) bool
	capture bool // a graph is captured, not only memory redirected
}

// routed returns the pool of the newest route that accepts, or nil.
func (a *Allocator) routed(stream, thread uint64) *privatePool {
	var found *privatePool
	for i := len(a.routes) - 1; i >= 0; i-- {
		if !a.routes[i].accept(stream, thread) {
			continue
		}
		found = a.routes[i].pool
		if !a.rules.OldestRoute {
			break
		}
	}
	return found
}

// capturing reports whether routes keep a request or a free on stream from asking
// for events and from emptying the cache (spec 8.4).
func (a *Allocator) capturing(stream uint64) bool {
	if !a.rules.CaptureOnly {
		return len(a.routes) != 0
	}
	return slices.ContainsFunc(a.routes, func(r route) bool { return r.capture && r.accept(stream, 0) })
}

// capturingAny is capturing for a call that names no stream.
func (a *Allocator) capturingAny() bool {
	return slices.ContainsFunc(a.routes, func(r route) bool { return r.capture || !a.rules.CaptureOnly })
}

// addPoolUse returns the pool with the given id with its use count raised, making
// it at first use.
func (a *Allocator) addPoolUse(id PoolID) (*privatePool, error) {
	p := a.private.byID[id]
	switch {
	case p == nil:
		p = &privatePool{id: id}
		for k := range p.pools {
			p.pools[k] = &pool{kind: poolKind(k), private: p}
		}
		if a.private.byID == nil {
			a.private.byID = map[PoolID]*privatePool{}
		}
		a.private.byID[id] = p
	case p.uses == 0:
		return nil, &PoolError{ID: id, Problem: "is no longer in use and waits to be freed"}
	}
	p.uses++
	return p, nil
}

// dropPoolUse lowers a pool's use count; at 0 full releases may delete it.
func (a *Allocator) dropPoolUse(p *privatePool) {
	if p.uses--; p.uses == 0 {
		a.private.freeable.insert(p.id)
	}
}

// beginRoute holds the pool and redirects accepted allocations to it.
func (a *Allocator) beginRoute(id PoolID, capture bool, accept func(stream, thread uint64) bool) (*privatePool, error) {
	if slices.ContainsFunc(a.routes, func(r route) bool { return r.pool.id == id }) {
		return nil, &PoolError{ID: id, Problem: "already receives allocations"}
	}
	p, err := a.addPoolUse(id)
	if err != nil {
		return nil, err
	}
	a.routes = append(a.routes, route{p, accept, capture})
	return p, nil
}

// endRoute stops redirecting; the pool keeps its use count.
func (a *Allocator) endRoute(p *privatePool) error {
	i := slices.IndexFunc(a.routes, func(r route) bool { return r.pool == p })
	if i < 0 {
		return &PoolError{ID: p.id, Problem: "does not receive allocations"}
	}
	a.routes = slices.Delete(a.routes, i, i+1)
	return nil
}

// dropSegmentCount lowers PyTorch's count of a pool's segments. The count
// rises once per attempt but falls once per unmapped range, so with expandable
// segments it can come out wrong (spec 14 item 9).
func (a *Allocator) dropSegmentCount(p *privatePool) {
	if p.segments == 0 {
		a.setUndefined(p.id, fmt.Sprintf("the segment count of pool %v falls below zero (internal assert cudaMalloc_count > 0)", p.id))
		return
	}
	p.segments--
}

// MemPoolOptions are the options of a MemPool (spec 8.5).
type MemPoolOptions struct {
	UseOnOOM bool          // its cached blocks serve any request that would fail otherwise
	NoSplit  bool          // its blocks are never split
	Source   SegmentSource // where its segments come from; nil for the driver
}

// MemPool is a pool of its own that allocations can be directed to.
type MemPool struct {
	a      *Allocator
	pool   *privatePool
	closed bool
}

// NewMemPool makes a pool.
func (a *Allocator) NewMemPool(o MemPoolOptions) (*MemPool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.private.memPools++
	id := PoolID{0, a.private.memPools}
	p, err := a.addPoolUse(id)
	if err != nil {
		return nil, err
	}
	p.source = o.Source
	for _, q := range p.pools {
		q.noSplit = o.NoSplit
	}
	if o.UseOnOOM {
		a.private.overflow.insert(id)
	}
	return &MemPool{a: a, pool: p}, nil
}

// ID returns the pool's id.
func (m *MemPool) ID() PoolID { return m.pool.id }

// Begin directs the allocations of one thread to the pool until End. While any
// pool receives allocations the device does not flush its cache when memory
// runs out, and frees of memory used on several streams wait (spec 8.4); from
// PyTorch 2.13 on only captures have these effects.
func (m *MemPool) Begin(thread uint64) error {
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	if m.closed {
		return &PoolError{ID: m.pool.id, Problem: "is closed"}
	}
	_, err := m.a.beginRoute(m.pool.id, false, func(_, t uint64) bool { return t == thread })
	return err
}

// End undoes Begin.
func (m *MemPool) End() error {
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	if err := m.a.endRoute(m.pool); err != nil {
		return err
	}
	m.a.dropPoolUse(m.pool)
	return nil
}

// Close gives the pool up. Its cached memory is released; blocks still in use
// stay valid, and the pool disappears when they are freed and the cache is
// emptied.
func (m *MemPool) Close() error {
	a := m.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.closed {
		return &PoolError{ID: m.pool.id, Problem: "is closed"}
	}
	if a.capturingAny() {
		return &RouteActiveError{Doing: "closing pool " + m.pool.id.String()}
	}
	m.closed = true
	a.private.overflow.remove(m.pool.id)
	a.dropPoolUse(m.pool)
	return a.releaseFreeable(m.pool)
}

// releaseFreeable releases one pool, if nobody uses it any more (spec 7.2).
func (a *Allocator) releaseFreeable(p *privatePool) error {
	defer a.afterOperation()
	if !a.private.freeable.has(p.id) {
		return nil
	}
	if err := a.synchronize(p); err != nil {
		return err
	}
	deleted, err := a.releasePrivate(p)
	if deleted {
		a.private.freeable.remove(p.id)
	}
	return err
}

// Capture is a graph capture: its streams allocate from a pool that lives as
// long as the graph.
type Capture struct {
	a        *Allocator
	pool     *privatePool
	ended    bool
	released bool
}

// BeginCapture directs the allocations of the streams that accept names to a
// pool: the one with the given id, or a new one for the zero id (spec 5.7).
func (a *Allocator) BeginCapture(pool PoolID, accept func(stream uint64) bool) (*Capture, error) {
	return a.route(pool, true, accept)
}

// RouteStreams is BeginCapture without a graph: the allocations of the streams go
// to the pool, and nothing is captured.
func (a *Allocator) RouteStreams(pool PoolID, accept func(stream uint64) bool) (*Capture, error) {
	return a.route(pool, false, accept)
}

func (a *Allocator) route(pool PoolID, capture bool, accept func(stream uint64) bool) (*Capture, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if pool == (PoolID{}) {
		a.private.captures++
		pool = PoolID{a.private.captures, 0}
	}
	p, err := a.beginRoute(pool, capture, func(stream, _ uint64) bool { return accept(stream) })
	if err != nil {
		return nil, err
	}
	return &Capture{a: a, pool: p}, nil
}

// Pool returns the id of the capture's pool, which later captures may share.
func (c *Capture) Pool() PoolID { return c.pool.id }

// End ends the capture. The graph keeps the pool.
func (c *Capture) End() error {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	if c.ended {
		return &PoolError{ID: c.pool.id, Problem: "does not receive allocations"}
	}
	if err := c.a.endRoute(c.pool); err != nil {
		return err
	}
	c.ended = true
	return nil
}

// Release gives the pool up after the graph was destroyed. Its memory is
// released when the cache is next emptied.
func (c *Capture) Release() error {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	if !c.ended || c.released {
		return &PoolError{ID: c.pool.id, Problem: "is not held by an ended capture"}
	}
	c.released = true
	c.a.dropPoolUse(c.pool)
	return nil
}

// Close is Release, after which the pool's cached memory is given back at once,
// as it is when a MemPool is deleted.
func (c *Capture) Close() error {
	if err := c.Release(); err != nil {
		return err
	}
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	if c.a.capturingAny() {
		return &RouteActiveError{Doing: "closing pool " + c.pool.id.String()}
	}
	return c.a.releaseFreeable(c.pool)
}

package private

import (
	"errors"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

var graph = alloc.PoolID{First: 7}

// bench is an allocator with its private pools.
type bench struct {
	*testing.T
	a *alloc.Allocator
	*Pools
}

func newBench(t *testing.T) bench {
	a := alloc.New(sim.New(sim.Config{TotalMemory: 1 << 30}))
	return bench{t, a, New(a)}
}

func (b bench) done(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// use allocates and frees in a pool.
func (b bench) use(id alloc.PoolID) {
	b.Helper()
	var addr uint64
	b.done(b.Route(id, func() (err error) {
		addr, err = b.a.Malloc(1<<20, 0)
		return err
	}))
	b.done(b.a.Free(addr))
}

// expect compares the pools of all segments.
func (b bench) expect(pools ...alloc.PoolID) {
	b.Helper()
	got := map[alloc.PoolID]int{}
	for _, s := range b.a.Segments() {
		got[s.Pool]++
	}
	for _, id := range pools {
		got[id]--
	}
	for id, n := range got {
		if n != 0 {
			b.Errorf("%+d segments of pool %v", n, id)
		}
	}
}

func TestHeldUntilClosed(t *testing.T) {
	b := newBench(t)
	b.use(alloc.PoolID{})
	b.use(graph)
	b.use(graph)
	b.expect(alloc.PoolID{}, graph)
	if !b.Holds(graph) || b.Holds(alloc.PoolID{}) {
		t.Error("another pool than the graph's is held")
	}
	b.done(b.a.EmptyCache())
	b.expect(graph)
	b.done(b.Close(graph))
	b.expect()
	b.done(b.Close(graph)) // is not held any more
}

func TestReleasedWithTheCache(t *testing.T) {
	b := newBench(t)
	b.use(graph)
	b.done(b.Hold(graph)) // is held already
	b.done(b.Release(graph))
	b.expect(graph)
	b.done(b.a.EmptyCache())
	b.expect()
	b.done(b.Release(graph))
}

func TestRouteEndsWithAFailure(t *testing.T) {
	b := newBench(t)
	b.done(b.Hold(graph))
	failed := errors.New("no memory")
	if err := b.Route(graph, func() error { return failed }); err != failed {
		t.Errorf("the request failed with %v", err)
	}
	if _, err := b.a.Malloc(1<<20, 0); err != nil {
		t.Fatal(err)
	}
	b.expect(alloc.PoolID{})
}

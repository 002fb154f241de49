package tenant_test

import (
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

// allocator is what an engine and a tenant have in common.
type allocator interface {
	Malloc(size, stream uint64) (uint64, error)
	Free(addr uint64) error
}

// both runs a benchmark on an engine and on one of four tenants.
func both(b *testing.B, f func(b *testing.B, a allocator, engine *alloc.Allocator)) {
	b.Run("engine", func(b *testing.B) {
		s := settings.Default()
		s.ExpandableSegments = true
		a := alloc.New(sim.New(sim.Config{}), alloc.WithSettings(s))
		f(b, a, a)
	})
	b.Run("tenant", func(b *testing.B) {
		g := must(tenant.New(sim.New(sim.Config{}), 70<<30, tenant.Options{}))
		var t *tenant.Tenant
		for _, name := range []string{"a", "b", "c", "d"} {
			t = must(g.Add(name, tenant.Terms{Guarantee: 1 << 30}))
		}
		f(b, t, t.Allocator())
	})
}

// A request that a cached block serves, and its free.
func BenchmarkPair(b *testing.B) {
	both(b, func(b *testing.B, a allocator, _ *alloc.Allocator) {
		check(b, a.Free(must(a.Malloc(1<<20, 0))))
		for b.Loop() {
			addr, err := a.Malloc(1<<20, 0)
			if err == nil {
				err = a.Free(addr)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A request that new memory serves, which is then given back.
func BenchmarkGrowth(b *testing.B) {
	both(b, func(b *testing.B, a allocator, engine *alloc.Allocator) {
		must(a.Malloc(20<<20, 0)) // keeps the reservation
		for b.Loop() {
			addr, err := a.Malloc(20<<20, 0)
			if err == nil {
				err = a.Free(addr)
			}
			if err == nil {
				err = engine.EmptyCache()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

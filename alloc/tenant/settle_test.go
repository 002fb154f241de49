package tenant_test

import (
	"testing"

	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/alloc/tier"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// TestSettle: a tenant over a space of alloc/tier is booked with its device memory,
// wherever its blocks lie.
func TestSettle(t *testing.T) {
	const mib = 1 << 20
	dev := sim.New(sim.Config{TotalMemory: 100 * mib, Started: true})
	store, err := tier.New(dev, tier.Options{Host: 200 * mib})
	if err != nil {
		t.Fatal(err)
	}
	g, err := tenant.New(dev, 1<<40, tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	space := store.Space("a")
	a, err := g.Add("a", tenant.Terms{Driver: space.Driver()})
	if err != nil {
		t.Fatal(err)
	}
	if err := space.Attach(a.Allocator()); err != nil {
		t.Fatal(err)
	}
	space.SetOverflow(100 * mib)
	booked := func(want uint64) {
		t.Helper()
		if u := g.Usage(); u.Reserved != want*mib || u.Tenants[0].Reserved != want*mib {
			t.Fatalf("%d MiB are booked, and of the group %d, want %d", u.Tenants[0].Reserved/mib, u.Reserved/mib, want)
		}
	}
	var blocks []uint64
	for range 6 { // the last one overflows
		addr, err := a.Malloc(20*mib, 0)
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, addr)
	}
	booked(100)
	if _, err := space.ParkBlocks(blocks[:3]); err != nil {
		t.Fatal(err)
	}
	a.Settle()
	booked(40)
	if err := a.Free(blocks[0]); err != nil { // of the host's
		t.Fatal(err)
	}
	if err := a.Allocator().EmptyCache(); err != nil {
		t.Fatal(err)
	}
	booked(40)
	if _, err := space.Restore(); err != nil {
		t.Fatal(err)
	}
	a.Settle()
	booked(100) // 3, 4 and 5 were there, 1 and 2 came; the one that overflowed too
	for _, addr := range blocks[1:] {
		if err := a.Free(addr); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
}

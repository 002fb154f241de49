// Pools keeps the memory of two tenants apart: each has segments of its own, so
// that neither fragments the other's, and what one of them used goes back to the
// driver when its pool is closed.
package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/examples/internal/device"
	"github.com/ashlar-mem/ashlar/internal/units"
)

func main() { device.Main(run, device.CUDA, device.Host, device.Sim) }

// tenant allocates from a pool. Its number says which requests are its own.
type tenant struct {
	name   string
	number uint64
	pool   *alloc.MemPool
	blocks []uint64
}

// serve makes requests of the tenant.
func (t *tenant) serve(a *alloc.Allocator, sizes ...uint64) error {
	if err := t.pool.Begin(t.number); err != nil {
		return err
	}
	for _, size := range sizes {
		addr, err := a.MallocOn(size, 0, t.number)
		if err != nil {
			return errors.Join(err, t.pool.End())
		}
		t.blocks = append(t.blocks, addr)
	}
	return t.pool.End()
}

// leave frees everything and gives the pool up.
func (t *tenant) leave(a *alloc.Allocator) error {
	for _, addr := range t.blocks {
		if err := a.Free(addr); err != nil {
			return err
		}
	}
	return t.pool.Close()
}

func run(w io.Writer, d driver.Driver) error {
	a := alloc.New(d)
	tenants := []*tenant{{name: "search", number: 1}, {name: "chat", number: 2}}
	for _, t := range tenants {
		pool, err := a.NewMemPool(alloc.MemPoolOptions{})
		if err != nil {
			return err
		}
		t.pool = pool
	}
	for range 3 { // in turns
		if err := tenants[0].serve(a, 5<<20, 100<<10); err != nil {
			return err
		}
		if err := tenants[1].serve(a, 30<<20); err != nil {
			return err
		}
	}
	shared, err := a.Malloc(12<<20, 0) // of no tenant
	if err != nil {
		return err
	}
	show(w, a, tenants, "all at work")
	if err := tenants[1].leave(a); err != nil {
		return err
	}
	show(w, a, tenants, "chat has left")
	return errors.Join(tenants[0].leave(a), a.Free(shared), a.EmptyCache())
}

// show prints what each pool holds.
func show(w io.Writer, a *alloc.Allocator, tenants []*tenant, when string) {
	type total struct {
		segments            int
		reserved, allocated uint64
	}
	pools := map[alloc.PoolID]total{}
	for _, s := range a.Segments() {
		t := pools[s.Pool]
		pools[s.Pool] = total{t.segments + 1, t.reserved + s.TotalSize, t.allocated + s.AllocatedSize}
	}
	fmt.Fprintln(w, when)
	line := func(name string, t total) {
		fmt.Fprintf(w, "  %-7s segments: %d, reserved: %9s, allocated: %9s\n", name, t.segments, units.Size(t.reserved), units.Size(t.allocated))
	}
	line("default", pools[alloc.PoolID{}])
	for _, t := range tenants {
		line(t.name, pools[t.pool.ID()])
	}
}

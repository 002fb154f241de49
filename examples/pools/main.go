package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/host"
)

func main() {
	if err := run(os.Stdout, open()); err != nil {
		log.Fatal(err)
	}
}

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
		fmt.Fprintf(w, "  %-7s %d segments, %2d MiB reserved, %4.1f MiB allocated\n", name, t.segments, t.reserved>>20, float64(t.allocated)/(1<<20))
	}
	line("default", pools[alloc.PoolID{}])
	for _, t := range tenants {
		line(t.name, pools[t.pool.ID()])
	}
}

// open returns the first GPU, or host memory on a machine without one.
func open() driver.Copier {
	lib, err := cuda.Open()
	if err == nil {
		var gpu *cuda.Device
		if gpu, err = lib.Device(0); err == nil {
			log.Println("memory of", gpu.Info().Name)
			return gpu
		}
	}
	log.Println("no GPU is used:", err)
	return host.New(host.Config{Memory: 8 << 30})
}

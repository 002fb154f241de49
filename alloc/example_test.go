package alloc_test

import (
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

func Example() {
	device := sim.New(sim.Config{TotalMemory: 80 << 30})
	a := alloc.New(device)

	addr, err := a.Malloc(3<<20, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := a.Stats()
	fmt.Println("allocated", s.AllocatedBytes.All.Current, "reserved", s.ReservedBytes.All.Current)

	if err := a.Free(addr); err != nil {
		fmt.Println(err)
	}
	s = a.Stats()
	fmt.Println("allocated", s.AllocatedBytes.All.Current, "reserved", s.ReservedBytes.All.Current)
	// Output:
	// allocated 3145728 reserved 20971520
	// allocated 0 reserved 20971520
}

func ExampleOutOfMemoryError() {
	a := alloc.New(sim.New(sim.Config{TotalMemory: 80 << 30}))
	a.SetLimit(1 << 30)
	_, err := a.Malloc(3<<30, 0)
	var oom *alloc.OutOfMemoryError
	if errors.As(err, &oom) {
		fmt.Println("wanted", oom.Segment, "with", oom.Limit-oom.Reserved, "left under the limit")
	}
	// Output:
	// wanted 3221225472 with 1073741824 left under the limit
}

func ExampleWithSettings() {
	conf, err := settings.Parse("expandable_segments:True")
	if err != nil {
		fmt.Println(err)
		return
	}
	a := alloc.New(sim.New(sim.Config{}), alloc.WithSettings(conf), alloc.WithObserver(func(e alloc.Event) {
		fmt.Println(e.Action, e.Size)
	}))
	if _, err := a.Malloc(25<<20, 0); err != nil {
		fmt.Println(err)
	}
	// Output:
	// segment_map 41943040
	// alloc 26214400
}

func ExampleAllocator_NewMemPool() {
	a := alloc.New(sim.New(sim.Config{}))
	pool, err := a.NewMemPool(alloc.MemPoolOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	const thread = 1
	if err := pool.Begin(thread); err != nil {
		fmt.Println(err)
	}
	if _, err := a.MallocOn(1000, 0, thread); err != nil {
		fmt.Println(err)
	}
	if err := pool.End(); err != nil {
		fmt.Println(err)
	}
	for _, s := range a.Segments() {
		fmt.Println(s.Pool, s.TotalSize)
	}
	// Output:
	// (0,1) 2097152
}

func ExampleWithExplainer() {
	a := alloc.New(sim.New(sim.Config{}), alloc.WithExplainer(func(d alloc.Decision) {
		switch d := d.(type) {
		case alloc.BestFit:
			fmt.Println("found a free block of", d.Block.Size)
		case alloc.Splitting:
			fmt.Println("remainder", d.Rest, "split:", d.Reason.Split())
		}
	}))
	addr, _ := a.Malloc(12<<20, 0)
	_ = a.Free(addr)
	_, _ = a.Malloc(8<<20, 0)
	// Output:
	// remainder 0 split: false
	// found a free block of 12582912
	// remainder 4194304 split: true
}

// A program that keeps results for later drops them when memory runs out.
func ExampleWithOOMRetry() {
	var a *alloc.Allocator
	var results []uint64 // oldest first
	a = alloc.New(sim.New(sim.Config{TotalMemory: 100 << 20}), alloc.WithOOMRetry(10, func(e *alloc.OutOfMemoryError) bool {
		if len(results) == 0 {
			return false
		}
		fmt.Println("dropping a result for a request of", e.Requested)
		err := a.Free(results[0])
		results = results[1:]
		return err == nil
	}))
	for range 4 {
		addr, err := a.Malloc(40<<20, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		results = append(results, addr)
	}
	fmt.Println(len(results), "results kept,", a.Stats().NumOOMs, "requests failed")
	// Output:
	// dropping a result for a request of 41943040
	// dropping a result for a request of 41943040
	// 2 results kept, 0 requests failed
}

// Giving back cached memory only if it is worth while.
func ExampleAllocator_Trim() {
	a := alloc.New(sim.New(sim.Config{}))
	addr, err := a.Malloc(100<<20, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := a.Free(addr); err != nil {
		fmt.Println(err)
	}
	for _, least := range []uint64{1 << 30, 64 << 20} {
		released, err := a.Trim(least)
		fmt.Println(released, err)
	}
	// Output:
	// 0 <nil>
	// 104857600 <nil>
}

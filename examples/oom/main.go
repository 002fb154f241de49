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

const mib = 1 << 20

// results are device memory that the program keeps in case it is asked for
// again, oldest first.
type results struct {
	a    *alloc.Allocator
	kept []uint64
}

// drop frees the oldest result. It is called when a request is about to fail.
func (r *results) drop() bool {
	if len(r.kept) == 0 {
		return false
	}
	err := r.a.Free(r.kept[0])
	r.kept = r.kept[1:]
	return err == nil
}

func run(w io.Writer, d driver.Driver) error {
	var cache results
	a := alloc.New(d, alloc.WithOOMRetry(10, func(e *alloc.OutOfMemoryError) bool {
		if !cache.drop() {
			fmt.Fprintf(w, "no room for %d MiB, and nothing left to drop\n", e.Requested/mib)
			return false // the request fails
		}
		fmt.Fprintf(w, "no room for %d MiB: dropped a result\n", e.Requested/mib)
		return true // it is tried again
	}))
	a.SetLimit(256 * mib)
	cache.a = a

	for range 6 {
		addr, err := a.Malloc(40*mib, 0)
		if err != nil {
			return err
		}
		cache.kept = append(cache.kept, addr)
	}
	batch, err := a.Malloc(100*mib, 0)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "served, with %d results left and %d failures\n\n", len(cache.kept), a.Stats().NumOOMs)
	if err := a.Free(batch); err != nil {
		return err
	}
	for cache.drop() {
	}

	// 240 MiB in 12 pieces, every other one free: plenty of memory, and no room
	// for a request that is larger than a piece.
	if err := fragment(a); err != nil {
		return err
	}
	_, err = a.Malloc(60*mib, 0)
	var oom *alloc.OutOfMemoryError
	if !errors.As(err, &oom) {
		return fmt.Errorf("60 MiB: %w", err)
	}
	// The state is that of the failure: nothing has happened since.
	fmt.Fprintf(w, "asked for %d MiB; limit %d MiB, reserved %d MiB, allocated %d MiB\n",
		oom.Requested/mib, oom.Limit/mib, oom.Reserved/mib, oom.Allocated/mib)
	fmt.Fprintln(w, a.Diagnose(oom))
	return nil
}

// fragment fills one segment of 240 MiB with pieces and frees every other one.
func fragment(a *alloc.Allocator) error {
	if err := a.EmptyCache(); err != nil {
		return err
	}
	whole, err := a.Malloc(240*mib, 0)
	if err != nil {
		return err
	}
	if err := a.Free(whole); err != nil {
		return err
	}
	pieces := make([]uint64, 12)
	for i := range pieces {
		if pieces[i], err = a.Malloc(20*mib, 0); err != nil {
			return err
		}
	}
	for i := 0; i < len(pieces); i += 2 {
		if err := a.Free(pieces[i]); err != nil {
			return err
		}
	}
	return nil
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

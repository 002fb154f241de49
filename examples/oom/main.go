// Oom runs out of memory twice. The first time the program has something that
// it can do without, and a hook saves the request. The second time it has not,
// and the error says what the matter is.
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
			fmt.Fprintf(w, "no room for %s, and nothing left to drop\n", units.Size(e.Requested))
			return false // the request fails
		}
		fmt.Fprintf(w, "no room for %s: dropped a result\n", units.Size(e.Requested))
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
	fmt.Fprintf(w, "asked for %s; limit %s, reserved %s, allocated %s\n",
		units.Size(oom.Requested), units.Size(oom.Limit), units.Size(oom.Reserved), units.Size(oom.Allocated))
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

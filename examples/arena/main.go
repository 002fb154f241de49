package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/arena"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/host"
)

func main() {
	if err := run(os.Stdout, open()); err != nil {
		log.Fatal(err)
	}
}

const (
	mib    = 1 << 20
	layers = 4
)

func run(w io.Writer, d driver.Driver) error {
	a := alloc.New(d)
	scratch, err := arena.New(a, arena.Options{Chunk: 16 * mib})
	if err != nil {
		return err
	}
	for i, batch := range []uint64{1, 2, 4, 2} {
		scratch.ResetPeak()
		if err := step(scratch, batch); err != nil {
			return err
		}
		u := scratch.Usage()
		fmt.Fprintf(w, "step %d, batch %d: %2d MiB at most, %2d MiB in chunks\n", i+1, batch, u.Peak/mib, u.Chunks/mib)
		if err := scratch.Reset(); err != nil {
			return err
		}
	}
	// Nothing is in use now: other parts of the program may want the memory.
	freed, err := scratch.Trim()
	fmt.Fprintf(w, "%d MiB go back to the allocator\n", freed/mib)
	return errors.Join(err, scratch.Close(), a.EmptyCache())
}

// step allocates what a forward pass would: activations that live until the end of
// the step, and workspaces that live as long as their layer.
func step(scratch *arena.Arena, batch uint64) error {
	for range layers {
		if _, err := scratch.Alloc(batch * mib); err != nil {
			return err
		}
		layer := scratch.Scope()
		for range 2 {
			if _, err := scratch.Alloc(batch * mib); err != nil {
				return err
			}
		}
		if err := layer.End(); err != nil {
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

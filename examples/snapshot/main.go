package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/snapshot"
)

var out = flag.String("o", filepath.Join(os.TempDir(), "ashlar-example.pickle"), "the file to write")

func main() {
	flag.Parse()
	if err := run(os.Stdout, open()); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer, d driver.Driver) error {
	a := alloc.New(d)
	a.SetLimit(512 << 20)
	a.RecordHistory(alloc.HistoryOptions{MaxEntries: 100_000}) // the newest ones

	err := work(a)
	var oom *alloc.OutOfMemoryError
	if !errors.As(err, &oom) {
		return fmt.Errorf("the work was to run out of memory: %w", err)
	}
	fmt.Fprintln(w, "the work ran out of memory, as it should")

	s := a.Snapshot()
	f, err := os.Create(*out)
	if err != nil {
		return err
	}
	if err := errors.Join(snapshot.WritePickle(f, snapshot.FromEngine(s)), f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d events and %d segments are in the file; look at them with\n  ashlar view %s\n", len(s.Events), len(s.Segments), *out)
	return nil
}

// work keeps a little more in each step, until there is no room.
func work(a *alloc.Allocator) error {
	for step := uint64(1); ; step++ {
		a.SetMetadata(fmt.Sprint("step ", step)) // the file shows it with each event
		batch, err := a.Malloc(step*5<<20, 0)
		if err != nil {
			return err
		}
		if _, err := a.Malloc(3<<20, 0); err != nil { // never freed
			return err
		}
		if err := a.Free(batch); err != nil {
			return err
		}
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

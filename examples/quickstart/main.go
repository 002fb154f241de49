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

func run(w io.Writer, dev driver.Copier) error {
	a := alloc.New(dev)

	// A request is served on a stream: work on it may use the memory at once.
	const size, stream = 3 << 20, 0
	addr, err := a.Malloc(size, stream)
	if err != nil {
		return err
	}
	status(w, a, "after a request of 3 MiB")

	text := []byte("hello, device")
	back := make([]byte, len(text))
	// Copies are queued; Synchronize waits for them and reports what went wrong.
	if err := errors.Join(
		dev.CopyToDevice(addr, text, stream),
		dev.CopyToHost(back, addr, stream),
		dev.Synchronize(stream),
	); err != nil {
		return err
	}
	fmt.Fprintf(w, "came back: %s\n", back)

	// Freed memory stays with the allocator, so that the next request is cheap.
	if err := a.Free(addr); err != nil {
		return err
	}
	status(w, a, "after the free")
	if err := a.EmptyCache(); err != nil {
		return err
	}
	status(w, a, "after emptying the cache")
	return nil
}

func status(w io.Writer, a *alloc.Allocator, when string) {
	u := a.Usage()
	fmt.Fprintf(w, "%-25s %d MiB allocated, %2d MiB reserved\n", when+":", u.Allocated>>20, u.Reserved>>20)
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

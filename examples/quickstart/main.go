// Quickstart allocates device memory, copies bytes in and out, and shows what
// the allocator keeps when the memory is freed.
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

func main() { device.Main(run, device.CUDA, device.Host) }

func run(w io.Writer, d driver.Driver) error {
	dev := d.(driver.Copier)
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
	fmt.Fprintf(w, "%-25s %9s allocated, %9s reserved\n", when+":", units.Size(u.Allocated), units.Size(u.Reserved))
}

package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/handle"
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

// prompts finds the memory of prompts that some request uses.
type prompts struct {
	table *handle.Table
	known map[string]handle.Weak
}

// get returns a holder of a prompt's memory, and whether somebody had it already.
func (p *prompts) get(prompt string) (handle.Buffer, bool, error) {
	if b, ok := p.known[prompt].Retain(); ok {
		return b, true, nil
	}
	b, err := p.table.Malloc(8*mib, 0)
	if err != nil {
		return b, false, err
	}
	p.known[prompt] = b.Weak()
	return b, false, nil
}

func run(w io.Writer, d driver.Driver) error {
	a := alloc.New(d)
	p := &prompts{handle.New(a, handle.Options{Debug: true}), map[string]handle.Weak{}}
	var requests []handle.Buffer
	for _, prompt := range []string{"translate", "translate", "summarise", "translate"} {
		b, shared, err := p.get(prompt)
		if err != nil {
			return err
		}
		requests = append(requests, b)
		fmt.Fprintf(w, "a request to %s: shared %-5v %2d MiB allocated\n", prompt, shared, a.Usage().Allocated/mib)
	}
	for _, b := range requests[:3] {
		if err := b.Release(); err != nil {
			return err
		}
	}
	var leak *handle.LeakError
	if errors.As(p.table.Check(), &leak) {
		for _, l := range leak.Leaks {
			fmt.Fprintf(w, "%d MiB are not released, %d holder\n", l.Size/mib, l.Holders)
		}
		log.Print(leak) // with the stacks
	}
	if err := requests[3].Release(); err != nil {
		return err
	}
	_, alive := p.known["translate"].Retain()
	fmt.Fprintf(w, "after the last release: alive %v, %d MiB allocated\n", alive, a.Usage().Allocated/mib)
	return a.EmptyCache()
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

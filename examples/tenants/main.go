package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/ashlar-mem/ashlar/alloc/tenant"
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

func run(w io.Writer, d driver.Driver) error {
	g, err := tenant.New(d, 1000*mib, tenant.Options{})
	if err != nil {
		return err
	}
	serve, err := g.Add("serve", tenant.Terms{Guarantee: 400 * mib, Priority: 10})
	if err != nil {
		return err
	}
	train, err := g.Add("train", tenant.Terms{Priority: 5})
	if err != nil {
		return err
	}
	batch, err := g.Add("batch", tenant.Terms{})
	if err != nil {
		return err
	}

	// The batch job borrows what is guaranteed to the server and gives it back
	// when it is asked.
	var scratch uint64
	scratch, err = batch.MallocRevocable(300*mib, 0, func() {
		fmt.Fprintln(w, "batch: asked to give 300 MiB back")
		if err := batch.Free(scratch); err != nil {
			log.Print(err)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "batch: borrowed 300 MiB\n")

	model, err := grow(w, train)
	if err != nil {
		return err
	}
	var answers []uint64
	for range 4 {
		addr, err := serve.Malloc(100*mib, 0)
		if err != nil {
			return err
		}
		answers = append(answers, addr)
	}
	fmt.Fprintln(w, "serve: got its 400 MiB")
	for _, u := range g.Usage().Tenants {
		fmt.Fprintf(w, "%s: %d MiB reserved, %d MiB borrowed, %d MiB guaranteed\n", u.Name, u.Reserved/mib, u.Borrowed/mib, u.Guarantee/mib)
	}

	return errors.Join(freeAll(serve, answers), freeAll(train, model), g.Close())
}

// grow allocates until there is no more.
func grow(w io.Writer, train *tenant.Tenant) (blocks []uint64, err error) {
	for {
		addr, err := train.Malloc(100*mib, 0)
		var oom *tenant.OutOfMemoryError
		if errors.As(err, &oom) {
			fmt.Fprintf(w, "train: failed with %d MiB; %d MiB more are not to be had\n", oom.Firm/mib, oom.Requested/mib)
			return blocks, nil
		}
		if err != nil {
			return blocks, err
		}
		blocks = append(blocks, addr)
	}
}

func freeAll(t *tenant.Tenant, blocks []uint64) error {
	for _, addr := range blocks {
		if err := t.Free(addr); err != nil {
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

package main

import (
	"bytes"
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

const size = 16 << 20

func run(w io.Writer, dev driver.Copier) error {
	a := alloc.New(dev)
	producer, err := dev.NewStream()
	if err != nil {
		return err
	}
	consumer, err := dev.NewStream()
	if err != nil {
		return err
	}
	block, err := a.Malloc(size, producer)
	if err != nil {
		return err
	}
	scratch, err := a.Malloc(size, consumer)
	if err != nil {
		return err
	}

	// The producer writes; the consumer waits for that on the device and reads.
	result, err := dev.AllocHost(size) // page-locked: copies to it do not hold the program up
	if err != nil {
		return err
	}
	if err := dev.Fill(block, 42, size, producer); err != nil {
		return err
	}
	written, err := dev.RecordEvent(producer, block)
	if err != nil {
		return err
	}
	if err := dev.StreamWait(consumer, written); err != nil {
		return err
	}
	for range 50 { // keeps the consumer busy for a while
		if err := dev.CopyOnDevice(scratch, block, size, consumer); err != nil {
			return err
		}
	}
	if err := dev.CopyToHost(result, block, consumer); err != nil {
		return err
	}
	read, err := dev.RecordEvent(consumer, block)
	if err != nil {
		return err
	}

	// The program is done with the block long before the consumer is.
	if err := errors.Join(a.RecordStream(block, consumer), a.Free(block)); err != nil {
		return err
	}
	other, err := a.Malloc(size, producer)
	if err != nil {
		return err
	}
	done, err := dev.EventDone(read)
	if err != nil {
		return err
	}
	if !done {
		fmt.Fprintf(w, "while the consumer reads a request gets %s\n", which(other, block))
	}
	if err := dev.Fill(other, 7, size, producer); err != nil {
		return err
	}

	// When the consumer has read, a request can have the block again.
	if !done {
		if err := errors.Join(dev.Synchronize(consumer), dev.WaitEvent(read)); err != nil {
			return err
		}
		again, err := a.Malloc(size, producer)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "when it has read a request gets %s\n", which(again, block))
		if err := a.Free(again); err != nil {
			return err
		}
	}
	if err := errors.Join(dev.WaitEvent(written), dev.Synchronize(producer)); err != nil {
		return err
	}
	if !bytes.Equal(result, bytes.Repeat([]byte{42}, size)) {
		return errors.New("the consumer read what was written after the free")
	}
	fmt.Fprintln(w, "the consumer has read what the producer wrote")
	return errors.Join(a.Free(other), a.Free(scratch), a.EmptyCache(), dev.FreeHost(result),
		dev.CloseStream(producer), dev.CloseStream(consumer))
}

func which(got, block uint64) string {
	if got == block {
		return "the same memory"
	}
	return "other memory"
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

// Streams hands memory from one stream to another. Freed memory is reused at
// once on its own stream; RecordStream tells the allocator that another stream
// uses it too, so that it waits for that one.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/examples/internal/device"
)

func main() { device.Main(run, device.CUDA, device.Host) }

const size = 16 << 20

func run(w io.Writer, d driver.Driver) error {
	dev := d.(driver.Copier)
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

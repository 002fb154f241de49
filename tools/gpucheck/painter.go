package main

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
	"github.com/ashlar-mem/ashlar/driver/host"
)

// painter queues work that fills memory with patterns and checks them. A
// pattern is a sequence of 64-bit words, each made of a seed and its place
// ([kernels.Word]), so that a block that was moved, mixed up with another or
// half overwritten shows. Sizes are multiples of 8.
//
// Results of checks land in slots, which are read and cleared when the streams
// in question have been waited for.
type painter interface {
	write(addr, size, seed, stream uint64) error
	check(addr, size, seed, stream uint64, slot int) error
	// spin keeps a stream busy for about so long.
	spin(stream uint64, d time.Duration) error
	// results reads the first n slots and clears them.
	results(n int) ([]finding, error)
	close() error
}

// finding is the result of one check.
type finding struct {
	Bad   uint64 // words that were not as written
	First uint64 // position of the first of them
}

// hostPainter paints in host memory.
type hostPainter struct {
	dev *host.Device

	mu    sync.Mutex
	found []finding
}

func newHostPainter(dev *host.Device, slots int) *hostPainter {
	return &hostPainter{dev: dev, found: make([]finding, slots)}
}

func (p *hostPainter) write(addr, size, seed, stream uint64) error {
	mem, err := p.dev.Bytes(addr, size)
	if err != nil {
		return err
	}
	return p.dev.Launch(stream, func() error {
		for i := 0; i < len(mem); i += 8 {
			binary.LittleEndian.PutUint64(mem[i:], kernels.Word(seed, uint64(i/8)))
		}
		return nil
	})
}

func (p *hostPainter) check(addr, size, seed, stream uint64, slot int) error {
	mem, err := p.dev.Bytes(addr, size)
	if err != nil {
		return err
	}
	return p.dev.Launch(stream, func() error {
		f := finding{}
		for i := 0; i < len(mem); i += 8 {
			if binary.LittleEndian.Uint64(mem[i:]) != kernels.Word(seed, uint64(i/8)) {
				if f.Bad == 0 {
					f.First = uint64(i / 8)
				}
				f.Bad++
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.found[slot] = f
		return nil
	})
}

func (p *hostPainter) spin(stream uint64, d time.Duration) error {
	return p.dev.Launch(stream, func() error {
		time.Sleep(d)
		return nil
	})
}

func (p *hostPainter) results(n int) ([]finding, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := append([]finding(nil), p.found[:n]...)
	clear(p.found[:n])
	return out, nil
}

func (p *hostPainter) close() error { return nil }

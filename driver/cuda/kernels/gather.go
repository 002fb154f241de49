package kernels

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/driver/cuda"
)

//go:embed gather.ptx
var gatherSource string

// Gather reads memory in some order.
type Gather struct {
	module *cuda.Module
	gather *cuda.Function
	blocks uint64
}

// LoadGather compiles the kernel for the device.
func LoadGather(d *cuda.Device) (*Gather, error) {
	m, err := d.LoadPTX(gatherSource)
	if err != nil {
		return nil, err
	}
	f, err := m.Function("ashlar_gather")
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return &Gather{module: m, gather: f, blocks: maxBlocks(d)}, nil
}

// Close unloads the kernel.
func (g *Gather) Close() error { return g.module.Close() }

// Index returns the word that read i takes, of so many words: each stride-th, or
// a random one if the stride is 0.
func Index(i, words, stride uint64) uint64 {
	if stride != 0 {
		return i * stride % words
	}
	return Word(0, i) % words
}

// Read makes so many reads from the words at addr, as [Index] says, and adds what it
// reads to the word at result.
func (g *Gather) Read(addr, words, reads, stride, result, stream uint64) error {
	if addr%8 != 0 || words == 0 {
		return fmt.Errorf("%d words at %#x: there must be some, at a multiple of 8", words, addr)
	}
	if reads == 0 {
		return nil
	}
	grid := min((reads-1)/threads+1, g.blocks)
	block := uint32(min(reads, threads))
	return g.gather.Launch(stream, cuda.Dim{X: uint32(grid)}, cuda.Dim{X: block}, addr, words, reads, stride, result)
}

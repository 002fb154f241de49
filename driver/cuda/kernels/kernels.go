package kernels

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/driver/cuda"
)

//go:embed kernels.ptx
var source string

// Set is the kernels on one device.
type Set struct {
	dev                     *cuda.Device
	module                  *cuda.Module
	spin, write, check, sum *cuda.Function
	blocks                  uint64
}

const threads = 256 // of a block

// maxBlocks is the largest grid that is worth its while.
func maxBlocks(d *cuda.Device) uint64 { return 8 * uint64(max(d.Info().Multiprocessors, 1)) }

// Load compiles the kernels for the device.
func Load(d *cuda.Device) (*Set, error) {
	m, err := d.LoadPTX(source)
	if err != nil {
		return nil, err
	}
	s := &Set{dev: d, module: m, blocks: maxBlocks(d)}
	for name, f := range map[string]**cuda.Function{
		"ashlar_spin": &s.spin, "ashlar_write": &s.write, "ashlar_check": &s.check, "ashlar_sum": &s.sum,
	} {
		if *f, err = m.Function(name); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return s, nil
}

// Close unloads the kernels.
func (s *Set) Close() error { return s.module.Close() }

// Word is word i of the pattern of a seed.
func Word(seed, i uint64) uint64 {
	x := i*0x9E3779B97F4A7C15 ^ seed
	x = (x ^ x>>32) * 0xD6E8FEB86659FD93
	return x ^ x>>32
}

// Spin keeps stream busy for so many clock cycles of the device, about a
// billion in half a second.
func (s *Set) Spin(cycles, stream uint64) error {
	return s.spin.Launch(stream, cuda.Dim{X: 1}, cuda.Dim{X: 1}, cycles)
}

// Write writes the pattern of seed over so many words at addr, which must be a
// multiple of 8.
func (s *Set) Write(addr, words, seed, stream uint64) error {
	return s.launchOver(s.write, addr, words, stream, addr, words, seed)
}

// Check compares so many words at addr with the pattern of seed. What differs
// is added to the outcome: [OutcomeSize] bytes of the device's memory,
// prepared by [Set.Clear], that several checks may share.
func (s *Set) Check(addr, words, seed, outcome, stream uint64) error {
	return s.launchOver(s.check, addr, words, stream, addr, words, seed, outcome)
}

// Sum adds so many words at addr to the word at result, and so reads them all.
func (s *Set) Sum(addr, words, result, stream uint64) error {
	return s.launchOver(s.sum, addr, words, stream, addr, words, result)
}

// launchOver launches a kernel whose threads share the words at addr out.
func (s *Set) launchOver(f *cuda.Function, addr, words, stream uint64, args ...uint64) error {
	if addr%8 != 0 {
		return fmt.Errorf("address %#x is no multiple of 8", addr)
	}
	if words == 0 {
		return nil
	}
	grid := min((words-1)/threads+1, s.blocks)
	return f.Launch(stream, cuda.Dim{X: uint32(grid)}, cuda.Dim{X: threads}, args...)
}

// OutcomeSize is how much memory of the device an outcome takes.
const OutcomeSize = 16

// Outcome is what checks found.
type Outcome struct {
	Wrong uint64 // words that differ
	First uint64 // the lowest index of one, within its check; the highest number if none does
}

// Clear prepares an outcome.
func (s *Set) Clear(outcome, stream uint64) error {
	if err := s.dev.Fill(outcome, 0, 8, stream); err != nil {
		return err
	}
	return s.dev.Fill(outcome+8, 0xff, 8, stream)
}

// Outcome waits for stream and reads an outcome.
func (s *Set) Outcome(outcome, stream uint64) (Outcome, error) {
	mem := make([]byte, OutcomeSize)
	if err := s.dev.CopyToHost(mem, outcome, stream); err != nil {
		return Outcome{}, err
	}
	if err := s.dev.Synchronize(stream); err != nil {
		return Outcome{}, err
	}
	return Outcome{binary.LittleEndian.Uint64(mem), binary.LittleEndian.Uint64(mem[8:])}, nil
}

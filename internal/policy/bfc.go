package policy

import (
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/driver"
)

// bfc is TensorFlow's and JAX's best fit with coalescing. Its 21 bins are each
// ordered by size and address and searched upwards, so one index in that order
// finds the same block.
type bfc struct {
	a       *Allocator
	id      uint16
	stream  uint64
	free    index
	regions []region
	next    uint64 // the size of the next region
	limit   uint64 // on all regions; 0 is none
	fixed   bool
	bytes   uint64
}

// region is memory that the driver gave in one piece. Its first block stays the
// first as long as there is a region.
type region struct {
	addr, size uint64
	first      int32
}

const (
	bfcUnit    = 256
	bfcRegion  = 2 << 20
	bfcMostGap = 128 << 20 // a block may exceed a request by less than this
	backOff    = 0.9       // upstream's is a float of 32 bits, and so is its product
)

func newBFC(a *Allocator, id uint16, at Place) heap {
	h := &bfc{a: a, id: id, stream: at.Stream, fixed: true}
	h.limit = a.options.Limit
	if a.options.Region != nil {
		h.limit = a.options.Region(at)
	}
	h.limit = h.limit / bfcUnit * bfcUnit
	h.next = h.limit
	return h
}

func newBFCGrowth(a *Allocator, id uint16, at Place) heap {
	return &bfc{a: a, id: id, stream: at.Stream, next: bfcRegion}
}

func (h *bfc) key(i int32) key {
	b := &h.a.all[i]
	return key{b.size, b.addr}
}

func (h *bfc) take(size, _ uint64) (int32, error) {
	size = up(size, bfcUnit)
	i := h.free.takeCeiling(key{first: size})
	if i == noBlock {
		var err error
		if i, err = h.extend(size); err != nil {
			return 0, err
		}
	}
	b := &h.a.all[i]
	if b.size >= 2*size || b.size-size >= bfcMostGap {
		rest := h.a.split(i, size)
		h.free.insert(h.key(rest), rest)
	}
	h.a.all[i].state = held
	return i, nil
}

// available returns how much the regions may grow.
func (h *bfc) available() uint64 {
	if h.fixed {
		return h.limit - h.bytes
	}
	if h.a.options.Limit == 0 {
		return 1 << 62
	}
	return (h.a.options.Limit - min(h.a.reserved, h.a.options.Limit)) / bfcUnit * bfcUnit
}

// extend gets another region, which is returned as one free block: as large as is
// due, and less by tenths where the driver refuses that.
func (h *bfc) extend(size uint64) (int32, error) {
	available := h.available()
	if size > available {
		return 0, errLimit
	}
	increased := false
	for h.next < size {
		h.double()
		increased = true
	}
	bytes := min(h.next, available)
	addr, err := h.a.malloc(bytes, h.stream)
	for err != nil {
		if !errors.Is(err, driver.ErrOutOfMemory) {
			return 0, err
		}
		less := up(uint64(float32(bytes)*backOff), bfcUnit)
		if less >= bytes {
			less = bytes - bfcUnit
		}
		if bytes = less; bytes < size {
			return 0, err
		}
		addr, err = h.a.malloc(bytes, h.stream)
	}
	if !increased {
		h.double()
	}
	h.bytes += bytes
	i := h.a.add(h.id, addr, bytes, free)
	h.regions = append(h.regions, region{addr, bytes, i})
	return i, nil
}

// double raises the size of the next region, which trim does not lower.
func (h *bfc) double() { h.next = min(h.next, 1<<62) * 2 }

func (h *bfc) give(i int32) error {
	a := h.a
	if n := a.all[i].next; n != noBlock && a.all[n].state == free {
		h.free.remove(h.key(n))
		a.join(i)
	}
	a.all[i].state = free
	if p := a.all[i].prev; p != noBlock && a.all[p].state == free {
		h.free.remove(h.key(p))
		a.join(p)
		i = p
	}
	h.free.insert(h.key(i), i)
	return nil
}

// trim releases the regions that are free.
func (h *bfc) trim() error {
	kept := h.regions[:0]
	var failed error
	for _, r := range h.regions {
		b := &h.a.all[r.first]
		if b.state != free || b.size != r.size || failed != nil {
			kept = append(kept, r)
			continue
		}
		if failed = h.a.giveBack(r.addr, r.size); failed != nil {
			kept = append(kept, r)
			continue
		}
		h.bytes -= r.size
		h.free.remove(h.key(r.first))
		h.a.drop(r.first)
	}
	h.regions = kept
	return failed
}

func (h *bfc) synchronize() error { return nil }

func (h *bfc) check() (reserved, given uint64, err error) {
	holes := 0
	for _, r := range h.regions {
		g, f, err := h.a.walk(r.first, r.addr, r.size, func(b, c *block) bool { return b.state == free && c.state == free })
		if err != nil {
			return 0, 0, err
		}
		reserved, given, holes = reserved+r.size, given+g, holes+f
	}
	if reserved != h.bytes {
		return 0, 0, fmt.Errorf("the regions have %d bytes, counted %d", reserved, h.bytes)
	}
	return reserved, given, h.free.check(h.a, holes, h.key)
}

// walk checks the blocks of a region and counts what is handed out and the free
// blocks. unmerged reports whether two neighbours should be one.
func (a *Allocator) walk(first int32, addr, size uint64, unmerged func(b, c *block) bool) (given uint64, holes int, err error) {
	at, before := addr, int32(noBlock)
	for i := first; i != noBlock; i = a.all[i].next {
		b := &a.all[i]
		switch {
		case b.addr != at || b.prev != before:
			return 0, 0, fmt.Errorf("block at %#x does not begin at %#x", b.addr, at)
		case before != noBlock && unmerged(&a.all[before], b):
			return 0, 0, fmt.Errorf("free block at %#x is not merged with the one before", b.addr)
		case b.state == free:
			holes++
		default:
			given += b.size
		}
		at, before = at+b.size, i
	}
	if at != addr+size {
		return 0, 0, fmt.Errorf("the last block of the region at %#x ends at %#x", addr, at)
	}
	return given, holes, nil
}

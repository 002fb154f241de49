package policy

import (
	"fmt"
	"math"
	"slices"
)

// Pool is what a stream-ordered memory pool is set to: cudaMemPoolAttr.
type Pool struct {
	// Threshold is how much stays reserved when the device synchronises; 0 is the
	// driver's default, Unlimited what PyTorch sets.
	Threshold uint64
	// Opportunistic lets a stream take a block of another one whose work is done.
	Opportunistic bool
	// Internal lets a stream take a block of another one and wait for it.
	Internal bool
}

// Unlimited is a threshold at which nothing is released.
const Unlimited = math.MaxUint64

// async is the stream-ordered pool behind cudaMallocAsync: best fit in pieces of
// memory that are multiples of 32 MiB.
type async struct {
	a    *Allocator
	id   uint16
	pool Pool
	free []index // by the number of the stream that freed them, as in block.note; the first is of all streams
	numbers
	pieces []region
	bytes  uint64
}

const (
	asyncPiece = 32 << 20
	anyStream  = 0
)

func newAsync(p Pool) func(*Allocator, uint16, Place) heap {
	return func(a *Allocator, id uint16, _ Place) heap {
		return &async{a: a, id: id, pool: p, free: make([]index, 1)}
	}
}

func (h *async) key(i int32) key {
	b := &h.a.all[i]
	return key{b.size, b.addr}
}

func (h *async) take(size, stream uint64) (int32, error) {
	size = up(size, unit)
	own := h.number(stream)
	if int(own) == len(h.free) {
		h.free = append(h.free, index{})
	}
	i := h.find(own, size)
	if i == noBlock {
		var err error
		if i, err = h.extend(size, stream, own); err != nil {
			return 0, err
		}
	}
	if h.a.all[i].size > size {
		rest := h.a.split(i, size)
		h.free[h.a.all[rest].note].insert(h.key(rest), rest)
	}
	h.a.all[i].state, h.a.all[i].note = held, own
	return i, nil
}

// find takes the best block for a stream out of its index, or returns noBlock.
func (h *async) find(own int32, size uint64) int32 {
	k := key{first: size}
	from := own
	i := h.free[own].ceiling(k)
	if j := h.free[anyStream].ceiling(k); j != noBlock && (i == noBlock || h.key(j).less(h.key(i))) {
		from, i = anyStream, j
	}
	if i == noBlock && h.pool.Internal {
		for n := range h.free {
			if j := h.free[n].ceiling(k); j != noBlock && (i == noBlock || h.key(j).less(h.key(i))) {
				from, i = int32(n), j
			}
		}
	}
	if i != noBlock {
		h.free[from].remove(h.key(i))
	}
	return i
}

// extend gets another piece, as one block in no index.
func (h *async) extend(size, stream uint64, own int32) (int32, error) {
	bytes := up(size, asyncPiece)
	addr, err := h.a.malloc(bytes, stream)
	if err != nil {
		return 0, err
	}
	h.bytes += bytes
	i := h.a.add(h.id, addr, bytes, free)
	h.a.all[i].note = own
	if h.pool.Opportunistic {
		h.a.all[i].note = anyStream // nobody has used it
	}
	h.pieces = append(h.pieces, region{addr, bytes, i})
	return i, nil
}

func (h *async) give(i int32) error {
	h.a.all[i].state = free
	h.merge(i)
	return nil
}

// alike reports whether two neighbours are free for the same streams.
func alike(b, c *block) bool { return b.state == free && c.state == free && b.note == c.note }

// merge joins a free block, which is in no index, with its neighbours.
func (h *async) merge(i int32) {
	a := h.a
	if n := a.all[i].next; n != noBlock && alike(&a.all[n], &a.all[i]) {
		h.free[a.all[n].note].remove(h.key(n))
		a.join(i)
	}
	if p := a.all[i].prev; p != noBlock && alike(&a.all[p], &a.all[i]) {
		h.free[a.all[p].note].remove(h.key(p))
		a.join(p)
		i = p
	}
	h.free[a.all[i].note].insert(h.key(i), i)
}

// synchronize makes what is free free for all streams, and releases what exceeds
// the threshold.
func (h *async) synchronize() error {
	if h.pool.Opportunistic {
		var all []int32
		for n := 1; n < len(h.free); n++ {
			h.free[n].each(func(_ key, i int32) { all = append(all, i) })
		}
		for _, i := range all {
			if h.a.all[i].state != free { // merged into one before
				continue
			}
			h.free[h.a.all[i].note].remove(h.key(i))
			h.a.all[i].note = anyStream
			h.merge(i)
		}
	}
	return h.release(h.pool.Threshold)
}

// release gives free pieces back, the newest first, until no more than some bytes
// are left.
func (h *async) release(most uint64) error {
	for n := len(h.pieces) - 1; n >= 0 && h.bytes > most; n-- {
		r := h.pieces[n]
		if !h.isFree(r.first) {
			continue
		}
		if err := h.a.giveBack(r.addr, r.size); err != nil {
			return err
		}
		h.bytes -= r.size
		for i := r.first; i != noBlock; {
			after := h.a.all[i].next
			h.free[h.a.all[i].note].remove(h.key(i))
			h.a.drop(i)
			i = after
		}
		h.pieces = slices.Delete(h.pieces, n, n+1)
	}
	return nil
}

// isFree reports whether a block and all after it are free.
func (h *async) isFree(i int32) bool {
	for ; i != noBlock; i = h.a.all[i].next {
		if h.a.all[i].state != free {
			return false
		}
	}
	return true
}

func (h *async) trim() error { return h.release(0) }

func (h *async) check() (reserved, given uint64, err error) {
	holes := 0
	for _, r := range h.pieces {
		g, f, err := h.a.walk(r.first, r.addr, r.size, func(b, c *block) bool { return alike(b, c) })
		if err != nil {
			return 0, 0, err
		}
		reserved, given, holes = reserved+r.size, given+g, holes+f
	}
	indexed := 0
	for n := range h.free {
		indexed += h.free[n].count
		if err := h.free[n].check(h.a, h.free[n].count, h.key); err != nil {
			return 0, 0, err
		}
	}
	if reserved != h.bytes || indexed != holes {
		return 0, 0, fmt.Errorf("the pieces have %d bytes and %d free blocks, counted %d and %d", reserved, holes, h.bytes, indexed)
	}
	return reserved, given, nil
}

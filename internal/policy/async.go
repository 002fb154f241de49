package policy

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/ashlar-mem/ashlar/driver"
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

// async is the stream-ordered pool behind cudaMallocAsync: one range of addresses
// with memory behind it in chunks of 32 MiB. What a stream frees waits unmerged for
// that stream's next requests. When one of them finds nothing, or the device
// synchronises, it settles: it merges with its neighbours, whether memory is behind
// them or not, and whole free chunks may be mapped elsewhere. NVIDIA does not say
// so: the rules are what an H200 shows, see docs/policies.md.
type async struct {
	a    *Allocator
	id   uint16
	pool Pool
	span
	numbers
	loose   []index // by the stream that freed them, as in block.note; by size and address
	waiting []int32 // the streams that have loose blocks, and perhaps others; each once, as waits says
	waits   []bool
	settled []index // by whose they are, the first is everybody's; by size class and age
	clock   uint64  // counts frees: a free block's asked is when it was freed
	first   int32   // the block at the beginning
	mapped  []bool  // the chunks that have memory
	used    []int64 // bytes of each that are given away
	bytes   uint64
}

const (
	asyncPiece = 32 << 20
	anyStream  = 0
)

func newAsync(p Pool) func(*Allocator, uint16, Place) heap {
	return func(a *Allocator, id uint16, at Place) heap {
		return &async{
			a: a, id: id, pool: p, span: span{a: a, stream: at.Stream, granule: asyncPiece},
			loose: make([]index, 1), settled: make([]index, 1), waits: make([]bool, 1),
		}
	}
}

func (h *async) begin() error {
	if h.last != 0 {
		return nil
	}
	if err := h.reserve(); err != nil {
		return err
	}
	h.first = h.a.add(h.id, h.base, h.last-h.base, free)
	h.a.all[h.first].asked = 0
	h.settled[anyStream].insert(h.age(h.first), h.first)
	return nil
}

func (h *async) take(size, stream uint64) (int32, error) {
	if err := h.begin(); err != nil {
		return 0, err
	}
	size = up(size, unit)
	own := h.number(stream)
	if int(own) == len(h.loose) {
		h.loose, h.settled, h.waits = append(h.loose, index{}), append(h.settled, index{}), append(h.waits, false)
	}
	if i := h.loose[own].takeCeiling(key{first: size}); i != noBlock {
		if rest := h.cut(i, size); rest != noBlock {
			h.loose[own].insert(h.fit(rest), rest)
		}
		h.use(i, 1)
		return i, nil
	}
	h.settle(own)
	i := h.find(own, size)
	if i == noBlock {
		return 0, driver.ErrOutOfMemory
	}
	if err := h.back(i, size, own); err != nil {
		return 0, err
	}
	x := &h.settled[h.a.all[i].note]
	x.remove(h.age(i))
	if rest := h.cut(i, size); rest != noBlock {
		x.insert(h.age(rest), rest)
	}
	h.a.all[i].note = own
	h.use(i, 1)
	return i, nil
}

// use counts a block that is given away, or with -1 given back.
func (h *async) use(i int32, times int64) {
	b := &h.a.all[i]
	for at, end := b.addr, b.addr+b.size; at < end; {
		next := min(h.base+uint64(h.chunk(at)+1)*asyncPiece, end)
		h.used[h.chunk(at)] += times * int64(next-at)
		at = next
	}
}

// cut takes the lower part of a block and returns the rest, which is as old, or
// noBlock.
func (h *async) cut(i int32, size uint64) int32 {
	if h.a.all[i].size == size {
		return noBlock
	}
	rest := h.a.split(i, size)
	h.a.all[rest].asked = h.a.all[i].asked
	return rest
}

func (h *async) fit(i int32) key {
	b := &h.a.all[i]
	return key{b.size, b.addr}
}

func (h *async) age(i int32) key {
	b := &h.a.all[i]
	return key{sizeClass(b.size), b.asked}
}

// sizeClass numbers the classes, two for every doubling.
func sizeClass(size uint64) uint64 {
	n := bits.Len64(size)
	return uint64(2*n) + size>>(n-2)&1
}

// find returns the oldest settled block of the smallest class that has one large
// enough, of those a stream may take. The free end of the range is the largest.
func (h *async) find(own int32, size uint64) int32 {
	i := h.oldest(own, size)
	if j := h.oldest(anyStream, size); i == noBlock || j != noBlock && h.age(j).less(h.age(i)) {
		i = j
	}
	return i
}

func (h *async) oldest(whose int32, size uint64) int32 {
	class := sizeClass(size)
	i := h.settled[whose].until(key{first: class}, key{first: class + 1}, func(i int32) bool { return h.a.all[i].size >= size })
	if i == noBlock {
		i = h.settled[whose].ceiling(key{first: class + 1})
	}
	return i
}

// chunk returns the number of the chunk that an address is in.
func (h *async) chunk(addr uint64) int { return int((addr - h.base) / asyncPiece) }

// back puts memory behind the first bytes of a settled block: chunks that are free
// elsewhere, then new ones.
func (h *async) back(i int32, size uint64, own int32) error {
	low := h.chunk(h.a.all[i].addr)
	high := h.chunk(h.a.all[i].addr+size-1) + 1
	h.mapped = append(h.mapped, make([]bool, max(0, high-len(h.mapped)))...)
	h.used = append(h.used, make([]int64, len(h.mapped)-len(h.used))...)
	missing := 0
	for _, m := range h.mapped[low:high] {
		if !m {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	spare := h.spare(own, low, high)
	spare = spare[:min(len(spare), missing)]
	if err := h.a.room(uint64(missing-len(spare)) * asyncPiece); err != nil {
		return err
	}
	allocs, frees := h.a.allocs, h.a.frees
	for _, c := range spare {
		if err := h.setMapped(c, c+1, false); err != nil {
			return err
		}
	}
	if err := h.mapMissing(low, high); err != nil {
		return err
	}
	h.a.allocs, h.a.frees = allocs, frees // what moved was neither given nor taken
	if missing > len(spare) {
		h.a.allocs++
	}
	return nil
}

// mapMissing maps the chunks from low to high that are not.
func (h *async) mapMissing(low, high int) error {
	for c := low; c < high; {
		end := c
		for end < high && !h.mapped[end] {
			end++
		}
		if end > c {
			if err := h.setMapped(c, end, true); err != nil {
				return err
			}
		}
		c = end + 1
	}
	return nil
}

// setMapped maps or unmaps chunks.
func (h *async) setMapped(from, to int, m bool) error {
	addr, size := h.base+uint64(from)*asyncPiece, uint64(to-from)*asyncPiece
	if m {
		if err := h.mapAt(addr, size); err != nil {
			return err
		}
		h.bytes += size
	} else {
		if err := h.unmapAt(addr, size); err != nil {
			return err
		}
		h.bytes -= size
	}
	for c := from; c < to; c++ {
		h.mapped[c] = m
	}
	return nil
}

// spare returns the mapped chunks outside [low, high) that lie whole in settled
// blocks which a stream may take, in order.
func (h *async) spare(own int32, low, high int) []int {
	var all []int
	collect := func(_ key, i int32) {
		b := &h.a.all[i]
		end := min(h.chunk(b.addr+b.size), len(h.mapped))
		for c := h.chunk(b.addr + asyncPiece - 1); c < end; c++ {
			if h.mapped[c] && (c < low || c >= high) {
				all = append(all, c)
			}
		}
	}
	h.settled[anyStream].each(collect)
	h.settled[own].each(collect)
	slices.Sort(all)
	return all
}

func (h *async) give(i int32) error {
	h.use(i, -1)
	b := &h.a.all[i]
	h.clock++
	b.state, b.asked = loose, h.clock
	h.loose[b.note].insert(h.fit(i), i)
	if !h.waits[b.note] {
		h.waits[b.note] = true
		h.waiting = append(h.waiting, b.note)
	}
	return nil
}

// settle merges what a stream has freed, or what all have if they may take each
// other's blocks.
func (h *async) settle(own int32) {
	if !h.pool.Internal {
		h.settleOne(own, own)
		return
	}
	h.settleAll()
}

// settleAll merges what all streams have freed.
func (h *async) settleAll() {
	slices.Sort(h.waiting)
	for _, n := range h.waiting {
		whose := n
		if h.pool.Internal {
			whose = anyStream
		}
		h.settleOne(n, whose)
		h.waits[n] = false
	}
	h.waiting = h.waiting[:0]
}

func (h *async) settleOne(own, whose int32) {
	for h.loose[own].count > 0 {
		i := h.loose[own].takeCeiling(key{})
		h.a.all[i].state, h.a.all[i].note = free, whose
		h.merge(i)
	}
}

// alike reports whether two neighbours are settled and free for the same streams.
func alike(b, c *block) bool { return b.state == free && c.state == free && b.note == c.note }

// merge joins a settled block, which is in no index, with its neighbours. It is as
// young as the youngest.
func (h *async) merge(i int32) {
	a := h.a
	x := &h.settled[a.all[i].note]
	freed := a.all[i].asked
	if n := a.all[i].next; n != noBlock && alike(&a.all[n], &a.all[i]) {
		x.remove(h.age(n))
		freed = max(freed, a.all[n].asked)
		a.join(i)
	}
	if p := a.all[i].prev; p != noBlock && alike(&a.all[p], &a.all[i]) {
		x.remove(h.age(p))
		freed = max(freed, a.all[p].asked)
		a.join(p)
		i = p
	}
	a.all[i].asked = freed
	x.insert(h.age(i), i)
}

// synchronize settles what is free, for all streams if the pool looks at what is
// done, and releases what exceeds the threshold.
func (h *async) synchronize() error {
	h.settleAll()
	if h.pool.Opportunistic {
		for n := 1; n < len(h.settled); n++ {
			for h.settled[n].count > 0 {
				i := h.settled[n].takeCeiling(key{})
				h.a.all[i].note = anyStream
				h.merge(i)
			}
		}
	}
	return h.release(h.pool.Threshold)
}

// release gives free chunks back, the highest first, until no more than some bytes
// are left.
func (h *async) release(most uint64) error {
	if h.bytes <= most {
		return nil
	}
	h.settleAll() // what is loose has memory
	for c := len(h.mapped) - 1; c >= 0 && h.bytes > most; c-- {
		if h.mapped[c] && h.used[c] == 0 {
			if err := h.setMapped(c, c+1, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *async) trim() error { return h.release(0) }

func (h *async) check() (reserved, given uint64, err error) {
	if h.last == 0 {
		return 0, 0, nil
	}
	at, nLoose, nFree := h.base, 0, 0
	used := make([]int64, len(h.used))
	for i := h.first; i != noBlock; i = h.a.all[i].next {
		b := &h.a.all[i]
		if b.addr != at {
			return 0, 0, fmt.Errorf("a block begins at %#x, the one below ends at %#x", b.addr, at)
		}
		at += b.size
		switch b.state {
		case free:
			nFree++
			if b.next != noBlock && alike(b, &h.a.all[b.next]) {
				return 0, 0, fmt.Errorf("free neighbours at %#x", at)
			}
			continue
		case loose:
			nLoose++
		default:
			given += b.size
		}
		for c := h.chunk(b.addr); c <= h.chunk(at-1); c++ {
			if !h.mapped[c] {
				return 0, 0, fmt.Errorf("no memory is behind the block at %#x", b.addr)
			}
			if begin := h.base + uint64(c)*asyncPiece; b.state != loose {
				used[c] += int64(min(at, begin+asyncPiece) - max(b.addr, begin))
			}
		}
	}
	for n := range h.loose {
		nLoose, nFree = nLoose-h.loose[n].count, nFree-h.settled[n].count
		if err := h.loose[n].check(h.a, h.loose[n].count, h.fit); err != nil {
			return 0, 0, err
		}
		if err := h.settled[n].check(h.a, h.settled[n].count, h.age); err != nil {
			return 0, 0, err
		}
	}
	for _, m := range h.mapped {
		if m {
			reserved += asyncPiece
		}
	}
	if !slices.Equal(used, h.used) {
		return 0, 0, fmt.Errorf("of the chunks %d are given away, counted %d", used, h.used)
	}
	if reserved != h.bytes || nLoose != 0 || nFree != 0 || at != h.last {
		return 0, 0, fmt.Errorf("the chunks have %d bytes, counted %d; %d free blocks are in no index; the blocks end at %#x of %#x", reserved, h.bytes, nLoose+nFree, at, h.last)
	}
	return reserved, given, nil
}

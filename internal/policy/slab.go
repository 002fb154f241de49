package policy

import (
	"fmt"
	"math/bits"
)

// slabs serve requests of up to 1 MiB from slabs of 2 MiB, each for one size:
// four sizes for every doubling. A slab lies in the range of a best fit, which
// serves what is larger, and goes back there when it is empty.
type slabs struct {
	large   *fit
	all     []slab
	spare   []int32
	classes [slabClasses]index // of each size the slabs with room, by address
}

// slab is 2 MiB cut into slots of one size.
type slab struct {
	block int32 // of the range; its slots have the number of the slab in block.note
	class int
	used  int
	taken [slabSize / unit / 64]uint64 // a bit for each slot
}

const (
	slabSize    = 2 << 20
	mostSlotted = 1 << 20
	slabClasses = 40
)

func newSlabs(a *Allocator, id uint16, at Place) heap {
	return &slabs{large: makeFit(a, id, at, best)}
}

// classOf returns the class of a size and the size of its slots.
func classOf(size uint64) (class int, slot uint64) {
	n := (size + unit - 1) / unit
	if n <= 4 {
		return int(n) - 1, n * unit
	}
	shift := bits.Len64(n-1) - 3 // four steps from each power of two to the next
	steps := (n-1)>>shift + 1
	return 4*shift + int(steps) - 1, steps << shift * unit
}

func (h *slabs) take(size, _ uint64) (int32, error) {
	if size > mostSlotted {
		i, err := h.large.takeRounded(up(size, unit))
		if err == nil {
			h.large.a.all[i].note = noBlock
		}
		return i, err
	}
	class, slot := classOf(size)
	n, err := h.slabOf(class)
	if err != nil {
		return 0, err
	}
	s := &h.all[n]
	a := h.large.a
	place := 0
	for w := range s.taken {
		if ^s.taken[w] != 0 {
			place = 64*w + bits.TrailingZeros64(^s.taken[w])
			break
		}
	}
	s.taken[place/64] |= 1 << (place % 64)
	s.used++
	base := a.all[s.block].addr
	if s.used == slabSize/int(slot) {
		h.classes[class].remove(key{first: base})
	}
	i := a.add(h.large.id, base+uint64(place)*slot, slot, held)
	a.all[i].note = n
	return i, nil
}

// slabOf returns the lowest slab of a class with room, a new one if there is none.
func (h *slabs) slabOf(class int) (int32, error) {
	if h.classes[class].count > 0 {
		return h.classes[class].ceiling(key{}), nil
	}
	block, err := h.large.takeRounded(slabSize)
	if err != nil {
		return 0, err
	}
	h.large.a.all[block].state = slabbed
	var n int32
	if len(h.spare) > 0 {
		n = h.spare[len(h.spare)-1]
		h.spare = h.spare[:len(h.spare)-1]
	} else {
		h.all = append(h.all, slab{})
		n = int32(len(h.all) - 1)
	}
	h.all[n] = slab{block: block, class: class}
	h.classes[class].insert(key{first: h.large.a.all[block].addr}, n)
	return n, nil
}

func (h *slabs) give(i int32) error {
	a := h.large.a
	b := a.all[i]
	if b.note == noBlock {
		return h.large.give(i)
	}
	s := &h.all[b.note]
	base := a.all[s.block].addr
	place := int((b.addr - base) / b.size)
	full := s.used == slabSize/int(b.size)
	s.taken[place/64] &^= 1 << (place % 64)
	s.used--
	a.drop(i)
	switch {
	case s.used == 0:
		if !full {
			h.classes[s.class].remove(key{first: base})
		}
		h.spare = append(h.spare, b.note)
		return h.large.give(s.block)
	case full:
		h.classes[s.class].insert(key{first: base}, b.note)
	}
	return nil
}

func (h *slabs) trim() error { return h.large.trim() }

func (h *slabs) synchronize() error { return nil }

func (h *slabs) check() (reserved, given uint64, err error) {
	reserved, given, err = h.large.check()
	if err != nil {
		return 0, 0, err
	}
	a := h.large.a
	slots := make([]int, len(h.all))
	for i := range a.all {
		if b := &a.all[i]; b.heap == h.large.id && (b.state == held || b.state == waiting) && b.note != noBlock {
			slots[b.note]++
			given += b.size
			if s := a.all[h.all[b.note].block]; b.addr < s.addr || b.addr+b.size > s.addr+s.size {
				return 0, 0, fmt.Errorf("slot at %#x is outside its slab", b.addr)
			}
		}
	}
	for n, used := range slots {
		s := &h.all[n]
		bitsSet := 0
		for _, w := range s.taken {
			bitsSet += bits.OnesCount64(w)
		}
		if used == 0 {
			continue // given back
		}
		given -= slabSize
		if used != s.used || used != bitsSet {
			return 0, 0, fmt.Errorf("a slab has %d slots in use and counts %d", used, s.used)
		}
	}
	return reserved, given, nil
}

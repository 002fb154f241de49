package policy

import (
	"fmt"
	"math/bits"
)

// buddy hands out powers of two from 512 B on, the lowest address first. Its
// blocks lie at multiples of their size, so its range grows by aligned blocks: the
// addresses between them have no memory until a smaller request takes them.
type buddy struct {
	a  *Allocator
	id uint16
	span
	mapped [orders]index // free blocks by address
	bare   [orders]index // addresses without memory, likewise
}

const (
	unitBits    = 9
	granuleBits = 21
	orders      = 41
)

func newBuddy(a *Allocator, id uint16, at Place) heap {
	return &buddy{a: a, id: id, span: span{a: a, stream: at.Stream, granule: granule}}
}

func (h *buddy) order(size uint64) int { return bits.Len64(size - 1) }

func (h *buddy) begin() error {
	if h.last != 0 {
		return nil
	}
	if err := h.reserve(); err != nil {
		return err
	}
	h.insert(h.a.add(h.id, h.base, h.last-h.base, unmapped))
	return nil
}

func (h *buddy) take(size, _ uint64) (int32, error) {
	if err := h.begin(); err != nil {
		return 0, err
	}
	order := max(h.order(size), unitBits)
	if order >= orders {
		return 0, errLimit
	}
	for o := order; o < orders; o++ {
		if h.mapped[o].count > 0 {
			return h.halve(h.mapped[o].takeCeiling(key{}), order), nil
		}
	}
	return h.extend(order)
}

// extend puts memory behind the lowest addresses that are large enough.
func (h *buddy) extend(order int) (int32, error) {
	need := max(order, granuleBits)
	for o := need; o < orders; o++ {
		if h.bare[o].count == 0 {
			continue
		}
		i := h.bare[o].ceiling(key{})
		if err := h.mapAt(h.a.all[i].addr, 1<<need); err != nil {
			return 0, err
		}
		h.bare[o].remove(key{first: h.a.all[i].addr})
		i = h.halve(i, need)
		h.a.all[i].state = free
		return h.halve(i, order), nil
	}
	return 0, errLimit
}

// halve cuts a block, which is in no index, down to an order and returns the
// lowest part.
func (h *buddy) halve(i int32, order int) int32 {
	for o := h.order(h.a.all[i].size); o > order; o-- {
		h.insert(h.a.split(i, 1<<(o-1)))
	}
	return i
}

func (h *buddy) insert(i int32) {
	b := &h.a.all[i]
	h.index(b).insert(key{first: b.addr}, i)
}

func (h *buddy) index(b *block) *index {
	if o := h.order(b.size); b.state == unmapped {
		return &h.bare[o]
	} else {
		return &h.mapped[o]
	}
}

func (h *buddy) give(i int32) error {
	h.a.all[i].state = free
	h.merge(i)
	return nil
}

// merge joins a block with its buddy as long as that is free too.
func (h *buddy) merge(i int32) {
	all := h.a.all
	for {
		b := &all[i]
		other := b.next
		upper := (b.addr-h.base)&b.size != 0
		if upper {
			other = b.prev
		}
		if other == noBlock || all[other].size != b.size || all[other].state != b.state {
			break
		}
		h.index(&all[other]).remove(key{first: all[other].addr})
		if upper {
			i = other
		}
		h.a.join(i)
	}
	h.insert(i)
}

func (h *buddy) trim() error {
	for o := orders - 1; o >= granuleBits; o-- {
		for h.mapped[o].count > 0 {
			i := h.mapped[o].ceiling(key{})
			b := &h.a.all[i]
			if err := h.unmapAt(b.addr, b.size); err != nil {
				return err
			}
			h.mapped[o].remove(key{first: b.addr})
			b.state = unmapped
			h.merge(i)
		}
	}
	return nil
}

func (h *buddy) synchronize() error { return nil }

func (h *buddy) check() (reserved, given uint64, err error) {
	var freeBytes uint64
	for o := range orders {
		for _, x := range []*index{&h.mapped[o], &h.bare[o]} {
			x.each(func(k key, i int32) {
				b := &h.a.all[i]
				if b.addr != k.first || b.size != 1<<o || (b.addr-h.base)%b.size != 0 || b.state == held {
					err = fmt.Errorf("block at %#x is in the wrong index", b.addr)
				}
			})
		}
		freeBytes += uint64(h.mapped[o].count) << o
	}
	at := h.base
	for i := h.lowest(); i != noBlock; i = h.a.all[i].next {
		b := &h.a.all[i]
		if b.addr != at {
			return 0, 0, fmt.Errorf("a block begins at %#x, the one below ends at %#x", b.addr, at)
		}
		at += b.size
		if b.state == held || b.state == waiting {
			given += b.size
		}
	}
	return freeBytes + given, given, err
}

// lowest returns the first block, for checks.
func (h *buddy) lowest() int32 {
	for i := range h.a.all {
		if b := &h.a.all[i]; b.heap == h.id && b.state != unused && b.prev == noBlock {
			return int32(i)
		}
	}
	return noBlock
}

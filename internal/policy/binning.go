package policy

import "fmt"

// binning is cub::CachingDeviceAllocator with its defaults: requests are rounded up
// to a power of eight from 8^3 to 8^7 bytes, larger ones go straight to the driver.
// A freed block is kept for its stream, the oldest is handed out first, and as
// long as no more than 6 MiB less a byte are kept.
type binning struct {
	a      *Allocator
	id     uint16
	kept   [bins]list // freed blocks, oldest first
	bytes  uint64     // of kept blocks
	small  uint64     // bytes in blocks below a page
	blocks int64      // held, kept or waiting
	large  uint64     // bytes in pages of their own
	clock  int32      // counts synchronisations
	numbers
}

const (
	bins        = 5
	leastBin    = 512     // 8^3
	mostBin     = 2 << 20 // 8^7
	mostKept    = 3*mostBin - 1
	driversPage = 2 << 20
)

// list is a queue of blocks, linked by next. Their prev is the number of the stream
// that they were handed out for, their note the clock when they were freed.
type list struct{ first, last int32 }

func newBinning(a *Allocator, id uint16, _ Place) heap {
	h := &binning{a: a, id: id}
	for i := range h.kept {
		h.kept[i] = list{noBlock, noBlock}
	}
	return h
}

func binOf(size uint64) (bin int, bytes uint64) {
	bytes = leastBin
	for bytes < size {
		bytes *= 8
		bin++
	}
	return bin, bytes
}

func (h *binning) take(size, stream uint64) (int32, error) {
	if size > mostBin {
		return h.obtain(size, stream)
	}
	bin, bytes := binOf(size)
	all, own := h.a.all, h.number(stream)
	for i, before := h.kept[bin].first, int32(noBlock); i != noBlock; i, before = all[i].next, i {
		b := &all[i]
		if b.prev != own && b.note == h.clock {
			continue // another stream freed it and may still use it
		}
		h.unlink(bin, i, before)
		h.bytes -= bytes
		b.prev = own
		return i, nil
	}
	return h.obtain(bytes, stream)
}

// unlink takes a block out of its queue.
func (h *binning) unlink(bin int, i, before int32) {
	q, after := &h.kept[bin], h.a.all[i].next
	if before == noBlock {
		q.first = after
	} else {
		h.a.all[before].next = after
	}
	if q.last == i {
		q.last = before
	}
	h.a.all[i].next = noBlock
}

// obtain gets a block from the driver.
func (h *binning) obtain(size, stream uint64) (int32, error) {
	grown := h.pages(size, 0)
	if err := h.a.room(grown); err != nil {
		return 0, err
	}
	addr, err := h.a.driver.Malloc(size, stream)
	if err != nil {
		return 0, err
	}
	h.a.reserved += grown
	h.a.allocs++
	h.count(size, 1)
	i := h.a.add(h.id, addr, size, held)
	h.a.all[i].prev = h.number(stream)
	return i, nil
}

// pages returns by how much reserved memory rises or falls when a block comes or
// goes: the driver packs blocks below a page into pages.
func (h *binning) pages(more, less uint64) uint64 {
	if size := max(more, less); size >= driversPage {
		return up(size, driversPage)
	}
	before := up(h.small, driversPage)
	if more > 0 {
		return up(h.small+more, driversPage) - before
	}
	return before - up(h.small-less, driversPage)
}

// count notes that blocks of a size came or went.
func (h *binning) count(size uint64, blocks int64) {
	h.blocks += blocks
	if size >= driversPage {
		h.large += uint64(blocks) * up(size, driversPage)
		return
	}
	h.small += uint64(blocks) * size
}

func (h *binning) give(i int32) error {
	b := &h.a.all[i]
	if b.size > mostBin || h.bytes+b.size > mostKept {
		return h.release(i)
	}
	bin, _ := binOf(b.size)
	b.state, b.note, b.next = free, h.clock, noBlock
	q := &h.kept[bin]
	if q.last == noBlock {
		q.first = i
	} else {
		h.a.all[q.last].next = i
	}
	q.last = i
	h.bytes += b.size
	return nil
}

// release gives a block back to the driver.
func (h *binning) release(i int32) error {
	b := h.a.all[i]
	if err := h.a.driver.Free(b.addr, b.size); err != nil {
		return err
	}
	h.a.reserved -= h.pages(0, b.size)
	h.a.frees++
	h.count(b.size, -1)
	h.a.drop(i)
	return nil
}

func (h *binning) trim() error {
	for bin := range h.kept {
		for h.kept[bin].first != noBlock {
			i := h.kept[bin].first
			size, after := h.a.all[i].size, h.a.all[i].next
			if err := h.release(i); err != nil {
				return err
			}
			h.bytes -= size
			if h.kept[bin].first = after; after == noBlock {
				h.kept[bin].last = noBlock
			}
		}
	}
	return nil
}

func (h *binning) synchronize() error {
	h.clock++
	return nil
}

func (h *binning) check() (reserved, given uint64, err error) {
	var kept uint64
	count := int64(0)
	for bin := range h.kept {
		last := int32(noBlock)
		for i := h.kept[bin].first; i != noBlock; i = h.a.all[i].next {
			if b := &h.a.all[i]; b.state != free {
				return 0, 0, fmt.Errorf("a kept block at %#x is in use", b.addr)
			}
			kept += h.a.all[i].size
			last = i
			count++
		}
		if last != h.kept[bin].last {
			return 0, 0, fmt.Errorf("the queue of bin %d is broken", bin)
		}
	}
	for i := range h.a.all {
		if b := &h.a.all[i]; b.heap == h.id && (b.state == held || b.state == waiting) {
			given += b.size
			count++
		}
	}
	if kept != h.bytes || kept > mostKept || count != h.blocks {
		return 0, 0, fmt.Errorf("%d bytes are kept in %d blocks, counted %d and %d", kept, count, h.bytes, h.blocks)
	}
	return up(h.small, driversPage) + h.large, given, nil
}

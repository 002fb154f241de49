package main

// #include "bridge.h"
import "C"

import (
	"errors"
	"sync/atomic"

	"github.com/ashlar-mem/ashlar/alloc"
)

// The table in C is made for blocks that begin where alloc says they do.
const _ = -uint(alloc.MinBlock ^ C.FRONT_UNIT)

// cFront is the front in C.
type cFront struct{}

// cBox is the outbox of a device, in C's memory.
type cBox struct{ in *C.struct_outbox }

func (cFront) open(slot, device int) outbox {
	if b := C.front_open(C.int(slot), C.int(device)); b != nil {
		return cBox{b}
	}
	return nil
}

func (b cBox) read(out []uint64) (n int) {
	taken, put := uint64(b.in.taken), atomic.LoadUint64((*uint64)(&b.in.put))
	for ; n < len(out) && taken != put; n, taken = n+1, taken+1 {
		out[n] = uint64(b.in.block[taken%C.OUTBOX])
	}
	atomic.StoreUint64((*uint64)(&b.in.taken), taken)
	return n
}

func (b cBox) rest() bool { return atomic.LoadUint64((*uint64)(&b.in.rest)) != 0 }

func (cFront) fill(device int, all bool) { C.front_fill(C.int(device), C.bool(all)) }

func (cFront) mode(device int, off bool) { C.front_mode(C.int(device), C.int(flag(off))) }
func (cFront) resetPeaks(device int)     { C.front_reset_peaks(C.int(device)) }
func (cFront) resetSums(device int)      { C.front_reset_sums(C.int(device)) }

func (cFront) bind(device int, stream uint64, slot int) error {
	if !C.front_bind(C.int(device), C.uint64_t(stream), C.int(slot)) {
		return errors.New("no more streams can be bound to tenants")
	}
	return nil
}

func (cFront) unbind(device, slot int) { C.front_unbind(C.int(device), C.int(slot)) }

func (cFront) named(addr uint64) { C.front_named(C.uint64_t(addr)) }

func (cFront) marked(device int)     { C.front_marked(C.int(device)) }
func (cFront) alone(device int) bool { return bool(C.front_alone(C.int(device))) }
func (cFront) mine(device int) bool  { return bool(C.front_mine(C.int(device))) }

func (cFront) waiting(device int, w *alloc.Waiting) {
	var r C.struct_reply
	fillWaiting(w, &r)
	C.front_waiting(C.int(device), &r)
}

func (cFront) read(device int) frontState {
	var s C.struct_front_state
	C.front_read(C.int(device), &s)
	c := &s.counts
	return frontState{
		Counts: counts{
			Live: sumsByKind(c.live), Up: sumsByKind(c.up), Peak: sumsWithTotal(c.peak), ActivePeak: sumsWithTotal(c.active_peak),
			Waiting: sumsByKind(c.waiting), Live0: sumsByKind(c.live0), Waiting0: sumsByKind(c.waiting0),
		},
		Hits: uint64(s.hits), Misses: uint64(s.misses), Held: uint64(s.held), Queued: uint64(s.queued), Direct: uint64(s.direct),
		Returned: uint64(s.returned), Turns: uint64(s.turns), Wasted: uint64(s.wasted), Unknown: uint64(s.unknown),
		KeepBlocks: uint64(s.keep_blocks), KeepBytes: uint64(s.keep_bytes),
		StackBlocks: uint64(s.stack_blocks), UndoneBlocks: uint64(s.undone_blocks), QueuedBlocks: uint64(s.queued_blocks),
		Off: s.off != 0, Asking: bool(s.waiting),
	}
}

func toSums(s C.struct_sums) sums { return sums{int64(s.blocks), int64(s.bytes), int64(s.requested)} }

func sumsByKind(s [2]C.struct_sums) [2]sums { return [2]sums{toSums(s[0]), toSums(s[1])} }

func sumsWithTotal(s [3]C.struct_sums) [3]sums {
	return [3]sums{toSums(s[0]), toSums(s[1]), toSums(s[2])}
}

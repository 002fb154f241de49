package policy

import (
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/driver"
)

// Allocator is a [Policy] made of heaps. It is not safe for concurrent use.
type Allocator struct {
	blocks
	driver   driver.Driver
	strategy *Strategy
	options  Options

	heaps  []heap
	places []Place
	last   int // the heap of the last Malloc

	reserved, given, requested uint64
	live                       int
	peak                       Peak
	allocs, frees              int64

	uses    map[int32][]uint64 // the streams that blocks were recorded on
	pending []pending
}

// pending is a freed block that a stream may still use.
type pending struct {
	block int32
	done  bool // the event is, but the block could not be released
	event driver.Event
}

var _ Policy = (*Allocator)(nil)

// New returns an allocator over a driver.
func (s *Strategy) New(d driver.Driver, o Options) *Allocator {
	return &Allocator{blocks: blocks{spare: noBlock}, driver: d, strategy: s, options: o, uses: map[int32][]uint64{}}
}

// Malloc hands out a block.
func (a *Allocator) Malloc(size uint64, at Place) (Block, error) {
	if len(a.pending) > 0 {
		if err := a.poll(); err != nil {
			return 0, err
		}
	}
	h := a.last
	key := at
	if a.strategy.Streams {
		key.Stream = 0
	}
	if h >= len(a.places) || a.places[h] != key {
		h = a.find(key)
	}
	i, err := a.heaps[h].take(max(size, 1), at.Stream)
	if err != nil {
		if i, err = a.retry(h, size, at, err); err != nil {
			return 0, err
		}
	}
	b := &a.all[i]
	b.asked, b.state = size, held
	a.given += b.size
	a.requested += size
	a.live++
	if a.reserved > a.peak.Reserved {
		a.peak = Peak{a.reserved, a.given, a.requested}
	}
	return handle(i, b.turn), nil
}

// find returns the heap of a place, a new one if there is none yet.
func (a *Allocator) find(at Place) int {
	for i, p := range a.places {
		if p == at {
			a.last = i
			return i
		}
	}
	a.last = len(a.places)
	a.places = append(a.places, at)
	a.heaps = append(a.heaps, a.strategy.make(a, uint16(a.last), at))
	return a.last
}

// retry makes a request again after everything that is free was given back.
func (a *Allocator) retry(h int, size uint64, at Place, err error) (int32, error) {
	if !errors.Is(err, driver.ErrOutOfMemory) {
		return 0, err
	}
	if err := a.Trim(); err != nil {
		return 0, err
	}
	i, err := a.heaps[h].take(max(size, 1), at.Stream)
	if errors.Is(err, driver.ErrOutOfMemory) {
		err = &OutOfMemoryError{Size: size, Reserved: a.reserved, Given: a.given, Limit: a.options.Limit}
	}
	return i, err
}

func handle(i int32, turn uint32) Block { return Block(turn)<<32 | Block(uint32(i)) }

// lookUp returns the block that a handle names.
func (a *Allocator) lookUp(b Block) (int32, error) {
	i, turn := int64(uint32(b)), uint32(b>>32)
	if i >= int64(len(a.all)) || a.all[i].turn != turn || a.all[i].state != held {
		return 0, fmt.Errorf("policy: block %#x: %w", uint64(b), ErrNotAllocated)
	}
	return int32(i), nil
}

// Free takes a block back.
func (a *Allocator) Free(h Block) error {
	i, err := a.lookUp(h)
	if err != nil {
		return err
	}
	if len(a.uses) > 0 {
		if streams := a.uses[i]; len(streams) > 0 {
			return a.freeLater(i, streams)
		}
	}
	return a.release(i)
}

// release gives a block to its heap.
func (a *Allocator) release(i int32) error {
	b := &a.all[i]
	size, asked := b.size, b.asked
	b.turn++
	if err := a.heaps[b.heap].give(i); err != nil {
		b.turn--
		return err
	}
	a.given -= size
	a.requested -= asked
	a.live--
	return nil
}

// freeLater keeps a block until the streams that use it are done.
func (a *Allocator) freeLater(i int32, streams []uint64) error {
	n := len(a.pending)
	for _, s := range streams {
		event, err := a.driver.RecordEvent(s, a.all[i].addr)
		if err != nil {
			a.pending = a.pending[:n] // the block stays handed out
			return err
		}
		a.pending = append(a.pending, pending{block: i, event: event})
	}
	delete(a.uses, i)
	a.all[i].state, a.all[i].turn = waiting, a.all[i].turn+1
	return nil
}

// poll releases the blocks whose streams are done.
func (a *Allocator) poll() error {
	kept := a.pending[:0]
	for n, p := range a.pending {
		err := error(nil)
		if !p.done {
			p.done, err = a.driver.EventDone(p.event)
		}
		if p.done && !waitsElsewhere(p.block, kept, a.pending[n+1:]) {
			if err = a.release(p.block); err == nil {
				continue
			}
		} else if p.done {
			continue // another event decides
		}
		kept = append(kept, p)
		if err != nil {
			a.pending = append(kept, a.pending[n+1:]...)
			return err
		}
	}
	a.pending = kept
	return nil
}

// waitsElsewhere reports whether a block has another event to wait for.
func waitsElsewhere(block int32, lists ...[]pending) bool {
	for _, list := range lists {
		for _, p := range list {
			if p.block == block {
				return true
			}
		}
	}
	return false
}

// RecordStream says that a stream uses a block too.
func (a *Allocator) RecordStream(h Block, stream uint64) error {
	i, err := a.lookUp(h)
	if err != nil {
		return err
	}
	for _, s := range a.uses[i] {
		if s == stream {
			return nil
		}
	}
	a.uses[i] = append(a.uses[i], stream)
	return nil
}

// Synchronize says that all streams have done their work.
func (a *Allocator) Synchronize() error {
	for _, h := range a.heaps {
		if err := h.synchronize(); err != nil {
			return err
		}
	}
	return nil
}

// Trim gives back what is free.
func (a *Allocator) Trim() error {
	if err := a.poll(); err != nil {
		return err
	}
	for _, h := range a.heaps {
		if err := h.trim(); err != nil {
			return err
		}
	}
	return nil
}

// Stats returns the statistics.
func (a *Allocator) Stats() Stats {
	return Stats{
		Reserved: a.reserved, Given: a.given, Requested: a.requested, Blocks: a.live, Peak: a.peak,
		DeviceAllocs: a.allocs, DeviceFrees: a.frees,
	}
}

// Span returns the addresses of a block.
func (a *Allocator) Span(h Block) (addr, size uint64, err error) {
	i, err := a.lookUp(h)
	if err != nil {
		return 0, 0, err
	}
	return a.all[i].addr, a.all[i].size, nil
}

// Heaps returns how many heaps there are.
func (a *Allocator) Heaps() int { return len(a.heaps) }

// Check looks for contradictions.
func (a *Allocator) Check() error {
	var reserved, given uint64
	for i, h := range a.heaps {
		r, g, err := h.check()
		if err != nil {
			return fmt.Errorf("policy: %s, heap %d: %w", a.strategy.Name, i, err)
		}
		reserved, given = reserved+r, given+g
	}
	var blocks int
	var bytes, asked uint64
	for i := range a.all {
		if b := &a.all[i]; b.state == held || b.state == waiting {
			blocks, bytes, asked = blocks+1, bytes+b.size, asked+b.asked
		}
	}
	switch {
	case reserved != a.reserved:
		return fmt.Errorf("policy: %s: %d bytes are reserved, the heaps have %d", a.strategy.Name, a.reserved, reserved)
	case given != a.given || bytes != a.given:
		return fmt.Errorf("policy: %s: %d bytes are handed out, the heaps say %d, the blocks %d", a.strategy.Name, a.given, given, bytes)
	case blocks != a.live || asked != a.requested:
		return fmt.Errorf("policy: %s: %d blocks and %d requested bytes, counted %d and %d", a.strategy.Name, blocks, asked, a.live, a.requested)
	}
	return nil
}

// room returns an error if so much more may not be reserved.
func (a *Allocator) room(size uint64) error {
	if limit := a.options.Limit; limit > 0 && (size > limit || a.reserved > limit-size) {
		return errLimit
	}
	return nil
}

// errLimit is the refusal of a limit. The caller gets an [OutOfMemoryError].
var errLimit = fmt.Errorf("%w: the limit", driver.ErrOutOfMemory)

// malloc gets memory from the driver.
func (a *Allocator) malloc(size, stream uint64) (uint64, error) {
	if err := a.room(size); err != nil {
		return 0, err
	}
	addr, err := a.driver.Malloc(size, stream)
	if err != nil {
		return 0, err
	}
	a.reserved += size
	a.allocs++
	return addr, nil
}

// giveBack returns memory of malloc.
func (a *Allocator) giveBack(addr, size uint64) error {
	if err := a.driver.Free(addr, size); err != nil {
		return err
	}
	a.reserved -= size
	a.frees++
	return nil
}

// SetLimit changes the cap on reserved bytes; 0 is none.
func (a *Allocator) SetLimit(bytes uint64) { a.options.Limit = bytes }

// Reserved returns what the driver has given and not got back.
func (a *Allocator) Reserved() uint64 { return a.reserved }

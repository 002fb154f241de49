package tier

import (
	"errors"
	"sync"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// Space is the memory of one allocator.
type Space struct {
	store *Store
	name  string

	// Under the ledger's lock.
	engine       *alloc.Allocator
	device, host uint64
	overflow     uint64
	moved        Stats // what was done; the sizes are counted
	pressed      bool  // a request would have failed since the last mark

	mu   sync.Mutex
	cold map[uint64]uint64 // sizes of blocks, by address
	busy map[uint64]uint64
	pins map[uint64]uint64
	ages map[uint64]age

	quiet bool // under the allocator's lock: nobody uses the device

	// Under moving.
	marked  uint32  // blocks that were handed out before the last mark
	use     highest // of the device's memory, since the last overflow
	ahead   ahead
	fetched fetched
	returns returns
}

// Name returns the space's name.
func (sp *Space) Name() string { return sp.name }

// Driver returns the driver that the space's allocator is made over. It has the
// optional interfaces of the store's device as far as the engine asks for them, except
// [driver.Adopter]: memory that was mapped by somebody else has no handle that the store could
// map elsewhere, and an allocator that was restored over it would unmap what the store does not know.
func (sp *Space) Driver() driver.Driver { return &adaptor{driver.Passing{Driver: sp.store.dev}, sp} }

// Attach makes the space known to the allocator that was made over its driver.
// Without it nothing moves and nothing overflows. A space has one allocator.
func (sp *Space) Attach(a *alloc.Allocator) error {
	l := &sp.store.ledger
	l.mu.Lock()
	if sp.engine != nil {
		l.mu.Unlock()
		return errors.New("tier: space " + sp.name + " has an allocator already")
	}
	sp.engine = a
	overflow := sp.overflow
	l.mu.Unlock()
	sp.SetOverflow(overflow)
	return nil
}

func (sp *Space) attached() *alloc.Allocator {
	l := &sp.store.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	return sp.engine
}

// block finds the live block of an address and calls f with it under the space's lock.
func (sp *Space) block(addr uint64, f func(b alloc.Span)) bool {
	engine := sp.attached()
	if engine == nil {
		return false
	}
	found := false
	engine.Placer().Look(func(pl *alloc.Placement) {
		var b alloc.Span
		if b, found = pl.Block(addr); found {
			sp.mu.Lock()
			defer sp.mu.Unlock()
			f(b)
		}
	})
	return found
}

// Cold says that a block is seldom used: it goes to the host's memory before others
// do. It reports whether there is such a block. The hint ends with the block, or at
// the next mark after that.
func (sp *Space) Cold(addr uint64) bool {
	return sp.block(addr, func(b alloc.Span) { put(&sp.cold, b) })
}

// Busy says that a block which lives long is used much, as a parameter that is trained: it stays
// on the device as long as anything else can go. It reports whether there is such a block. The hint ends as that of Cold.
func (sp *Space) Busy(addr uint64) bool {
	return sp.block(addr, func(b alloc.Span) { put(&sp.busy, b) })
}

// Pin keeps the handles of a block where they are until Unpin or, at the next mark, the
// end of the block: other processes, libraries or network cards may know them. It
// reports whether there is such a block.
func (sp *Space) Pin(addr uint64) bool {
	return sp.block(addr, func(b alloc.Span) { put(&sp.pins, b) })
}

// Unpin ends a Pin.
func (sp *Space) Unpin(addr uint64) {
	sp.block(addr, func(b alloc.Span) { delete(sp.pins, b.Addr) })
}

func put(m *map[uint64]uint64, b alloc.Span) {
	if *m == nil {
		*m = map[uint64]uint64{}
	}
	(*m)[b.Addr] = b.Size
}

// Where says what lies behind a live block; its parts may lie in different memory. ok is
// false if there is no such block.
func (sp *Space) Where(addr uint64) (device, host, dropped uint64, ok bool) {
	engine := sp.attached()
	if engine == nil {
		return 0, 0, 0, false
	}
	engine.Placer().Look(func(pl *alloc.Placement) {
		var b alloc.Span
		if b, ok = pl.Block(addr); !ok {
			return
		}
		pl.PlaceOf(b, func(part alloc.Span, place alloc.Place) {
			switch place {
			case alloc.OnDevice:
				device += part.Size
			case alloc.OnHost:
				host += part.Size
			default:
				dropped += part.Size
			}
		})
	})
	return device, host, dropped, ok
}

// Dropped reports whether any part of the block at an address has no memory behind
// it until Restore: it was parked without being kept, or the driver failed in a move.
func (sp *Space) Dropped(addr uint64) bool {
	_, _, dropped, _ := sp.Where(addr)
	return dropped > 0
}

// Free returns how much device memory the space can still have; 0 before Attach.
func (sp *Space) Free() uint64 {
	if sp.attached() == nil {
		return 0
	}
	return sp.store.free(sp)
}

// SetOverflow lets requests that would fail be served with up to that many bytes of host
// memory, as far as the store's limit allows it; 0 ends it, and leaves what is there.
func (sp *Space) SetOverflow(bytes uint64) {
	l := &sp.store.ledger
	l.mu.Lock()
	sp.overflow = bytes
	engine := sp.engine
	l.mu.Unlock()
	switch {
	case engine == nil:
	case bytes > 0:
		engine.Placer().SetSpiller(spiller{sp})
	default:
		engine.Placer().SetSpiller(nil)
	}
}

// Stats returns the space's numbers.
func (sp *Space) Stats() Stats {
	l := &sp.store.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	out := sp.moved
	out.Device, out.Host = sp.device, sp.host
	for _, p := range l.pages {
		if p.space == sp {
			out.addPage(p)
		}
	}
	return out
}

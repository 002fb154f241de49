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
	counts       counts
	moved        Stats // what was done; the sizes are counted
	pressed      bool  // a request would have failed since the last mark

	mu   sync.Mutex
	cold hints
	busy hints
	pins hints
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
func (sp *Space) block(addr uint64, f func(b alloc.Held)) bool {
	engine := sp.attached()
	if engine == nil {
		return false
	}
	found := false
	engine.Placer().Look(func(pl *alloc.Placement) {
		var b alloc.Held
		if b, found = pl.Block(addr); found {
			sp.mu.Lock()
			defer sp.mu.Unlock()
			f(b)
		}
	})
	return found
}

// Cold says that a block is seldom used: it goes to the host's memory before others
// do. It reports whether there is such a block. The hint ends with the block, or with Busy.
func (sp *Space) Cold(addr uint64) bool {
	return sp.block(addr, func(b alloc.Held) { sp.say(b, true, true) })
}

// Busy says that a block which lives long is used much, as a parameter that is trained: it stays
// on the device as long as anything else can go. It reports whether there is such a block. The hint ends with the block, or with Cold.
func (sp *Space) Busy(addr uint64) bool {
	return sp.block(addr, func(b alloc.Held) { sp.say(b, false, true) })
}

// Guess is Cold, or else Busy, for whoever infers it, as from what an optimizer does with a block: it
// does nothing if Cold or Busy was called for the block.
func (sp *Space) Guess(addr uint64, cold bool) bool {
	return sp.block(addr, func(b alloc.Held) {
		if !sp.cold[b.Addr].told(b) && !sp.busy[b.Addr].told(b) {
			sp.say(b, cold, false)
		}
	})
}

// say notes which of both a block is. The space's lock is held.
func (sp *Space) say(b alloc.Held, cold, told bool) {
	of, other := &sp.busy, sp.cold
	if cold {
		of, other = &sp.cold, sp.busy
	}
	of.put(b, told)
	delete(other, b.Addr)
}

// Pin keeps the handles of a block where they are until Unpin or the end of the
// block: other processes, libraries or network cards may know them. It reports
// whether there is such a block.
func (sp *Space) Pin(addr uint64) bool {
	return sp.block(addr, func(b alloc.Held) { sp.pins.put(b, true) })
}

// Unpin ends a Pin.
func (sp *Space) Unpin(addr uint64) {
	sp.block(addr, func(b alloc.Held) { delete(sp.pins, b.Addr) })
}

// hints are what was said of blocks, by address.
type hints map[uint64]hint

type hint struct {
	serial  uint32
	said    bool
	guessed bool
}

func (h *hints) put(b alloc.Held, told bool) {
	if *h == nil {
		*h = hints{}
	}
	(*h)[b.Addr] = hint{b.Serial, true, !told}
}

// of reports whether it was said of a block, and not of one that was there before.
func (h hints) of(b alloc.Held) bool { return h[b.Addr].of(b) }

func (h hint) of(b alloc.Held) bool { return h.said && h.serial == b.Serial }

func (h hint) told(b alloc.Held) bool { return h.of(b) && !h.guessed }

// Where says what lies behind a live block; its parts may lie in different memory. ok is
// false if there is no such block.
func (sp *Space) Where(addr uint64) (device, host, dropped uint64, ok bool) {
	engine := sp.attached()
	if engine == nil {
		return 0, 0, 0, false
	}
	engine.Placer().Look(func(pl *alloc.Placement) {
		var b alloc.Held
		if b, ok = pl.Block(addr); !ok {
			return
		}
		pl.PlaceOf(b.Span, func(part alloc.Span, place alloc.Place) {
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
// it until Restore: it was parked without being kept.
func (sp *Space) Dropped(addr uint64) bool {
	_, _, dropped, _ := sp.Where(addr)
	return dropped > 0 && !sp.Broken(addr)
}

// Broken reports whether the driver failed when a part of the block at an address was moved, and failed again when it was
// to be mapped back: the bytes are there, and out of reach until a later move has mapped them.
func (sp *Space) Broken(addr uint64) (broken bool) {
	engine := sp.attached()
	if engine == nil {
		return false
	}
	engine.Placer().Look(func(pl *alloc.Placement) {
		b, ok := pl.Block(addr)
		if !ok {
			return
		}
		l := &sp.store.ledger
		l.mu.Lock()
		defer l.mu.Unlock()
		for p := range l.broken {
			broken = broken || p.space == sp && !p.stray && p.addr < b.End() && b.Addr < p.addr+p.size
		}
	})
	return broken
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
	out.setCounts(&sp.counts)
	return out
}

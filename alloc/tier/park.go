package tier

import (
	"cmp"
	"errors"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// Park gives the device's memory back: what the space holds goes to the host's
// memory if keep is set, and is lost otherwise; its addresses stay. Cached memory is
// released first. Memory that cannot be parked stays where it is and is in the report.
// After an error each handle is either parked or not, and the report says how much is;
// Restore brings it back.
func (sp *Space) Park(keep bool) (Report, error) {
	to := alloc.Nowhere
	if keep {
		to = alloc.OnHost
	}
	return sp.change(func(r *Report) error {
		if err := sp.emptyCache(r); err != nil {
			return err
		}
		all := func(*alloc.Granule) bool { return true }
		if keep {
			sp.stockFor(all)
		}
		return sp.store.hold(sp, func(pl *alloc.Placement) error {
			r.Plain += pl.Plain()
			return sp.moveOut(pl, all, to, r)
		})
	})
}

// ParkBlocks moves blocks to the host's memory: those handles all of whose live blocks
// are named. An address may lie anywhere in its block.
func (sp *Space) ParkBlocks(addrs []uint64) (Report, error) {
	return sp.change(func(r *Report) error {
		engine := sp.attached()
		if engine == nil {
			return sp.store.hold(sp, nil)
		}
		var named map[uint64]bool
		engine.Placer().Look(func(pl *alloc.Placement) { named = blocksOf(pl, addrs) })
		chosen := func(g *alloc.Granule) bool {
			in := 0
			for _, b := range g.Blocks {
				if named[b.Addr] {
					in++
				}
			}
			if in > 0 && in < len(g.Blocks) && g.Place == alloc.OnDevice {
				r.Shared += g.Live
			}
			return in == len(g.Blocks)
		}
		sp.stockFor(chosen)
		return sp.store.hold(sp, func(pl *alloc.Placement) error {
			named = blocksOf(pl, addrs)
			r.Shared = 0
			return sp.moveOut(pl, chosen, alloc.OnHost, r)
		})
	})
}

// blocksOf returns where the blocks of addresses begin.
func blocksOf(pl *alloc.Placement, addrs []uint64) map[uint64]bool {
	out := map[uint64]bool{}
	for _, addr := range addrs {
		if b, ok := pl.Block(addr); ok {
			out[b.Addr] = true
		}
	}
	return out
}

// change is a call that moves memory: it waits for others, tidies up what they could not, and takes
// the time.
func (sp *Space) change(f func(*Report) error) (Report, error) {
	s := sp.store
	s.moving.Lock()
	defer s.moving.Unlock()
	start := s.options.Now()
	s.sweep()
	var r Report
	err := f(&r)
	r.Time = s.options.Now().Sub(start)
	return r, err
}

// emptyCache releases the cached memory of the space.
func (sp *Space) emptyCache(r *Report) error {
	engine := sp.attached()
	if engine == nil {
		return nil
	}
	taken := func() uint64 {
		l := &sp.store.ledger
		l.mu.Lock()
		defer l.mu.Unlock()
		return sp.device + l.doomedDevice
	}
	before := taken()
	err := engine.EmptyCache()
	r.Freed += before - min(before, taken())
	return err
}

// stockFor makes the host's pages for a move out, which takes much longer than the move,
// before anybody is kept waiting. If they cannot be had the move finds out.
func (sp *Space) stockFor(chosen func(*alloc.Granule) bool) {
	engine := sp.attached()
	if engine == nil {
		return
	}
	need := map[uint64]int{}
	engine.Placer().Look(func(pl *alloc.Placement) {
		pl.Granules(func(g *alloc.Granule) bool {
			if g.Place == alloc.OnDevice && g.Live > 0 && !g.Private && !sp.pinned(g) && chosen(g) {
				need[g.Size]++
			}
			return true
		})
	})
	for size, n := range need {
		for have := min(n, stockAtOnce); sp.store.stock(size, have) == nil && have < n; {
			have = min(n, have+stockAtOnce)
		}
	}
}

// stockAtOnce is how many handles are made at once, so that a part is there if not all of
// them can be had.
const stockAtOnce = 32

// moveOut moves the chosen granules of live memory away from the device.
func (sp *Space) moveOut(pl *alloc.Placement, chosen func(*alloc.Granule) bool, to alloc.Place, r *Report) error {
	l := &sp.store.ledger
	pages := sp.pages(pl, func(g *alloc.Granule, p *page) bool {
		if g.Live == 0 || g.Place == to || g.Place == alloc.Nowhere || !chosen(g) {
			if g.Place == to && g.Live > 0 && chosen(g) {
				l.park(p, pl) // and not brought home by itself
			}
			return false
		}
		switch {
		case g.Private:
			r.Private += g.Live
		case sp.pinned(g):
			r.Pinned += g.Live
		default:
			l.park(p, pl)
			return true
		}
		return false
	})
	err := sp.store.transfer(pl, sp, runsOf(pages), to, nil, r)
	for _, p := range pages {
		if p.place == alloc.OnDevice {
			l.unpark(p)
		}
	}
	return err
}

// pages lists the whole pages of granules that f chooses.
func (sp *Space) pages(pl *alloc.Placement, f func(*alloc.Granule, *page) bool) []*page {
	var out []*page
	l := &sp.store.ledger
	pl.Granules(func(g *alloc.Granule) bool {
		l.mu.Lock()
		p := l.pages[g.Addr]
		usable := p != nil && p.whole()
		l.mu.Unlock()
		if usable && f(g, p) {
			out = append(out, p)
		}
		return true
	})
	return out
}

// pinned reports whether a block of a granule is pinned.
func (sp *Space) pinned(g *alloc.Granule) bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if len(sp.pins) == 0 {
		return false
	}
	for _, b := range g.Blocks {
		if sp.pins.of(b) {
			return true
		}
	}
	return false
}

// Restore brings everything back to the device, to the same addresses. The bytes of
// what was dropped are undefined. Memory in the host that no block uses is given back. If the device
// or a limit has no room, the caches of all spaces are released; if that does not help, what is home stays home,
// and the error wraps [driver.ErrOutOfMemory].
func (sp *Space) Restore() (Report, error) {
	return sp.change(func(r *Report) error {
		return sp.bringHome(func(*alloc.Granule) bool { return true }, r)
	})
}

// RestoreBlocks brings back the handles behind blocks.
func (sp *Space) RestoreBlocks(addrs []uint64) (Report, error) {
	return sp.change(func(r *Report) error {
		named := map[uint64]bool{}
		if engine := sp.attached(); engine != nil {
			engine.Placer().Look(func(pl *alloc.Placement) { named = blocksOf(pl, addrs) })
		}
		return sp.bringHome(func(g *alloc.Granule) bool {
			for _, b := range g.Blocks {
				if named[b.Addr] {
					return true
				}
			}
			return false
		}, r)
	})
}

func (sp *Space) bringHome(chosen func(*alloc.Granule) bool, r *Report) error {
	s := sp.store
	try := func() error {
		return s.hold(sp, func(pl *alloc.Placement) error {
			if err := pl.Release(); err != nil {
				return err
			}
			r.Pinned = 0
			pages := sp.pages(pl, func(g *alloc.Granule, p *page) bool {
				if g.Place == alloc.OnDevice || g.Live == 0 || !chosen(g) {
					return false
				}
				if g.Place == alloc.OnHost && sp.pinned(g) {
					r.Pinned += g.Live
					return false
				}
				return true
			})
			fit, short := claim(pl, pages)
			defer pl.Unclaim()
			return cmp.Or(s.transfer(pl, sp, runsOf(fit), alloc.OnDevice, nil, r), short)
		})
	}
	err := try()
	if errors.Is(err, driver.ErrOutOfMemory) && s.trimCaches() {
		err = try()
	}
	return err
}

// claim books device memory for pages that are to come home, one after the other. It returns those that the limits allow, and
// why not the next one.
func claim(pl *alloc.Placement, pages []*page) (fit []*page, err error) {
	for i, p := range pages {
		if err := pl.Claim(p.size); err != nil {
			return pages[:i], err
		}
	}
	return pages, nil
}

// trimCaches releases what is cached in all spaces, and reports whether that was
// anything.
func (s *Store) trimCaches() bool {
	any := false
	for _, sp := range s.Spaces() {
		if engine := sp.attached(); engine != nil {
			released, _ := engine.Trim(0) // what cannot be released stays
			any = any || released > 0
		}
	}
	return any
}

package tier

import (
	"github.com/ashlar-mem/ashlar/alloc"
)

// Fetch brings the handles behind blocks home that overflowed, before kernels use them again and again, as an
// optimizer does with its state: as many as there is room for, in memory that the driver has or that is cached, less what the
// step will ask for after it, if it is like the two before. What does not fit stays, without an
// error. What lives longer than a step and is not cold, as parameters and workspaces of libraries, comes before them: in a job that overflows in
// every step nothing else brings it home. Hints stay: what was named cold goes again at the next overflow. If nothing of all that lies
// in the host's memory, neither Quiet nor the driver is called. What was parked is brought back by Restore only.
func (sp *Space) Fetch(addrs []uint64) (Report, error) {
	l := &sp.store.ledger
	l.mu.Lock()
	some := sp.host > 0 && sp.engine != nil
	l.mu.Unlock()
	if !some {
		return Report{}, nil
	}
	s := sp.store
	s.moving.Lock()
	defer s.moving.Unlock()
	start := s.options.Now()
	var r Report
	sp.attached().Placer().Look(func(pl *alloc.Placement) { some = len(sp.away(pl, addrs)) > 0 })
	if !some {
		return r, nil
	}
	s.sweep()
	err := s.hold(sp, func(pl *alloc.Placement) error {
		// What died on the host is given up here, while the device waits anyway, and not at the mark.
		if idle := idleOn(pl); idle > 0 {
			if err := pl.Release(); err != nil {
				return err
			}
			sp.fetched.idle += idle
		}
		free := s.freeIn(pl)
		reserved, _, _ := pl.Reserved()
		room := free + reserved - min(reserved, pl.InUse()) // with what is cached
		err := s.bringIn(pl, sp, sp.away(pl, addrs), room-min(room, sp.fetched.ahead()), &r)
		sp.fetched.begin(pl, sp.movedOut(), r.In > 0)
		return err
	})
	r.Time = s.options.Now().Sub(start)
	return r, withoutRoom(err)
}

// bringIn moves those of some pages to the device that have room, into memory that is free or cached.
func (s *Store) bringIn(pl *alloc.Placement, sp *Space, pages []*page, room uint64, r *Report) error {
	pages, bytes := within(pages, room)
	if free := s.freeIn(pl); bytes > free {
		if err := pl.Shrink(bytes - free); err != nil {
			return err
		}
		pages, _ = within(pages, s.freeIn(pl)) // the cache may have parts of handles only
	}
	pages, _ = claim(pl, pages)
	defer pl.Unclaim()
	return s.transfer(pl, sp, runsOf(pages), alloc.OnDevice, nil, r)
}

// away lists the pages that have overflowed and may come home: those that are used in each step, hottest first, and
// those behind blocks.
func (sp *Space) away(pl *alloc.Placement, addrs []uint64) []*page {
	pages := sp.hottest(pl, func(c class) bool { return c == unnamed || c == busy || c == fresh })
	hot := make(map[*page]bool, len(pages))
	for _, p := range pages {
		hot[p] = true
	}
	named := blocksOf(pl, addrs)
	return append(pages, sp.pages(pl, func(g *alloc.Granule, p *page) bool {
		if g.Place != alloc.OnHost || p.parks(g) || g.Private || hot[p] || sp.pinned(g) {
			return false
		}
		for _, b := range g.Blocks {
			if named[b.Addr] {
				return true
			}
		}
		return false
	})...)
}

// within returns the pages that so many bytes have room for.
func within(pages []*page, room uint64) (fit []*page, bytes uint64) {
	for _, p := range pages {
		if p.size <= room-bytes {
			fit = append(fit, p)
			bytes += p.size
		}
	}
	return fit, bytes
}

// movedOut returns the bytes of the space that went to the host so far.
func (sp *Space) movedOut() uint64 {
	l := &sp.store.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	return sp.moved.BytesOut
}

// fetched follows what steps need after a Fetch: if there were no room for that, what has come home
// would go again at once.
type fetched struct {
	begun        bool   // there was a Fetch in this step
	home         bool   // and something came home
	idle         uint64 // bytes on the host that no block used any more, and were given up
	most         uint64 // bytes in use at once in this step before it
	used, out    uint64 // in use, and moved out so far, after it
	last, before uint64 // what the two steps before have needed
}

// begin notes the end of a Fetch.
func (f *fetched) begin(pl *alloc.Placement, out uint64, home bool) {
	f.begun, f.home = true, f.home || home
	f.most = max(f.most, pl.MostInUse())
	f.used, f.out = pl.InUse(), out
}

// mark ends a step, with the most that was in use since the Fetch, and what was moved out so far.
func (f *fetched) mark(most, out uint64) {
	next := fetched{last: f.last, before: f.before}
	if f.begun {
		next.last, next.before = most-min(most, f.used)+out-f.out, f.last
	}
	*f = next
}

// ahead returns what this step will need.
func (f *fetched) ahead() uint64 { return max(f.last, f.before) }

package tier

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// age is since which mark a block has lived.
type age struct {
	size  uint64
	since uint64
}

// spiller is what a space's engine turns to when a request is about to fail.
type spiller struct{ sp *Space }

// MapHost puts host memory behind a range, within what the space may overflow.
func (s spiller) MapHost(addr, size, granule uint64) error {
	sp, l := s.sp, &s.sp.store.ledger
	l.mu.Lock()
	room := sp.overflow - min(sp.overflow, sp.host)
	l.mu.Unlock()
	if size > room {
		return fmt.Errorf("tier: %w: %s more in the host's memory would be above the overflow of space %s", driver.ErrOutOfMemory, units.Size(size), sp.name)
	}
	if err := sp.store.mapRange(sp, addr, size, granule, alloc.OnHost); err != nil {
		return err
	}
	sp.store.moves.Add(1)
	return nil
}

// quantum is the least that is moved to make room: each time the whole device has to
// be waited for.
const quantum = 64 << 20

// MakeRoom moves cold handles out of the way of a request, if this is a moment for
// it and they are enough.
func (s spiller) MakeRoom(oom *alloc.OutOfMemoryError) bool {
	sp, store := s.sp, s.sp.store
	l := &store.ledger
	l.mu.Lock()
	room := min(sp.overflow-min(sp.overflow, sp.host), l.hostLimit-min(l.hostLimit, l.hostTaken()-l.keptBytes))
	if sp.overflow > 0 {
		sp.pressed = true
		sp.moved.Overflows++
	}
	l.mu.Unlock()
	if room == 0 {
		return false
	}
	moved := sp.evictFor(oom, room)
	sp.tell(Overflow{Size: oom.Requested, Moved: moved})
	return moved > 0
}

// tell calls back at the first overflow.
func (sp *Space) tell(o Overflow) {
	l := &sp.store.ledger
	l.mu.Lock()
	first := !sp.told
	sp.told = true
	l.mu.Unlock()
	if f := sp.store.options.Overflowed; first && f != nil {
		f(sp, o)
	}
}

// evictFor moves enough cold handles for a request, or none, and returns how many bytes.
func (sp *Space) evictFor(oom *alloc.OutOfMemoryError, room uint64) uint64 {
	s := sp.store
	if s.options.Alone == nil || !s.options.Alone() || !s.moving.TryLock() {
		return 0
	}
	defer s.moving.Unlock()
	s.sweep()
	engine := sp.attached()
	rules := engine.Rules()
	need := max(oom.Segment, rules.MappedSize(oom.Rounded, oom.Rounded > alloc.SmallMax))
	missing := need - min(need, s.free(sp))
	if missing == 0 || missing > room {
		return 0
	}
	r, err := sp.evict(missing, min(room, max(missing, quantum)))
	if err != nil && r.Freed < missing {
		return 0
	}
	return r.Freed
}

// free returns how much device memory a space can still have.
func (s *Store) free(sp *Space) uint64 {
	free, _, err := s.dev.MemInfo()
	if err != nil {
		free = 0
	}
	l := &s.ledger
	l.mu.Lock()
	if l.deviceLimit > 0 {
		free = min(free, l.deviceLimit-min(l.deviceLimit, l.device+l.doomedDevice))
	}
	l.mu.Unlock()
	sp.attached().Placer().Look(func(pl *alloc.Placement) {
		if reserved, limit, limited := pl.Reserved(); limited {
			free = min(free, limit-min(limit, reserved))
		}
	})
	return free
}

// evict moves cold handles to the host: at least least bytes, or none, and about most. The caller
// holds moving.
func (sp *Space) evict(least, most uint64) (Report, error) {
	var r Report
	engine := sp.attached()
	count := func(pl *alloc.Placement) (pages []*page, bytes uint64) {
		for _, p := range sp.coldest(pl) {
			if bytes >= most {
				break
			}
			pages = append(pages, p)
			bytes += p.size
		}
		if bytes < least {
			return nil, 0
		}
		return pages, bytes
	}
	need := map[uint64]int{}
	engine.Placer().Look(func(pl *alloc.Placement) {
		pages, _ := count(pl)
		for _, p := range pages {
			need[p.size]++
		}
	})
	if len(need) == 0 {
		return r, nil
	}
	for size, n := range need {
		if err := sp.store.stock(size, n); err != nil {
			return r, err
		}
	}
	err := sp.store.hold(sp, func(pl *alloc.Placement) error {
		pages, _ := count(pl)
		return sp.store.transfer(pl, sp, runsOf(pages), alloc.OnHost, nil, &r)
	})
	return r, err
}

// candidate is a page with what speaks for and against moving it.
type candidate struct {
	page   *page
	hinted bool   // all of its blocks are named cold
	marks  uint64 // that its youngest block has lived through
}

// settledAge is at how many marks blocks are alike: parameters that were made before the first mark
// are no colder than the optimizer's state, which was made after it.
const settledAge = 2

// candidates lists the pages that may move and lie in a place.
func (sp *Space) candidates(pl *alloc.Placement, at alloc.Place) []candidate {
	marks := sp.store.marks
	var out []candidate
	sp.pages(pl, func(g *alloc.Granule, p *page) bool {
		if g.Place != at || g.Live == 0 || g.Private || sp.pinned(g) {
			return false
		}
		c := candidate{page: p, hinted: true, marks: math.MaxUint64}
		sp.mu.Lock()
		for _, b := range g.Blocks {
			c.hinted = c.hinted && sp.cold[b.Addr] == b.Size
			lived := uint64(0)
			if a, ok := sp.ages[b.Addr]; ok && a.size == b.Size {
				lived = marks - a.since
			}
			c.marks = min(c.marks, lived)
		}
		sp.mu.Unlock()
		out = append(out, c)
		return false
	})
	return out
}

// colder orders candidates: hinted ones first, then those that live long, of these the
// latest made (the optimizer's state is made after the parameters), large handles, and the highest addresses,
// which are the latest too.
func colder(a, b candidate) int {
	if a.hinted != b.hinted {
		if a.hinted {
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(min(b.marks, settledAge), min(a.marks, settledAge)),
		cmp.Compare(a.marks, b.marks),
		cmp.Compare(b.page.size, a.page.size),
		cmp.Compare(b.page.addr, a.page.addr),
	)
}

// coldest lists the pages that may go to the host, coldest first: what has lived through
// no mark yet goes only if it was named.
func (sp *Space) coldest(pl *alloc.Placement) []*page {
	all := slices.DeleteFunc(sp.candidates(pl, alloc.OnDevice), func(c candidate) bool { return !c.hinted && c.marks == 0 })
	slices.SortFunc(all, colder)
	return pagesOf(all)
}

// hottest lists the pages that are to come home, hottest first.
func (sp *Space) hottest(pl *alloc.Placement) []*page {
	all := slices.DeleteFunc(sp.candidates(pl, alloc.OnHost), func(c candidate) bool { return c.page.parked })
	slices.SortFunc(all, func(a, b candidate) int { return colder(b, a) })
	return pagesOf(all)
}

func pagesOf(all []candidate) []*page {
	out := make([]*page, len(all))
	for i, c := range all {
		out[i] = c.page
	}
	return out
}

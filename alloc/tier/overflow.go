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
	serial uint32
	since  uint64
}

// spiller is what a space's engine turns to when a request is about to fail.
type spiller struct{ sp *Space }

// MapHost puts host memory behind a range, within what the space may overflow.
func (s spiller) MapHost(addr, size, granule uint64) error {
	sp, l := s.sp, &s.sp.store.ledger
	sp.store.spilling.Lock()
	defer sp.store.spilling.Unlock()
	l.mu.Lock()
	room := l.overflowRoom(sp)
	l.mu.Unlock()
	if size > room {
		return fmt.Errorf("tier: %w: %s more in the host's memory would be above what may overflow of space %s", driver.ErrOutOfMemory, units.Size(size), sp.name)
	}
	if err := sp.store.mapRange(sp, addr, size, granule, alloc.OnHost); err != nil {
		return err
	}
	sp.store.moves.Add(1)
	return nil
}

// What is moved to make room, if no more is missing: each time the whole device has to be waited for.
const (
	quantum     = 64 << 20
	mostQuantum = 4 * quantum
)

// MakeRoom moves cold handles out of the way of a request, if this is a moment for
// it and they are enough.
func (s spiller) MakeRoom(oom *alloc.OutOfMemoryError) (moved uint64) {
	sp := s.sp
	l := &sp.store.ledger
	l.mu.Lock()
	room := sp.overflowRoom()
	sp.pressed = sp.pressed || sp.overflow > 0
	l.mu.Unlock()
	if room == 0 {
		return 0
	}
	return sp.evictFor(oom, room)
}

// overflowRoom returns how much more the space may overflow. The ledger's lock is held.
func (sp *Space) overflowRoom() uint64 {
	l := &sp.store.ledger
	return min(l.overflowRoom(sp), l.hostLimit-min(l.hostLimit, l.hostTaken()-l.keptBytes))
}

// Served counts an overflow, and calls back at the first one.
func (s spiller) Served(size, moved uint64) {
	sp := s.sp
	l := &sp.store.ledger
	l.mu.Lock()
	first := sp.moved.Overflows == 0
	sp.moved.Overflows++
	l.mu.Unlock()
	if f := sp.store.options.Overflowed; first && f != nil {
		f(sp, Overflow{Size: size, Moved: moved})
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
	r, err := sp.evict(missing, max(missing, sp.ahead.more(), sp.ahead.quantum()), room, fresh)
	s.lose(err)
	sp.ahead.now += r.Out
	if r.Out > 0 {
		sp.returns.gone()
	}
	if err != nil && r.Freed < missing {
		return 0
	}
	return r.Freed
}

// free returns how much device memory a space can still have.
func (s *Store) free(sp *Space) (bytes uint64) {
	sp.attached().Placer().Look(func(pl *alloc.Placement) { bytes = s.freeIn(pl) })
	return bytes
}

func (s *Store) freeIn(pl *alloc.Placement) uint64 {
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
	if reserved, limit, limited := pl.Reserved(); limited {
		free = min(free, limit-min(limit, reserved))
	}
	return free
}

// evict moves handles up to a class to the host, the coldest first: at least least bytes, or none, about most, and no more than
// room. The caller holds moving.
func (sp *Space) evict(least, most, room uint64, last class) (Report, error) {
	var r Report
	engine := sp.attached()
	count := func(pl *alloc.Placement) (pages []*page, bytes uint64) {
		for _, c := range sp.coldest(pl, last) {
			if bytes >= most || bytes >= least && c.class > early { // no more than it must be of what is used
				break
			}
			if c.page.size > room-bytes {
				continue
			}
			pages = append(pages, c.page)
			bytes += c.page.size
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

// ahead foresees how much the requests of a step will move. It all goes at the first of them: the device is
// waited for once, and one run is copied while another is remapped.
type ahead struct {
	now, last, before uint64 // bytes moved in this step and in the two before
}

// more returns what the rest of the step will move, if it is like the two before.
func (a *ahead) more() uint64 {
	like := a.like()
	return like - min(like, a.now)
}

func (a *ahead) like() uint64 { return min(a.last, a.before) }

// quantum returns how much is moved at least: as much as this step has moved so far that was not foreseen.
func (a *ahead) quantum() uint64 {
	return min(max(quantum, a.now-min(a.now, a.like())), mostQuantum)
}

// mark ends a step.
func (a *ahead) mark() { a.now, a.last, a.before = 0, a.now, a.last }

// candidate is a page with what speaks for and against moving it.
type candidate struct {
	page   *page
	parked bool // it came to the host by Park
	class  class
	marks  uint64 // that its youngest block has lived through
	since  uint32 // blocks handed out after that one
}

// class is how soon a page goes to the host. Within a class the first to go are those that were made last if they
// have lived through marks (the optimizer's state is made after the parameters), and else those that were made first.
type class uint8

const (
	named   class = iota // all of its blocks are named cold
	settled              // they have lived through some marks, and nobody has named anything busy
	early                // made early in this step: the backward pass comes to them last
	unnamed              // as settled, but what is cold was named: workspaces, buffers
	busy                 // one of them is named busy
	fresh                // one has lived through a single mark: gradients, which end soon
	latest               // made late in this step: in use just now
)

// settledAge is at how many marks blocks are alike: parameters that were made before the first mark
// are no colder than the optimizer's state, which was made after it.
const settledAge = 2

// candidates lists the pages that may move and lie in a place.
func (sp *Space) candidates(pl *alloc.Placement, at alloc.Place) []candidate {
	marks, step := sp.store.marks, pl.Served()-sp.marked
	sp.mu.Lock()
	told := len(sp.busy) > 0
	sp.mu.Unlock()
	var out []candidate
	sp.pages(pl, func(g *alloc.Granule, p *page) bool {
		if g.Place != at || g.Live == 0 || g.Private || sp.pinned(g) {
			return false
		}
		c := candidate{page: p, parked: p.parks(g), marks: math.MaxUint64, since: g.Since}
		cold, hot := 0, false
		sp.mu.Lock()
		for _, b := range g.Blocks {
			if sp.cold.of(b) {
				cold++
			}
			hot = hot || sp.busy.of(b)
			lived := uint64(0)
			if a, ok := sp.ages[b.Addr]; ok && a.serial == b.Serial {
				lived = marks - a.since
			}
			c.marks = min(c.marks, lived)
		}
		sp.mu.Unlock()
		switch {
		case cold == len(g.Blocks):
			c.class = named
		case c.marks == 0 && (marks == 0 || g.Since <= step/2):
			c.class = latest
		case hot:
			c.class = busy
		case c.marks == 0:
			c.class = early
		case c.marks < settledAge:
			c.class = fresh
		case told:
			c.class = unnamed
		default:
			c.class = settled
		}
		out = append(out, c)
		return false
	})
	return out
}

// colder orders candidates: by class, then by age, large handles first, and of those made alike the highest
// addresses, which are the latest.
func colder(a, b candidate) int {
	if c := cmp.Compare(a.class, b.class); c != 0 {
		return c
	}
	if a.class == early {
		if c := cmp.Compare(b.since, a.since); c != 0 {
			return c
		}
	}
	return cmp.Or(
		cmp.Compare(min(b.marks, settledAge), min(a.marks, settledAge)),
		cmp.Compare(a.marks, b.marks),
		cmp.Compare(b.page.size, a.page.size),
		cmp.Compare(b.page.addr, a.page.addr),
	)
}

// coldest lists the pages of the device up to a class, coldest first.
func (sp *Space) coldest(pl *alloc.Placement, last class) []candidate {
	if last < latest && sp.store.marks == 0 { // all of it is the latest, but for what is named
		sp.mu.Lock()
		named := len(sp.cold) > 0
		sp.mu.Unlock()
		if !named {
			return nil
		}
	}
	all := slices.DeleteFunc(sp.candidates(pl, alloc.OnDevice), func(c candidate) bool { return c.class > last })
	slices.SortFunc(all, colder)
	return all
}

// hottest lists the pages of some classes that are to come home, hottest first.
func (sp *Space) hottest(pl *alloc.Placement, some func(class) bool) []*page {
	all := slices.DeleteFunc(sp.candidates(pl, alloc.OnHost), func(c candidate) bool { return c.parked || !some(c.class) })
	slices.SortFunc(all, func(a, b candidate) int { return colder(b, a) })
	out := make([]*page, len(all))
	for i, c := range all {
		out[i] = c.page
	}
	return out
}

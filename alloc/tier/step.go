package tier

import (
	"errors"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// leastPause is how many steps without an overflow pass before memory comes home.
const leastPause = 2

// mostPause bounds how long it waits after it came home too early.
const mostPause = 1024

// rest decides when memory comes home: after some steps in which nothing overflowed, and
// after twice as many if it had to go again soon after the last time.
type rest struct {
	calm  uint64 // steps since the last overflow
	pause uint64 // how many there must be
	home  uint64 // steps since memory came home last; 0 if it did not
}

// mark notes the end of a step and reports whether memory may come home.
func (r *rest) mark(pressed bool) bool {
	if r.home > 0 {
		r.home++
	}
	if !pressed {
		r.calm++
		return r.calm >= r.pause
	}
	if r.home > 0 && r.home <= 1+r.pause {
		r.pause = min(2*r.pause, mostPause)
	}
	r.calm, r.home = 0, 0
	return false
}

// Step marks the end of a step of the program, a moment at which nobody uses the
// device: blocks grow older; if requests overflowed in the step, cold handles make
// room for them; and if there was room, memory comes home within the budget, hottest
// first. A step without anything to move calls neither Quiet nor the driver. Live
// memory that requests since the last mark have left out of reach is an error.
func (s *Store) Step() (Report, error) { return s.step(true) }

// Mark is Step for a moment at which others may use the device: no memory that is in use moves.
func (s *Store) Mark() (Report, error) { return s.step(false) }

func (s *Store) step(move bool) (Report, error) {
	s.moving.Lock()
	defer s.moving.Unlock()
	start := s.options.Now()
	s.sweep()
	s.marks++
	var r Report
	failed := s.found()
	pressed := false
	for _, sp := range s.Spaces() {
		if sp.attached() == nil {
			continue
		}
		p, err := sp.endStep(&r, move)
		pressed = pressed || p
		failed = errors.Join(failed, err)
	}
	if s.rest.mark(pressed) && s.options.Budget > 0 && move {
		failed = errors.Join(failed, s.comeHome(&r))
	}
	r.Time = s.options.Now().Sub(start)
	return r, failed
}

// endStep lets the blocks of a space grow older and, if they may move, makes room for what
// overflowed. It reports whether anything did.
func (sp *Space) endStep(r *Report, move bool) (pressed bool, err error) {
	s := sp.store
	l := &s.ledger
	l.mu.Lock()
	pressed = sp.pressed
	sp.pressed = false
	watched := sp.overflow > 0 || sp.host > 0
	broken := false
	for p := range l.broken {
		broken = broken || p.space == sp
	}
	l.mu.Unlock()
	sp.mu.Lock()
	watched = watched || len(sp.cold)+len(sp.busy)+len(sp.pins) > 0 // hints end with their blocks
	sp.mu.Unlock()
	var idle uint64 // host memory that no block uses: what overflowed for a while
	var gone uint64 // and what a Fetch has given up of it
	var home bool   // what is cold has come home in this step
	sp.attached().Placer().Look(func(pl *alloc.Placement) {
		most := pl.Mark()
		sp.use.note(max(most, sp.fetched.most))
		home, gone = sp.fetched.home, sp.fetched.idle
		sp.fetched.mark(most, sp.movedOut())
		sp.marked = pl.Served()
		if watched {
			idle = sp.grow(pl)
		}
	})
	sp.ahead.mark()
	sp.returns.mark()
	if pressed {
		sp.use = highest{}
	}
	// What has come home goes again at the next overflow, not before, if a request may move it.
	if move && pressed && idle+gone > 0 && (!home || s.options.Alone == nil) {
		l.mu.Lock()
		room := sp.overflowRoom()
		l.mu.Unlock()
		missing := idle + gone - min(idle+gone, s.free(sp))
		evicted, err := sp.evict(0, missing, room, settled)
		r.add(evicted)
		if err = withoutRoom(err); err != nil || evicted.Freed < missing && s.options.Alone == nil {
			return pressed, err // the next step overflows again, and finds the memory there
		}
	}
	if idle > 0 || broken {
		err = s.hold(sp, func(pl *alloc.Placement) error { return pl.Release() })
	}
	return pressed, err
}

// withoutRoom lets what had no room, on the host or on the device, stay where it is: nobody has asked for the move.
func withoutRoom(err error) error {
	if errors.Is(err, driver.ErrOutOfMemory) && outOfReach(err) == nil {
		return nil
	}
	return err
}

// add adds what another call did.
func (r *Report) add(o Report) {
	r.Out += o.Out
	r.In += o.In
	r.Dropped += o.Dropped
	r.Freed += o.Freed
}

// grow notes which blocks live at a mark, forgets hints for those that do not, and returns
// the bytes of host handles that no block uses.
func (sp *Space) grow(pl *alloc.Placement) (idle uint64) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	marks := sp.store.marks
	ages := make(map[uint64]age, len(sp.ages))
	pl.Granules(func(g *alloc.Granule) bool {
		idle += idleIn(g)
		for _, b := range g.Blocks {
			if a, ok := sp.ages[b.Addr]; ok && a.serial == b.Serial {
				ages[b.Addr] = a
			} else {
				// It has lived through this mark: its age is 1 from now on.
				ages[b.Addr] = age{serial: b.Serial, since: marks - 1}
			}
		}
		return true
	})
	sp.ages = ages
	sp.unpark(pl)
	for _, said := range []hints{sp.cold, sp.busy, sp.pins} {
		for addr := range said {
			if b, ok := pl.Block(addr); !ok || b.Addr != addr || !said.of(b) {
				delete(said, addr)
			}
		}
	}
	return idle
}

// unpark forgets of pages that they were parked once none of the blocks is left that were.
func (sp *Space) unpark(pl *alloc.Placement) {
	l := &sp.store.ledger
	l.mu.Lock()
	some := sp.host > sp.counts.spilt
	l.mu.Unlock()
	if !some {
		return
	}
	for _, p := range sp.pages(pl, func(g *alloc.Granule, p *page) bool { return p.parked && !p.parks(g) }) {
		l.unpark(p)
	}
}

// idleIn returns the bytes of a handle of the host that no block uses.
func idleIn(g *alloc.Granule) uint64 {
	if g.Live == 0 && g.Place == alloc.OnHost {
		return g.Size
	}
	return 0
}

// idleOn returns the bytes of all of them.
func idleOn(pl *alloc.Placement) (idle uint64) {
	pl.Granules(func(g *alloc.Granule) bool {
		idle += idleIn(g)
		return true
	})
	return idle
}

// window is how many steps a highest figure counts for, and for as many again.
const window = 32

// highest is the most memory that steps have used at once.
type highest struct {
	steps       int
	now, before uint64
}

// note adds a step.
func (h *highest) note(bytes uint64) {
	if h.steps == window {
		h.steps, h.before, h.now = 0, h.now, 0
	}
	h.steps++
	h.now = max(h.now, bytes)
}

func (h *highest) bytes() uint64 { return max(h.now, h.before) }

// spare returns the cached memory that no step has needed since the last overflow, less a part
// for blocks that will not fit as well. Without overflow nobody counts, and there is none.
func (sp *Space) spare() (bytes uint64) {
	l := &sp.store.ledger
	l.mu.Lock()
	counted := sp.overflow > 0
	l.mu.Unlock()
	if !counted {
		return 0
	}
	sp.attached().Placer().Look(func(pl *alloc.Placement) {
		reserved, _, _ := pl.Reserved()
		used := sp.use.bytes()
		used += max(used/16, quantum)
		bytes = reserved - min(reserved, used)
	})
	return bytes
}

// atOnce is for how many runs the cache gives memory up at once.
const atOnce = 2

// comeHome brings memory that overflowed back to the device, hottest first, as long as there is room and
// the budget lasts: in memory that the driver has, or that is cached and was not needed lately.
func (s *Store) comeHome(r *Report) error {
	end := s.options.Now().Add(s.options.Budget)
	enough := func() bool { return !s.options.Now().Before(end) }
	for _, sp := range s.Spaces() {
		if sp.attached() == nil || sp.Stats().Host == 0 || enough() {
			continue
		}
		room := s.free(sp) + sp.spare()
		choose := func(pl *alloc.Placement) (pages []*page) {
			left := room
			for _, p := range sp.hottest(pl, func(class) bool { return true }) {
				if p.size > left {
					break
				}
				left -= p.size
				pages = append(pages, p)
			}
			return pages
		}
		var some bool
		sp.attached().Placer().Look(func(pl *alloc.Placement) { some = len(choose(pl)) > 0 })
		if !some {
			continue
		}
		before := r.In
		err := s.hold(sp, func(pl *alloc.Placement) error {
			// In pieces, so that no more of the cache is given up than comes home in time.
			defer pl.Unclaim()
			for runs := range slices.Chunk(runsOf(choose(pl)), atOnce) {
				if enough() {
					return nil
				}
				if err := s.makeFree(pl, runs); err != nil {
					return err
				}
				fit, short := claim(pl, slices.Concat(runs...))
				if err := s.transfer(pl, sp, runsOf(fit), alloc.OnDevice, enough, r); err != nil || short != nil {
					return err
				}
			}
			return nil
		})
		sp.use.now += r.In - before
		if r.In > before {
			s.rest.home = 1
		}
		if err = withoutRoom(err); err != nil {
			return err
		}
	}
	return nil
}

// makeFree gives cached memory back until the driver has room for runs.
func (s *Store) makeFree(pl *alloc.Placement, runs []run) error {
	var need uint64
	for _, r := range runs {
		need += r.bytes()
	}
	if free := s.freeIn(pl); free < need {
		return pl.Shrink(need - free)
	}
	return nil
}

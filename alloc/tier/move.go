package tier

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// batch is how many bytes are copied and remapped at once, if handles are not larger. The driver opens a page of
// the host between two copies: runs of six pages of 20 MiB went at 36 GB/s to the host, single ones at 49 (measured on an H200).
const batch = 20 << 20

// slots is how many runs are on their way at once: the targets of one are made while one is copied, one is remapped,
// and the old handles of one are released. A driver may have some of these wait for each other, so there is one more.
const slots = 5

// stage are the addresses at which targets are mapped while they are filled. It is
// used by whoever holds moving.
type stage struct{ slots [slots]slot }

type slot struct {
	addr, size uint64
	mapped     uint64 // bytes
	handles    []handle
}

// clean takes away what could not be unmapped before.
func (st *stage) clean(s *Store) {
	for i := range st.slots {
		_ = st.slots[i].unmap(s) // tried again before the slot is used
	}
}

// dismantle gives back the addresses at which nothing is mapped.
func (st *stage) dismantle(s *Store) {
	for i := range st.slots {
		if sl := &st.slots[i]; sl.size > 0 && sl.mapped == 0 && s.dev.Unreserve(sl.addr, sl.size) == nil {
			*sl = slot{}
		}
	}
}

// unmap takes the handles away. Until that has succeeded they cannot be released.
func (sl *slot) unmap(s *Store) error {
	if sl.mapped == 0 {
		return nil
	}
	err := s.dev.UnmapPhysical(sl.addr, sl.mapped)
	l := &s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range sl.handles {
		if err != nil {
			l.staged[h.id] = true
		} else {
			delete(l.staged, h.id)
		}
	}
	if err == nil {
		sl.mapped, sl.handles = 0, nil
	}
	return err
}

// fill maps handles and opens them.
func (sl *slot) fill(s *Store, size uint64, handles []handle) error {
	if err := sl.unmap(s); err != nil {
		return err
	}
	bytes := size * uint64(len(handles))
	if sl.size < bytes {
		if sl.size > 0 {
			if err := s.dev.Unreserve(sl.addr, sl.size); err != nil {
				return err
			}
			sl.size = 0
		}
		want := max(bytes, batch)
		addr, err := s.dev.Reserve(want, 0)
		if err != nil {
			return err
		}
		sl.addr, sl.size = addr, want
	}
	if err := s.dev.MapPhysical(sl.addr, size, idsOf(handles)); err != nil {
		return err
	}
	sl.mapped, sl.handles = bytes, handles
	if err := s.dev.SetAccess(sl.addr, bytes); err != nil {
		_ = sl.unmap(s) // the slot remembers
		return err
	}
	return nil
}

// run are pages of one size and place side by side.
type run []*page

func (r run) addr() uint64  { return r[0].addr }
func (r run) size() uint64  { return r[0].size }
func (r run) bytes() uint64 { return r[0].size * uint64(len(r)) }

// runsOf cuts pages into runs, in their order.
func runsOf(pages []*page) []run {
	var out []run
	for _, p := range pages {
		if n := len(out); n > 0 {
			r := out[n-1]
			last := r[len(r)-1]
			if last.size == p.size && last.place == p.place && r.bytes()+p.size <= batch {
				switch p.addr {
				case last.addr + p.size:
					out[n-1] = append(r, p)
					continue
				case r[0].addr - p.size:
					out[n-1] = append(run{p}, r...)
					continue
				}
			}
		}
		out = append(out, run{p})
	}
	return out
}

// transit is a run on its way.
type transit struct {
	run     run
	targets []handle
	old     []handle // what the targets have replaced
	slot    *slot
	late    bool // it was not copied any more
	err     error
}

// transfer moves runs of a space one after another to a place. The engine's lock is held and the
// device does nothing. It ends early when enough reports true. If a run cannot be moved, it and
// those behind it stay where they are.
func (s *Store) transfer(pl *alloc.Placement, sp *Space, runs []run, to alloc.Place, enough func() bool, report *Report) error {
	free := make(chan *slot, slots)
	for i := range s.stage.slots {
		free <- &s.stage.slots[i]
	}
	made, ready := make(chan *transit, slots), make(chan *transit, slots)
	var stop atomic.Bool
	over := func() bool { return stop.Load() || enough != nil && enough() }
	go func() {
		defer close(made)
		for _, r := range runs {
			sl := <-free
			if over() {
				return
			}
			t := &transit{run: r, slot: sl}
			err := s.target(sp, t, to)
			t.err = err
			made <- t
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(ready)
		some := false
		for t := range made {
			if t.err == nil {
				if t.late = some && over(); !t.late { // once begun, one run is moved
					t.err = s.fill(t, to)
					some = true
				}
			}
			ready <- t
		}
	}()
	gone := make(chan []handle, slots)
	released := make(chan struct{})
	go func() {
		defer close(released)
		for handles := range gone {
			report.Freed += s.giveBack(sp, handles)
		}
	}()
	var failed error
	for t := range ready {
		if failed == nil {
			failed = t.err
		}
		switch {
		case failed != nil, t.late:
			s.abandon(sp, t)
		default:
			failed = s.exchange(pl, sp, t, to, report)
			gone <- t.old
		}
		if failed != nil {
			stop.Store(true)
		}
		free <- t.slot
	}
	close(gone)
	<-released
	return failed
}

// target makes the targets of a run, where they can be filled. If it fails nothing has changed.
func (s *Store) target(sp *Space, t *transit, to alloc.Place) (err error) {
	switch to {
	case alloc.Nowhere:
		return nil
	case alloc.OnHost:
		t.targets, err = s.takeHost(sp, t.run.size(), len(t.run))
	default:
		t.targets, err = s.makeDevice(sp, t.run.size(), len(t.run))
	}
	if err != nil || t.run[0].place == alloc.Nowhere || housed(t.targets) {
		return err
	}
	return t.slot.fill(s, t.run.size(), t.targets)
}

// fill copies the bytes of a run to its targets.
func (s *Store) fill(t *transit, to alloc.Place) error {
	switch {
	case to == alloc.Nowhere || t.run[0].place == alloc.Nowhere:
		return nil
	case housed(t.targets):
		return s.copyHome(t)
	}
	return s.dev.CopyMapped(t.slot.addr, t.run.addr(), t.run.bytes())
}

// housed reports whether handles can be written at their homes.
func housed(handles []handle) bool {
	for _, h := range handles {
		if h.home == 0 || h.closed {
			return false
		}
	}
	return true
}

// copyHome fills targets at their homes, as many at once as lie side by side.
func (s *Store) copyHome(t *transit) error {
	size := t.run.size()
	for i := 0; i < len(t.targets); {
		n := 1
		for i+n < len(t.targets) && t.targets[i+n].home == t.targets[i].home+uint64(n)*size && t.targets[i+n].of == t.targets[i].of {
			n++
		}
		if err := s.dev.CopyMapped(t.targets[i].home, t.run.addr()+uint64(i)*size, uint64(n)*size); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// abandon gives the targets of a run back.
func (s *Store) abandon(sp *Space, t *transit) {
	_ = t.slot.unmap(s) // the slot remembers
	s.giveBack(sp, t.targets)
	t.targets = nil
}

// exchange puts the targets of a run in the place of what lies behind its addresses; the old handles are the
// caller's to give back. If
// that fails the old handles are mapped back; if that fails too, the pages are broken, and
// the engine knows that nothing lies there.
func (s *Store) exchange(pl *alloc.Placement, sp *Space, t *transit, to alloc.Place, report *Report) error {
	r, from := t.run, t.run[0].place
	if from != alloc.Nowhere {
		if err := s.dev.UnmapPhysical(r.addr(), r.bytes()); err != nil {
			s.abandon(sp, t)
			return err
		}
	}
	var old []handle
	for _, p := range r {
		if p.h.size > 0 {
			old = append(old, p.h)
		}
	}
	if to == alloc.Nowhere {
		s.settle(pl, r, nil, to, false)
		t.old = old
		report.count(r.bytes(), to)
		s.count(r, from, to)
		return nil
	}
	stuck, err := s.bring(r.addr(), r.size(), t.targets)
	_ = t.slot.unmap(s) // the slot remembers
	switch {
	case err == nil:
		s.settle(pl, r, t.targets, to, true)
		t.old = old
		report.count(r.bytes(), to)
		s.count(r, from, to)
		return nil
	case stuck: // they have the bytes, and lie at the address
		s.settle(pl, r, t.targets, alloc.Nowhere, true)
		t.old = old
		return &brokenError{r.addr(), r.bytes(), err, nil}
	}
	s.giveBack(sp, t.targets)
	if from == alloc.Nowhere {
		return err
	}
	if stuck, undo := s.bring(r.addr(), r.size(), old); undo != nil {
		s.settle(pl, r, old, alloc.Nowhere, stuck)
		return &brokenError{r.addr(), r.bytes(), err, undo}
	}
	return err
}

// brokenError is that of live memory that is out of reach, and so never one of too little room, even if it was.
type brokenError struct {
	addr, bytes uint64
	cause, undo error // undo may be nil
}

func (e *brokenError) Error() string {
	text := fmt.Sprintf("tier: %s at %#x cannot be used until a later call has mapped them: %v", units.Size(e.bytes), e.addr, e.cause)
	if e.undo != nil {
		text += fmt.Sprintf("; mapping back what was there: %v", e.undo)
	}
	return text
}

// outOfReach returns the part of an error that says so; nil if none does.
func outOfReach(err error) *brokenError {
	var broken *brokenError
	errors.As(err, &broken)
	return broken
}

// lose keeps the error of a move inside of a request, which has no other way to tell that memory is out of reach; the next mark does.
func (s *Store) lose(err error) { s.lost = cmp.Or(outOfReach(err), s.lost) }

// found returns that error, once.
func (s *Store) found() (err error) {
	if s.lost != nil {
		err, s.lost = s.lost, nil
	}
	return err
}

// settle writes down what lies behind a run now; with handles and Nowhere they are
// not accessible.
func (s *Store) settle(pl *alloc.Placement, r run, handles []handle, to alloc.Place, mapped bool) {
	l := &s.ledger
	l.mu.Lock()
	for i, p := range r {
		p.h = handle{}
		if handles != nil {
			p.h = handles[i]
		}
		p.place, p.mapped, p.open = to, mapped, mapped && to != alloc.Nowhere
		p.parked = p.parked && to != alloc.OnDevice
		l.note(p)
	}
	l.mu.Unlock()
	s.moves.Add(uint64(len(r)))
	if err := pl.Move(alloc.Span{Addr: r.addr(), Size: r.bytes()}, to); err != nil {
		panic("tier: " + err.Error()) // only granules of the engine's own list are moved
	}
}

// count adds a run to the statistics.
func (s *Store) count(r run, from, to alloc.Place) {
	l := &s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	st := &r[0].space.moved
	st.Moves += uint64(len(r))
	switch {
	case to == alloc.OnHost:
		st.BytesOut += r.bytes()
	case to == alloc.OnDevice && from == alloc.OnHost:
		st.BytesIn += r.bytes()
	}
}

// count adds a run to a report.
func (r *Report) count(bytes uint64, to alloc.Place) {
	switch to {
	case alloc.OnHost:
		r.Out += bytes
	case alloc.OnDevice:
		r.In += bytes
	default:
		r.Dropped += bytes
	}
}

// repair tries again what mappings have left broken in a space whose engine's lock
// is held.
func (s *Store) repair(pl *alloc.Placement, sp *Space) error {
	l := &s.ledger
	var broken []*page
	l.mu.Lock()
	for p := range l.broken {
		if p.space == sp {
			broken = append(broken, p)
		}
	}
	l.mu.Unlock()
	var failed error
	for _, p := range broken {
		if err := s.repairPage(pl, p); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

func (s *Store) repairPage(pl *alloc.Placement, p *page) error {
	if p.stray {
		return s.takeAway(p)
	}
	if !p.mapped {
		if err := s.dev.MapPhysical(p.addr, p.size, []driver.Physical{p.h.id}); err != nil {
			return &brokenError{p.addr, p.size, err, nil}
		}
		s.ledger.set(p, func() { p.mapped = true })
	}
	if err := s.dev.SetAccess(p.addr, p.size); err != nil {
		return &brokenError{p.addr, p.size, err, nil}
	}
	to := alloc.OnDevice
	if p.h.host {
		to = alloc.OnHost
	}
	s.settle(pl, run{p}, []handle{p.h}, to, true)
	return nil
}

// hold calls f while nobody uses the device and the engine of a space is locked. The caller holds
// moving.
func (s *Store) hold(sp *Space, f func(*alloc.Placement) error) error {
	engine := sp.attached()
	if engine == nil {
		return errors.New("tier: space " + sp.name + " has no allocator; call Attach")
	}
	if s.options.Quiet != nil {
		release, err := s.options.Quiet()
		if err != nil {
			return err
		}
		if release != nil {
			defer release()
		}
	}
	start := s.options.Now()
	defer func() {
		s.ledger.mu.Lock()
		defer s.ledger.mu.Unlock()
		sp.moved.Time += s.options.Now().Sub(start)
	}()
	return engine.Placer().Hold(func(pl *alloc.Placement) error {
		if err := s.dev.SynchronizeDevice(); err != nil {
			return err
		}
		sp.quiet = true
		defer func() { sp.quiet = false }()
		return errors.Join(s.repair(pl, sp), f(pl))
	})
}

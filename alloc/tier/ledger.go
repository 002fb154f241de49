package tier

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// unit is what devices hand memory out in.
const unit = 2 << 20

// handle is physical memory.
type handle struct {
	id   driver.Physical
	size uint64
	host bool

	// home is where a host handle is mapped and open for good, in a range with others: to map
	// the host's pages takes longer than to copy them, so they are not staged for each
	// move. 0 if it is mapped nowhere else.
	home   uint64
	of     *homes
	closed bool // there is no access to it at home
}

// homes is a range of addresses for the homes of host handles.
type homes struct {
	addr, size uint64
	left       int // handles; under the ledger's lock
}

// page is one granule of an expandable segment and what lies behind it.
type page struct {
	space  *Space
	addr   uint64
	size   uint64
	h      handle      // none if h.size is 0
	place  alloc.Place // what the engine knows
	mapped bool        // h lies behind the address
	open   bool        // and the device has access to it
	parked bool        // by a call, which also brings it back
	since  uint32      // how many blocks had been handed out then: later ones in the page were not parked
	stray  bool        // left by a Map that failed: the engine does not know of it
	counts counts      // what the ledger counts it as
}

// park notes that a call moves a page, or that it would if the page were not there already.
func (l *ledger) park(p *page, pl *alloc.Placement) {
	l.set(p, func() { p.parked, p.since = true, pl.Served() })
}

// unpark notes that it is a page like any other.
func (l *ledger) unpark(p *page) { l.set(p, func() { p.parked = false }) }

// parks reports whether a block of the page was there when a call moved it.
func (p *page) parks(g *alloc.Granule) bool {
	return p.parked && slices.ContainsFunc(g.Blocks, func(b alloc.Held) bool { return int32(b.Serial-p.since) <= 0 })
}

// whole reports whether the engine's view and the driver's agree.
func (p *page) whole() bool {
	return !p.stray && (p.mapped && p.open || p.place == alloc.Nowhere && p.h.size == 0)
}

// ledger has every handle of a store. Its lock is the innermost one, and no driver is
// called under it.
type ledger struct {
	mu     sync.Mutex
	pages  map[uint64]*page
	broken map[*page]bool // those that are not whole
	kept   map[uint64][]handle
	doomed []handle                 // whose release failed, or has to wait for a staging address
	staged map[driver.Physical]bool // handles that a staging address has not let go

	device, host uint64 // behind addresses, plain segments included
	counts       counts
	mostSpilt    uint64 // in all spaces together
	keptBytes    uint64
	doomedHost   uint64
	doomedDevice uint64
	making       uint64 // host memory that is being made
	hostLimit    uint64
	deviceLimit  uint64
}

func newLedger(hostLimit uint64) ledger {
	return ledger{
		pages: map[uint64]*page{}, broken: map[*page]bool{}, kept: map[uint64][]handle{}, staged: map[driver.Physical]bool{},
		hostLimit: hostLimit, mostSpilt: math.MaxUint64,
	}
}

func (l *ledger) hostTaken() uint64 { return l.host + l.keptBytes + l.doomedHost + l.making }

// bookDevice books device memory if the limit allows it.
func (l *ledger) bookDevice(s *Space, bytes uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if taken := l.device + l.doomedDevice; l.deviceLimit > 0 && (taken > l.deviceLimit || bytes > l.deviceLimit-taken) {
		return fmt.Errorf("tier: %w: %s more than the %s in use would be above the limit of %s",
			driver.ErrOutOfMemory, units.Size(bytes), units.Size(taken), units.Size(l.deviceLimit))
	}
	l.device += bytes
	s.device += bytes
	return nil
}

func (l *ledger) unbookDevice(s *Space, bytes uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.device -= bytes
	s.device -= bytes
}

// makeDevice makes handles of device memory, which are booked.
func (s *Store) makeDevice(of *Space, size uint64, n int) ([]handle, error) {
	if err := s.ledger.bookDevice(of, size*uint64(n)); err != nil {
		return nil, err
	}
	ids := make([]driver.Physical, n)
	if err := s.dev.CreatePhysical(size, ids); err != nil {
		s.ledger.unbookDevice(of, size*uint64(n))
		return nil, err
	}
	return handlesOf(ids, size, false), nil
}

func handlesOf(ids []driver.Physical, size uint64, host bool) []handle {
	out := make([]handle, len(ids))
	for i, id := range ids {
		out[i] = handle{id: id, size: size, host: host}
	}
	return out
}

func idsOf(handles []handle) []driver.Physical {
	out := make([]driver.Physical, len(handles))
	for i, h := range handles {
		out[i] = h.id
	}
	return out
}

// takeHost takes host handles of a size, which are booked for the space: kept ones,
// and new ones where there are too few.
func (s *Store) takeHost(of *Space, size uint64, n int) ([]handle, error) {
	for { // another space may take what was made: it has what it needs then
		if err := s.stock(size, n); err != nil {
			return nil, err
		}
		if out, ok := s.ledger.takeKept(of, size, n); ok {
			return out, nil
		}
	}
}

// takeKept books n kept handles of a size for a space, if there are so many.
func (l *ledger) takeKept(of *Space, size uint64, n int) ([]handle, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.kept[size]
	if len(kept) < n {
		return nil, false
	}
	out := append([]handle(nil), kept[len(kept)-n:]...)
	l.kept[size] = kept[:len(kept)-n]
	bytes := size * uint64(n)
	l.keptBytes -= bytes
	l.host += bytes
	of.host += bytes
	return out, true
}

// stock makes host handles until n of a size are kept.
func (s *Store) stock(size uint64, n int) error {
	l := &s.ledger
	l.mu.Lock()
	lacking := n - len(l.kept[size])
	if lacking <= 0 {
		l.mu.Unlock()
		return nil
	}
	bytes := size * uint64(lacking)
	above := func(taken uint64) error {
		return fmt.Errorf("tier: %w: %s of host memory more than the %s in use would be above the limit of %s",
			driver.ErrOutOfMemory, units.Size(bytes), units.Size(taken), units.Size(l.hostLimit))
	}
	fits := func(taken uint64) bool { return taken <= l.hostLimit && bytes <= l.hostLimit-taken }
	taken := l.hostTaken()
	if least := taken - (l.keptBytes - size*uint64(len(l.kept[size]))); !fits(least) {
		defer l.mu.Unlock()
		return above(least)
	}
	var spare []handle // kept handles of other sizes make room for these
	for other, kept := range l.kept {
		for other != size && len(kept) > 0 && !fits(taken) {
			h := kept[len(kept)-1]
			kept = kept[:len(kept)-1]
			l.keptBytes -= h.size
			l.doomedHost += h.size
			taken -= h.size
			spare = append(spare, h)
		}
		l.kept[other] = kept
	}
	l.making += bytes
	l.mu.Unlock()
	s.releaseDoomed(spare)
	l.mu.Lock()
	if l.hostTaken() > l.hostLimit { // the driver has not taken them back
		defer l.mu.Unlock()
		l.making -= bytes
		return above(l.hostTaken())
	}
	l.mu.Unlock()
	ids := make([]driver.Physical, lacking)
	err := s.dev.CreateHostPhysical(size, ids)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.making -= bytes
		return err
	}
	made := handlesOf(ids, size, true)
	s.house(made)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.making -= bytes
	l.kept[size] = append(l.kept[size], made...)
	l.keptBytes += bytes
	return nil
}

// house gives new host handles their homes. Without them they are staged for each move.
func (s *Store) house(handles []handle) {
	size := handles[0].size
	bytes := size * uint64(len(handles))
	addr, err := s.dev.Reserve(bytes, 0)
	if err != nil {
		return
	}
	stuck, err := s.bring(addr, size, handles)
	if err != nil && !stuck {
		_ = s.dev.Unreserve(addr, bytes) // nothing but addresses is lost
		return
	}
	of := &homes{addr, bytes, len(handles)}
	for i := range handles {
		handles[i].home, handles[i].of = addr+uint64(i)*size, of
		if err != nil { // mapped without access: of no use, but to be unmapped
			handles[i].closed = true
		}
	}
}

// leave takes a handle out of its home.
func (s *Store) leave(h *handle) error {
	if h.home == 0 {
		return nil
	}
	if err := s.dev.UnmapPhysical(h.home, h.size); err != nil {
		return err
	}
	l := &s.ledger
	l.mu.Lock()
	h.of.left--
	empty := h.of.left == 0
	l.mu.Unlock()
	if empty {
		_ = s.dev.Unreserve(h.of.addr, h.of.size) // nothing but addresses is lost
	}
	h.home, h.of = 0, nil
	return nil
}

// giveBack takes handles that lie behind no address any more: the host's are kept, the
// device's are released. It returns how much of the device is free for that.
func (s *Store) giveBack(of *Space, handles []handle) (freed uint64) {
	l := &s.ledger
	var doomed []handle
	l.mu.Lock()
	for _, h := range handles {
		if h.host {
			l.host -= h.size
			of.host -= h.size
			l.kept[h.size] = append(l.kept[h.size], h)
			l.keptBytes += h.size
			continue
		}
		l.device -= h.size
		of.device -= h.size
		l.doomedDevice += h.size
		doomed = append(doomed, h)
	}
	l.mu.Unlock()
	return s.releaseDoomed(doomed)
}

// releaseDoomed releases handles that are booked as doomed, and remembers those
// that could not be.
func (s *Store) releaseDoomed(handles []handle) (freed uint64) {
	l := &s.ledger
	for _, h := range handles {
		l.mu.Lock()
		held := l.staged[h.id]
		l.mu.Unlock()
		released := !held && s.leave(&h) == nil && s.dev.ReleasePhysical([]driver.Physical{h.id}) == nil
		l.mu.Lock()
		switch {
		case !released:
			l.doomed = append(l.doomed, h)
		case h.host:
			l.doomedHost -= h.size
		default:
			l.doomedDevice -= h.size
			freed += h.size
		}
		l.mu.Unlock()
	}
	return freed
}

// sweep tries again what could not be released. The caller holds moving.
func (s *Store) sweep() {
	s.stage.clean(s)
	l := &s.ledger
	l.mu.Lock()
	doomed := l.doomed
	l.doomed = nil
	l.mu.Unlock()
	s.releaseDoomed(doomed)
}

// dropKept releases the host memory that is kept.
func (s *Store) dropKept() (freed uint64) {
	l := &s.ledger
	l.mu.Lock()
	var all []handle
	for size, kept := range l.kept {
		all = append(all, kept...)
		delete(l.kept, size)
	}
	for _, h := range all {
		l.keptBytes -= h.size
		l.doomedHost += h.size
	}
	before := l.doomedHost
	l.mu.Unlock()
	s.releaseDoomed(all)
	l.mu.Lock()
	defer l.mu.Unlock()
	return before - min(before, l.doomedHost)
}

// note writes down a page that may have become whole or broken, and may have overflowed.
func (l *ledger) note(p *page) {
	var c counts
	if p.h.host && !p.parked {
		c.spilt = p.size
	}
	switch {
	case p.stray || p.place != alloc.Nowhere:
	case p.h.size > 0:
		c.broken = p.size
	default:
		c.dropped = p.size
	}
	l.count(p, c)
	if p.whole() {
		delete(l.broken, p)
	} else {
		l.broken[p] = true
	}
}

// counts are bytes of pages.
type counts struct {
	spilt   uint64 // in the host's memory because they overflowed, not parked by a call
	broken  uint64 // the driver failed to map them back
	dropped uint64
}

// count says what a page is counted as from now on.
func (l *ledger) count(p *page, c counts) {
	for _, sum := range [2]*counts{&l.counts, &p.space.counts} {
		sum.spilt += c.spilt - p.counts.spilt
		sum.broken += c.broken - p.counts.broken
		sum.dropped += c.dropped - p.counts.dropped
	}
	p.counts = c
}

// overflowRoom returns how much more a space may overflow, of what the host's memory is not limited to. The lock is held.
func (l *ledger) overflowRoom(sp *Space) uint64 {
	return min(sp.overflow-min(sp.overflow, sp.counts.spilt), l.mostSpilt-min(l.mostSpilt, l.counts.spilt))
}

// bring maps handles behind a range and opens it. If that fails nothing lies there, or
// stuck is set: the handles lie there, without access.
func (s *Store) bring(addr, size uint64, handles []handle) (stuck bool, err error) {
	if err := s.dev.MapPhysical(addr, size, idsOf(handles)); err != nil {
		return false, err
	}
	bytes := size * uint64(len(handles))
	if err := s.dev.SetAccess(addr, bytes); err != nil {
		return s.dev.UnmapPhysical(addr, bytes) != nil, err
	}
	return false, nil
}

// mapRange puts new memory behind a range of granules that has none.
func (s *Store) mapRange(of *Space, addr, size, granule uint64, place alloc.Place) error {
	if err := s.clearStrays(addr, size, granule); err != nil {
		return err
	}
	n := int(size / granule)
	var handles []handle
	var err error
	if place == alloc.OnHost {
		handles, err = s.takeHost(of, granule, n)
	} else {
		handles, err = s.makeDevice(of, granule, n)
	}
	if err != nil {
		return err
	}
	stuck, err := s.bring(addr, granule, handles)
	if err != nil && !stuck {
		s.giveBack(of, handles)
		return err
	}
	l := &s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, h := range handles {
		p := &page{space: of, addr: addr + uint64(i)*granule, size: granule, h: h, place: place, mapped: true, open: err == nil, stray: err != nil}
		l.pages[p.addr] = p
		l.note(p)
	}
	return err
}

// pagesIn returns the pages of a range of granules.
func (l *ledger) pagesIn(addr, size, granule uint64) []*page {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*page
	for at := addr; at < addr+size; at += granule {
		if p := l.pages[at]; p != nil {
			out = append(out, p)
		}
	}
	return out
}

// clearStrays takes away what a Map that failed has left in a range.
func (s *Store) clearStrays(addr, size, granule uint64) error {
	for _, p := range s.ledger.pagesIn(addr, size, granule) {
		if err := s.takeAway(p); err != nil {
			return err
		}
	}
	return nil
}

// takeAway unmaps a page and forgets it.
func (s *Store) takeAway(p *page) error {
	if p.mapped {
		if err := s.dev.UnmapPhysical(p.addr, p.size); err != nil {
			return err
		}
	}
	s.forget([]*page{p})
	return nil
}

// forget takes pages without a mapping out of the ledger and gives their handles back.
func (s *Store) forget(pages []*page) {
	l := &s.ledger
	var handles []handle
	l.mu.Lock()
	for _, p := range pages {
		if p.h.size > 0 {
			handles = append(handles, p.h)
		}
		delete(l.pages, p.addr)
		delete(l.broken, p)
		l.count(p, counts{})
	}
	l.mu.Unlock()
	if len(pages) > 0 {
		s.giveBack(pages[0].space, handles)
	}
}

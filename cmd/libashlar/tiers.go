package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/alloc/tier"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// regionPrefix is before the name of a region where tenants have theirs: a region is a
// slot with an allocator of its own, so that it shares no handle with others.
const regionPrefix = "region:"

// A mover is the memory of a device that can go to the host and back; nil where
// that cannot be done, or shall not.
type mover struct {
	store   *tier.Store
	number  int // of the GPU
	lib     *library
	regions atomic.Bool // there are, or were, some
	told    atomic.Bool // of the first overflow

	limitedBy atomic.Pointer[string] // what the host's memory is limited by
}

// newMover makes the mover of a device. Without expandable segments nothing moves, nor where the
// system does not tell how much memory it has; guarantees that are held have handles of their own.
func (l *library) newMover(n int, drv driver.Driver) (*mover, error) {
	if _, ok := drv.(driver.HostMapper); !ok || l.cfg.fixed() != "" {
		return nil, nil
	}
	if _, err := tier.HostRoom(); err != nil {
		return nil, nil
	}
	m := &mover{number: n, lib: l}
	var err error
	m.store, err = tier.New(drv, tier.Options{
		Quiet:      m.quiet,
		Alone:      func() bool { return l.movesFreely() && l.front.alone(n) },
		Overflowed: m.overflowed,
	})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// spaceName is new for each slot: a tenant that was deleted may be made again.
func (m *mover) spaceName(slot int, name string) string {
	if slot == m.number {
		return name
	}
	return fmt.Sprintf("%s (slot %d)", name, slot)
}

// setTiers puts the settings into force, for a new slot or changed settings.
func (d *device) setTiers(c *config) error {
	if d.mover == nil {
		return nil
	}
	d.space.SetOverflow(c.overflow())
	if d.index != d.number {
		return nil
	}
	d.mover.store.SetOverflow(c.overflow())
	return d.mover.setHostLimit(&c.own)
}

// quiet keeps the fronts of the device's slots empty and off during a move. Blocks that
// are out will not be held later: there may be memory of the host behind them. A
// capture, which begins with a pool, waits for the end of the move.
func (m *mover) quiet() (release func(), err error) {
	on := m.lib.frontCache()
	slots, err := m.lib.ofDevice(m.number)
	if err != nil {
		return nil, err
	}
	release = func() {
		for _, d := range slots {
			d.setMode(on)
			d.changing.Unlock()
		}
	}
	for _, d := range slots {
		d.changing.Lock()
		d.lib.front.mode(d.index, true)
	}
	if err := m.capturing(slots); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// capturing looks for captures: of pools on any device, and of streams that blocks
// are used on, for whoever captures without a pool.
func (m *mover) capturing(slots []*device) error {
	if m.lib.recording.Load() > 0 {
		return fmt.Errorf("memory cannot be moved: %w into a CUDA graph; end the capture first", driver.ErrCapturing)
	}
	c, ok := m.store.Driver().(driver.Capturer)
	if !ok {
		return nil
	}
	var asked []uint64
	for _, d := range slots {
		for _, stream := range d.alloc.Placer().Streams() {
			if slices.Contains(asked, stream) {
				continue
			}
			asked = append(asked, stream)
			// A stream that is gone is not captured.
			if capturing, err := c.Capturing(stream); err == nil && capturing {
				return fmt.Errorf("memory cannot be moved: stream %#x: %w; end the capture first", stream, driver.ErrCapturing)
			}
		}
	}
	return nil
}

// setRegistered notes whether libraries may have registered memory that the graphs captured so far use.
func (l *library) setRegistered(registered bool) {
	if registered {
		l.clear.Store(-1)
	} else {
		l.clear.Store(l.captured.Load())
	}
}

// movesFreely reports whether memory may move without being asked for. NCCL registers the buffers of captured collectives: until it is
// said of each graph that nobody has registered what it uses, nothing moves.
func (l *library) movesFreely() bool {
	n := l.captured.Load()
	return n == 0 || n == l.clear.Load()
}

// errNoTiers is why nothing can be moved.
var errNoTiers = errors.New("memory cannot be moved here: it needs a driver that maps the host's memory, expandable_segments:True, " +
	"tiers:True and no ASHLAR_TENANTS_HOLD")

// movable returns a device whose memory can be moved.
func (l *library) movable(n int) (*device, error) {
	d, err := l.device(n)
	if err != nil {
		return nil, err
	}
	if d.mover == nil {
		return nil, errNoTiers
	}
	return d, nil
}

// regionPage is the size of a region's pages, unless region_page is set. Beside a copy to the host each page that is
// mapped there takes a millisecond longer: pages of 20 MiB are parked at 37 GB/s (measured on an H200), of which the copy alone has 55.
const regionPage = 120 << 20

// settingsOf returns the settings of the engine of a tenant or region.
func (l *library) settingsOf(name string) settings.Settings {
	s := l.cfg.engine
	if !strings.HasPrefix(name, regionPrefix) {
		return s
	}
	s.PerProcessMemoryFraction = 1 // the store limits all regions together
	if s.ExpandableSegments {
		s.LargeSegmentSize = cmp.Or(l.cfg.own.regionPage, regionPage)
	}
	return s
}

// enterRegion returns the slot of a region, which is made at its first use.
func (l *library) enterRegion(n int, name string) (slot int, err error) {
	if name == "" {
		return 0, errors.New("a region needs a name")
	}
	first, err := l.movable(n)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.tenantOf(n, regionPrefix+name)
	if err != nil {
		if err := l.mayAddSlot("region " + name); err != nil {
			return 0, err
		}
		if d, err = l.addSlot(first, regionPrefix+name, tenant.Terms{}); err != nil {
			return 0, err
		}
		first.mover.regions.Store(true)
		first.limitAll()
	}
	if d.dropped.Load() {
		return 0, fmt.Errorf("region %s was parked and not kept: there is no memory behind its tensors; restore it first", name)
	}
	return d.index, nil
}

func (l *library) region(n int, name string) (*device, error) {
	if _, err := l.movable(n); err != nil {
		return nil, err
	}
	d, err := l.tenantOf(n, regionPrefix+name)
	if err != nil {
		return nil, fmt.Errorf("device %d has no region %q", n, name)
	}
	return d, nil
}

// deleteRegion gives a region's cached memory back; its blocks must be gone.
func (l *library) deleteRegion(n int, name string) error {
	d, err := l.region(n, name)
	if err != nil {
		return err
	}
	return l.deleteTenant(n, d.tenant.Name())
}

// park moves a region to the host, or drops it.
func (l *library) park(n int, name string, keep bool) (tier.Report, error) {
	d, err := l.region(n, name)
	if err != nil {
		return tier.Report{}, err
	}
	if !keep {
		d.dropped.Store(true) // before the first byte is gone
	}
	r, err := d.space.Park(keep)
	if !keep && r.Dropped == 0 && d.space.Stats().Dropped == 0 {
		d.dropped.Store(false)
	}
	d.reportWaiting()
	return r, partly(err, r)
}

// restore brings a region back.
func (l *library) restore(n int, name string) (tier.Report, error) {
	d, err := l.region(n, name)
	if err != nil {
		return tier.Report{}, err
	}
	r, err := l.intoRoom(n, d.space.Restore)
	d.dropped.Store(d.space.Stats().Dropped > 0)
	return r, partly(err, r)
}

// intoRoom brings memory back; if there is no room, a second time after what is cached was
// released.
func (l *library) intoRoom(n int, restore func() (tier.Report, error)) (tier.Report, error) {
	r, err := restore()
	if !errors.Is(err, driver.ErrOutOfMemory) {
		return r, err
	}
	slots, failed := l.ofDevice(n)
	for _, d := range slots {
		failed = errors.Join(failed, d.emptyCache())
	}
	if failed != nil {
		return r, errors.Join(err, failed)
	}
	again, err := restore()
	r.Pinned = 0 // counted again
	return addReports(r, again), err
}

// partly says how much was moved before something failed.
func partly(err error, r tier.Report) error {
	if bytes := r.Out + r.In + r.Dropped; err != nil && bytes > 0 {
		return fmt.Errorf("%w; %s were moved before", err, units.Size(bytes))
	}
	return err
}

// moveBlocks parks or restores the handles of blocks, wherever they were allocated.
func (l *library) moveBlocks(n int, blocks []uint64, out bool) (sum tier.Report, err error) {
	by, err := l.bySlot(n, blocks)
	if err != nil {
		return sum, err
	}
	for _, s := range by {
		if out {
			for _, addr := range s.blocks {
				if s.d.space.Dropped(addr) {
					return sum, fmt.Errorf("the block at %#x belongs to a region that was parked and not kept: restore the region first", addr)
				}
			}
		}
		var r tier.Report
		if out {
			r, err = s.d.space.ParkBlocks(s.blocks)
		} else {
			r, err = l.intoRoom(n, func() (tier.Report, error) { return s.d.space.RestoreBlocks(s.blocks) })
			s.d.dropped.Store(s.d.dropped.Load() && s.d.space.Stats().Dropped > 0)
		}
		s.d.reportWaiting()
		sum = addReports(sum, r)
		if err != nil {
			return sum, partly(err, sum)
		}
	}
	return sum, nil
}

func addReports(a, b tier.Report) tier.Report {
	return tier.Report{
		Out: a.Out + b.Out, In: a.In + b.In, Dropped: a.Dropped + b.Dropped, Freed: a.Freed + b.Freed,
		Shared: a.Shared + b.Shared, Pinned: a.Pinned + b.Pinned, Private: a.Private + b.Private, Plain: a.Plain + b.Plain,
		Time: a.Time + b.Time,
	}
}

// slotBlocks are blocks of one slot.
type slotBlocks struct {
	d      *device
	blocks []uint64
}

// bySlot sorts blocks by the slots that have them. The error is an *[unknownError] if some are nobody's; the others are returned.
func (l *library) bySlot(n int, blocks []uint64) ([]slotBlocks, error) {
	if _, err := l.movable(n); err != nil {
		return nil, err
	}
	all, err := l.ofDevice(n)
	if err != nil {
		return nil, err
	}
	by := make([]slotBlocks, len(all))
	for i, d := range all {
		by[i].d = d
	}
	for _, addr := range blocks {
		i := slices.IndexFunc(all, func(d *device) bool { return d.has(addr) })
		if i < 0 {
			err = &unknownError{addr, n}
			continue
		}
		by[i].blocks = append(by[i].blocks, addr)
	}
	return slices.DeleteFunc(by, func(s slotBlocks) bool { return len(s.blocks) == 0 }), err
}

// unknownError names a block that no allocator of a device has, as one that a library has from the driver.
type unknownError struct {
	addr   uint64
	device int
}

func (e *unknownError) Error() string {
	return fmt.Sprintf("there is no block at %#x on device %d", e.addr, e.device)
}

// has reports whether the slot has a block at the address.
func (d *device) has(addr uint64) bool {
	if d.space == nil {
		return false
	}
	_, _, _, ok := d.space.Where(addr)
	return ok
}

// name says of blocks that they are seldom used, or much. Those that are nobody's are an error in the end.
func (l *library) name(n int, blocks []uint64, as func(*tier.Space, uint64) bool) error {
	by, err := l.bySlot(n, blocks)
	for _, s := range by {
		for _, addr := range s.blocks {
			l.front.named(addr) // before it can be freed and handed out again
			as(s.d.space, addr)
		}
	}
	return err
}

// guess is name for what was inferred: it leaves out what is nobody's, and what the job has named itself.
func (l *library) guess(n int, blocks []uint64, cold bool) error {
	err := l.name(n, blocks, func(s *tier.Space, addr uint64) bool { return s.Guess(addr, cold) })
	if errors.As(err, new(*unknownError)) {
		return nil
	}
	return err
}

// What lies behind a block, as ashlar_dropped tells it.
const (
	behindMemory = iota
	behindNothing
	behindBroken // what a later move has to map again
)

// behind reports whether there is memory behind a block.
func (l *library) behind(n int, addr uint64) (int, error) {
	by, err := l.bySlot(n, []uint64{addr})
	switch {
	case err != nil:
		return 0, err
	case by[0].d.space.Dropped(addr):
		return behindNothing, nil
	case by[0].d.space.Broken(addr):
		return behindBroken, nil
	}
	return behindMemory, nil
}

// fetch brings what overflowed of blocks home, as far as there is room, if this thread has the device for itself.
func (l *library) fetch(n int, blocks []uint64) (sum tier.Report, err error) {
	d, err := l.device(n)
	if err != nil || d.mover == nil || d.mover.store.HostInUse() == 0 || !l.movesFreely() || !l.front.mine(n) {
		return sum, err
	}
	by, err := l.bySlot(n, blocks)
	if errors.As(err, new(*unknownError)) {
		err = nil
	}
	for _, s := range by {
		r, failed := s.d.space.Fetch(s.blocks)
		s.d.reportWaiting()
		sum, err = addReports(sum, r), errors.Join(err, failed)
	}
	return sum, err
}

// step marks the end of a step of the program. Without tiers there is nothing to do. Memory moves if this thread has the device
// for itself: others may begin work at any time, also while it holds Python's lock, since PyTorch's operators run without.
func (l *library) step(n int) (tier.Report, error) {
	d, err := l.device(n)
	if err != nil || d.mover == nil {
		return tier.Report{}, err
	}
	store := d.mover.store
	if l.recording.Load() == 0 && (store.Pressed() || store.HostInUse() > 0) {
		if err := l.renew(n); err != nil {
			return tier.Report{}, err
		}
	}
	mark := store.Mark
	if l.movesFreely() && l.front.mine(n) {
		mark = store.Step
	}
	r, err := mark()
	l.front.marked(n)
	return r, err
}

// renew empties the fronts of a device, and lets them hold nothing that is out: what they hand out again looks to the engine as old as
// what was freed. That matters where memory moves by its age.
func (l *library) renew(n int) error {
	slots, err := l.ofDevice(n)
	for _, d := range slots {
		err = errors.Join(err, d.withFrontOff(l.frontCache(), func() error { return nil }))
	}
	return err
}

// pin keeps a block where it is: somebody outside of the process may know its memory.
func (d *device) pin(addr uint64) {
	if d.space != nil {
		d.lib.front.named(addr)
		d.space.Pin(addr)
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/alloc/tier"
	"github.com/ashlar-mem/ashlar/driver"
)

// maxDevices is how many devices a process can use. Slots from there on are
// tenants: each has an allocator and a front of its own.
const (
	maxDevices = 64
	maxSlots   = 256
)

// front is the cache in C as Go sees it. What it calls a device is a slot.
type front interface {
	// open makes the front of a slot that belongs to a device, and returns its outbox, through which it
	// returns blocks to the engine; nil if there can be none.
	open(slot, device int) outbox
	// fill moves queued blocks into the outbox; with all, held blocks too.
	fill(device int, all bool)
	// mode sets whether the front may hold blocks. It will not hold blocks that are
	// out already.
	mode(device int, off bool)
	read(device int) frontState
	resetPeaks(device int)
	resetSums(device int)
	waiting(device int, w *alloc.Waiting)
	// named says that something is known of a block that must end with it: its free is the engine's business.
	named(addr uint64)
	// bind has the requests of a device on a stream go to a slot.
	bind(device int, stream uint64, slot int) error
	// marked notes that a step has ended: this thread alone uses the device from now on, as far as anybody knows.
	marked(device int)
	// alone reports whether one thread alone has used the device since, and for some steps before.
	alone(device int) bool
	// mine reports whether no other thread than this one has.
	mine(device int) bool
	// unbind gives the streams of a slot back to the device.
	unbind(device, slot int)
}

// outbox holds freed blocks for the engine.
type outbox interface {
	// read moves blocks into out.
	read(out []uint64) int
	// rest reports whether more blocks wait for space in the outbox.
	rest() bool
}

// library is the one instance of everything in the process.
type library struct {
	front front
	open  func(n int) (driver.Driver, error)

	slots [maxSlots]atomic.Pointer[device] // devices are made at first use
	ooms  atomic.Uint64                    // requests that failed for want of memory

	recording atomic.Int64 // pools that receive allocations: graphs are being captured
	captured  atomic.Int64 // those there ever were
	clear     atomic.Int64 // of those, how many there were when it was said that no library has registered their memory; -1: one has

	mu       sync.Mutex // guards what follows, and the making of devices
	cfg      config
	failed   error // why the settings could not be read
	history  historyMode
	written  map[string]bool // paths of oom_snapshot that were written
	tenants  []tenantSpec    // of ASHLAR_TENANTS
	nextSlot int             // for a tenant

	closed map[int]map[string]int64 // device -> what tenants and regions that are gone have counted
}

// historyMode says whether events are recorded.
type historyMode struct {
	on  bool
	max int // events to keep; 0 for all
}

func newLibrary(f front, lookup func(string) (string, bool)) *library {
	o := &opener{lookup: lookup}
	l := &library{front: f, open: o.open, written: map[string]bool{}, nextSlot: maxDevices, closed: map[int]map[string]int64{}}
	l.cfg, l.failed = readConfig(lookup)
	l.readTenants(lookup)
	if n := l.cfg.own.history; n > 0 {
		l.history = historyMode{on: true, max: n}
	}
	setCollector(l.history.on)
	return l
}

// heapLimit is where garbage is collected while no history is recorded.
const heapLimit = 64 << 20

// setCollector keeps Go's garbage collector away. Serving memory makes no
// garbage, so that there is nothing to collect but what statistics and
// snapshots leave behind, and for that a limit is enough: without it the
// runtime would collect every two minutes, with all cores, for nothing. A
// history grows, so then the collector runs as usual.
func setCollector(history bool) {
	if history {
		debug.SetMemoryLimit(1<<63 - 1)
		debug.SetGCPercent(100)
		return
	}
	debug.SetMemoryLimit(heapLimit)
	debug.SetGCPercent(-1)
}

// device is an allocator with its place in the process: that of a device, which
// serves the streams that no tenant has, or that of a tenant.
type device struct {
	index  int // its slot
	number int // of the GPU
	lib    *library
	group  *tenant.Group // of the GPU
	tenant *tenant.Tenant
	alloc  *alloc.Allocator
	box    outbox
	mover  *mover      // of the GPU; nil if memory cannot be moved
	space  *tier.Space // of the slot, with mover

	dropped atomic.Bool            // a region that was parked and not kept
	note    atomic.Pointer[string] // of the first overflow, for the request that it happened to

	changing sync.Mutex // one change at a time

	mu       sync.Mutex // guards what follows
	fraction float64
	captures map[alloc.PoolID][]*alloc.Capture // begun and not released
}

// device returns the device with that number, making it at first use.
func (l *library) device(n int) (*device, error) {
	if uint(n) >= maxDevices {
		return nil, fmt.Errorf("there is no device %d", n)
	}
	if d := l.slots[n].Load(); d != nil {
		return d, nil
	}
	return l.makeDevice(n)
}

// slot returns what the front calls a device.
func (l *library) slot(n int) (*device, error) {
	if n < maxDevices {
		return l.device(n)
	}
	if d := l.slots[n].Load(); d != nil {
		return d, nil
	}
	return nil, errors.New("the tenant of the stream was deleted meanwhile")
}

func (l *library) makeDevice(n int) (*device, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.slots[n].Load(); d != nil {
		return d, nil
	}
	if l.failed != nil {
		return nil, l.failed
	}
	drv, err := l.open(n)
	if err != nil {
		return nil, fmt.Errorf("device %d cannot be used: %w", n, err)
	}
	g, err := tenant.New(drv, tenant.Unlimited, tenant.Options{Hold: l.cfg.hold})
	if err != nil {
		return nil, fmt.Errorf("device %d cannot be used: %w", n, err)
	}
	m, err := l.newMover(n, drv)
	if err != nil {
		return nil, fmt.Errorf("device %d cannot be used: %w", n, err)
	}
	d, err := l.makeSlot(n, n, g, m, defaultTenant, tenant.Terms{})
	if err != nil {
		return nil, fmt.Errorf("device %d cannot be used: %w", n, err)
	}
	if err := l.addTenants(d, drv); err != nil {
		l.failed = fmt.Errorf("%s, device %d: %w", tenantsVariable, n, err)
		return nil, l.failed
	}
	l.slots[n].Store(d)
	return d, nil
}

// makeSlot makes a tenant of a device, with a front of its own.
func (l *library) makeSlot(slot, number int, g *tenant.Group, m *mover, name string, terms tenant.Terms) (*device, error) {
	d := &device{
		index: slot, number: number, lib: l, group: g, mover: m,
		fraction: l.cfg.engine.PerProcessMemoryFraction, captures: map[alloc.PoolID][]*alloc.Capture{},
	}
	if d.box = l.front.open(slot, number); d.box == nil {
		return nil, errors.New("no host memory for the front cache")
	}
	if m != nil {
		d.space = m.store.Space(m.spaceName(slot, name))
		terms.Driver = d.space.Driver()
	}
	var err error
	if d.tenant, err = g.Add(name, terms, alloc.WithDevice(number), alloc.WithSettings(l.settingsOf(name)), alloc.WithBorrower(d)); err != nil {
		return nil, err
	}
	d.alloc = d.tenant.Allocator()
	if m != nil {
		if err := d.space.Attach(d.alloc); err != nil {
			return nil, err
		}
		if err := d.setTiers(&l.cfg); err != nil {
			return nil, err
		}
	}
	if l.history.on {
		d.alloc.RecordHistory(alloc.HistoryOptions{MaxEntries: l.history.max})
	}
	d.setMode(l.cfg.own.frontCache)
	return d, nil
}

// eachDevice calls f for every device that was made, and every tenant.
func (l *library) eachDevice(f func(*device) error) error {
	var failed []error
	for n := range l.slots {
		if d := l.slots[n].Load(); d != nil {
			if err := f(d); err != nil {
				failed = append(failed, fmt.Errorf("device %d: %w", d.number, err))
			}
		}
	}
	return errors.Join(failed...)
}

// ofDevice returns a device, which is made at its first use, and its tenants.
func (l *library) ofDevice(n int) ([]*device, error) {
	first, err := l.device(n)
	if err != nil {
		return nil, err
	}
	all := []*device{first}
	for i := maxDevices; i < maxSlots; i++ {
		if d := l.slots[i].Load(); d != nil && d.number == n {
			all = append(all, d)
		}
	}
	return all, nil
}

// setMode lets the front hold blocks if that is wanted and the engine allows it now.
func (d *device) setMode(wanted bool) {
	d.lib.front.mode(d.index, !wanted || !d.alloc.Lender().Lends())
}

// withFrontOff runs f, which changes what the front may do, while the front is empty
// and off.
func (d *device) withFrontOff(frontCache bool, f func() error) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	d.lib.front.mode(d.index, true)
	d.flush(nil)
	err := f()
	d.setMode(frontCache)
	return err
}

// Recall makes the front a borrower of the engine. What is in the outbox costs
// no call of C.
func (d *device) Recall(out []uint64, all bool) int {
	if all {
		d.lib.front.fill(d.index, true)
	}
	n := d.box.read(out)
	for n < len(out) && d.box.rest() {
		d.lib.front.fill(d.index, false)
		n += d.box.read(out[n:])
	}
	return n
}

// flush returns all blocks in the front to the engine, updates the front's count of
// blocks that wait for other streams, and calls then with the engine's statistics
// before anything can change.
func (d *device) flush(then func(*alloc.Stats)) {
	err := d.alloc.Lender().Recall(func(s *alloc.Stats, w *alloc.Waiting) {
		d.lib.front.waiting(d.index, w)
		if then != nil {
			then(s)
		}
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "ashlar: giving memory back: %v\n", err)
	}
}

// frontCache is the setting.
func (l *library) frontCache() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg.own.frontCache
}

// configure changes the settings of all devices.
func (l *library) configure(conf string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	l.cfg.conf, l.cfg.variable = conf, ""
	failed := l.cfg.read(conf, true)
	err := l.eachDevice(func(d *device) error {
		return d.withFrontOff(l.cfg.own.frontCache, func() error {
			d.alloc.Use(l.settingsOf(d.tenant.Name()))
			return d.setTiers(&l.cfg)
		})
	})
	return errors.Join(failed, err)
}

// emptyCache gives cached memory of all devices back to the driver.
func (l *library) emptyCache() error {
	return l.eachDevice((*device).emptyCache)
}

func (d *device) emptyCache() error {
	err := d.alloc.EmptyCache()
	d.reportWaiting()
	return err
}

// reportWaiting gives the front the blocks that still wait for other streams after a
// call that did not come through it.
func (d *device) reportWaiting() {
	w := d.alloc.Lender().Waiting()
	d.lib.front.waiting(d.index, &w)
}

func (l *library) setFraction(n int, fraction float64) error {
	d, err := l.device(n)
	if err != nil {
		return err
	}
	return d.withFrontOff(l.frontCache(), func() error {
		if err := d.alloc.SetMemoryFraction(fraction); err != nil {
			return err
		}
		d.mu.Lock()
		d.fraction = fraction
		d.mu.Unlock()
		d.limitAll()
		return nil
	})
}

// limitAll has the fraction of the device's memory hold for all its slots together, which the
// allocator of each does not see. Without regions that allocator is the only one that the
// fraction is for, and it alone follows PyTorch's rule to the byte.
func (d *device) limitAll() {
	if d.mover == nil || !d.mover.regions.Load() {
		return
	}
	d.mu.Lock()
	fraction := d.fraction
	d.mu.Unlock()
	var limit uint64
	if fraction < 1 {
		limit = max(1, uint64(fraction*float64(d.group.Driver().TotalMemory()))) // 0 would be none
	}
	d.mover.store.SetDeviceLimit(limit)
}

func (l *library) getFraction(n int) (float64, error) {
	d, err := l.device(n)
	if err != nil {
		return -1, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fraction, nil
}

// recordHistory starts or stops recording on all devices, including later ones.
func (l *library) recordHistory(m historyMode) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history = m
	setCollector(m.on)
	err := l.eachDevice(func(d *device) error {
		return d.withFrontOff(l.cfg.own.frontCache, func() error {
			if m.on {
				d.alloc.RecordHistory(alloc.HistoryOptions{MaxEntries: m.max})
			} else {
				d.alloc.StopHistory()
			}
			return nil
		})
	})
	if !m.on {
		runtime.GC() // the history was most of the heap
	}
	return err
}

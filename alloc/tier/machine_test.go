package tier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

const mib = 1 << 20

func expandable(t testing.TB) settings.Settings {
	t.Helper()
	s, err := settings.Parse("expandable_segments:True")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lived is a block in use. Over a device with bytes a value stands at its beginning, its end
// and at each page in between.
type lived struct {
	sp     *Space
	engine *alloc.Allocator
	addr   uint64
	size   uint64
	value  uint64
	lost   map[uint64]bool // where the value stood in memory that was dropped
}

func (b *lived) marks() []uint64 {
	var out []uint64
	last := (b.addr + b.size - 8) &^ 7 // in one page
	for at := b.addr; at+16 <= b.addr+b.size; at += unit {
		if at+8 <= last {
			out = append(out, at)
		}
	}
	if b.size >= 8 {
		out = append(out, last)
	}
	return out
}

// machine does random things to a store and checks it after each of them. Only the
// seed is drawn by rapid: rapid prefers small numbers.
type machine struct {
	*rand.Rand
	t       testing.TB
	real    *host.Device // nil over the simulated device
	dev     *counter
	held    func() (device, host uint64)
	store   *Store
	spaces  []*Space
	engines []*alloc.Allocator
	streams []uint64
	blocks  map[uint64]*lived
	order   []uint64
	values  uint64
	faulty  bool
	capture *alloc.Capture
	of      int // whose

	parked, overflowed, broken int
	fetched, returned          uint64
}

func newMachine(t testing.TB, seed uint64, real bool) *machine {
	m := &machine{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, blocks: map[uint64]*lived{}}
	device, far := uint64(200*mib), uint64(160*mib)
	if real {
		device, far = 100*mib, 80*mib // all bytes are copied
		d := host.New(host.Config{Memory: device, HostMemory: far})
		m.real = d
		m.dev = newCounter(d)
		m.held = func() (uint64, uint64) { return d.Held(), d.HostHeld() }
		m.streams = []uint64{0}
		for range 2 {
			s, err := d.NewStream()
			if err != nil {
				t.Fatal(err)
			}
			m.streams = append(m.streams, s)
		}
	} else {
		d := sim.New(sim.Config{TotalMemory: device, HostMemory: far, Events: sim.EventMode(seed % 2)})
		m.dev = newCounter(d)
		m.held = func() (uint64, uint64) { return d.Held(), d.HostHeld() }
		m.streams = []uint64{0, 1, 2}
	}
	options := Options{Host: far, Overflow: m.IntN(2) == 0, Alone: func() bool { return m.IntN(2) == 0 }}
	if m.IntN(3) == 0 {
		options.Quiet = func() (func(), error) {
			if m.IntN(20) == 0 {
				return nil, errNotNow
			}
			return func() {}, nil
		}
	}
	var err error
	if m.store, err = New(m.dev, options); err != nil {
		t.Fatal(err)
	}
	for i := range 1 + m.IntN(3) {
		sp := m.store.Space(fmt.Sprint("s", i))
		engine := alloc.New(sp.Driver(), alloc.WithSettings(expandable(t)))
		if err := sp.Attach(engine); err != nil {
			t.Fatal(err)
		}
		m.spaces = append(m.spaces, sp)
		m.engines = append(m.engines, engine)
	}
	return m
}

func (m *machine) size() uint64 {
	if m.IntN(3) == 0 {
		borders := []uint64{1, 512, mib, mib + 1, 10 * mib, 20 * mib, 20*mib + 1, 40 * mib}
		return borders[m.IntN(len(borders))]
	}
	return 1 + m.Uint64N(1<<(1+m.Uint64N(25)))
}

func (m *machine) some() []uint64 {
	var out []uint64
	for _, addr := range m.order {
		if m.IntN(2) == 0 {
			out = append(out, addr+m.Uint64N(m.blocks[addr].size))
		}
	}
	return out
}

// step does one thing, with or without a driver that fails once or for ever.
func (m *machine) step() error {
	i := m.IntN(len(m.spaces))
	sp, engine := m.spaces[i], m.engines[i]
	if m.faulty = m.IntN(6) == 0; m.faulty {
		m.dev.fail(1+m.IntN(12), m.IntN(2) == 0, []error{driver.ErrOutOfMemory, errInjected}[m.IntN(2)])
		defer m.dev.heal()
	}
	var err error
	switch p := m.IntN(100); {
	case p < 38:
		return m.malloc(i)
	case p < 60:
		if len(m.order) > 0 {
			m.free(m.order[m.IntN(len(m.order))])
		}
	case p < 63:
		if len(m.order) > 0 {
			b := m.blocks[m.order[m.IntN(len(m.order))]]
			_ = b.engine.RecordStream(b.addr, m.streams[m.IntN(3)])
		}
	case p < 70:
		m.parked++
		_, err = sp.Park(m.IntN(4) > 0)
	case p < 77:
		_, err = sp.Restore()
	case p < 81:
		_, err = sp.ParkBlocks(m.some())
	case p < 83:
		_, err = sp.RestoreBlocks(m.some())
	case p < 87:
		var report Report
		if report, err = sp.Fetch(m.some()); !m.faulty && errors.Is(err, driver.ErrOutOfMemory) {
			return err
		}
		m.fetched += report.In
		if report.Out+report.Dropped > 0 {
			return fmt.Errorf("a fetch has moved something away: %+v", report)
		}
	case p < 89:
		m.store.moving.Lock()
		var report Report
		report, err = sp.comeBack(m.Uint64N(400 * mib))
		m.store.moving.Unlock()
		m.returned += report.In
		if report.Out+report.Dropped > 0 {
			return fmt.Errorf("memory has gone while it should come home: %+v", report)
		}
	case p < 92:
		err = m.mark()
	case p < 94:
		for _, addr := range m.some() {
			sp.Cold(addr)
		}
	case p < 95:
		for _, addr := range m.some() {
			if m.IntN(8) == 0 {
				sp.Pin(addr)
			} else {
				sp.Unpin(addr)
			}
		}
	case p < 96:
		if m.IntN(2) == 0 {
			m.store.Trim()
		} else {
			err = engine.EmptyCache()
		}
	case p < 97:
		sp.SetOverflow(m.Uint64N(3) * m.Uint64N(160*mib))
	case p < 98:
		m.store.SetDeviceLimit(m.Uint64N(2) * (40*mib + m.Uint64N(200*mib)))
	case p < 99:
		m.store.SetHostLimit(40*mib + m.Uint64N(160*mib))
	default:
		m.captureOrEnd(i)
	}
	if err != nil && !m.faulty {
		var routed *alloc.RouteActiveError
		if !errors.Is(err, driver.ErrOutOfMemory) && !errors.As(err, &routed) && !errors.Is(err, errNotNow) {
			return err
		}
	}
	m.noteLost()
	return nil
}

// mark ends a step, which tells of memory that a request before it has left out of reach.
func (m *machine) mark() error {
	owed := m.store.lost
	_, err := m.store.Step()
	switch {
	case owed == nil:
		return err
	case !errors.Is(err, owed):
		m.t.Errorf("it was not told that %v, but %v", owed, err)
	case !m.faulty:
		return nil
	}
	return err
}

// checkCounts compares what the ledger counts page by page with the pages.
func (m *machine) checkCounts() error {
	l := &m.store.ledger
	var all counts
	of := map[*Space]counts{}
	for _, p := range l.pages {
		c := of[p.space]
		if p.h.host && !p.parked {
			c.spilt += p.size
			all.spilt += p.size
		}
		switch {
		case p.stray || p.place != alloc.Nowhere:
		case p.h.size > 0:
			c.broken += p.size
			all.broken += p.size
		default:
			c.dropped += p.size
			all.dropped += p.size
		}
		of[p.space] = c
	}
	if all != l.counts {
		return fmt.Errorf("the ledger counts %+v, its pages are %+v", l.counts, all)
	}
	for i, sp := range m.spaces {
		if of[sp] != sp.counts {
			return fmt.Errorf("space %d counts %+v, its pages are %+v", i, sp.counts, of[sp])
		}
	}
	return nil
}

func (m *machine) captureOrEnd(i int) {
	if m.capture != nil {
		if err := m.capture.End(); err != nil {
			m.t.Fatal(err)
		}
		_ = m.capture.Release()
		m.capture = nil
		return
	}
	var err error
	if m.capture, err = m.engines[i].BeginCapture(alloc.PoolID{}, func(s uint64) bool { return s == m.streams[1] }); err != nil {
		m.t.Fatal(err)
	}
	m.of = i
}

func (m *machine) malloc(i int) error { return m.request(i, m.size(), m.streams[m.IntN(3)]) }

func (m *machine) request(i int, size, stream uint64) error {
	sp, engine := m.spaces[i], m.engines[i]
	m.store.ledger.mu.Lock()
	may := sp.overflow > 0
	m.store.ledger.mu.Unlock()
	addr, err := engine.Malloc(size, stream)
	var oom *alloc.OutOfMemoryError
	if err != nil {
		if !m.faulty && !errors.As(err, &oom) {
			return err
		}
		return nil
	}
	m.noteLost() // cold handles may have moved for it
	_, far, dropped, ok := sp.Where(addr)
	switch {
	case !ok:
		return fmt.Errorf("%d bytes at %#x are not known", size, addr)
	case dropped > 0:
		return fmt.Errorf("%d bytes at %#x have no memory", size, addr)
	case far > 0 && !may:
		return fmt.Errorf("%d bytes at %#x lie on the host without overflow", size, addr)
	case far > 0:
		m.overflowed++
	}
	for _, o := range m.blocks {
		if addr < o.addr+o.size && o.addr < addr+size {
			return fmt.Errorf("%d bytes at %#x overlap %d at %#x", size, addr, o.size, o.addr)
		}
	}
	m.values++
	b := &lived{sp: sp, engine: engine, addr: addr, size: size, value: m.values, lost: map[uint64]bool{}}
	m.blocks[addr] = b
	m.order = append(m.order, addr)
	if m.real != nil {
		for _, at := range b.marks() {
			mem, err := m.real.Bytes(at, 8)
			if err != nil {
				return err
			}
			binary.LittleEndian.PutUint64(mem, b.value)
		}
	}
	return nil
}

func (m *machine) free(addr uint64) {
	b := m.blocks[addr]
	delete(m.blocks, addr)
	m.order = slices.DeleteFunc(m.order, func(a uint64) bool { return a == addr })
	var lost *alloc.InvalidPointerError
	if err := b.engine.Free(addr); errors.As(err, &lost) {
		m.t.Fatal(err)
	}
}

// pageOf returns the ledger's page of an address.
func (m *machine) pageOf(b *lived, at uint64) *page {
	for _, granule := range []uint64{2 * mib, 20 * mib} {
		// Reservations begin at multiples of 2 MiB only: the granule is searched.
		for g := at &^ (unit - 1); g+granule > at; g -= unit {
			if p := m.store.ledger.pages[g]; p != nil && at-g < p.size {
				return p
			}
		}
	}
	return nil
}

// noteLost marks the bytes that were dropped on purpose.
func (m *machine) noteLost() {
	for _, b := range m.blocks {
		for _, at := range b.marks() {
			if p := m.pageOf(b, at); p != nil && p.place == alloc.Nowhere && p.h.size == 0 {
				b.lost[at] = true
			}
		}
	}
}

// check compares the ledger with the driver's counter, with the engines and with the bytes.
func (m *machine) check() error {
	for i, engine := range m.engines {
		if err := engine.CheckInvariants(); err != nil {
			return fmt.Errorf("space %d: %w", i, err)
		}
	}
	device, far := m.dev.taken()
	if d, h := m.held(); d != device || h != far {
		return fmt.Errorf("the driver has %d and %d bytes, the counter %d and %d", d, h, device, far)
	}
	if d, h := m.store.DeviceBytes(), m.store.HostBytes(); d != device || h != far {
		return fmt.Errorf("the ledger has %d and %d bytes, the driver %d and %d", d, h, device, far)
	}
	var sumDevice, sumHost uint64
	for _, sp := range m.spaces {
		st := sp.Stats()
		sumDevice += st.Device
		sumHost += st.Host
	}
	if st := m.store.Stats(); sumHost != st.Host || sumDevice+m.store.ledger.doomedDevice != st.Device {
		return fmt.Errorf("the spaces have %d and %d bytes, the store %+v", sumDevice, sumHost, st)
	}
	if err := m.checkCounts(); err != nil {
		return err
	}
	broken := m.store.Stats().Broken
	if broken > 0 {
		m.broken++
	}
	for _, b := range m.blocks {
		for _, at := range b.marks() {
			p := m.pageOf(b, at)
			if p == nil || p.space != b.sp {
				return fmt.Errorf("nothing is known of %#x in the block at %#x", at, b.addr)
			}
			id, ok := m.dev.behind(p.addr)
			switch {
			case p.place == alloc.Nowhere && ok, p.place != alloc.Nowhere && (!ok || id != p.h.id):
				return fmt.Errorf("%#x lies in %+v, the driver has handle %d, %v", at, *p, id, ok)
			case p.place != alloc.Nowhere && p.h.host != (p.place == alloc.OnHost):
				return fmt.Errorf("%#x lies in %+v", at, *p)
			}
			if m.real == nil || p.place == alloc.Nowhere || b.lost[at] {
				continue
			}
			mem, err := m.real.Bytes(at, 8)
			if err != nil {
				return err
			}
			if got := binary.LittleEndian.Uint64(mem); got != b.value {
				return fmt.Errorf("%#x in the block at %#x has %d, not %d: %+v", at, b.addr, got, b.value, *p)
			}
		}
	}
	return nil
}

// finish heals everything, brings all home and frees it, after which nothing may be left.
func (m *machine) finish() error {
	m.store.options.Quiet = nil
	if m.capture != nil {
		m.captureOrEnd(0)
	}
	m.store.SetDeviceLimit(0)
	m.faulty = false
	if err := m.mark(); err != nil && !errors.Is(err, driver.ErrOutOfMemory) {
		return err
	}
	if st := m.store.Stats(); st.Broken > 0 {
		return fmt.Errorf("a step without failures leaves %d bytes broken", st.Broken)
	}
	if err := m.check(); err != nil {
		return err
	}
	for len(m.order) > 0 {
		m.free(m.order[0])
	}
	if d, ok := m.dev.HostMapper.(*sim.Device); ok {
		d.CompleteAll()
	}
	for _, engine := range m.engines {
		if err := engine.EmptyCache(); err != nil {
			return err
		}
		for _, s := range engine.Segments() {
			if !s.Lost || s.ActiveSize != 0 { // where PyTorch is undefined
				return fmt.Errorf("left: %+v", s)
			}
		}
		if engine.Undefined() != nil {
			return nil
		}
	}
	m.store.Trim()
	device, far := m.dev.taken()
	if device != 0 || far != 0 {
		return fmt.Errorf("%d bytes of the device and %d of the host are left", device, far)
	}
	return nil
}

// errNotNow is a Quiet that refuses; a step of several spaces may meet it more than once.
var errNotNow = errors.New("not now")

// TestMachine: whatever is done and wherever the driver fails, once or for ever, after
// each call every byte is where the ledger says, and the counters are the driver's.
func TestMachine(t *testing.T) {
	for _, real := range []bool{false, true} {
		t.Run(map[bool]string{false: "sim", true: "host"}[real], func(t *testing.T) {
			steps := 300
			if testing.Short() || real {
				steps = 100
			}
			runs := 0
			parked, overflowed, broken, injected := 0, 0, 0, 0
			var moved Stats
			var fetched, returned uint64
			rapid.Check(t, func(rt *rapid.T) {
				seed := rapid.Uint64().Draw(rt, "seed")
				if runs++; real && runs > 20 || real && testing.Short() && runs > 5 {
					return
				}
				m := newMachine(t, seed, real)
				if m.real != nil {
					defer func() { _ = m.real.Close() }()
				}
				for i := range steps {
					err := m.step()
					if err == nil {
						err = m.check()
					}
					if err != nil {
						rt.Fatalf("seed %d, step %d: %v", seed, i, err)
					}
				}
				st := m.store.Stats()
				moved.BytesIn += st.BytesIn
				moved.BytesOut += st.BytesOut
				if err := m.finish(); err != nil {
					rt.Fatalf("seed %d: %v", seed, err)
				}
				parked += m.parked
				overflowed += m.overflowed
				broken += m.broken
				fetched += m.fetched
				returned += m.returned
				injected += m.dev.injected
			})
			t.Logf("%d parked, %d overflowed, %d times broken, %d failures, %d MiB out, %d in, %d fetched, %d returned",
				parked, overflowed, broken, injected, moved.BytesOut/mib, moved.BytesIn/mib, fetched/mib, returned/mib)
			// The few runs over real bytes may leave something out.
			if !testing.Short() && !real && (overflowed == 0 || broken == 0 || injected == 0 || moved.BytesIn == 0 || moved.BytesOut == 0 || fetched == 0) {
				t.Error("the machine has not tried everything")
			}
		})
	}
}

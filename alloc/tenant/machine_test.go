package tenant_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

var confs = []string{
	"expandable_segments:True", "expandable_segments:True", "expandable_segments:False", "max_split_size_mb:40,expandable_segments:True",
	"garbage_collection_threshold:0.5,expandable_segments:False", "roundup_power2_divisions:[1:2,4:4,32:8,>:16],expandable_segments:True",
	"large_segment_size_mb:32,expandable_segments:False", "release_lock_on_cudamalloc:True,expandable_segments:False",
	"graph_capture_record_stream_reuse:True,expandable_segments:True",
}

const limit = 1000 * mib

// lived is a block in use.
type lived struct {
	of        *tenant.Tenant
	addr      uint64
	size      uint64
	stubborn  bool // is not given back when revoked
	revocable bool
}

// machine does random things to a group and checks it after each of them. Only the
// seed is drawn by rapid: rapid prefers small numbers.
type machine struct {
	*rand.Rand
	clock
	dev      *counter
	group    *tenant.Group
	tenants  []*tenant.Tenant
	captures map[*tenant.Tenant]*alloc.Capture
	pools    []*alloc.Capture
	blocks   map[uint64]*lived
	order    []uint64 // addresses, for the draw
	later    []uint64 // revoked blocks that are freed at the next nap
	names    int
	faulty   bool // the driver may fail in this step

	promised, refused int
}

func newMachine(seed uint64) *machine {
	m := &machine{
		Rand: rand.New(rand.NewPCG(seed, 0)), captures: map[*tenant.Tenant]*alloc.Capture{}, blocks: map[uint64]*lived{},
		dev: newCounter(sim.Config{TotalMemory: limit, Events: sim.EventMode(seed % 2)}),
	}
	m.onSleep = func() {
		for _, addr := range m.later {
			m.free(addr)
		}
		m.later = nil
		m.dev.CompleteAll()
	}
	m.group = must(tenant.New(m.dev, limit, m.options()))
	for range 2 + m.IntN(7) {
		m.add()
	}
	return m
}

func (m *machine) terms() tenant.Terms {
	t := tenant.Terms{Priority: m.IntN(3)}
	if m.IntN(3) > 0 {
		t.Guarantee = m.Uint64N(limit / 4)
	}
	if m.IntN(4) == 0 {
		t.Ceiling = t.Guarantee + m.Uint64N(limit/2)
	}
	return t
}

func (m *machine) add() {
	if len(m.tenants) == 8 {
		return
	}
	m.names++
	t, err := m.group.Add(fmt.Sprint("t", m.names), m.terms())
	if err != nil {
		return
	}
	check := t.Allocator().Configure(confs[m.IntN(len(confs))])
	if check != nil {
		panic(check)
	}
	m.tenants = append(m.tenants, t)
}

func (m *machine) size() uint64 {
	if m.IntN(4) == 0 { // sizes at which a rule changes
		borders := []uint64{1, 512, mib, mib + 1, 10*mib - 512, 10 * mib, 20 * mib, 20*mib + 1, 64 * mib}
		return borders[m.IntN(len(borders))]
	}
	return 1 + m.Uint64N(1<<(1+m.Uint64N(28)))
}

// step does one thing.
func (m *machine) step() error {
	if len(m.tenants) == 0 {
		m.add()
		return nil
	}
	t := m.tenants[m.IntN(len(m.tenants))]
	if m.faulty = m.IntN(20) == 0; m.faulty {
		failures := []error{nil, errors.New("the driver fails")}
		m.dev.FailNth(1+m.IntN(6), failures[m.IntN(2)])
		defer m.dev.Heal()
	}
	switch p := m.IntN(100); {
	case p < 45:
		return m.malloc(t)
	case p < 70:
		if len(m.order) > 0 {
			m.free(m.order[m.IntN(len(m.order))])
		}
	case p < 76:
		if len(m.order) > 0 {
			b := m.blocks[m.order[m.IntN(len(m.order))]]
			_ = b.of.RecordStream(b.addr, m.Uint64N(4))
		}
	case p < 82:
		m.lend(t)
	case p < 86:
		_ = t.Resize(m.terms())
	case p < 88:
		_ = t.Allocator().EmptyCache()
	case p < 91:
		m.dev.CompleteAll()
	case p < 93:
		_ = t.Allocator().Configure(confs[m.IntN(len(confs))])
	case p < 96:
		m.capture(t)
	case p < 98:
		m.add()
	default:
		if m.captures[t] == nil && t.Close() == nil {
			m.tenants = slices.DeleteFunc(m.tenants, func(o *tenant.Tenant) bool { return o == t })
		}
	}
	return nil
}

// malloc makes a request and holds it against the theorem.
func (m *machine) malloc(t *tenant.Tenant) error {
	size := m.size()
	covered := !m.faulty && m.captures[t] == nil && promised(t.Allocator(), m.usage(t).Guarantee, size)
	addr, err := t.Malloc(size, m.Uint64N(3))
	if covered {
		m.promised++
	}
	if err == nil {
		return m.put(&lived{of: t, addr: addr, size: size})
	}
	m.refused++
	var oom *tenant.OutOfMemoryError
	switch {
	case m.faulty:
		return nil
	case !errors.As(err, &oom):
		return err
	case covered && !(oom.Reason == tenant.LentOut && len(oom.NotReturned) > 0):
		return fmt.Errorf("%d bytes are covered by the theorem: %w", size, err)
	case oom.Guaranteed() && oom.Reason != tenant.LentOut:
		return fmt.Errorf("a guaranteed request failed: %w", err)
	}
	return nil
}

// lend makes a revocable block: freed when it is revoked, soon after, or not.
func (m *machine) lend(t *tenant.Tenant) {
	b := &lived{of: t, size: m.size(), revocable: true}
	how := m.IntN(5)
	b.stubborn = how == 0
	addr, err := t.MallocRevocable(b.size, m.Uint64N(3), func() {
		switch {
		case b.stubborn:
		case how < 3:
			m.free(b.addr)
		default:
			m.later = append(m.later, b.addr)
		}
	})
	if err == nil {
		b.addr = addr
		if err := m.put(b); err != nil {
			panic(err)
		}
	}
}

// capture begins a capture, or ends the one that is on.
func (m *machine) capture(t *tenant.Tenant) {
	if c := m.captures[t]; c != nil {
		if err := c.End(); err != nil {
			panic(err)
		}
		delete(m.captures, t)
		m.pools = append(m.pools, c)
		return
	}
	if len(m.pools) > 0 && m.IntN(2) == 0 {
		last := len(m.pools) - 1
		_ = m.pools[last].Release()
		m.pools = m.pools[:last]
		return
	}
	stream := m.Uint64N(3)
	m.captures[t] = must(t.Allocator().BeginCapture(alloc.PoolID{}, func(s uint64) bool { return s == stream }))
}

func (m *machine) put(b *lived) error {
	for _, o := range m.blocks {
		if b.addr < o.addr+o.size && o.addr < b.addr+b.size {
			return fmt.Errorf("a block of %d bytes at %#x overlaps one of %d at %#x", b.size, b.addr, o.size, o.addr)
		}
	}
	m.blocks[b.addr] = b
	m.order = append(m.order, b.addr)
	return nil
}

// free frees a block, unless that was done already. What the driver says to it does
// not keep the block.
func (m *machine) free(addr uint64) {
	b := m.blocks[addr]
	if b == nil {
		return
	}
	delete(m.blocks, addr)
	m.order = slices.DeleteFunc(m.order, func(a uint64) bool { return a == addr })
	var lost *alloc.InvalidPointerError
	if err := b.of.Free(addr); errors.As(err, &lost) {
		panic(err)
	}
}

func (m *machine) usage(t *tenant.Tenant) tenant.TenantUsage {
	for _, u := range m.group.Usage().Tenants {
		if u.Name == t.Name() {
			return u
		}
	}
	return tenant.TenantUsage{}
}

// check compares the ledger with the driver's counter and with the engines.
func (m *machine) check() error {
	u := m.group.Usage()
	if taken := m.dev.taken(); u.Reserved != taken || taken != m.dev.Held() {
		return fmt.Errorf("the ledger has %d bytes, the driver %d and %d", u.Reserved, taken, m.dev.Held())
	}
	var committed, sum uint64
	for i, t := range m.tenants {
		have := u.Tenants[i]
		committed += max(have.Reserved, have.Guarantee)
		sum += have.Reserved + have.Borrowed
		if r := t.Allocator().Usage().Reserved; r != have.Reserved {
			return fmt.Errorf("%s: the ledger has %d bytes, the engine %d", have.Name, have.Reserved, r)
		}
	}
	if committed > limit || sum != u.Reserved || sum > limit {
		return fmt.Errorf("%d bytes committed and %d in tenants: %+v", committed, sum, u)
	}
	return nil
}

// finish frees everything, after which nothing may be left.
func (m *machine) finish() error {
	m.faulty = false
	for _, c := range m.captures {
		_ = c.End()
		m.pools = append(m.pools, c)
	}
	for _, c := range m.pools {
		_ = c.Release()
	}
	for len(m.order) > 0 {
		m.free(m.order[0])
	}
	m.dev.CompleteAll()
	if err := m.group.Close(); err == nil && m.dev.taken() != 0 {
		return fmt.Errorf("%d bytes are left", m.dev.taken())
	}
	for _, u := range m.group.Usage().Tenants {
		for _, s := range m.group.Tenant(u.Name).Allocator().Segments() {
			if !s.Lost || s.ActiveSize != 0 { // where PyTorch is undefined
				return fmt.Errorf("left in %s: %+v", u.Name, s)
			}
		}
	}
	return nil
}

// TestMachine: whatever the tenants do and wherever the driver fails, the ledger
// is right after every call, the theorem holds at every request, and nothing is
// lost.
func TestMachine(t *testing.T) {
	steps := 600
	if testing.Short() {
		steps = 150
	}
	promised, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		m := newMachine(seed)
		for i := range steps {
			err := m.step()
			if err == nil {
				err = m.check()
			}
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
		}
		for _, o := range m.tenants {
			if err := o.Allocator().CheckInvariants(); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.finish(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		promised += m.promised
		refused += m.refused
	})
	if promised < 300 || refused < 10 {
		t.Errorf("only %d requests were covered by the theorem and %d refused", promised, refused)
	}
}

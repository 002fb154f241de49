package arena_test

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/arena"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/invariants"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

func newArena(t testing.TB, from arena.Allocator, o arena.Options) *arena.Arena {
	t.Helper()
	a, err := arena.New(from, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newEngine() *alloc.Allocator { return alloc.New(sim.New(sim.Config{TotalMemory: 4 << 30})) }

// model is what a plain map knows of an arena: the pieces that are in use, and
// which of them each scope began with.
type model struct {
	t      *testing.T
	align  uint64
	live   map[uint64]uint64 // address -> size
	order  []uint64          // of allocation
	scopes []scope
	peak   uint64
	used   uint64
}

type scope struct {
	arena.Scope
	live int
}

func (m *model) add(addr, size uint64) {
	n := (size + m.align - 1) / m.align * m.align
	if addr%m.align != 0 {
		m.t.Fatalf("%#x is not aligned to %d", addr, m.align)
	}
	if _, twice := m.live[addr]; twice {
		m.t.Fatalf("%#x is in use", addr)
	}
	m.live[addr] = n
	m.order = append(m.order, addr)
	m.used += n
	m.peak = max(m.peak, m.used)
}

func (m *model) cut(keep int) {
	for _, addr := range m.order[keep:] {
		m.used -= m.live[addr]
		delete(m.live, addr)
	}
	m.order = m.order[:keep]
}

// overlaps looks for two pieces in use that share a byte.
func (m *model) overlaps() {
	var end uint64
	for _, addr := range slices.Sorted(maps.Keys(m.live)) {
		if addr < end {
			m.t.Fatalf("the piece at %#x overlaps the one before", addr)
		}
		end = addr + m.live[addr]
	}
}

// TestRandom does a million random operations beside a plain map.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 1))
	for _, o := range []arena.Options{{}, {Chunk: 64 << 10, Align: 16}, {Chunk: 1 << 20, Large: 1 << 20, Align: 256}, {Chunk: 4096, Large: 1, Stream: 3}} {
		engine := newEngine()
		a := newArena(t, engine, o)
		m := &model{t: t, align: o.Align, live: map[uint64]uint64{}}
		if m.align == 0 {
			m.align = 512
		}
		top := 4 * max(o.Chunk, 4096) / 3
		for i := range short.Times(250_000) {
			switch p := r.IntN(1000); {
			case p < 800:
				size := r.Uint64N(1 + r.Uint64N(1+top>>r.IntN(10)))
				addr, err := a.Alloc(size)
				if err != nil {
					t.Fatal(err)
				}
				if size > 0 {
					m.add(addr, size)
				} else if addr != 0 {
					t.Fatal("an address for nothing")
				}
			case p < 890:
				m.scopes = append(m.scopes, scope{a.Scope(), len(m.order)})
			case p < 985:
				if n := len(m.scopes); n > 0 {
					s := m.scopes[n-1]
					if n > 1 && !errors.Is(m.scopes[n-2].End(), arena.ErrScope) {
						t.Fatal("an outer scope ended before an inner one")
					}
					if err := s.End(); err != nil {
						t.Fatal(err)
					}
					if !errors.Is(s.End(), arena.ErrScope) {
						t.Fatal("a scope ended twice")
					}
					m.scopes = m.scopes[:n-1]
					m.cut(s.live)
				}
			case p < 995:
				if err := a.Reset(); err != nil {
					t.Fatal(err)
				}
				m.cut(0)
				m.scopes = nil
			default:
				if _, err := a.Trim(); err != nil {
					t.Fatal(err)
				}
			}
			if u := a.Usage(); u.Used != m.used || u.Peak != m.peak || u.Used > u.Chunks+u.Large {
				t.Fatalf("operation %d: %+v, want %d used and a peak of %d", i, u, m.used, m.peak)
			}
			if i%5000 == 0 {
				m.overlaps()
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if u := engine.Usage(); u.Allocated != 0 {
			t.Errorf("%d bytes are not given back", u.Allocated)
		}
	}
}

func TestScopesKeepChunks(t *testing.T) {
	dev := sim.New(sim.Config{})
	engine := alloc.New(dev)
	a := newArena(t, engine, arena.Options{Chunk: 1 << 20})
	step := func() {
		s := a.Scope()
		for range 30 {
			if _, err := a.Alloc(100_000); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Alloc(5 << 20); err != nil { // a block of its own
			t.Fatal(err)
		}
		if err := s.End(); err != nil {
			t.Fatal(err)
		}
	}
	step()
	after := engine.Usage()
	if u := a.Usage(); u.Chunks != 3<<20 || u.Large != 0 || u.Used != 0 {
		t.Errorf("after the scope: %+v", u)
	}
	for range 10 {
		step()
	}
	if engine.Usage() != after {
		t.Errorf("steps like the first took memory: %+v, then %+v", after, engine.Usage())
	}
	if freed, err := a.Trim(); freed != 3<<20 || err != nil {
		t.Errorf("Trim: %d, %v", freed, err)
	}
}

func TestPeak(t *testing.T) {
	a := newArena(t, newEngine(), arena.Options{})
	for _, sizes := range [][]uint64{{512, 1024}, {4096}, {512}} {
		a.ResetPeak()
		var sum uint64
		for _, n := range sizes {
			if _, err := a.Alloc(n); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if u := a.Usage(); u.Peak != sum {
			t.Errorf("the peak of a step of %d bytes is %d", sum, u.Peak)
		}
		if err := a.Reset(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefusal has the allocator refuse: the arena stays as it was.
func TestRefusal(t *testing.T) {
	engine := newEngine()
	engine.SetLimit(40 << 20)
	a := newArena(t, engine, arena.Options{Chunk: 32 << 20})
	if _, err := a.Alloc(1 << 20); err != nil {
		t.Fatal(err)
	}
	before := a.Usage()
	for _, size := range []uint64{64 << 20, math.MaxUint64, math.MaxUint64 - 511} {
		if _, err := a.Alloc(size); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	for range 31 {
		if _, err := a.Alloc(1 << 20); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Alloc(1 << 20); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("a second chunk: %v", err)
	}
	if u := a.Usage(); u.Chunks != before.Chunks || u.Used != 32<<20 {
		t.Errorf("after refusals: %+v", u)
	}
}

func TestClosed(t *testing.T) {
	a := newArena(t, newEngine(), arena.Options{})
	s := a.Scope()
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	if _, err := a.Alloc(1); !errors.Is(err, arena.ErrClosed) {
		t.Error(err)
	}
	if err := a.Reset(); !errors.Is(err, arena.ErrClosed) {
		t.Error(err)
	}
	if err := s.End(); !errors.Is(err, arena.ErrScope) {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []arena.Options{{Align: 3}, {Align: 1024}, {Chunk: 1000}, {Chunk: 1024, Large: 2048}} {
		if _, err := arena.New(newEngine(), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// odd returns addresses that are no multiples of anything.
type odd struct{ freed int }

func (*odd) Malloc(_, _ uint64) (uint64, error) { return 12345, nil }
func (o *odd) Free(uint64) error                { o.freed++; return errors.New("it was odd") }

func TestOddAllocator(t *testing.T) {
	var o odd
	a := newArena(t, &o, arena.Options{})
	if _, err := a.Alloc(1); err == nil || o.freed != 1 {
		t.Errorf("%v, %d freed", err, o.freed)
	}
	b := newArena(t, &o, arena.Options{Align: 1, Large: 10})
	if _, err := b.Alloc(100); err != nil {
		t.Fatal(err)
	}
	if err := b.Reset(); err == nil || b.Usage() != (arena.Usage{Peak: 100}) {
		t.Errorf("the allocator's error is lost: %v, %+v", err, b.Usage())
	}
}

// TestGoroutines has an arena for each of several goroutines, over one allocator.
func TestGoroutines(t *testing.T) {
	engine := newEngine()
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			a, err := arena.New(engine, arena.Options{Chunk: 4 << 20, Stream: uint64(i)})
			if err != nil {
				t.Error(err)
				return
			}
			for range 200 {
				for n := range uint64(100) {
					if _, err := a.Alloc(n * 1000); err != nil {
						t.Error(err)
					}
				}
				if err := a.Reset(); err != nil {
					t.Error(err)
				}
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if u := engine.Usage(); u.Allocated != 0 {
		t.Errorf("%d bytes are left", u.Allocated)
	}
}

func TestNoGarbage(t *testing.T) {
	if invariants.Enabled {
		t.Skip("checks of the engine make garbage")
	}
	a := newArena(t, newEngine(), arena.Options{Chunk: 1 << 20})
	step := func() {
		s := a.Scope()
		for range 40 {
			if _, err := a.Alloc(100_000); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Alloc(3 << 20); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.End(), a.Reset()); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v objects a step", n)
	}
}

func BenchmarkAlloc(b *testing.B) {
	a := newArena(b, newEngine(), arena.Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := a.Alloc(4096); err != nil {
			b.Fatal(err)
		}
		if i%8192 == 8191 {
			if err := a.Reset(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkScope(b *testing.B) {
	a := newArena(b, newEngine(), arena.Options{})
	b.ReportAllocs()
	for b.Loop() {
		s := a.Scope()
		if _, err := a.Alloc(4096); err != nil {
			b.Fatal(err)
		}
		if err := s.End(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestNoAllocator(t *testing.T) {
	if _, err := arena.New(nil, arena.Options{}); err == nil {
		t.Error("an arena over no allocator was made")
	}
}

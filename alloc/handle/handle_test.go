package handle_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/handle"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/invariants"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

func newEngine() *alloc.Allocator { return alloc.New(sim.New(sim.Config{TotalMemory: 64 << 30})) }

func malloc(t testing.TB, tab *handle.Table, size uint64) handle.Buffer {
	t.Helper()
	b, err := tab.Malloc(size, 0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// machine compares a table with a plain map: how many hold which memory.
type machine struct {
	*testing.T
	r       *rand.Rand
	table   *handle.Table
	debug   bool
	holders map[handle.Weak]int
	inUse   map[uint64]handle.Weak // by address
	held    []handle.Buffer
	weak    []handle.Weak
	stale   []handle.Buffer // whose memory is free
}

func (m *machine) step() {
	switch p := m.r.IntN(100); {
	case p < 22:
		b := malloc(m, m.table, 1+m.r.Uint64N(1<<20))
		if _, twice := m.inUse[b.Addr()]; twice {
			m.Fatalf("%#x has holders and was handed out", b.Addr())
		}
		m.inUse[b.Addr()] = b.Weak()
		m.holders[b.Weak()] = 1
		m.held = append(m.held, b)
	case p < 44 && len(m.held) > 0:
		b, err := m.held[m.r.IntN(len(m.held))].Retain()
		if err != nil {
			m.Fatal(err)
		}
		m.holders[b.Weak()]++
		m.held = append(m.held, b)
	case p < 90 && len(m.held) > 0:
		m.release(m.r.IntN(len(m.held)))
	case p < 93 && len(m.held) > 0:
		m.weak = append(m.weak, m.held[m.r.IntN(len(m.held))].Weak())
	case p < 97 && len(m.weak) > 0:
		m.retainWeak(m.r.IntN(len(m.weak)))
	case len(m.stale) > 0:
		b := m.stale[m.r.IntN(len(m.stale))]
		if _, err := b.Retain(); !errors.Is(err, handle.ErrReleased) {
			m.Fatalf("a stale buffer was retained: %v", err)
		}
		if err := b.Release(); !errors.Is(err, handle.ErrReleased) {
			m.Fatalf("a stale buffer was released: %v", err)
		}
	}
}

func (m *machine) release(i int) {
	b := m.held[i]
	if err := b.Release(); err != nil {
		m.Fatal(err)
	}
	m.held[i] = m.held[len(m.held)-1]
	m.held = m.held[:len(m.held)-1]
	if m.holders[b.Weak()]--; m.holders[b.Weak()] == 0 {
		delete(m.holders, b.Weak())
		delete(m.inUse, b.Addr())
		m.stale = append(m.stale, b)
		if len(m.stale) > 100 {
			m.stale = m.stale[50:]
		}
	} else if m.debug {
		if err := b.Release(); !errors.Is(err, handle.ErrReleased) {
			m.Fatalf("one holder released twice: %v", err)
		}
	}
}

// retainWeak upgrades a weak handle, if its memory has holders.
func (m *machine) retainWeak(i int) {
	w := m.weak[i]
	b, ok := w.Retain()
	if alive := m.holders[w] > 0; ok != alive {
		m.Fatalf("retained %v, alive %v", ok, alive)
	}
	if ok {
		m.holders[b.Weak()]++
		m.held = append(m.held, b)
	}
	m.weak[i] = m.weak[len(m.weak)-1]
	m.weak = m.weak[:len(m.weak)-1]
}

// TestRandom does a million random operations beside a plain map.
func TestRandom(t *testing.T) {
	engine := newEngine()
	m := &machine{T: t, r: rand.New(rand.NewPCG(27, 2)), table: handle.New(engine, handle.Options{}), holders: map[handle.Weak]int{}, inUse: map[uint64]handle.Weak{}}
	for i := range short.Times(1_000_000) {
		m.step()
		if i%10_000 == 0 {
			m.check(engine)
		}
	}
	m.finish(engine)
}

// TestRandomDebug does the same with fewer operations, with stacks.
func TestRandomDebug(t *testing.T) {
	engine := newEngine()
	m := &machine{T: t, debug: true, r: rand.New(rand.NewPCG(27, 3)), table: handle.New(engine, handle.Options{Debug: true}), holders: map[handle.Weak]int{}, inUse: map[uint64]handle.Weak{}}
	for range short.Times(20_000) {
		m.step()
	}
	m.check(engine)
	m.finish(engine)
}

func (m *machine) check(engine *alloc.Allocator) {
	leaks := m.table.Leaks()
	if len(leaks) != len(m.holders) {
		m.Fatalf("%d leaks, want %d", len(leaks), len(m.holders))
	}
	for _, l := range leaks {
		if want := m.holders[m.inUse[l.Addr]]; l.Holders != want || m.debug && len(l.Stacks) != want {
			m.Fatalf("%+v, want %d holders", l, want)
		}
	}
	if n := countActive(engine.Snapshot()); n != len(m.holders) {
		m.Fatalf("the allocator has %d blocks in use, want %d", n, len(m.holders))
	}
}

func countActive(s alloc.Snapshot) (n int) {
	for _, seg := range s.Segments {
		for _, b := range seg.Blocks {
			if b.State == alloc.ActiveAllocated {
				n++
			}
		}
	}
	return n
}

func (m *machine) finish(engine *alloc.Allocator) {
	for len(m.held) > 0 {
		m.release(len(m.held) - 1)
	}
	if err := m.table.Check(); err != nil {
		m.Error(err)
	}
	if u := engine.Usage(); u.Allocated != 0 {
		m.Errorf("%d bytes are not free", u.Allocated)
	}
}

// TestConcurrent has goroutines pass one buffer around; it is freed once, by the
// last.
func TestConcurrent(t *testing.T) {
	engine := newEngine()
	tab := handle.New(engine, handle.Options{})
	for range 200 {
		b := malloc(t, tab, 4096)
		w := b.Weak()
		var group sync.WaitGroup
		var late atomic.Int64
		for range 4 {
			mine, err := b.Retain()
			if err != nil {
				t.Fatal(err)
			}
			group.Go(func() {
				for range 100 {
					c, err := mine.Retain()
					if err != nil {
						t.Error(err)
					}
					if err := c.Release(); err != nil {
						t.Error(err)
					}
				}
				if err := mine.Release(); err != nil {
					t.Error(err)
				}
				if c, ok := w.Retain(); ok {
					late.Add(1)
					if err := c.Release(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		if err := b.Release(); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		if _, ok := w.Retain(); ok {
			t.Fatal("all have released, and the weak handle gives a buffer")
		}
	}
	if err := tab.Check(); err != nil {
		t.Error(err)
	}
	if u := engine.Usage(); u.Allocated != 0 {
		t.Errorf("%d bytes are not free", u.Allocated)
	}
}

func leak(t *testing.T, tab *handle.Table) handle.Buffer { return malloc(t, tab, 5000) }

func TestLeaks(t *testing.T) {
	tab := handle.New(newEngine(), handle.Options{Debug: true})
	b := leak(t, tab)
	malloc(t, tab, 100)
	c, ok := b.Weak().Retain()
	if !ok {
		t.Fatal("no buffer of a memory that is held")
	}
	leaks := tab.Leaks()
	if len(leaks) != 2 || leaks[0].Size != 5000 || leaks[0].Holders != 2 {
		t.Fatalf("%+v", leaks)
	}
	first, second := leaks[0].Stacks[0].String(), leaks[0].Stacks[1].String()
	if !strings.Contains(first, "handle_test.leak ") || strings.Contains(first, "(*Table)") {
		t.Errorf("the stack of a leak:\n%s", first)
	}
	if !strings.HasPrefix(second, "github.com/ashlar-mem/ashlar/alloc/handle_test.TestLeaks ") {
		t.Errorf("the stack of a weak handle's holder:\n%s", second)
	}
	var err *handle.LeakError
	if !errors.As(tab.Check(), &err) || !strings.Contains(err.Error(), "2 buffers with 5,100 bytes not released") || !strings.Contains(err.Error(), "handle_test.leak ") {
		t.Errorf("the error: %v", err)
	}
	if err := b.Release(); err != nil {
		t.Error(err)
	}
	if err := b.Release(); !errors.Is(err, handle.ErrReleased) {
		t.Errorf("the second release of one holder: %v", err)
	}
	if leaks := tab.Leaks(); leaks[0].Holders != 1 || leaks[0].Stacks[0].String() != second {
		t.Errorf("the holder that is left: %+v", leaks[0])
	}
	if err := c.Release(); err != nil {
		t.Error(err)
	}
}

func TestLeakOfOne(t *testing.T) {
	err := &handle.LeakError{Leaks: []handle.Leak{{Addr: 16, Size: 1, Holders: 1}}}
	if text := err.Error(); !strings.HasPrefix(text, "handle: 1 buffer with 1 byte not released\n  1 byte at 0x10, 1 holder\n") {
		t.Error(text)
	}
}

func TestRefusal(t *testing.T) {
	engine := newEngine()
	engine.SetLimit(20 << 20)
	tab := handle.New(engine, handle.Options{})
	if _, err := tab.Malloc(1<<30, 0); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Error(err)
	}
	if err := tab.Check(); err != nil {
		t.Error(err)
	}
}

// broken frees nothing.
type broken struct{}

var errBroken = errors.New("no more")

func (broken) Malloc(_, _ uint64) (uint64, error) { return 512, nil }
func (broken) Free(uint64) error                  { return errBroken }

func TestFailingFree(t *testing.T) {
	tab := handle.New(broken{}, handle.Options{})
	b := malloc(t, tab, 1)
	if err := b.Release(); !errors.Is(err, errBroken) {
		t.Errorf("the allocator's error: %v", err)
	}
	if err := errors.Join(tab.Check(), b.Release()); !errors.Is(err, handle.ErrReleased) {
		t.Error(err)
	}
}

func TestZero(t *testing.T) {
	var b handle.Buffer
	if _, err := b.Retain(); !errors.Is(err, handle.ErrReleased) {
		t.Error(err)
	}
	if err := b.Release(); !errors.Is(err, handle.ErrReleased) {
		t.Error(err)
	}
	if _, ok := (handle.Weak{}).Retain(); ok {
		t.Error("a buffer of nothing")
	}
}

func TestNoGarbage(t *testing.T) {
	if invariants.Enabled {
		t.Skip("checks of the engine make garbage")
	}
	tab := handle.New(newEngine(), handle.Options{})
	round := func() {
		b, err := tab.Malloc(4096, 0)
		if err != nil {
			t.Fatal(err)
		}
		c, err := b.Retain()
		if err != nil {
			t.Fatal(err)
		}
		w := c.Weak()
		d, _ := w.Retain()
		if err := errors.Join(b.Release(), c.Release(), d.Release()); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v objects a round", n)
	}
}

// BenchmarkRetainRelease is a pair of calls.
func BenchmarkRetainRelease(b *testing.B) {
	buf := malloc(b, handle.New(newEngine(), handle.Options{}), 4096)
	b.ReportAllocs()
	for b.Loop() {
		c, err := buf.Retain()
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Release(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMallocRelease(b *testing.B) {
	tab := handle.New(newEngine(), handle.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if err := malloc(b, tab, 4096).Release(); err != nil {
			b.Fatal(err)
		}
	}
}

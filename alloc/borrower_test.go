package alloc_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// shelf is a borrower that keeps every block it is given.
type shelf struct {
	mu   sync.Mutex
	kept []uint64
}

func (s *shelf) put(addr uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, addr)
}

func (s *shelf) Recall(out []uint64, all bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !all {
		return 0
	}
	n := copy(out, s.kept)
	s.kept = slices.Delete(s.kept, 0, n)
	return n
}

// TestBorrower: what a borrower keeps is taken back before memory grows, is
// released, or is told of.
func TestBorrower(t *testing.T) {
	s := &shelf{}
	a := alloc.New(sim.New(sim.Config{TotalMemory: 1 << 30}), alloc.WithBorrower(s))
	lend := func(size uint64) uint64 {
		l, err := a.Lender().Lend(size, 0, "")
		check(err)
		return l.Addr
	}
	for range 1000 { // more than are recalled at once
		s.put(lend(2000))
	}
	for _, tt := range []struct {
		name string
		ask  func() int64 // what is allocated by then
	}{
		{"growth", func() int64 {
			s.put(lend(40 << 20))
			lend(30 << 20)
			return a.Stats().AllocatedBytes.All.Current - 30<<20
		}},
		{"statistics", func() (n int64) {
			check(a.Lender().Recall(func(s *alloc.Stats, _ *alloc.Waiting) { n = s.AllocatedBytes.All.Current }))
			return n - 30<<20
		}},
		{"release", func() int64 { check(a.EmptyCache()); return a.Stats().AllocatedBytes.All.Current - 30<<20 }},
		{"snapshot", func() (n int64) {
			for _, g := range a.Snapshot().Segments {
				n += int64(g.AllocatedSize)
			}
			return n - 30<<20
		}},
		{"question", func() int64 { must(a.CacheInfo(1)); return a.Stats().AllocatedBytes.All.Current - 30<<20 }},
		{"trim", func() int64 { must(a.Trim(1)); return a.Stats().AllocatedBytes.All.Current - 30<<20 }},
	} {
		s.put(lend(5000))
		if n := tt.ask(); n != 0 || len(s.kept) != 0 {
			t.Errorf("%s: %d bytes and %d blocks are not back", tt.name, n, len(s.kept))
		}
	}
	s.put(12345)
	var invalid *alloc.InvalidPointerError
	if _, err := a.Lender().Lend(100<<20, 0, ""); !errors.As(err, &invalid) {
		t.Errorf("a block that cannot be taken back: %v", err)
	}
}

// TestBorrowerCrowd: however many threads put blocks back, a request that has
// room once they are back is served.
func TestBorrowerCrowd(t *testing.T) {
	const mib = 1 << 20
	s := &shelf{}
	a := alloc.New(sim.New(sim.Config{TotalMemory: 64 * mib}), alloc.WithBorrower(s), alloc.WithSettings(parse(t, "expandable_segments:True")))
	var stop atomic.Bool
	var crowd sync.WaitGroup
	for g := range uint64(4) {
		crowd.Go(func() {
			for i := uint64(1); !stop.Load(); i++ {
				l, err := a.Lender().Lend(512*(1+(g+i*7)%600), 0, "")
				if err != nil {
					t.Error(err)
					return
				}
				s.put(l.Addr)
			}
		})
	}
	for range 2000 {
		l, err := a.Lender().Lend(52*mib, 0, "")
		if err != nil {
			t.Error(err)
			break
		}
		s.put(l.Addr)
	}
	stop.Store(true)
	crowd.Wait()
}

// TestPoolDeletedMeanwhile: code that runs without the lock may delete the pool
// of the request that it is called for. The request begins again.
func TestPoolDeletedMeanwhile(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True"} {
		var a *alloc.Allocator
		var c *alloc.Capture
		dev := sim.New(sim.Config{})
		a = alloc.New(dev, alloc.WithSettings(parse(t, conf)), alloc.WithReclaimer(func() bool {
			if c != nil {
				check(c.End())
				check(c.Close())
				c = nil
			}
			return false
		}))
		c = capture(t, a, 7)
		addr := must(a.Malloc(1000, 7))
		if p := a.Segments()[0].Pool; p != (alloc.PoolID{}) {
			t.Errorf("%q: the block is in pool %v, which is gone", conf, p)
		}
		check(a.Free(addr))
		check(a.EmptyCache())
		if n := a.Stats().ReservedBytes.All.Current; n != 0 {
			t.Errorf("%q: %d bytes are left", conf, n)
		}
	}
}

// TestPoolIDsAlike: the hash of PyTorch's table looks at one half of an id.
func TestPoolIDsAlike(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{}))
	for i := range uint64(100) {
		c, err := a.BeginCapture(alloc.PoolID{First: 7, Second: i + 1}, func(uint64) bool { return true })
		check(err)
		check(a.Free(must(a.Malloc(1000, 0))))
		check(c.End())
		check(c.Release())
	}
	check(a.EmptyCache())
	if n := a.Stats().ReservedBytes.All.Current; n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// hooked is a device before whose next allocation something happens.
type hooked struct {
	*sim.Device
	before func()
}

func (h *hooked) Malloc(size, stream uint64) (uint64, error) {
	if f := h.before; f != nil {
		h.before = nil
		f()
	}
	return h.Device.Malloc(size, stream)
}

// TestBorrowerMeanwhile: what is freed into the borrower while the lock is
// released is not missed.
func TestBorrowerMeanwhile(t *testing.T) {
	const mib = 1 << 20
	s := &shelf{}
	dev := &hooked{Device: sim.New(sim.Config{TotalMemory: 100 * mib})}
	reclaim := func() bool { return false }
	a := alloc.New(dev, alloc.WithBorrower(s), alloc.WithSettings(parse(t, "release_lock_on_cudamalloc:True")),
		alloc.WithReclaimer(func() bool { return reclaim() }))
	lend := func(size uint64) uint64 {
		t.Helper()
		l, err := a.Lender().Lend(size, 0, "")
		if err != nil {
			t.Fatal(err)
		}
		return l.Addr
	}
	first := lend(60 * mib)
	dev.before = func() { s.put(first) } // by another thread, during the driver's call
	second := lend(80 * mib)
	reclaim = func() bool {
		s.put(second)
		reclaim = func() bool { return false }
		return true
	}
	if got := lend(70 * mib); got != second || a.Stats().NumAllocRetries != 1 {
		t.Errorf("got %#x, want the reclaimed %#x, and %d retries", got, second, a.Stats().NumAllocRetries)
	}
}

// TestPoolDeletedByRelease: a pool that somebody released without the lock is
// deleted by the request's own full release, or by somebody while the driver is
// asked.
func TestPoolDeletedByRelease(t *testing.T) {
	const mib = 1 << 20
	for _, conf := range []string{"", "expandable_segments:True"} {
		var a *alloc.Allocator
		var c *alloc.Capture
		a = alloc.New(sim.New(sim.Config{TotalMemory: 100 * mib}), alloc.WithSettings(parse(t, conf)), alloc.WithReclaimer(func() bool {
			if c != nil {
				check(c.End())
				check(c.Release())
				c = nil
			}
			return false
		}))
		check(a.Free(must(a.Malloc(80*mib, 0)))) // cached: the request has to release it
		c = capture(t, a, 7)
		addr := must(a.Malloc(60*mib, 7))
		if p := a.Segments()[0].Pool; p != (alloc.PoolID{}) {
			t.Errorf("%q: the block is in pool %v, which is gone", conf, p)
		}
		check(a.Free(addr))
	}

	dev := &hooked{Device: sim.New(sim.Config{TotalMemory: 100 * mib})}
	a := alloc.New(dev, alloc.WithSettings(parse(t, "release_lock_on_cudamalloc:True")))
	cached := must(a.Malloc(80*mib, 7))
	must(a.Malloc(10*mib, 7))
	check(a.Free(cached))
	c := capture(t, a, 7)
	capture(t, a, 8) // so that there is no full release
	dev.before = func() {
		check(c.End())
		check(c.Release())
		check(a.EmptyCache())
	}
	if got := must(a.Malloc(30*mib, 7)); got != cached {
		t.Errorf("got %#x, want the cached %#x", got, cached)
	}
}

// TestLayoutOutlivesReset: a reset of the statistics does not make new memory look
// like old.
func TestLayoutOutlivesReset(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{}))
	seen := map[uint64]bool{}
	for size := range uint64(4) {
		l, err := a.Lender().Lend(30<<20*(size+1), 0, "")
		check(err)
		if seen[l.Layout] {
			t.Errorf("layout %d twice", l.Layout)
		}
		seen[l.Layout] = true
		a.ResetAccumulatedStats()
	}
}

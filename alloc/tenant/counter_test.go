package tenant_test

import (
	"sync"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

const mib = 1 << 20

// counter is a device that counts on its own what was taken from it.
type counter struct {
	*sim.Device
	mu    sync.Mutex
	pages map[uint64]bool // of mapped memory, by address
	plain map[uint64]uint64
}

func newCounter(c sim.Config) *counter {
	return &counter{Device: sim.New(c), pages: map[uint64]bool{}, plain: map[uint64]uint64{}}
}

func (c *counter) Malloc(size, stream uint64) (uint64, error) {
	addr, err := c.Device.Malloc(size, stream)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.plain[addr] = size
	}
	return addr, err
}

func (c *counter) Free(addr, size uint64) error {
	err := c.Device.Free(addr, size)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.plain, addr)
	}
	return err
}

func (c *counter) Map(addr, size, granule uint64) error {
	err := c.Device.Map(addr, size, granule)
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := addr; at < addr+size && err == nil; at += 2 * mib {
		c.pages[at] = true
	}
	return err
}

func (c *counter) Unmap(addr, size, granule, stream uint64) error {
	err := c.Device.Unmap(addr, size, granule, stream)
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := addr; at < addr+size && err == nil; at += 2 * mib {
		delete(c.pages, at)
	}
	return err
}

// taken returns the bytes of whole pages that were taken.
func (c *counter) taken() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := uint64(len(c.pages)) * 2 * mib
	for _, size := range c.plain {
		sum += (size + 2*mib - 1) / (2 * mib) * (2 * mib)
	}
	return sum
}

// clock is a time that only sleeping moves.
type clock struct {
	mu      sync.Mutex
	at      time.Time
	onSleep func()
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) sleep(d time.Duration) {
	c.mu.Lock()
	c.at = c.at.Add(d)
	f := c.onSleep
	c.mu.Unlock()
	if f != nil {
		f()
	}
}

func (c *clock) options() tenant.Options { return tenant.Options{Now: c.now, Sleep: c.sleep} }

// promised says by its own reckoning whether the theorem covers a request: what
// the tenant cannot release and what the request needs at most fit into the
// guarantee.
func promised(a *alloc.Allocator, guarantee, size uint64) bool {
	s := a.Settings()
	rules := alloc.RulesOf(s, pytorch.Default)
	block := rules.Round(size)
	unit, need := uint64(2*mib), block
	switch {
	case block <= mib:
	case s.ExpandableSegments || block < 10*mib:
		unit = s.LargeSegmentSize
	}
	need = (need + unit - 1) / unit * unit
	for _, seg := range a.Segments() {
		if seg.Pool != (alloc.PoolID{}) || !seg.Expandable {
			if seg.Pool != (alloc.PoolID{}) || seg.ActiveSize > 0 {
				need += seg.TotalSize
			}
			continue
		}
		need += kept(seg)
	}
	return need <= guarantee
}

// kept is what an expandable segment keeps at most when the cache is released:
// the granules that have blocks in use. Those of large ones are as the settings
// were when the segment was made, which it does not tell.
func kept(seg alloc.Segment) (most uint64) {
	granules := []uint64{2 * mib}
	if seg.Large {
		granules = []uint64{20 * mib, 32 * mib}
	}
	for _, granule := range granules {
		used := map[uint64]bool{}
		for _, b := range seg.Blocks {
			if b.State == alloc.Inactive {
				continue
			}
			for g := (b.Address - seg.Address) / granule; g <= (b.Address+b.Size-1-seg.Address)/granule; g++ {
				used[g] = true
			}
		}
		most = max(most, uint64(len(used))*granule)
	}
	return most
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

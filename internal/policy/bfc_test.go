package policy

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// The cases of upstream's tests (gpu_bfc_allocator_test.cc of TensorFlow and
// bfc_allocator_test.cc of XLA), as far as they are about where blocks lie and what
// the statistics say.

func bfcModel(t *testing.T, region uint64) *model {
	return newModel(t, "bfc", Options{Region: func(Place) uint64 { return region }})
}

func (m *model) mustMalloc(size uint64) Block {
	m.t.Helper()
	b, err := m.malloc(size, Place{})
	if err != nil {
		m.t.Fatal(err)
	}
	return b
}

// 1,023 sizes from 1 B on take what multiples of 256 B take, and nothing overlaps.
func TestBFCNoDuplicates(t *testing.T) {
	m := bfcModel(t, 1<<30)
	var all []Block
	for size := range uint64(1023) {
		all = append(all, m.mustMalloc(size+1))
	}
	if s := m.a.Stats(); s.Given != 654336 || s.Blocks != 1023 || s.Reserved != 1<<30 {
		t.Errorf("%+v", s)
	}
	for _, b := range all {
		m.free(b)
	}
	m.compare()
	if s := m.a.Stats(); s.Given != 0 {
		t.Errorf("%+v", s)
	}
}

// Blocks of different sizes come and go without an end, and the first one is where it
// was.
func TestBFCCoalesces(t *testing.T) {
	m := bfcModel(t, 1<<30)
	b := m.mustMalloc(4096)
	first := m.live[b].addr
	m.free(b)
	var most uint64
	for range 1024 {
		var all []Block
		for _, size := range []uint64{1024 * 4, 1048576 * 8, 2048 * 8, 10485760 * 4} {
			all = append(all, m.mustMalloc(size))
		}
		most = max(most, m.a.Stats().Given)
		for _, b := range all {
			m.free(b)
		}
	}
	if want := uint64(1024*4 + 1048576*8 + 2048*8 + 10485760*4); most != want {
		t.Errorf("%d bytes are in use at most, want %d", most, want)
	}
	if b := m.mustMalloc(4096); m.live[b].addr != first {
		t.Errorf("the first block lies at %#x, then at %#x", first, m.live[b].addr)
	}
	m.compare()
}

func TestBFCRoundsTo256(t *testing.T) {
	m := bfcModel(t, 1<<30)
	if b := m.live[m.mustMalloc(4)]; b.size != 4 || b.given != 256 {
		t.Errorf("%+v", b)
	}
}

func TestBFCMemoryLimit(t *testing.T) {
	m := bfcModel(t, 2<<20)
	m.mustMalloc(256)
	if _, err := m.malloc(8<<20, Place{}); !errors.As(err, new(*OutOfMemoryError)) {
		t.Errorf("8 MiB of 2: %v", err)
	}
	m.mustMalloc(1 << 20) // what came after works
	m.compare()
}

// Half of what was allocated goes, a request that is too large fails, and the rest
// goes on.
func TestBFCAllocationsAndDeallocations(t *testing.T) {
	for _, name := range []string{"bfc", "bfc-growth"} {
		m := newModel(t, name, Options{Limit: 1 << 30})
		random := rand.New(rand.NewPCG(123, 17))
		some := func() uint64 { return max(random.Uint64N(1<<20), 100) }
		var all []Block
		for range 255 {
			all = append(all, m.mustMalloc(some()))
		}
		for i, b := range all {
			if i%2 == 1 {
				m.free(b)
			}
		}
		if _, err := m.malloc(1<<30+1, Place{}); !errors.As(err, new(*OutOfMemoryError)) {
			t.Errorf("%s: more than there is: %v", name, err)
		}
		for range 255 {
			m.mustMalloc(some())
		}
		m.compare()
	}
}

// A block is split if twice the request fits in it, or 128 MiB would be wasted.
func TestBFCSplits(t *testing.T) {
	for _, tt := range []struct{ hole, size, given uint64 }{
		{4096, 2048, 2048},                // twice
		{4096, 2304, 4096},                // less than twice
		{300 << 20, 200 << 20, 300 << 20}, // 100 MiB are wasted
		{400 << 20, 272 << 20, 272 << 20}, // 128 MiB would be
	} {
		m := bfcModel(t, 1<<30)
		hole := m.mustMalloc(tt.hole)
		m.mustMalloc(256) // keeps the hole from the rest
		m.free(hole)
		if b := m.live[m.mustMalloc(tt.size)]; b.given != tt.given {
			t.Errorf("%d of a hole of %d: got %d, want %d", tt.size, tt.hole, b.given, tt.given)
		}
	}
}

// Regions double from 2 MiB on, or to what a request needs.
func TestBFCGrowth(t *testing.T) {
	m := newModel(t, "bfc-growth", Options{})
	for _, tt := range []struct{ size, reserved uint64 }{
		{1 << 20, 2 << 20},
		{2 << 20, 6 << 20},    // the next one has 4 MiB
		{20 << 20, 38 << 20},  // 8 is too small: 32
		{30 << 20, 70 << 20},  // growing for a request counts as the doubling
		{40 << 20, 134 << 20}, // 64
	} {
		m.mustMalloc(tt.size)
		if got := m.a.Stats().Reserved; got != tt.reserved {
			t.Errorf("after %d: %d bytes are reserved, want %d", tt.size, got, tt.reserved)
		}
	}
	m.compare()
}

// Where the driver has less than is due, a tenth less is tried again and again.
func TestBFCBacksOff(t *testing.T) {
	d := sim.New(sim.Config{TotalMemory: 27 << 20})
	a := strategy(t, "bfc-growth").New(d, Options{})
	if _, err := a.Malloc(20<<20, Place{}); err != nil {
		t.Fatal(err)
	}
	// 32 MiB are due: 28.8 and 25.92 MiB follow.
	const want = 27179264 // 32 MiB x 0.9 x 0.9, rounded up to 256 B each time
	if got := a.Stats().Reserved; got != want {
		t.Errorf("%d bytes are reserved, want %d", got, want)
	}
	if _, err := a.Malloc(20<<20, Place{}); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("a second one: %v", err)
	}
}

// Free regions are released where nothing else helps.
func TestBFCReleasesRegions(t *testing.T) {
	m := newModel(t, "bfc-growth", Options{Limit: 64 << 20})
	var all []Block
	for range 4 {
		all = append(all, m.mustMalloc(8<<20))
	}
	for _, b := range all {
		m.free(b)
	}
	m.mustMalloc(60 << 20)
	m.compare()
}

// Regions that trim gives back, as at each step's end, do not grow for ever: the next
// one is twice as large each time, until twice is nothing.
func TestBFCGrowsAfterTrims(t *testing.T) {
	m := newModel(t, "bfc-growth", Options{Limit: 2 << 20})
	for range 200 {
		m.free(m.mustMalloc(4096))
		if err := m.a.Trim(); err != nil {
			t.Fatal(err)
		}
	}
	if s := m.a.Stats(); s.Peak.Reserved != 2<<20 || s.DeviceAllocs != 200 {
		t.Errorf("%+v", s)
	}
}

package policy

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// Thousands of calls of all sizes, with a plain map beside them.
func TestManyCalls(t *testing.T) {
	for _, name := range everyone {
		for _, limit := range []uint64{0, 700 << 20} {
			o := Options{Limit: limit}
			if name == "bfc" {
				o.Region = func(Place) uint64 { return 1 << 30 }
			}
			m := newModel(t, name, o)
			random := rand.New(rand.NewPCG(1, limit))
			var all []Block
			for n := range 4000 {
				switch {
				case len(all) > 0 && (random.IntN(100) < 45 || len(all) > 300):
					i := random.IntN(len(all))
					m.free(all[i])
					all[i] = all[len(all)-1]
					all = all[:len(all)-1]
				case n%997 == 0:
					if err := m.a.Trim(); err != nil {
						t.Fatal(err)
					}
				case n%501 == 0:
					if err := m.a.Synchronize(); err != nil {
						t.Fatal(err)
					}
				default:
					size := 1 + random.Uint64N(uint64(1)<<random.IntN(24))
					b, err := m.malloc(size, Place{Stream: uint64(random.IntN(2))})
					if err == nil {
						all = append(all, b)
					} else if limit == 0 && name != "bfc" || !errors.As(err, new(*OutOfMemoryError)) {
						t.Fatal(name, err)
					}
				}
				if n%200 == 0 {
					m.compare()
				}
			}
			m.compare()
		}
	}
}

// No block goes to another stream before it may.
func TestStreams(t *testing.T) {
	const size = 40 << 10
	for _, tt := range []struct {
		name           string
		before, synced bool // another stream may have it before and after a synchronisation
	}{
		{"best-fit", false, false},
		{"bfc-growth", false, false},
		{"binning", false, true},
		{"async:max", true, true},
		{"async:max:no-internal", false, true},
		{"async:max:no-internal:no-opportunistic", false, false},
	} {
		for _, synced := range []bool{false, true} {
			m := newModel(t, tt.name, Options{})
			// One piece of memory is used up, so that what is freed is all there is.
			var all []Block
			for range (32 << 20) / (40 << 10) {
				all = append(all, m.mustMalloc(size))
			}
			first := m.live[all[0]].addr
			m.free(all[0])
			if synced {
				if err := m.a.Synchronize(); err != nil {
					t.Fatal(err)
				}
			}
			b, err := m.malloc(size, Place{Stream: 1})
			if err != nil {
				t.Fatal(err)
			}
			want := tt.before
			if synced {
				want = tt.synced
			}
			if got := m.live[b].addr == first; got != want {
				t.Errorf("%s, synchronised %v: the other stream has the block: %v", tt.name, synced, got)
			}
			m.free(b)
			if own := m.mustMalloc(size); !want && m.live[own].addr != first {
				t.Errorf("%s: the own stream does not get its block back", tt.name)
			}
			m.compare()
		}
	}
}

// The fits differ in which hole they take.
func TestFits(t *testing.T) {
	for _, tt := range []struct {
		name string
		hole int
	}{{"best-fit", 2}, {"first-fit", 0}, {"next-fit", 1}} {
		m := newModel(t, tt.name, Options{})
		var all []Block
		for _, kib := range []uint64{64, 1, 32, 1, 8, 1, 8, 1} { // holes at 0, 2, 4 and 6
			all = append(all, m.mustMalloc(kib<<10))
		}
		addr := func(i int) uint64 { return m.live[all[i]].addr }
		holes := []uint64{addr(0), addr(2), addr(4), addr(6)}
		m.free(all[0])
		if tt.name == "next-fit" {
			m.mustMalloc(2047<<10 - 115<<10) // the cursor goes to the end, and round
			m.mustMalloc(60 << 10)
		}
		for _, i := range []int{2, 4, 6} {
			m.free(all[i])
		}
		if b := m.mustMalloc(8 << 10); m.live[b].addr != holes[tt.hole] {
			t.Errorf("%s takes the block at %#x of the holes at %#x", tt.name, m.live[b].addr, holes)
		}
		m.compare()
	}
}

// A range grows by granules and by what its free end lacks.
func TestRangeGrowsAtItsEnd(t *testing.T) {
	m := newModel(t, "best-fit", Options{})
	m.mustMalloc(1 << 20)
	b := m.mustMalloc(2 << 20) // 1 MiB is free at the end
	if s := m.a.Stats(); s.Reserved != 4<<20 || s.Given != 3<<20 {
		t.Errorf("%+v", s)
	}
	m.free(b)
	if err := m.a.Trim(); err != nil || m.a.Stats().Reserved != 2<<20 {
		t.Errorf("%+v, %v", m.a.Stats(), err)
	}
}

func TestBuddy(t *testing.T) {
	m := newModel(t, "buddy", Options{})
	low := m.live[m.mustMalloc(1)]
	large := m.live[m.mustMalloc(100<<20)]
	if low.given != 512 || large.given != 128<<20 || large.addr-low.addr != 128<<20 || m.a.Stats().Reserved != 130<<20 {
		t.Errorf("%+v, %+v, %+v", low, large, m.a.Stats())
	}
	if b := m.live[m.mustMalloc(3<<20)]; b.addr-low.addr != 4<<20 { // between them
		t.Errorf("%+v", b)
	}
	m.compare()
}

func TestSlabClasses(t *testing.T) {
	last := -1
	for size := uint64(1); size <= mostSlotted; size += 257 {
		class, slot := classOf(size)
		if slot < size || size > 2048 && slot > size+size/4+unit || class < last || class >= slabClasses {
			t.Fatalf("%d bytes: class %d of %d", size, class, slot)
		}
		last = class
	}
	if class, slot := classOf(mostSlotted); slot != mostSlotted || class != slabClasses-1 {
		t.Errorf("1 MiB: class %d of %d", class, slot)
	}
}

// Blocks above the bins go straight to the driver, and no more than 6 MiB are kept.
func TestBinning(t *testing.T) {
	m := newModel(t, "binning", Options{})
	for _, tt := range []struct{ size, given uint64 }{
		{1, 512},
		{513, 4096},
		{1 << 20, 2 << 20},
		{2<<20 + 1, 2<<20 + 1},
	} {
		b := m.mustMalloc(tt.size)
		if m.live[b].given != tt.given {
			t.Errorf("%d bytes got %d, want %d", tt.size, m.live[b].given, tt.given)
		}
		m.free(b)
	}
	if s := m.a.Stats(); s.DeviceAllocs != 4 || s.DeviceFrees != 1 {
		t.Errorf("%+v", s)
	}
	var all []Block
	for range 4 {
		all = append(all, m.mustMalloc(2<<20))
	}
	for _, b := range all {
		m.free(b)
	}
	if s := m.a.Stats(); s.Reserved != 6<<20 { // two large ones, and a page of small ones
		t.Errorf("%d bytes are kept", s.Reserved)
	}
	m.compare()
}

// A pool gives back what exceeds its threshold when the device synchronises.
func TestAsyncReleases(t *testing.T) {
	for name, want := range map[string]uint64{"async:0": 0, "async:64MiB": 64 << 20, "async:max": 96 << 20} {
		m := newModel(t, name, Options{})
		var all []Block
		for range 3 {
			all = append(all, m.mustMalloc(30<<20))
		}
		for _, b := range all {
			m.free(b)
		}
		if got := m.a.Stats().Reserved; got != 96<<20 {
			t.Errorf("%s: %d bytes before", name, got)
		}
		if err := m.a.Synchronize(); err != nil || m.a.Stats().Reserved != want {
			t.Errorf("%s: %d bytes after, %v", name, m.a.Stats().Reserved, err)
		}
		m.compare()
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", "worst-fit", "async:x", "async:max:yes", "best-fit:1"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is a policy", bad)
		}
	}
	if s := strategy(t, "async"); s.Parameters["release_threshold_bytes"] != "max" {
		t.Errorf("%v", s.Parameters)
	}
}

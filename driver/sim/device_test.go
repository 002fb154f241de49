package sim

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
)

const mib = 1 << 20

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func free(t testing.TB, d *Device) uint64 {
	t.Helper()
	n, total, err := d.MemInfo()
	if err != nil || total != d.TotalMemory() {
		t.Fatalf("mem info: total %d, %v", total, err)
	}
	return n
}

func TestDefaults(t *testing.T) {
	d := New(Config{})
	if d.TotalMemory() != 80<<30 || free(t, d) != 80<<30 || d.Held() != 0 {
		t.Errorf("total %d, free %d, held %d", d.TotalMemory(), free(t, d), d.Held())
	}
	if p, err := d.Processes(); p != nil || err != nil {
		t.Errorf("processes %v, %v", p, err)
	}
	want := []driver.Process{{PID: 7, Used: 5, Self: true}}
	if p, err := New(Config{Processes: want}).Processes(); err != nil || !slices.Equal(p, want) {
		t.Errorf("processes %v, %v", p, err)
	}
	if n := free(t, New(Config{TotalMemory: 5, Unusable: 9})); n != 0 {
		t.Errorf("more unusable than there is: %d free", n)
	}
}

// TestPhysicalMemory follows spec 14 item 29: every malloc costs whole pages.
func TestPhysicalMemory(t *testing.T) {
	d := New(Config{TotalMemory: 64 * mib, Unusable: 3 * mib})
	if n := free(t, d); n != 61*mib {
		t.Fatalf("%d free", n)
	}
	for _, tt := range []struct{ size, cost uint64 }{{1, 2}, {3 * mib, 4}, {33 * mib, 34}, {20 * mib, 20}} {
		before := free(t, d)
		addr := must[uint64](t)(d.Malloc(tt.size, 0))
		if cost := before - free(t, d); cost != tt.cost*mib || addr%page != 0 {
			t.Errorf("malloc of %d at %#x costs %d", tt.size, addr, cost)
		}
	}
	if _, err := d.Malloc(1, 0); !errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, ErrMisuse) {
		t.Errorf("1 MiB free cannot hold a page: %v", err)
	}
	for _, size := range []uint64{61 * mib, math.MaxUint64, math.MaxUint64 - page} {
		if _, err := d.Malloc(size, 0); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("malloc of %d: %v", size, err)
		}
	}
	if d.Held() != 60*mib || free(t, d) != mib {
		t.Errorf("held %d, free %d", d.Held(), free(t, d))
	}
}

func TestMap(t *testing.T) {
	d := New(Config{TotalMemory: 100 * mib})
	base := must[uint64](t)(d.Reserve(120*mib, 0))
	if base != reserveBase || d.Held() != 0 {
		t.Fatalf("reserved at %#x, held %d", base, d.Held())
	}
	ok(t, d.Map(base, 40*mib, 20*mib))
	ok(t, d.Map(base+80*mib, 20*mib, 20*mib))
	ok(t, d.Map(base+40*mib, 40*mib, 20*mib))
	if d.Held() != 100*mib || free(t, d) != 0 {
		t.Errorf("held %d", d.Held())
	}
	if err := d.Map(base+100*mib, 20*mib, 20*mib); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("map without memory: %v", err)
	}
	ok(t, d.Unmap(base+20*mib, 80*mib, 20*mib, 0)) // of three calls of Map
	ok(t, d.Unmap(base, 20*mib, 20*mib, 0))
	ok(t, d.Map(base, 2*mib, 2*mib)) // another granule, with nothing mapped
	ok(t, d.Unmap(base, 2*mib, 2*mib, 0))
	ok(t, d.Unreserve(base, 120*mib))
	if d.Held() != 0 {
		t.Errorf("held %d in the end", d.Held())
	}
}

// TestReserveAddresses has the sizes and addresses of a recording on an H200.
func TestReserveAddresses(t *testing.T) {
	const large, small = 168883650560, 168875261952
	d := New(Config{})
	for i, tt := range []struct{ size, want uint64 }{
		{large, 0x302000000}, {small, 0x2a56000000}, {large, 0x51a8000000}, {small, 0x78fc000000}, {small, 0xa04e000000}, {large, 0xc7a0000000},
	} {
		if got := must[uint64](t)(d.Reserve(tt.size, 0)); got != tt.want {
			t.Errorf("reservation %d at %#x, want %#x", i, got, tt.want)
		}
	}
	ok(t, d.Unreserve(0x2a56000000, small))
	if got := must[uint64](t)(d.Reserve(large, 0)); got <= 0xc7a0000000 {
		t.Errorf("a larger range than the one given back is at %#x", got)
	}
	if got := must[uint64](t)(d.Reserve(small, 0)); got != 0x2a56000000 {
		t.Errorf("the range given back is not used, but %#x", got)
	}
	for _, size := range []uint64{reserveTop, math.MaxUint64} {
		if _, err := d.Reserve(size, 0); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("reserve of %d: %v", size, err)
		}
	}
}

// TestMisuse: every call is refused with the right error and changes nothing.
func TestMisuse(t *testing.T) {
	d := New(Config{Events: Manual})
	seg := must[uint64](t)(d.Malloc(20*mib, 0))
	gone := must[uint64](t)(d.Malloc(20*mib, 0))
	ok(t, d.Free(gone, 20*mib))
	r := must[uint64](t)(d.Reserve(100*mib, 0))
	idle := must[uint64](t)(d.Reserve(100*mib, 0))
	ok(t, d.Map(r+20*mib, 40*mib, 20*mib))
	waited := must[driver.Event](t)(d.RecordEvent(0, seg))
	ok(t, d.WaitEvent(waited))
	state := func() any {
		return []any{d.held, d.segments.segments.Len(), d.ranges.live[0].mapped, len(d.ranges.live)}
	}
	before := state()

	for name, call := range map[string]func() error{
		"malloc of nothing":         func() error { _, err := d.Malloc(0, 0); return err },
		"free of unknown address":   func() error { return d.Free(seg+page, 20*mib) },
		"free of wrong size":        func() error { return d.Free(seg, 22*mib) },
		"free twice":                func() error { return d.Free(gone, 20*mib) },
		"free of reservation":       func() error { return d.Free(r, 100*mib) },
		"reserve of nothing":        func() error { _, err := d.Reserve(0, 0); return err },
		"unreserve with memory":     func() error { return d.Unreserve(r, 100*mib) },
		"unreserve of wrong size":   func() error { return d.Unreserve(idle, 98*mib) },
		"unreserve of the middle":   func() error { return d.Unreserve(idle+page, 98*mib) },
		"unreserve of unknown":      func() error { return d.Unreserve(seg, 20*mib) },
		"map over mapped":           func() error { return d.Map(r, 40*mib, 20*mib) },
		"map outside":               func() error { return d.Map(seg, 20*mib, 20*mib) },
		"map beyond the end":        func() error { return d.Map(r+80*mib, 40*mib, 20*mib) },
		"map beyond all":            func() error { return d.Map(r+80*mib, math.MaxUint64-20*mib+1, 20*mib) },
		"map unaligned":             func() error { return d.Map(r+70*mib, 20*mib, 20*mib) },
		"map part of a granule":     func() error { return d.Map(r+60*mib, 30*mib, 20*mib) },
		"map nothing":               func() error { return d.Map(r+60*mib, 0, 20*mib) },
		"map without granule":       func() error { return d.Map(r+60*mib, 20*mib, 0) },
		"map with other granule":    func() error { return d.Map(r+60*mib, 20*mib, 2*mib) },
		"unmap partly mapped":       func() error { return d.Unmap(r, 40*mib, 20*mib, 0) },
		"unmap what is not mapped":  func() error { return d.Unmap(r+60*mib, 20*mib, 20*mib, 0) },
		"unmap unaligned":           func() error { return d.Unmap(r+30*mib, 20*mib, 20*mib, 0) },
		"event never recorded":      func() error { _, err := d.EventDone(99); return err },
		"event done and gone":       func() error { _, err := d.EventDone(waited); return err },
		"wait for event gone":       func() error { return d.WaitEvent(waited) },
		"complete through the gone": func() error { return d.CompleteThrough(waited) },
	} {
		if err := call(); !errors.Is(err, ErrMisuse) || errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%s: %v", name, err)
		}
		if after := state(); !reflect.DeepEqual(after, before) {
			t.Fatalf("%s: state %v, was %v", name, after, before)
		}
	}

	// What PyTorch does and the driver refuses, spec 6.1.
	err := d.Map(idle, 33*mib, 33*mib)
	if !errors.Is(err, ErrInvalidArgument) || errors.Is(err, ErrMisuse) || errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("odd granule: %v", err)
	}
}

// TestDeviceProperty runs random calls against a plain list of live ranges.
func TestDeviceProperty(t *testing.T) {
	type region struct{ start, size, cost, granule uint64 } // granule 0: plain
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		d := New(Config{TotalMemory: 2 << 30})
		var live []region
		var want uint64
		for range 2000 {
			switch i := rng.IntN(5); {
			case i < 2:
				size := 1 + rng.Uint64N(100*mib)
				cost := roundUp(size, page)
				addr, err := d.Malloc(size, 0)
				if fits := want+cost <= 2<<30; fits != (err == nil) {
					t.Fatalf("seed %d: malloc of %d with %d held: %v", seed, size, want, err)
				}
				if err == nil {
					live, want = append(live, region{addr, size, cost, 0}), want+cost
				}
			case i < 3:
				size := (1 + rng.Uint64N(4)) * 20 * mib
				addr := must[uint64](t)(d.Reserve(size, 0))
				if err := d.Map(addr, size, 20*mib); err == nil {
					live, want = append(live, region{addr, size, size, 20 * mib}), want+size
				} else if !errors.Is(err, driver.ErrOutOfMemory) || want+size <= 2<<30 {
					t.Fatalf("seed %d: map: %v", seed, err)
				} else {
					ok(t, d.Unreserve(addr, size))
				}
			case len(live) > 0:
				i := rng.IntN(len(live))
				if r := live[i]; r.granule == 0 {
					ok(t, d.Free(r.start, r.size))
				} else {
					ok(t, d.Unmap(r.start, r.size, r.granule, 0))
					ok(t, d.Unreserve(r.start, r.size))
				}
				want -= live[i].cost
				live = slices.Delete(live, i, i+1)
			}
			if d.Held() != want {
				t.Fatalf("seed %d: held %d, want %d", seed, d.Held(), want)
			}
		}
		slices.SortFunc(live, func(a, b region) int { return int(int64(a.start) - int64(b.start)) })
		for i := 1; i < len(live); i++ {
			if live[i-1].start+live[i-1].cost > live[i].start {
				t.Fatalf("seed %d: %+v overlaps %+v", seed, live[i-1], live[i])
			}
		}
	}
}

func TestDeterministic(t *testing.T) {
	run := func() (addrs []uint64) {
		rng := rand.New(rand.NewPCG(3, 3))
		d := New(Config{})
		live := map[int]uint64{}
		for range 5000 {
			k := rng.IntN(100)
			if addr, found := live[k]; found {
				ok(t, d.Free(addr, uint64(k+1)*mib))
				delete(live, k)
			} else {
				live[k] = must[uint64](t)(d.Malloc(uint64(k+1)*mib, 0))
				addrs = append(addrs, live[k])
			}
		}
		return addrs
	}
	if !slices.Equal(run(), run()) {
		t.Error("two equal runs got different addresses")
	}
}

func TestConcurrentUse(t *testing.T) {
	d := New(Config{})
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			for i := range uint64(200) {
				addr, err := d.Malloc((g+i)%50*mib+1, g)
				if err != nil {
					t.Error(err)
					return
				}
				ev, err := d.RecordEvent(g, addr)
				if err == nil {
					err = d.WaitEvent(ev)
				}
				if err = errors.Join(err, d.Free(addr, (g+i)%50*mib+1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if calls := d.Calls(); d.Held() != 0 || calls[Malloc] != 800 || calls.Total() != 4*800 {
		t.Errorf("held %d after %v", d.Held(), calls)
	}
}

// BenchmarkMallocFree keeps many segments of mixed sizes alive.
func BenchmarkMallocFree(b *testing.B) {
	for name, sizes := range map[string][]uint64{
		"small": {2 * mib}, "mixed": {2 * mib, 20 * mib, 2 * mib, 64 * mib, 22 * mib, 2 * mib, 130 * mib},
	} {
		b.Run(name, func(b *testing.B) {
			d := New(Config{TotalMemory: 1 << 40})
			rng := rand.New(rand.NewPCG(1, 1))
			type segment struct{ addr, size uint64 }
			live := make([]segment, 10000)
			i := 0
			for b.Loop() {
				s := &live[rng.IntN(len(live))]
				if s.size != 0 {
					ok(b, d.Free(s.addr, s.size))
				}
				s.size = sizes[i%len(sizes)]
				s.addr = must[uint64](b)(d.Malloc(s.size, 0))
				i++
			}
		})
	}
}

// A mirrored device hands out the same segments in the reverse order of
// addresses, and takes them back.
func TestMirrored(t *testing.T) {
	const mib = 1 << 20
	plain, mirrored := New(Config{}), New(Config{Mirrored: true})
	sizes := []uint64{2 * mib, 20 * mib, 33 * mib, 7 * mib, 2 * mib}
	var a, b []uint64
	for _, size := range sizes {
		x, err := plain.Malloc(size, 0)
		if err != nil {
			t.Fatal(err)
		}
		y, err := mirrored.Malloc(size, 0)
		if err != nil {
			t.Fatal(err)
		}
		a, b = append(a, x), append(b, y)
	}
	for i := range a {
		for j := range a {
			if (a[i] < a[j]) != (b[i] > b[j]) {
				t.Errorf("segments %d and %d are at %#x, %#x and mirrored at %#x, %#x", i, j, a[i], a[j], b[i], b[j])
			}
		}
	}
	for i, size := range sizes {
		if err := mirrored.Free(b[i], size); err != nil {
			t.Error(err)
		}
	}
	if mirrored.Held() != 0 {
		t.Errorf("%d bytes are held", mirrored.Held())
	}
}

// Addresses of 57 bits come after those of 47.
func TestWide(t *testing.T) {
	const size = 1 << 40
	narrow, wide := New(Config{}), New(Config{Wide: true})
	fits := 0
	for ; ; fits++ {
		addr, err := narrow.Reserve(size, 0)
		if err != nil {
			break
		}
		if got := must[uint64](t)(wide.Reserve(size, 0)); got != addr {
			t.Fatalf("reservation %d at %#x, want %#x", fits, got, addr)
		}
	}
	for i := range uint64(5000) {
		if got := must[uint64](t)(wide.Reserve(size, 0)); got != reserveFar+i*size {
			t.Fatalf("reservation %d at %#x", fits+int(i), got)
		}
	}
	ok(t, wide.Unreserve(reserveBase, size))
	ok(t, wide.Unreserve(reserveFar, size))
	for _, want := range []uint64{reserveBase, reserveFar} {
		if got := must[uint64](t)(wide.Reserve(size, 0)); got != want {
			t.Errorf("what was given back is not used, but %#x", got)
		}
	}
	if _, err := wide.Reserve(math.MaxUint64, 0); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
}

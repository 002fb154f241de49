package alloc_test

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// The benchmarks mirror tools/bench/torch/torch_alloc.cpp: the same sizes and the
// same order, so that the two can be compared on one machine.

func newBenchAllocator() *alloc.Allocator {
	return alloc.New(sim.New(sim.Config{TotalMemory: 4 << 40}))
}

// modes runs a benchmark with the history off, then on with a full ring.
func modes(b *testing.B, run func(b *testing.B, a *alloc.Allocator)) {
	b.Run("history=off", func(b *testing.B) { run(b, newBenchAllocator()) })
	b.Run("history=on", func(b *testing.B) {
		a := newBenchAllocator()
		a.RecordHistory(alloc.HistoryOptions{MaxEntries: 100_000})
		run(b, a)
	})
}

func must(addr uint64, err error) uint64 {
	if err != nil {
		panic(err)
	}
	return addr
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func BenchmarkHotPair(b *testing.B) {
	modes(b, func(b *testing.B, a *alloc.Allocator) {
		check(a.Free(must(a.Malloc(4096, 0))))
		b.ReportAllocs()
		for b.Loop() {
			addr, err := a.Malloc(4096, 0)
			if err != nil {
				b.Fatal(err)
			}
			if err := a.Free(addr); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// random is xorshift64*, as in torch_alloc.cpp.
type random uint64

func newRandom() random { return 0x9E3779B97F4A7C15 }

func (x *random) next() uint64 {
	*x ^= *x >> 12
	*x ^= *x << 25
	*x ^= *x >> 27
	return uint64(*x) * 0x2545F4914F6CDD1D
}

// BenchmarkWindow replaces random blocks among many live ones; sizes are
// 2^uniform(9, top). The last case has the sizes that fit a real GPU with so
// many blocks.
func BenchmarkWindow(b *testing.B) {
	for _, w := range []struct {
		live uint64
		top  float64
		name string
	}{{512, 25, "live=512"}, {65536, 25, "live=65536"}, {65536, 20, "live=65536-small"}} {
		b.Run(w.name, func(b *testing.B) {
			modes(b, func(b *testing.B, a *alloc.Allocator) {
				r := newRandom()
				sizes := make([]uint64, 1<<16)
				for i := range sizes {
					u := float64(r.next()>>11) / (1 << 53)
					sizes[i] = uint64(math.Pow(2, 9+(w.top-9)*u))
				}
				slots := make([]uint64, w.live)
				for i := range slots {
					slots[i] = must(a.Malloc(sizes[i%len(sizes)], 0))
				}
				replace := func() {
					n := r.next()
					slot := &slots[n>>16%w.live]
					check(a.Free(*slot))
					*slot = must(a.Malloc(sizes[n%(1<<16)], 0))
				}
				for range 200_000 {
					replace()
				}
				b.ReportAllocs()
				for b.Loop() {
					replace()
				}
			})
		})
	}
}

// BenchmarkEqual allocates 100,000 equal blocks, frees every second one, fills
// the holes again and frees all: 300,000 operations.
func BenchmarkEqual(b *testing.B) {
	modes(b, func(b *testing.B, a *alloc.Allocator) {
		const n = 100_000
		addrs := make([]uint64, n)
		round := func() {
			for i := range addrs {
				addrs[i] = must(a.Malloc(4096, 0))
			}
			for i := 1; i < n; i += 2 {
				check(a.Free(addrs[i]))
			}
			for i := 1; i < n; i += 2 {
				addrs[i] = must(a.Malloc(4096, 0))
			}
			for i := range addrs {
				check(a.Free(addrs[i]))
			}
		}
		round()
		b.ReportAllocs()
		for b.Loop() {
			round()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(3*n), "ns/operation")
	})
}

// BenchmarkEqualHoles has 50,000 holes between equal blocks; random blocks are
// freed and allocated again, each time from the lowest hole.
func BenchmarkEqualHoles(b *testing.B) {
	modes(b, func(b *testing.B, a *alloc.Allocator) {
		const n = 100_000
		addrs := make([]uint64, n)
		for i := range addrs {
			addrs[i] = must(a.Malloc(4096, 0))
		}
		for i := 1; i < n; i += 2 {
			check(a.Free(addrs[i]))
		}
		r := newRandom()
		replace := func() {
			slot := &addrs[r.next()>>16%(n/2)*2]
			check(a.Free(*slot))
			*slot = must(a.Malloc(4096, 0))
		}
		for range 100_000 {
			replace()
		}
		b.ReportAllocs()
		for b.Loop() {
			replace()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/operation")
	})
}

// BenchmarkGoroutines has several goroutines do hot pairs on one allocator;
// ns/op is the time per pair over all of them.
func BenchmarkGoroutines(b *testing.B) {
	for _, n := range []int{1, 2, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			modes(b, func(b *testing.B, a *alloc.Allocator) {
				var start, done sync.WaitGroup
				start.Add(1)
				for g := range n {
					pairs := b.N / n
					if g == 0 {
						pairs += b.N % n
					}
					done.Go(func() {
						start.Wait()
						for range pairs {
							check(a.Free(must(a.Malloc(4096, 0))))
						}
					})
				}
				b.ReportAllocs()
				b.ResetTimer()
				start.Done()
				done.Wait()
			})
		})
	}
}

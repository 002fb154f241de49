package alloc_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// The answer is the largest free block that a snapshot shows, whatever the
// pool and the stream, if nothing larger was guessed or is free on the device.
func TestCacheInfo(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True"} {
		r := rand.New(rand.NewPCG(7, 8))
		dev := sim.New(sim.Config{TotalMemory: 1 << 30, Events: sim.Manual})
		a := alloc.New(dev, alloc.WithSettings(parse(t, conf)))
		pool, err := a.NewMemPool(alloc.MemPoolOptions{})
		check(err)
		var live []uint64
		private := 0
		for i := range 400 {
			switch {
			case len(live) == 0 || r.IntN(2) == 0:
				size := 1 + r.Uint64N(1<<(1+r.Uint64N(25)))
				if i%10 == 0 {
					check(pool.Begin(0))
					live = append(live, must(a.Malloc(size, 0)))
					check(pool.End())
				} else {
					live = append(live, must(a.Malloc(size, r.Uint64N(2))))
				}
			default:
				k := r.IntN(len(live))
				check(a.Free(live[k]))
				live = append(live[:k], live[k+1:]...)
			}
			var want uint64
			var of alloc.PoolID
			for _, s := range a.Segments() {
				for _, b := range s.Blocks {
					if b.State == alloc.Inactive && b.Size > want {
						want, of = b.Size, s.Pool
					}
				}
			}
			if of != (alloc.PoolID{}) {
				private++
			}
			free, _, _ := dev.MemInfo()
			for _, tt := range []struct{ guess, want uint64 }{{1, max(1, want)}, {want + 1, want + 1}, {0, max(free, want)}} {
				if got, err := a.CacheInfo(tt.guess); got != tt.want || err != nil {
					t.Fatalf("%q, operation %d, guess %d: %d, %v; want %d", conf, i, tt.guess, got, err, tt.want)
				}
			}
		}
		if private == 0 {
			t.Errorf("%q: the largest was never of a private pool", conf)
		}
	}
}

func TestCacheInfoOfDevice(t *testing.T) {
	dev := sim.New(sim.Config{TotalMemory: 100 * mib})
	a := alloc.New(dev)
	check(a.Free(must(a.Malloc(60*mib, 0))))
	if got, err := a.CacheInfo(0); got != 60*mib || err != nil {
		t.Errorf("40 MiB free and a block of 60 MiB: %d, %v", got, err)
	}
	check(a.EmptyCache())
	broken := errors.New("the driver is broken")
	dev.FailNth(1, broken)
	if _, err := a.CacheInfo(0); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if got, err := a.CacheInfo(0); got != 100*mib || err != nil {
		t.Errorf("an empty device: %d, %v", got, err)
	}
	if got, err := a.CacheInfo(5); got != 5 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

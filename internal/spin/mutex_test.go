package spin

import (
	"sync"
	"testing"
	"time"
)

// TestExclusion: no increment is lost, with short and with long waits.
func TestExclusion(t *testing.T) {
	var (
		m    Mutex
		n    int
		done sync.WaitGroup
	)
	for g := range 8 {
		done.Go(func() {
			for i := range 2000 {
				m.Lock()
				n++
				if g == 0 && i%500 == 0 {
					time.Sleep(time.Millisecond) // longer than anybody spins
				}
				m.Unlock()
			}
		})
	}
	done.Wait()
	if n != 16000 {
		t.Errorf("%d increments, want 16000", n)
	}
}

func BenchmarkContended(b *testing.B) {
	run := func(name string, l sync.Locker) {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(4)
			var work uint64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.Lock()
					for range 100 { // about 35 ns
						work++
					}
					l.Unlock()
				}
			})
		})
	}
	run("spin", new(Mutex))
	run("sync", new(sync.Mutex))
}

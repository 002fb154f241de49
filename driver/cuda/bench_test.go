//go:build linux

package cuda_test

import (
	"testing"

	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
)

// TestHotCallsMakeNoGarbage: what the engine calls all the time allocates
// nothing on Go's heap, whether the context is current or not.
func TestHotCallsMakeNoGarbage(t *testing.T) {
	if raced {
		t.Skip("under the race detector sync.Pool forgets on purpose")
	}
	_, d := newDevice(t, "FAKECUDA_LAZY=1")
	ev := must(d.RecordEvent(0, 0))
	base := must(d.Reserve(2*mib, 0))
	calls := map[string]func(){
		"RecordEvent and WaitEvent": func() { check(t, d.WaitEvent(must(d.RecordEvent(0, 0)))) },
		"EventDone":                 func() { must(d.EventDone(ev)) },
		"MemInfo":                   func() { free(t, d) },
		"Malloc and Free":           func() { check(t, d.Free(must(d.Malloc(512, 0)), 512)) },
		"Map and Unmap":             func() { check(t, d.Map(base, 2*mib, 2*mib)); check(t, d.Unmap(base, 2*mib, 2*mib, 0)) },
	}
	measure := func(where string) {
		for name, f := range calls {
			f()
			// The event of EventDone must not become done here.
			if n := testing.AllocsPerRun(100, f); n != 0 {
				t.Errorf("%s, %s: %v allocations", name, where, n)
			}
			ev = must(d.RecordEvent(0, 0))
		}
	}
	measure("context pushed")
	release := must(d.Bind())
	measure("context current")
	release()
	check(t, d.Unreserve(base, 2*mib))
}

// The costs on Go's side: the stand-in does next to nothing.
func BenchmarkCalls(b *testing.B) {
	d := cudatest.Device(b, cudatest.Use(b))
	run := func(b *testing.B) {
		b.Run("MemInfo", func(b *testing.B) {
			for b.Loop() {
				_, _, _ = d.MemInfo()
			}
		})
		b.Run("RecordEvent+EventDone", func(b *testing.B) {
			for b.Loop() {
				ev, _ := d.RecordEvent(0, 0)
				_, _ = d.EventDone(ev)
			}
		})
	}
	b.Run("pushed", run)
	b.Run("current", func(b *testing.B) {
		release := must(d.Bind())
		defer release()
		run(b)
	})
}

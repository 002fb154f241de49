package main

import (
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// keepLimit has the limit of memory, and what was read, be as before after the test.
func keepLimit(t *testing.T) {
	t.Helper()
	if os.Getenv("GOMEMLIMIT") != "" {
		t.Setenv("GOMEMLIMIT", "")
	}
	limit, read := debug.SetMemoryLimit(-1), inputBytes.Load()
	inputBytes.Store(0)
	t.Cleanup(func() {
		inputBytes.Store(read)
		debug.SetMemoryLimit(limit)
	})
}

// Reading a file has the heap limited by its bytes, decompressed, and by those of all
// files before it; a limit that the user set stays.
func TestLimitMemory(t *testing.T) {
	keepLimit(t)
	const file = "../../testdata/variety/graphs.pickle.gz"
	packed, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for range 2 {
		f, err := readSnapshot(t.Context(), stdio{in: strings.NewReader(""), out: io.Discard, err: io.Discard}, file)
		if err != nil {
			t.Fatal(err)
		}
		total += f.Bytes
		if got := debug.SetMemoryLimit(-1); f.Bytes <= packed.Size() || got != heapBase+2*total {
			t.Errorf("the limit is %d after %d bytes, of %d", got, total, f.Bytes)
		}
	}
	const own = 3 << 30
	debug.SetMemoryLimit(own)
	t.Setenv("GOMEMLIMIT", "3GiB")
	limitMemory(1 << 20)
	if got := debug.SetMemoryLimit(-1); got != own {
		t.Errorf("the user's limit became %d", got)
	}
}

// kept is what a test has in use.
var kept [][]byte

// Garbage is collected before the heap comes to the limit, however much there may be
// by the percentage; as long as the heap is far below, the limit changes nothing.
func TestLimitCollects(t *testing.T) {
	keepLimit(t)
	t.Cleanup(func() { kept = nil })
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	// work makes mib MiB of garbage beside 60 in use, and returns the most that the heap
	// was and how often garbage was collected.
	work := func(mib int) (most uint64, collected uint32) {
		var m runtime.MemStats
		kept = kept[:0]
		for range 60 {
			kept = append(kept, make([]byte, 1<<20))
		}
		runtime.GC()
		runtime.ReadMemStats(&m)
		before := m.NumGC
		for i := range mib {
			kept[i%len(kept)] = make([]byte, 1<<20)
			if i%8 == 0 {
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
		runtime.ReadMemStats(&m)
		return most, m.NumGC - before
	}
	limitMemory(0)
	// Without the limit it would come to 660 MiB. A busy machine collects late.
	if most, _ := work(700); most > heapBase*3/2 {
		t.Errorf("the heap came to %d MiB, the limit is %d", most>>20, heapBase>>20)
	}
	limitMemory(1 << 30)
	if most, collected := work(300); collected > 0 {
		t.Errorf("garbage was collected %d times in a heap of %d MiB, far below the limit", collected, most>>20)
	}
}

package main

import (
	"io"
	"os"
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

package costs

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
	"github.com/ashlar-mem/ashlar/internal/test/documented"
)

func TestFieldsAreDocumented(t *testing.T) {
	documented.Check(t, "../../../docs/json.md", reflect.TypeFor[Document](), 15, "host costs", "host run")
}

func TestRead(t *testing.T) {
	var m Malloc
	for _, line := range []string{"class 1 24", "class 25 40", "bytes 100 112.5", "time 100 2 33.4", "thread 1000"} {
		if err := m.read(strings.Fields(line)); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	for size, want := range map[uint64]uint64{1: 24, 24: 24, 25: 40, 40: 40, 41: 0, 0: 0} {
		if got, ok := m.Usable(size); got != want || ok != (want > 0) {
			t.Errorf("%d bytes: %d usable, %v; want %d", size, got, ok, want)
		}
	}
	if ns, ok := m.NS(100, 2); !ok || ns != 33.4 || *m.IdleThread != 1000 || m.Sizes[0].Each != 112.5 {
		t.Errorf("%+v", m)
	}
	if _, ok := m.NS(100, 1); ok {
		t.Error("a time that was not measured")
	}
	for _, line := range []string{"", "class", "class 1", "class 1 x", "bytes -1 2", "hello 1 2", "time 1 2"} {
		if err := m.read(strings.Fields(line)); err == nil {
			t.Errorf("%q is read", line)
		}
	}
}

// What holds for every malloc: a block is no smaller than the request, and takes at
// least what it can use of the pages.
func TestMeasure(t *testing.T) {
	if runtime.GOOS != "linux" || variant.Compiler() == "" {
		t.Skip("this needs Linux and a C compiler")
	}
	scratch := t.TempDir()
	chosen, err := variant.Choose("jemalloc")
	if err != nil {
		t.Fatal(err)
	}
	ready, _ := variant.Search(t.Context(), chosen, scratch)
	d, err := Measure(t.Context(), scratch, ready, Options{Threads: []int{1, 2}, Each: time.Millisecond}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range d.Mallocs {
		if m.Error != nil {
			t.Fatalf("%s: %s", m.Variant, *m.Error)
		}
		if len(m.Sizes) != 10 || len(m.Times) != 20 || m.IdleThread == nil || len(m.Classes) < 20 {
			t.Errorf("%s: %d sizes, %d times, %d classes", m.Variant, len(m.Sizes), len(m.Times), len(m.Classes))
		}
		if !slices.IsSortedFunc(m.Classes, func(a, b Class) int { return int(a.From) - int(b.From) }) {
			t.Errorf("%s: classes are not in order", m.Variant)
		}
		for _, s := range m.Sizes {
			if s.Each < 0.9*float64(s.Size) || s.Each > 4*float64(s.Size) {
				t.Errorf("%s: a block of %d bytes takes %.0f", m.Variant, s.Size, s.Each)
			}
		}
		if u, ok := m.Usable(513); !ok || u < 513 {
			t.Errorf("%s: 513 bytes can use %d", m.Variant, u)
		}
	}
}

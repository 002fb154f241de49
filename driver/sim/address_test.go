package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
)

// TestRecordedAddresses replays the plain segments of recordings: every address
// must be the recorded one, but for where the address space begins.
func TestRecordedAddresses(t *testing.T) {
	files, err := filepath.Glob("testdata/segments-*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := newAddressSpace()
			var shift uint64
			n := 0
			for line := range strings.Lines(string(text)) {
				var size, addr uint64
				switch line[0] {
				case 'm':
					if _, err := fmt.Sscanf(line, "m %d %x", &size, &addr); err != nil {
						t.Fatal(line, err)
					}
					got, ok := a.take(size)
					if n == 0 {
						shift = got - addr
					}
					if n++; !ok || got != addr+shift {
						t.Fatalf("segment %d of %d bytes at %#x, recorded %#x", n, size, got-shift, addr)
					}
				case 'f':
					if _, err := fmt.Sscanf(line, "f %x", &addr); err != nil {
						t.Fatal(line, err)
					}
					a.giveBack(addr + shift)
				}
			}
			if n < 50 || shift%chunkUnit != 0 {
				t.Errorf("%d segments, shifted by %#x", n, shift)
			}
			checkSpace(t, &a)
		})
	}
}

// checkSpace checks that segments, gaps, holes and the context tile the
// address space without overlap, and that the indices agree with them.
func checkSpace(t *testing.T, a *addressSpace) {
	t.Helper()
	type piece struct {
		start, end uint64
		kind       string
	}
	pieces := []piece{{segmentsTop - chunkUnit, segmentsTop - chunkUnit + contextSize, "context"}}
	for addr, s := range a.segments.All() {
		pieces = append(pieces, piece{addr, addr + roundUp(s.size, page), "segment"})
		if addr < s.chunk.start || addr+s.size > s.chunk.end || a.chunks[s.chunk.index] != s.chunk {
			t.Fatalf("segment %#x is not in its chunk", addr)
		}
	}
	gaps, gone := 0, 0
	for i, c := range a.chunks {
		if c == nil {
			gone++
			continue
		}
		gaps += len(c.gaps)
		if c.index != i || c.start%chunkUnit != 0 || c.end%chunkUnit != 0 || !slices.IsSortedFunc(c.gaps, gap.compare) {
			t.Fatalf("chunk %d is in disorder: %+v", i, c)
		}
		for _, g := range c.gaps {
			pieces = append(pieces, piece{g.start, g.start + g.size, "gap"})
		}
	}
	if gaps != a.gaps.ends.Len() || gone != a.gone {
		t.Fatalf("the indices disagree: %d gaps in chunks, %d in all", gaps, a.gaps.ends.Len())
	}
	for start, end := range a.holes.ends.All() {
		pieces = append(pieces, piece{start, *end, "hole"})
	}
	slices.SortFunc(pieces, func(p, q piece) int { return int(int64(p.start) - int64(q.start)) })
	at := uint64(segmentsBase)
	for i, p := range pieces {
		if p.start != at || p.end <= p.start || p.start%page != 0 {
			t.Fatalf("%s [%#x, %#x) does not begin at %#x", p.kind, p.start, p.end, at)
		}
		if i > 0 && p.kind != "segment" && pieces[i-1].kind == p.kind && p.start%chunkUnit != 0 {
			t.Fatalf("two %ss meet at %#x", p.kind, p.start)
		}
		at = p.end
	}
	if at != segmentsTop {
		t.Fatalf("the address space ends at %#x", at)
	}
}

// TestAddressesProperty mallocs and frees at random. checkSpace sees overlaps.
func TestAddressesProperty(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a := newAddressSpace()
		var live []uint64
		limit := 1 + rng.IntN(300)
		for step := range 3000 {
			if len(live) > 0 && (len(live) >= limit || rng.IntN(2) == 0) {
				i := rng.IntN(len(live))
				a.giveBack(live[i])
				live = slices.Delete(live, i, i+1)
			} else {
				size := 1 + rng.Uint64N(1<<(10+rng.IntN(20)))
				addr, ok := a.take(size)
				if !ok || addr%page != 0 {
					t.Fatalf("seed %d: take(%d) = %#x, %v", seed, size, addr, ok)
				}
				live = append(live, addr)
			}
			if step%250 == 0 {
				checkSpace(t, &a)
			}
		}
		for _, addr := range live {
			a.giveBack(addr)
		}
		checkSpace(t, &a)
		if a.holes.ends.Len() != 1 || a.gaps.ends.Len() != 1 || a.segments.Len() != 0 {
			t.Fatalf("seed %d: %d holes, %d gaps, %d segments after all was freed", seed, a.holes.ends.Len(), a.gaps.ends.Len(), a.segments.Len())
		}
	}
}

func TestAddressesRunOut(t *testing.T) {
	a := newAddressSpace()
	if addr, ok := a.take(segmentsTop - segmentsBase); ok {
		t.Errorf("more than the whole address space at %#x", addr)
	}
	checkSpace(t, &a)
}

func TestMaxTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var tree maxTree
	if tree.first(1) != -1 || tree.last(1) != -1 {
		t.Error("an empty tree finds something")
	}
	row := make([]uint64, 300)
	for step := range 20000 {
		if step == 10000 {
			tree.clear()
			clear(row)
		}
		i, x := rng.IntN(1+step*len(row)/20000), rng.Uint64N(10)*rng.Uint64N(2)
		row[i] = x
		tree.set(i, x)
		least := 1 + rng.Uint64N(10)
		fits := func(x uint64) bool { return x >= least }
		first, last := slices.IndexFunc(row, fits), -1
		for i, x := range row {
			if fits(x) {
				last = i
			}
		}
		if tree.first(least) != first || tree.last(least) != last {
			t.Fatalf("step %d: at least %d: got %d and %d, want %d and %d", step, least, tree.first(least), tree.last(least), first, last)
		}
	}
}

// TestEndlessMalloc: a device without end has addresses that end.
func TestEndlessMalloc(t *testing.T) {
	d := New(Config{Endless: true})
	for _, size := range []uint64{1 << 62, 1 << 63, 1<<64 - 1<<20, 1<<64 - 1} {
		if _, err := d.Malloc(size, 0); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%#x bytes: %v", size, err)
		}
	}
}

package policies

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestLiveBlocks compares with a sorted list of what is live.
func TestLiveBlocks(t *testing.T) {
	for _, n := range []int{0, 1, 2, 63, 64, 65, 5000, 300_000} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		all := make([]located, n)
		for i := range all {
			all[i] = located{addr: r.Uint64N(uint64(2 * n)), size: 1, tensor: int32(i)}
		}
		live := newLiveBlocks(all)
		var naive []located
		byAddr := func(b located, addr uint64) int { return cmp.Compare(b.addr, addr) }
		for range min(n, 3000) {
			b := all[r.IntN(min(n, 2000))]
			i, found := slices.BinarySearchFunc(naive, b.addr, byAddr)
			add := r.IntN(3) > 0
			switch {
			case add && found:
				naive[i] = b
			case add:
				naive = slices.Insert(naive, i, b)
			case found && naive[i].tensor == b.tensor:
				naive = slices.Delete(naive, i, i+1)
			}
			if add {
				live.add(b)
			} else {
				live.remove(b)
			}
			addr := r.Uint64N(uint64(2*n + 2))
			i, found = slices.BinarySearchFunc(naive, addr, byAddr)
			if !found {
				i--
			}
			got, ok := live.before(addr)
			if ok != (i >= 0) || ok && got != naive[i] {
				t.Fatalf("%d blocks, at %d: %+v, %v", n, addr, got, ok)
			}
		}
		if _, ok := newLiveBlocks(all).before(uint64(2 * n)); ok {
			t.Errorf("%d blocks, none live: one is found", n)
		}
	}
}

func TestAccessLines(t *testing.T) {
	r := checked(t, "snapshots/gpt2_fixed-default")
	for _, x := range []struct{ text, want string }{
		{"\n\r\n \n", ""},
		{"{} {}", "line 1: more than one object"},
		{"\n\n[]", "line 3: "},
		{"\n" + strings.Repeat(" ", maxAccess), "line 2: it is longer than 64 KiB"},
		{strings.Repeat("\n", maxAccesses+1), "more than 67108864 lines"},
	} {
		_, err := ReadAccesses(strings.NewReader(x.text), r)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%.20q: %v, want %q", x.text, err, x.want)
		}
	}
}

package alloc

import (
	"math/rand/v2"
	"testing"

	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// Each difference has the versions that docs/versions.md lists.
func TestDifferencesOf(t *testing.T) {
	if DifferencesOf(0) != (Differences{}) || DifferencesOf(pytorch.Default) != (Differences{}) {
		t.Error("2.11 differs from itself")
	}
	if DifferencesOf(pytorch.Of(2, 99)) != DifferencesOf(pytorch.Newest) || DifferencesOf(pytorch.Of(1, 13)) != DifferencesOf(pytorch.Oldest) {
		t.Error("what is not known does not count as the nearest")
	}
	last := func(name string, has func(Differences) bool, minor int) { // the last version that has it; the first one if above 11
		t.Helper()
		for v := pytorch.Oldest; v <= pytorch.Newest; v++ {
			want := v <= pytorch.Of(2, minor)
			if minor > 11 {
				want = v >= pytorch.Of(2, minor)
			}
			if has(DifferencesOf(v)) != want {
				t.Errorf("%s in %v: %v", name, v, !want)
			}
		}
	}
	last("UnroundedOne", func(d Differences) bool { return d.UnroundedOne }, 3)
	last("KeptStreams", func(d Differences) bool { return d.KeptStreams }, 3)
	last("PlainPrivate", func(d Differences) bool { return d.PlainPrivate }, 4)
	last("ExpandableAsserts", func(d Differences) bool { return d.ExpandableAsserts }, 4)
	last("OldestRoute", func(d Differences) bool { return d.OldestRoute }, 9)
	last("WholeIsLimit", func(d Differences) bool { return d.WholeIsLimit }, 9)
	last("OverflowLast", func(d Differences) bool { return d.OverflowLast }, 10)
	last("address order", func(d Differences) bool { return d.Order == ByAddress }, 11)
	last("another order", func(d Differences) bool { return d.Order != ByAddress }, 12)
	last("segment order", func(d Differences) bool { return d.Order == BySegment }, 13)
	last("RoundedLimit", func(d Differences) bool { return d.RoundedLimit }, 13)
	last("Hints", func(d Differences) bool { return d.Hints }, 13)
	last("CaptureOnly", func(d Differences) bool { return d.CaptureOnly }, 13)
}

// When the places of segments run out they are given anew, and nothing else
// changes.
func TestPlacesRunOut(t *testing.T) {
	run := func(placed uint64) (addrs []uint64) {
		a := New(sim.New(sim.Config{TotalMemory: 1 << 40}), WithVersion(pytorch.Newest))
		a.placed = placed
		r := rand.New(rand.NewPCG(1, 2))
		var live []uint64
		for range 3000 {
			if len(live) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(live))
				if err := a.Free(live[i]); err != nil {
					t.Fatal(err)
				}
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				continue
			}
			addr, err := a.Malloc(1<<(9+r.IntN(16)), 0)
			if err != nil {
				t.Fatal(err)
			}
			live, addrs = append(live, addr), append(addrs, addr)
		}
		if err := a.CheckInvariants(); err != nil {
			t.Fatal(err)
		}
		if placed > 0 && a.placed >= placed {
			t.Errorf("places were not given anew: %#x", a.placed)
		}
		return addrs
	}
	want, got := run(0), run(maxAddress-(64<<20))
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("allocation %d is at %#x, want %#x", i, got[i], want[i])
		}
	}
}

// A division of 1 leaves sizes as they are up to 2.3, and means nothing later.
func TestUnrounded(t *testing.T) {
	s, err := settings.Parse("roundup_power2_divisions:[2:1,4:4]")
	if err != nil {
		t.Fatal(err)
	}
	old, now := RulesOf(s, pytorch.Of(2, 3)), RulesOf(s, pytorch.Of(2, 4))
	for _, c := range []struct{ request, old, now uint64 }{
		{1, 512, 512},
		{512, 512, 512},
		{513, 513, 1024},
		{1000, 1000, 1024},
		{3 << 20, 3 << 20, 3 << 20},
		{3<<20 + 1, 3<<20 + 1, 3<<20 + 512},
		{5<<20 + 1, 6 << 20, 6 << 20},
		{9<<20 + 1, 9<<20 + 512, 9<<20 + 512},
	} {
		if got := old.Round(c.request); got != c.old {
			t.Errorf("2.3 rounds %d to %d, want %d", c.request, got, c.old)
		}
		if got := now.Round(c.request); got != c.now {
			t.Errorf("2.4 rounds %d to %d, want %d", c.request, got, c.now)
		}
	}
}

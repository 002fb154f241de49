package alloc_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
	"github.com/ashlar-mem/ashlar/internal/test/script"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
)

// TestRestore: an allocator restored from the segments of another has the same
// layout and the same currents, also if the sizes of live blocks are left for
// the rules to imply.
func TestRestore(t *testing.T) {
	for _, conf := range []string{
		"", "expandable_segments:True", "max_split_size_mb:40", "roundup_power2_divisions:4",
		"large_segment_size_mb:32,expandable_segments:True",
	} {
		for seed := range uint64(short.Times(20)) {
			r := script.New()
			g := scriptGen{Rand: rand.New(rand.NewPCG(seed, 7))}
			lines := []string{"device total=8GiB conf=" + conf, "pool p"}
			for range 300 {
				switch n := g.IntN(20); {
				case n < 11:
					g.names++
					lines = append(lines, fmt.Sprintf("alloc b%d %d stream=%d", g.names-1, g.size(), g.IntN(2)))
				case n < 18:
					lines = append(lines, "free "+g.name())
				case n < 19:
					lines = append(lines, "empty")
				default:
					lines = append(lines, g.oneOf("begin p", "end p"))
				}
			}
			for _, line := range lines {
				if err := runLine(r, line); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			}
			want := r.Allocator.Segments()
			implied := slices.Clone(want)
			for i := range implied {
				implied[i].Blocks = slices.Clone(implied[i].Blocks)
				for j := range implied[i].Blocks {
					if b := &implied[i].Blocks[j]; b.State != alloc.Inactive {
						b.Size = 0
					}
				}
			}
			for name, from := range map[string][]alloc.Segment{"sizes given": want, "sizes implied": implied} {
				a := alloc.New(sim.New(sim.Config{TotalMemory: 8 << 30}), alloc.WithSettings(parse(t, conf)))
				if err := a.Restore(from); err != nil {
					t.Fatalf("%q, seed %d, %s: %v", conf, seed, name, err)
				}
				if err := a.CheckInvariants(); err != nil {
					t.Fatalf("%q, seed %d, %s: %v", conf, seed, name, err)
				}
				if d := cmp.Diff(want, a.Segments()); d != "" {
					t.Fatalf("%q, seed %d, %s (-original +restored):\n%s", conf, seed, name, d)
				}
				got, original := a.Stats().Map(), r.Allocator.Stats().Map()
				for key, v := range original {
					if strings.HasSuffix(key, ".current") && got[key] != v {
						t.Errorf("%q, seed %d, %s: %s is %d, want %d", conf, seed, name, key, got[key], v)
					}
				}
			}
		}
	}
}

// Of an expandable segment the addresses may be given: what is unmapped in front
// of the first run is used again before what is behind the last one.
func TestRestoreReserved(t *testing.T) {
	const base = sim.RangesBegin
	segments := []alloc.Segment{
		{Address: base + 40*mib, TotalSize: 20 * mib, Large: true, Expandable: true, Blocks: []alloc.Block{
			{Address: base + 40*mib, Size: 20 * mib, RequestedSize: 20 * mib, State: alloc.ActiveAllocated},
		}},
		{Address: base + 80*mib, TotalSize: 20 * mib, Large: true, Expandable: true, Blocks: []alloc.Block{
			{Address: base + 80*mib, Size: 20 * mib, RequestedSize: 20 * mib, State: alloc.ActiveAllocated},
		}},
	}
	for _, test := range []struct {
		reserved []alloc.Span
		want     []uint64 // where 20 MiB go, offsets in MiB
	}{
		{nil, []uint64{60, 100, 120}},
		{[]alloc.Span{{Addr: base, Size: 160 * mib}}, []uint64{0, 20, 60, 100, 120, 140, 160}}, // the last one in a new segment
		{[]alloc.Span{{Addr: base + 20*mib, Size: 80 * mib}}, []uint64{20, 60}},
		{[]alloc.Span{{Addr: base + 40*mib, Size: 20 * mib}, {Addr: base + 80*mib, Size: 40 * mib}}, []uint64{100}},
	} {
		a := alloc.New(sim.New(sim.Config{TotalMemory: 1 << 30}), alloc.WithSettings(parse(t, "expandable_segments:True")))
		if err := a.Restore(segments, test.reserved...); err != nil {
			t.Fatalf("%v: %v", test.reserved, err)
		}
		if err := a.CheckInvariants(); err != nil {
			t.Fatalf("%v: %v", test.reserved, err)
		}
		for _, want := range test.want {
			if got := must(a.Malloc(20*mib, 0)); got != base+want*mib {
				t.Errorf("%v: at %d MiB, want %d", test.reserved, (got-base)/mib, want)
			}
		}
		for _, s := range segments {
			check(a.Free(s.Address))
		}
		check(a.EmptyCache())
		if err := a.CheckInvariants(); err != nil {
			t.Errorf("%v: %v", test.reserved, err)
		}
	}
}

func TestRestoreErrors(t *testing.T) {
	block := func(addr, size, requested uint64) alloc.Block {
		return alloc.Block{Address: addr, Size: size, RequestedSize: requested, State: alloc.ActiveAllocated}
	}
	for name, segments := range map[string][]alloc.Segment{
		"overlapping segments": {{Address: 1 << 30, TotalSize: 20 * mib, Large: true}, {Address: 1<<30 + 10*mib, TotalSize: 20 * mib, Large: true}},
		"block outside":        {{Address: 1 << 30, TotalSize: 2 * mib, Blocks: []alloc.Block{block(1<<30+2*mib, 512, 1)}}},
		"overlapping blocks":   {{Address: 1 << 30, TotalSize: 2 * mib, Blocks: []alloc.Block{block(1<<30, 1024, 1), block(1<<30+512, 512, 1)}}},
		"odd size":             {{Address: 1 << 30, TotalSize: 2 * mib, Blocks: []alloc.Block{block(1<<30, 700, 1)}}},
		"too small":            {{Address: 1 << 30, TotalSize: 2 * mib, Blocks: []alloc.Block{block(1<<30, 512, 1000)}}},
		"address too high":     {{Address: 1 << 60, TotalSize: 2 * mib}},
		"no bytes":             {{Address: 1 << 30}},
		"64 TiB":               {{Address: 1 << 30, TotalSize: 64 << 40, Large: true}},
		"half a block":         {{Address: 1 << 30, TotalSize: 2*mib + 256}},
		"block between blocks": {{Address: 1 << 30, TotalSize: 2 * mib, Blocks: []alloc.Block{block(1<<30+100, 512, 1)}}},
		"-1 bytes, expandable": {{Address: 1 << 33, TotalSize: math.MaxUint64, Large: true, Expandable: true}},
	} {
		if err := alloc.New(sim.New(sim.Config{})).Restore(segments); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	a := alloc.New(sim.New(sim.Config{}))
	must(a.Malloc(1, 0))
	if a.Restore(nil) == nil {
		t.Error("a used allocator was restored")
	}
}

// Whatever numbers a state has, it is refused or the allocator works from there.
func TestRestoreAnyNumbers(t *testing.T) {
	short.Skip(t)
	const base = 0x400000000
	numbers := []uint64{
		0, 1, 512, 700, 2 * mib, 20 * mib, base - 512, base, base + 100, base + 20*mib, base + 40*mib,
		1 << 46, 1<<46 - 512, 1 << 49, 1<<49 - 512, 1 << 62, 1 << 63, math.MaxUint64 - 511, math.MaxUint64,
	}
	// Each number in each place of a state that is right otherwise.
	places := []func(s []alloc.Segment, r *alloc.Span) *uint64{
		func(s []alloc.Segment, _ *alloc.Span) *uint64 { return &s[0].Address },
		func(s []alloc.Segment, _ *alloc.Span) *uint64 { return &s[0].TotalSize },
		func(s []alloc.Segment, _ *alloc.Span) *uint64 { return &s[1].Address },
		func(s []alloc.Segment, _ *alloc.Span) *uint64 { return &s[1].TotalSize },
		func(s []alloc.Segment, _ *alloc.Span) *uint64 { return &s[0].Blocks[0].Address },
		func(s []alloc.Segment, _ *alloc.Span) *uint64 { return &s[0].Blocks[0].Size },
		func(s []alloc.Segment, _ *alloc.Span) *uint64 { return &s[0].Blocks[0].RequestedSize },
		func(s []alloc.Segment, _ *alloc.Span) *uint64 { return &s[0].Blocks[1].Address },
		func(s []alloc.Segment, _ *alloc.Span) *uint64 { return &s[0].Blocks[1].Size },
		func(s []alloc.Segment, _ *alloc.Span) *uint64 { return &s[0].Blocks[1].RequestedSize },
		func(_ []alloc.Segment, r *alloc.Span) *uint64 { return &r.Addr },
		func(_ []alloc.Segment, r *alloc.Span) *uint64 { return &r.Size },
	}
	devices := []func() driver.Driver{
		func() driver.Driver { return sim.New(sim.Config{TotalMemory: 1 << 30}) },
		func() driver.Driver { return recorded.New(recorded.Config{TotalMemory: 1 << 30}) }, // adopts anything
	}
	confs := map[bool]settings.Settings{true: parse(t, "expandable_segments:True"), false: settings.Default()}
	accepted := 0
	for p, place := range places {
		for q, other := range places[p:] {
			for i, n := range numbers {
				for j, m := range numbers {
					expandable, device := (i+j)%2 == 0, devices[(i+j)/2%2]
					s := []alloc.Segment{
						{Address: base, TotalSize: 20 * mib, Large: true, Expandable: expandable, Blocks: []alloc.Block{
							{Address: base, Size: 2 * mib, RequestedSize: 2 * mib, State: alloc.ActiveAllocated},
							{Address: base + 4*mib, Size: 2 * mib, RequestedSize: 2 * mib, State: alloc.ActivePendingFree},
						}},
						{Address: base + 40*mib, TotalSize: 20 * mib, Large: true, Expandable: expandable},
					}
					r := alloc.Span{Addr: base, Size: 1 << 30}
					*place(s, &r) = n
					*other(s, &r) = m
					a := alloc.New(device(), alloc.WithSettings(confs[expandable]))
					if a.Restore(s, r) != nil {
						continue
					}
					accepted++
					_, _ = a.Malloc(2*mib, 0) // it may be refused
					_ = a.Free(s[0].Blocks[0].Address)
					_ = a.EmptyCache()
					if err := a.CheckInvariants(); err != nil {
						t.Fatalf("places %d and %d, numbers %#x and %#x, expandable %v: %v", p, p+q, n, m, expandable, err)
					}
				}
			}
		}
	}
	if accepted == 0 {
		t.Error("every state was refused")
	}
}

// TestFits: Fits predicts whether a malloc asks the driver.
func TestFits(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:40"} {
		dev := sim.New(sim.Config{})
		a := alloc.New(dev, alloc.WithSettings(parse(t, conf)))
		g := scriptGen{Rand: rand.New(rand.NewPCG(3, 4))}
		var live []uint64
		for range 3000 {
			if g.IntN(2) == 0 && len(live) > 0 {
				i := g.IntN(len(live))
				check(a.Free(live[i]))
				live = slices.Delete(live, i, i+1)
				continue
			}
			size, stream := g.size(), g.Uint64N(2)
			fits := a.Fits(alloc.PoolID{}, size, stream)
			before := dev.Calls().Total()
			live = append(live, must(a.Malloc(size, stream)))
			if asked := dev.Calls().Total() > before; asked == fits {
				t.Fatalf("%q: %d bytes: fits %v, asked the driver %v", conf, size, fits, asked)
			}
		}
		// What can be released is what a flush releases.
		want := a.Releasable()
		before := a.Stats().ReservedBytes.All.Current
		check(a.EmptyCache())
		if got := uint64(before - a.Stats().ReservedBytes.All.Current); got != want {
			t.Errorf("%q: released %d, predicted %d", conf, got, want)
		}
	}
}

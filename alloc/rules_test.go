package alloc_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// TestRound has the vectors of spec 1.2.
func TestRound(t *testing.T) {
	for conf, vectors := range map[string]map[uint64]uint64{
		"": {
			1: 512, 511: 512, 512: 512, 513: 1024, 1000: 1024, 1048575: 1048576,
			1048577: 1049088, 10485248: 10485248, 10485249: 10485760,
		},
		"roundup_power2_divisions:4": {
			600: 1024, 2048: 2048, 2049: 2560, 4097: 5120, 100000: 114688, 1048577: 1310720,
			3145733: 3670016, 34603008: 41943040, 104857600: 117440512,
		},
		"roundup_power2_divisions:8": {
			4096: 4096, 4097: 4608, 100000: 106496, 1048577: 1179648, 104857600: 109051904,
		},
		"roundup_power2_divisions:[64:8,256:4,>:2]": {
			104857600: 109051904, 135266304: 135266304, 314572800: 335544320, 629145600: 805306368,
		},
		"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]": {
			314572800: 314572800, 629145600: 805306368, 1153433600: 1342177280, 2202009600: 2415919104,
		},
		"roundup_power2_divisions:9223372036854775808": { // more divisions than bytes: the next power of two
			513: 1024, 1024: 1024, 1048577: 2097152,
		},
	} {
		r := alloc.RulesOf(parse(t, conf), pytorch.Default)
		for request, want := range vectors {
			if got := r.Round(request); got != want {
				t.Errorf("%q: %d is rounded to %d, want %d", conf, request, got, want)
			}
		}
	}
}

// TestSegmentSize has the vectors of spec 1.3.
func TestSegmentSize(t *testing.T) {
	r := alloc.RulesOf(settings.Default(), pytorch.Default)
	for request, want := range map[uint64]uint64{
		1048576: 2 << 20, 1048577: 20 << 20, 10485248: 20 << 20, 10485249: 10 << 20,
		10485761: 12 << 20, 20971521: 22 << 20, 104857607: 102 << 20,
	} {
		if got := r.SegmentSize(r.Round(request)); got != want {
			t.Errorf("%d gets a segment of %d bytes, want %d", request, got, want)
		}
	}
}

// TestRulesWithoutSegmentSize: a broken file may lack the size that granules are
// counted in.
func TestRulesWithoutSegmentSize(t *testing.T) {
	r, want := alloc.RulesOf(settings.Settings{}, pytorch.Default), alloc.RulesOf(settings.Default(), pytorch.Default)
	if r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
}

// drawSettings draws settings that decide about sizes.
func drawSettings(t *rapid.T) settings.Settings {
	s := settings.Default()
	s.LargeSegmentSize = rapid.Uint64Range(alloc.OwnSegmentMin>>20+1, 200).Draw(t, "large_segment_size_mb") << 20
	for i := range s.RoundupPower2Divisions {
		s.RoundupPower2Divisions[i] = rapid.SampledFrom([]uint64{0, 0, 1, 2, 4, 16, 64}).Draw(t, "divisions")
	}
	return s
}

// drawRequest draws a size, often one beside a size at which a rule changes.
func drawRequest(t *rapid.T, s settings.Settings) uint64 {
	if rapid.Bool().Draw(t, "border") {
		border := rapid.SampledFrom([]uint64{
			alloc.MinBlock, alloc.SmallMax, alloc.OwnSegmentMin, alloc.SegmentUnit, s.LargeSegmentSize,
			s.LargeSegmentSize - alloc.SegmentUnit, 1 << rapid.IntRange(10, 40).Draw(t, "power"),
		}).Draw(t, "size")
		return border + rapid.SampledFrom([]uint64{0, 1, alloc.MinBlock}).Draw(t, "above") - rapid.Uint64Range(0, 1).Draw(t, "below")
	}
	return rapid.Uint64Range(1, 1<<rapid.IntRange(1, 40).Draw(t, "bits")).Draw(t, "request")
}

// TestInverses holds the inverse rules against the forward ones.
func TestInverses(t *testing.T) {
	tightest := alloc.RulesOf(alloc.Tightest(), pytorch.Default)
	rapid.Check(t, func(t *rapid.T) {
		s := drawSettings(t)
		r, other := alloc.RulesOf(s, pytorch.Default), alloc.RulesOf(drawSettings(t), pytorch.Default)
		request := drawRequest(t, s)
		rounded := r.Round(request)
		if rounded < request || rounded%alloc.MinBlock != 0 || r.Round(rounded) != rounded || r.Large(request) != r.Large(rounded) {
			t.Fatalf("%d is rounded to %d", request, rounded)
		}

		least := r.LeastRequest(rounded)
		if least > request || r.Round(least) != rounded || least > 1 && r.Round(least-1) >= rounded {
			t.Errorf("%d is the least request for %d", least, rounded)
		}
		if least, takes := alloc.LeastRounded(rounded), other.Round(request); takes < least {
			t.Errorf("%d takes %d under other settings, less than %d", request, takes, least)
		}
		if least := tightest.Round(request); least > rounded {
			t.Errorf("%d takes %d under the tightest settings, more than %d", request, least, rounded)
		}

		segment := r.SegmentSize(rounded)
		if r.LargeSegment(segment) != r.Large(rounded) {
			t.Errorf("the pool of a segment of %d bytes is not that of its request, %d", segment, rounded)
		}
		above, most := r.Requests(segment)
		if rounded <= above || most < rounded {
			t.Errorf("%d asks for a segment of %d bytes, for which sizes above %d up to %d ask", rounded, segment, above, most)
		}
		if above > 0 && r.SegmentSize(above) == segment || r.SegmentSize(most+alloc.MinBlock) == segment ||
			segment != s.LargeSegmentSize && r.SegmentSize(most) != segment {
			t.Errorf("not only sizes above %d up to %d ask for a segment of %d bytes", above, most, segment)
		}
	})
}

// TestRulesOfAllocator: what an allocator gets from its driver for a request, and
// what it says it can give back, is what the rules say.
func TestRulesOfAllocator(t *testing.T) {
	for _, conf := range append(confs, "expandable_segments:True,large_segment_size_mb:32") {
		s := parse(t, conf)
		rapid.Check(t, func(t *rapid.T) {
			var got uint64
			a := alloc.New(sim.New(sim.Config{}), alloc.WithSettings(s), alloc.WithObserver(func(e alloc.Event) {
				if e.Action == alloc.ActionSegmentAlloc || e.Action == alloc.ActionSegmentMap {
					got = e.Size
				}
			}))
			rules := a.Rules()
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
			for i := range 40 {
				rounded := rules.Round(1 + random.Uint64N(1<<(1+random.Uint64N(26))))
				want := rules.SegmentSize(rounded)
				if s.ExpandableSegments {
					want = rules.MappedSize(rounded, rules.Large(rounded))
				}
				addr := must(a.Malloc(rounded, uint64(i))) // a stream without memory
				if got != want {
					t.Fatalf("%q: %d bytes were obtained for %d, want %d", conf, got, rounded, want)
				}
				for range random.IntN(3) {
					must(a.Malloc(1+random.Uint64N(4<<20), uint64(i)))
				}
				if random.IntN(2) == 0 {
					check(a.Free(addr))
				}
			}
			var releasable uint64
			for _, segment := range a.Segments() {
				for _, b := range segment.Blocks {
					releasable += rules.Releasable(&segment, &b)
				}
			}
			if want := a.Releasable(); releasable != want {
				t.Errorf("%q: %d bytes can be released, the allocator says %d", conf, releasable, want)
			}
		})
	}
}

// TestHugeSegments: settings may name segments that no device has: requests fail, and no sum wraps, also where the device has no end.
func TestHugeSegments(t *testing.T) {
	for _, size := range []uint64{1 << 60, 1 << 63, math.MaxUint64 &^ (1<<20 - 1)} {
		for _, expandable := range []bool{false, true} {
			s := settings.Default()
			s.LargeSegmentSize, s.MaxNonSplitRounding, s.ExpandableSegments = size, size, expandable
			a := alloc.New(sim.New(sim.Config{Endless: true}), alloc.WithSettings(s))
			if _, err := a.Malloc(3<<20, 0); !errors.Is(err, driver.ErrOutOfMemory) {
				t.Errorf("segments of %#x, expandable %v: %v", size, expandable, err)
			}
		}
	}
}

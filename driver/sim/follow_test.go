package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// As long as the requests are those of the recording, so are the addresses;
// then the model goes on below them.
func TestFollow(t *testing.T) {
	const mib = 1 << 20
	top := uint64(SegmentsEnd)
	recorded := []Placement{
		{Addr: top - 700*mib, Size: 20 * mib}, // 700 = 21.875 x 32: not where the model begins
		{Addr: top - 26*mib, Size: 2 * mib},   // above the first: the model would not go there
		{Addr: top - 768*mib, Size: 40 * mib}, // two units
		{Addr: top - 728*mib, Size: 20 * mib}, // in the rest of the second unit
		{Addr: top - 26*mib, Size: 2 * mib, Freed: true},
		{Addr: top - 24*mib, Size: 2 * mib},
	}
	d := New(Config{Follow: recorded})
	for i, p := range recorded {
		if p.Freed {
			if err := d.Free(p.Addr, p.Size); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if addr, err := d.Malloc(p.Size, 0); err != nil || addr != p.Addr {
			t.Fatalf("request %d: %#x, %v; recorded %#x", i, addr, err, p.Addr)
		}
	}
	// The recording is at its end: the next one goes below all others, where
	// nothing is known to be in the way.
	addr, err := d.Malloc(64*mib, 0)
	if want := top - 768*mib - 64*mib; err != nil || addr != want {
		t.Errorf("after the recording: %#x, %v; want %#x", addr, err, want)
	}

	d = New(Config{Follow: recorded})
	if addr, err := d.Malloc(20*mib, 0); err != nil || addr != recorded[0].Addr {
		t.Fatalf("%#x, %v", addr, err)
	}
	if addr, err = d.Malloc(30*mib, 0); err != nil || addr >= recorded[0].Addr || addr%chunkUnit != 0 {
		t.Errorf("another request: %#x, %v", addr, err)
	}
	if addr, err = d.Malloc(40*mib, 0); err != nil || addr == recorded[2].Addr {
		t.Errorf("the recording is followed again: %#x, %v", addr, err)
	}
}

func TestAdopt(t *testing.T) {
	const mib = 1 << 20
	d := New(Config{TotalMemory: 1 << 30})
	at := uint64(SegmentsEnd - 256*mib)
	if err := d.Adopt(at, 20*mib); err != nil {
		t.Fatal(err)
	}
	if err := d.Adopt(at+2*mib, 2*mib); err == nil {
		t.Error("a segment was adopted inside another")
	}
	if err := d.AdoptRange(RangesBegin, 512*mib); err != nil {
		t.Fatal(err)
	}
	if err := d.AdoptMapped(RangesBegin+40*mib, 20*mib, 20*mib); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []error{
		d.AdoptRange(RangesBegin+500*mib, mib), d.AdoptRange(RangesEnd-mib, 2*mib), d.AdoptRange(RangesBegin-mib, mib),
		d.AdoptMapped(RangesBegin+20*mib, 40*mib, 20*mib),
	} {
		if bad == nil {
			t.Error("what overlaps or is out of range was adopted")
		}
	}
	if d.Held() != 40*mib {
		t.Errorf("%d bytes are held", d.Held())
	}
	for _, err := range []error{
		d.Map(RangesBegin, 40*mib, 20*mib), d.Unmap(RangesBegin, 60*mib, 20*mib, 0),
		d.Unreserve(RangesBegin, 512*mib), d.Free(at, 20*mib),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if d.Held() != 0 {
		t.Errorf("%d bytes are held at the end", d.Held())
	}
}

// Whatever is placed, taken and given back, no two segments overlap.
func TestPlaceRandomly(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a := newAddressSpace()
		live := map[uint64]uint64{}
		for range 2000 {
			size := page * (1 + rng.Uint64N(60))
			switch n := rng.IntN(10); {
			case n < 3:
				addr := segmentsTop - page*rng.Uint64N(4000) - size
				if a.place(addr, size) {
					live[addr] = size
				}
			case n < 7:
				if addr, ok := a.take(size); ok {
					live[addr] = size
				}
			case len(live) > 0:
				addrs := make([]uint64, 0, len(live))
				for addr := range live {
					addrs = append(addrs, addr)
				}
				slices.Sort(addrs)
				addr := addrs[rng.IntN(len(addrs))]
				a.giveBack(addr)
				delete(live, addr)
			}
		}
		var last uint64
		addrs := make([]uint64, 0, len(live))
		for addr := range live {
			addrs = append(addrs, addr)
		}
		slices.Sort(addrs)
		for _, addr := range addrs {
			if addr < last {
				t.Fatalf("seed %d: the segment at %#x overlaps the one before", seed, addr)
			}
			last = addr + live[addr]
			if got, ok := a.size(addr); !ok || got != live[addr] {
				t.Fatalf("seed %d: the segment at %#x has %d bytes, want %d", seed, addr, got, live[addr])
			}
		}
		for start, end := range a.gaps.ends.All() {
			for _, addr := range addrs {
				if start < addr+live[addr] && addr < *end {
					t.Fatalf("seed %d: the gap [%#x, %#x) overlaps the segment at %#x", seed, start, *end, addr)
				}
			}
		}
	}
}

func TestCost(t *testing.T) {
	if a, b := MallocTime(2<<20), MallocTime(1<<30); a <= 0 || b <= a || MallocTime(16<<30) <= MallocTime(8<<30) {
		t.Errorf("2 MiB cost %v, 1 GiB %v", a, b)
	}
	if one, four := mapTime(20<<20, 20<<20), mapTime(80<<20, 20<<20); four != 4*one {
		t.Errorf("one handle costs %v, four %v", one, four)
	}
	d := New(Config{})
	addr, err := d.Malloc(100<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Free(addr, 100<<20); err != nil {
		t.Fatal(err)
	}
	if got, want := d.Cost(), MallocTime(100<<20)+FreeTime(100<<20); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestPlaceAcrossHoles: a recorded segment may begin in a hole and end in what was taken for somebody else's; a large one is
// as quick as a small one but for the index of its addresses.
func TestPlaceAcrossHoles(t *testing.T) {
	a := newAddressSpace()
	const at = segmentsTop - 64*chunkUnit
	if !a.place(at, page) {
		t.Fatal("a place below the top is refused")
	}
	a.giveBack(at)
	if !a.place(at, 3*chunkUnit) || a.chunkAt(at) == nil || a.chunkAt(at) != a.chunkAt(at+2*chunkUnit) {
		t.Error("a segment over a hole and what lies above it is refused, or no one chunk")
	}
	if a.place(at+2*chunkUnit, page) || a.place(at-chunkUnit, 2*chunkUnit) {
		t.Error("taken addresses are given again")
	}
	const large = 1 << 40
	if !a.place(at-large, large) || a.chunkAt(at-large) != a.chunkAt(at) || a.chunkAt(at-large-chunkUnit) != nil {
		t.Error("a segment of a TiB is refused, or not joined with what follows it")
	}
}

// TestManyPlaced: hundreds of thousands of recorded segments, in no order, are placed and given back; what looked at
// all of them for each took more than go test waits.
func TestManyPlaced(t *testing.T) {
	const n, size = 300_000, 20 * mib // in two chunks each, so that chunks are joined
	a := newAddressSpace()
	rng := rand.New(rand.NewPCG(1, 1))
	at := func(i int) uint64 { return segmentsTop - uint64(i+1)*size }
	for _, i := range rng.Perm(n) {
		if !a.place(at(i), size) {
			t.Fatalf("segment %d does not fit", i)
		}
	}
	for _, addr := range []uint64{segmentsTop, 0xfffffffffe000000, 0xffffffffffe00000} {
		if a.place(addr, page) {
			t.Errorf("a segment lies at %#x", addr)
		}
	}
	if a.place(at(n/2)+page, page) {
		t.Error("a segment lies in another one")
	}
	for _, i := range rng.Perm(n) {
		a.giveBack(at(i))
	}
	if a.segments.Len() != 0 || a.gaps.ends.Len() != 0 {
		t.Errorf("%d segments and %d gaps are left", a.segments.Len(), a.gaps.ends.Len())
	}
}

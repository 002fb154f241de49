package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The figures of requests of one size, 64 alive at a time, in microseconds each,
// as tools/bench/gpu/nocache.py measured them.
func TestSmallPagesMeasured(t *testing.T) {
	for _, tt := range []struct {
		kib float64
		us  float64
	}{{0.5, 3.8}, {64, 4.5}, {256, 9.8}, {512, 16.7}, {1024, 29.9}, {1536, 57}} {
		var s SmallPages
		var sum time.Duration
		for range 64 {
			_, took := s.Malloc(uint64(tt.kib * 1024))
			sum += took
		}
		if got := float64(sum.Nanoseconds()) / 64e3; got > 1.5*tt.us || got < tt.us/1.5 {
			t.Errorf("a request of %g KiB: %.1f us, measured %.1f", tt.kib, got, tt.us)
		}
	}
}

func TestSmallPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s SmallPages
		type request struct {
			page int32
			size uint64
		}
		var live []request
		used := map[int32]uint64{}
		rounded := func(size uint64) uint64 { return (size + 511) / 512 * 512 }
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				r := live[i]
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				took := s.Free(r.page, r.size)
				if r.page < 0 {
					continue
				}
				used[r.page] -= rounded(r.size)
				if gone := took > smallFree; gone != (used[r.page] == 0) {
					t.Fatalf("a page with %d bytes in use takes %v", used[r.page], took)
				}
				continue
			}
			size := rapid.Uint64Range(1, 3<<20).Draw(t, "size")
			page, took := s.Malloc(size)
			live = append(live, request{page, size})
			if (page < 0) != (size >= 2<<20) {
				t.Fatalf("a request of %d bytes is in page %d", size, page)
			}
			if page < 0 {
				continue
			}
			fits := false
			for _, n := range used {
				fits = fits || n > 0 && n+rounded(size) <= 2<<20
			}
			if made := took > smallMalloc; made == fits || made != (used[page] == 0) {
				t.Fatalf("a request of %d bytes takes %v; a page has room: %v", size, took, fits)
			}
			if used[page] += rounded(size); used[page] > 2<<20 {
				t.Fatalf("page %d holds %d bytes", page, used[page])
			}
		}
	})
}

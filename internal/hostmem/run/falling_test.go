package run

import (
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

// Memory that falls while it settles, and does not only scatter, is told.
func TestFalling(t *testing.T) {
	const note = "under jemalloc-bg memory was still falling while it settled, to 50.00 MiB at the end: a longer --settle shows less"
	falls := []uint64{200, 200, 180, 160, 140, 120, 100, 80, 50, 50}
	flat := slices.Repeat([]uint64{130}, 10)
	for _, tt := range []struct {
		name string
		runs [][]uint64
		want []string
	}{
		{"it falls", [][]uint64{falls, falls}, []string{note}},
		{"one run falls", [][]uint64{falls}, []string{note}},
		{"it has fallen", [][]uint64{{200, 100, 50, 50, 50, 50, 50, 50, 50, 50}}, nil},
		{"it rises", [][]uint64{{50, 60, 70, 80, 90, 100, 110, 120, 130, 140}}, nil},
		{"it goes up and down", [][]uint64{{50, 60, 50, 60, 50, 60, 50, 60, 55, 55}}, nil},
		{"by less than a hundredth", [][]uint64{{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 995, 995}}, nil},
		{"it scatters", [][]uint64{{100, 120, 90, 110, 100, 120, 90, 110, 92, 91}}, nil},
		{"it rises and falls", [][]uint64{append([]uint64{20, 40}, falls...)}, []string{note}},
		{"two of three, from another moment on", [][]uint64{falls, {200, 200, 200, 200, 200, 200, 200, 180, 60, 40}, flat}, []string{note}},
		{"one of two", [][]uint64{falls, flat}, nil},
		{"too few samples", [][]uint64{{200, 100, 50}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var runs []*Run
			for _, sizes := range tt.runs {
				r := &Run{Settled: true, Verified: true, Points: []Point{{Phase: Driven, RSSBytes: 1 << 30}}}
				for _, n := range sizes {
					r.Points = append(r.Points, Point{Phase: Settling, RSSBytes: n << 20})
				}
				runs = append(runs, r)
			}
			result := newResult(&Spec{}, &variant.Ready{Variant: variant.Variant{Name: "jemalloc-bg"}}, runs)
			if got := fallingNotes([]Result{result}); !slices.Equal(got, tt.want) {
				t.Errorf("%q, final %d", got, *result.FinalRSS>>20)
			}
		})
	}
	if got := fallingNotes([]Result{measured("glibc", 1)}); got != nil {
		t.Errorf("nothing was measured: %q", got)
	}
}

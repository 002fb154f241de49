package run

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// A run that settles is falling if it holds less at the end of that time than its
// median, which counts as its final memory: with more time the median would be
// lower. How much lower is not known.
const (
	fallingEnd   = 5   // the last fifth of the time is its end
	fallingLeast = 100 // less than a hundredth of the final memory is no fall
)

// falling reports whether memory was still falling, and how much was held at the
// end. All samples at the end must be below all of the first half: fifteen
// samples that only scatter do that once in 120 times. A run without a load may
// do its work while it settles: it cannot fall before it has risen.
func (r *Run) falling() (end uint64, falling bool) {
	var all []uint64
	for _, p := range r.Points {
		if r.Settled && p.Phase == Settling {
			all = append(all, p.RSSBytes)
		}
	}
	final := r.final()
	all = all[max(0, slices.IndexFunc(all, func(n uint64) bool { return n >= final })):]
	if len(all) < 2*fallingEnd {
		return 0, false
	}
	last := all[len(all)-len(all)/fallingEnd:]
	end = median(last)
	return end, slices.Max(last) < slices.Min(all[:len(all)/2]) && final > end+final/fallingLeast
}

// fallingNotes says which variants would have shown less with more time: those
// of which more than half of the runs were falling.
func fallingNotes(results []Result) []string {
	var notes []string
	for i := range results {
		r := &results[i]
		var ends []uint64
		for _, x := range r.runs {
			if end, falling := x.falling(); falling {
				ends = append(ends, end)
			}
		}
		if 2*len(ends) > len(r.runs) {
			notes = append(notes, fmt.Sprintf("under %s memory was still falling while it settled, to %s at the end: a longer --settle shows less", r.Variant, units.Size(median(ends))))
		}
	}
	return notes
}

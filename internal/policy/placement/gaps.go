package placement

import (
	"cmp"
	"math/bits"
	"slices"
)

// gaps finds gaps between ranges. Ranges are put into buckets by their offsets, and
// of the buckets only those are sorted in which the gap may be.
type gaps struct {
	ends   [buckets + 1]int32 // bucket -> the first range behind it
	sorted []span
}

// buckets is how many there are: about as many as there are ranges where hundreds of
// buffers live, so that few have more than two.
const buckets = 256

// lowest returns the lowest offset at which there is room beside what is taken, which
// ends at height at most: it goes upwards through that until there is a gap.
func (g *gaps) lowest(taken []span, size, height uint64) uint64 {
	shift := max(bits.Len64(height)-bits.Len(buckets-1), 0)
	clear(g.ends[:])
	for i := range taken {
		g.ends[taken[i].from>>shift+1]++
	}
	for i := range buckets {
		g.ends[i+1] += g.ends[i]
	}
	if cap(g.sorted) < len(taken) {
		g.sorted = make([]span, 2*len(taken))
	}
	sorted := g.sorted[:len(taken)]
	for _, s := range taken { // what was the first of a bucket becomes its end
		at := &g.ends[s.from>>shift]
		sorted[*at] = s
		*at++
	}
	var at uint64
	begin := int32(0)
	for n, end := range g.ends[:buckets] {
		bucket := sorted[begin:end]
		begin = end
		// Where all begin below the end of what is placed, none of them is behind a gap.
		if last := uint64(n+1)<<shift - 1; len(bucket) > 1 && last >= at+size {
			slices.SortFunc(bucket, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		}
		for _, s := range bucket {
			if s.from >= at+size {
				return at
			}
			at = max(at, s.to)
		}
	}
	return at
}

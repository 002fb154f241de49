package answers

import (
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
)

// commitPeaks are the files of a commit that count for its growth, the worst of
// each rank.
type commitPeaks struct {
	commit  string
	all     []*Entry
	ranks   map[int64]*Entry // by number; those without one have negative numbers
	odd     map[int64]bool   // unlike the others of their launch in memory
	bounds  bool             // every rank failed: peaks are lower bounds
	firstUS int64
}

// newCommitPeaks leaves out what failed: how far a job got before it failed says
// little about how much it needs. If all did, it is at least that much.
func newCommitPeaks(of []*Entry) *commitPeaks {
	c := &commitPeaks{commit: of[0].Commit, all: of, ranks: map[int64]*Entry{}, odd: map[int64]bool{}, firstUS: of[0].TimeUS()}
	whole := slices.DeleteFunc(slices.Clone(of), func(e *Entry) bool { return e.Failed() || e.Summary.Partial })
	if c.bounds = len(whole) == 0; c.bounds {
		whole = of
	}
	unnamed := int64(-1)
	for _, launch := range launches(whole) {
		l := compareRanks(launch)
		odd := map[int]bool{}
		for _, o := range l.Odd {
			odd[o.Rank] = odd[o.Rank] || o.Measure == diff.MeasureAllocated || o.Measure == diff.MeasureReserved || o.Measure == diff.MeasureRequested
		}
		for i, e := range l.entries {
			number := unnamed
			if e.Rank != nil {
				number = *e.Rank
			} else {
				unnamed--
			}
			if old := c.ranks[number]; old == nil || *e.Summary.PeakReserved > *old.Summary.PeakReserved {
				c.ranks[number] = e
				c.odd[number] = odd[i]
			}
		}
	}
	return c
}

// growthStep is a commit and the one that it is compared with.
type growthStep struct {
	before, now *commitPeaks
	grown       []rankGrowth // by measure and kind of ranks
}

// rankGrowth is the growth of some ranks in one measure.
type rankGrowth struct {
	measure   string
	usual     bool // ranks that are not odd
	delta     float64
	share     float64 // of the peak before
	threshold float64 // that share is to exceed by the scatter of ranks
	a, b      *Entry  // the worst rank
}

// peakMeasure is a peak that commits are compared by.
type peakMeasure struct {
	name string
	of   func(s *Summary) *uint64
}

// measuresOf returns the peaks that all ranks of two commits have: allocated, or
// what was requested if block sizes are not known, and reserved.
func measuresOf(a, b *commitPeaks) []peakMeasure {
	allocated := peakMeasure{diff.MeasureAllocated, func(s *Summary) *uint64 { return s.PeakAllocated }}
	requested := peakMeasure{diff.MeasureRequested, func(s *Summary) *uint64 { return s.PeakRequested }}
	reserved := peakMeasure{diff.MeasureReserved, func(s *Summary) *uint64 { return s.PeakReserved }}
	has := func(m peakMeasure) bool {
		for _, c := range []*commitPeaks{a, b} {
			for _, e := range c.ranks {
				if v := m.of(&e.Summary); v == nil || *v == 0 {
					return false
				}
			}
		}
		return true
	}
	switch {
	case has(allocated):
		return []peakMeasure{allocated, reserved}
	case has(requested):
		return []peakMeasure{requested, reserved}
	}
	return []peakMeasure{reserved}
}

// compareCommits compares a commit with the one before, nil if there is none. A
// rank that is odd in one of them only is left to fleet ranks; one that is odd in
// both, as the first stage of a pipeline, is compared with itself.
func compareCommits(before, now *commitPeaks) *growthStep {
	s := &growthStep{before: before, now: now}
	if before == nil {
		return s
	}
	for _, m := range measuresOf(before, now) {
		for _, odd := range []bool{false, true} {
			a, b := map[int64]*Entry{}, map[int64]*Entry{}
			for number, e := range before.ranks {
				if before.odd[number] == odd && now.odd[number] == (odd && now.ranks[number] != nil) {
					a[number] = e
				}
			}
			for number, e := range now.ranks {
				if now.odd[number] == odd && before.odd[number] == (odd && before.ranks[number] != nil) {
					b[number] = e
				}
			}
			if g, ok := compareWorst(m, a, b, odd); ok {
				s.grown = append(s.grown, g)
			}
		}
	}
	return s
}

// compareWorst compares the worst of some ranks before and after. Ranks that both
// commits have are compared with themselves, if they are enough: then it does not
// matter how different ranks are from each other.
func compareWorst(m peakMeasure, a, b map[int64]*Entry, odd bool) (rankGrowth, bool) {
	var common []int64
	for number := range a {
		if b[number] != nil {
			common = append(common, number)
		}
	}
	slices.Sort(common)
	value := func(e *Entry) float64 { return float64(*m.of(&e.Summary)) }
	g := rankGrowth{measure: m.name, usual: !odd}
	whole := []float64{1}
	paired := len(common) == min(len(a), len(b)) || len(common) >= minPaired
	switch {
	case len(common) == 0 && (odd || len(a) == 0 || len(b) == 0):
		return g, false
	case paired || odd:
		only := func(of map[int64]*Entry) map[int64]*Entry {
			out := map[int64]*Entry{}
			for _, number := range common {
				out[number] = of[number]
			}
			return out
		}
		var shares []float64
		for _, number := range common {
			shares = append(shares, value(b[number])/value(a[number])-1)
		}
		_, g.threshold = diff.Threshold(shares, whole)
		a, b = only(a), only(b)
	default:
		for _, of := range []map[int64]*Entry{a, b} {
			_, far := diff.Threshold(sharesOfMedian(of, value), whole)
			g.threshold = max(g.threshold, far)
		}
	}
	g.a, g.b = worst(a, value), worst(b, value)
	g.delta = value(g.b) - value(g.a)
	g.share = g.delta / value(g.a)
	if same := a[orNone(g.b.Rank)]; same != nil { // its own stacks tell more
		g.a = same
	}
	return g, true
}

// sharesOfMedian returns values as parts of their median.
func sharesOfMedian(of map[int64]*Entry, value func(e *Entry) float64) []float64 {
	var out []float64
	for _, e := range of {
		out = append(out, value(e))
	}
	middle, _ := diff.Threshold(out, nil)
	for i := range out {
		out[i] /= middle
	}
	return out
}

// worst returns the rank with the highest value, of equal ones the lowest number.
func worst(of map[int64]*Entry, value func(e *Entry) float64) *Entry {
	var out *Entry
	at := int64(0)
	for number, e := range of {
		if out == nil || value(e) > value(out) || value(e) == value(out) && number < at {
			out, at = e, number
		}
	}
	return out
}

// quarter is the part of normally distributed values that are closer to their
// mean than quarterDeviations standard deviations.
const quarter, quarterDeviations = 0.25, 0.3186

// commitScatter returns by measure how far a commit must be from its neighbour to
// stand out of the differences between all neighbours. Their deviation is
// estimated from the smallest quarter: a run in which half of the commits change
// something is nothing special, and that is no scatter.
func commitScatter(steps []*growthStep) map[string]float64 {
	shares := map[string][]float64{}
	for _, s := range steps {
		for _, g := range s.grown {
			if g.usual && s.now.bounds == s.before.bounds {
				shares[g.measure] = append(shares[g.measure], math.Abs(g.share))
			}
		}
	}
	out := map[string]float64{}
	for measure, all := range shares {
		if len(all) >= minDeltas {
			slices.Sort(all)
			out[measure] = diff.OddDeviations * all[int(quarter*float64(len(all)))] / quarterDeviations
		}
	}
	return out
}

// judge says whether the commit grew.
func (s *growthStep) judge(scatter map[string]float64) *CommitGrowth {
	now := s.now
	c := &CommitGrowth{Commit: now.commit, FirstSeenUS: now.firstUS, Stacks: []diff.Stack{}, Notes: []string{}}
	seen := map[int64]bool{}
	failed := map[int64]bool{}
	for i, e := range now.all {
		number := int64(-1 - i)
		if e.Rank != nil {
			number = *e.Rank
		}
		seen[number] = true
		failed[number] = failed[number] || e.Failed()
		c.PeakAllocated = higher(c.PeakAllocated, e.Summary.PeakAllocated)
		c.PeakReserved = higher(c.PeakReserved, e.Summary.PeakReserved)
	}
	c.Ranks = len(seen)
	for _, f := range failed {
		if f {
			c.Failed++
		}
	}
	if now.bounds {
		c.Notes = append(c.Notes, "every rank failed, or its file is cut off: the peaks are at least these")
	}
	if s.before == nil {
		return c
	}
	c.Than = &s.before.commit
	chosen := s.chosen(scatter)
	if chosen == nil {
		return c
	}
	delta := int64(chosen.delta)
	c.Delta, c.Measure, c.Grew = &delta, &chosen.measure, chosen.beyond(scatter)
	return c
}

// beyond reports whether the growth is more than scatter.
func (g *rankGrowth) beyond(scatter map[string]float64) bool {
	return g.share > max(g.threshold, scatter[g.measure])
}

// chosen returns the growth that decides: the first that is beyond scatter, else
// the first; nil if the commits have nothing in common.
func (s *growthStep) chosen(scatter map[string]float64) *rankGrowth {
	if len(s.grown) == 0 {
		return nil
	}
	i := slices.IndexFunc(s.grown, func(g rankGrowth) bool { return g.beyond(scatter) })
	return &s.grown[max(i, 0)]
}

// higher returns the larger of two numbers that may be unknown.
func higher(a, b *uint64) *uint64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

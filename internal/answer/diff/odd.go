package diff

import (
	"cmp"
	"math"
	"slices"
)

const (
	// OddShare is the part of the median by which a rank must differ to be
	// called odd. It is a choice: without it ranks that are all alike but for a
	// few bytes would have an odd one.
	OddShare = 0.01
	// OddDeviations is how many standard deviations it must be away from the
	// median besides. Of values that scatter normally one in 370 is further
	// out than three.
	OddDeviations = 3
	// perMAD is the standard deviation of normally distributed values whose
	// median deviation is 1.
	perMAD = 1.4826
)

// The measures in which ranks are compared.
const (
	MeasureAllocated     = "peak_allocated"
	MeasureRequested     = "peak_requested"
	MeasureReserved      = "peak_reserved"
	MeasureFragmentation = "fragmentation" // in bytes: peak reserved - peak allocated
	MeasureOOMs          = "oom_events"
	MeasureEvents        = "events"
)

// Measure is how the ranks scatter in one measure. Bytes or counts are nil.
type Measure struct {
	Name           string  `json:"measure"`
	MedianBytes    *uint64 `json:"median_bytes"`
	ThresholdBytes *uint64 `json:"threshold_bytes"`
	MedianCount    *int    `json:"median_count"`
	ThresholdCount *int    `json:"threshold_count"`
}

// Odd is a rank that is far from the median in a measure.
type Odd struct {
	Rank       int      `json:"rank"` // position in the list of ranks
	Measure    string   `json:"measure"`
	DeltaBytes *int64   `json:"delta_bytes"`
	DeltaCount *int     `json:"delta_count"`
	Fraction   *float64 `json:"delta_fraction"` // of the median; nil if that is 0

	excess float64
}

// measured is a measure of all ranks. ok is false for a rank that does not
// have it.
type measured struct {
	name  string
	bytes bool
	value func(r *Rank) (v float64, ok bool)
	// least is what OddShare is taken of, if not the median of the measure.
	least func(r *Rank) float64
	// only tells which ranks the measure is about; nil is all. The others are what
	// they are compared with.
	only func(r *Rank) bool
}

func (rs *Ranks) measures() []measured {
	size := func(p *uint64) (float64, bool) {
		if p == nil {
			return 0, false
		}
		return float64(*p), true
	}
	allocated := measured{name: MeasureAllocated, bytes: true, value: func(r *Rank) (float64, bool) { return size(r.PeakAllocated) }}
	requested := measured{name: MeasureRequested, bytes: true, value: func(r *Rank) (float64, bool) { return size(r.PeakRequested) }}
	unsized := func(r *Rank) bool { return r.PeakAllocated == nil }
	used := []measured{allocated}
	switch {
	case rs.Sizes == RequestedSizes:
		used = []measured{requested}
	case slices.ContainsFunc(rs.Ranks, unsized):
		requested.only = unsized // a few whose replay gave no block sizes
		used = append(used, requested)
	}
	reserved := func(r *Rank) float64 { return float64(r.PeakReserved) }
	return append(used, []measured{
		{name: MeasureReserved, bytes: true, value: func(r *Rank) (float64, bool) { return reserved(r), true }},
		// A share of the difference would make much of a few megabytes.
		{name: MeasureFragmentation, bytes: true, value: func(r *Rank) (float64, bool) { return size(r.FragmentationBytes) }, least: reserved},
		{name: MeasureOOMs, value: func(r *Rank) (float64, bool) { return float64(r.OOMs), true }},
		{name: MeasureEvents, value: func(r *Rank) (float64, bool) { return float64(r.Events), true }},
	}...)
}

// FindOdd finds the odd among ranks that were summed up elsewhere, by the rule of
// [Table.Ranks]. They need a peak of reserved memory; what is nil is not compared.
func FindOdd(ranks []*Rank) []Odd {
	rs := &Ranks{Sizes: BlockSizes, Ranks: ranks, Odd: []Odd{}}
	rs.findOdd()
	return rs.Odd
}

// findOdd fills Measures and Odd.
func (rs *Ranks) findOdd() {
	for _, m := range rs.measures() {
		var values, least []float64
		for _, r := range rs.Ranks {
			if v, ok := m.value(r); ok && !r.Partial {
				values = append(values, v)
				if m.least != nil {
					least = append(least, m.least(r))
				}
			}
		}
		if len(values) == 0 {
			continue
		}
		middle, threshold := Threshold(values, least)
		rs.Measures = append(rs.Measures, m.summary(middle, threshold))
		for i, r := range rs.Ranks {
			if v, ok := m.value(r); ok && !r.Partial && (m.only == nil || m.only(r)) && math.Abs(v-middle) > threshold {
				rs.Odd = append(rs.Odd, m.odd(i, v-middle, middle, threshold))
			}
		}
	}
	// The rank that is furthest out comes first, with all its measures.
	worst := map[int]float64{}
	for _, o := range rs.Odd {
		worst[o.Rank] = max(worst[o.Rank], o.excess)
	}
	slices.SortStableFunc(rs.Odd, func(a, b Odd) int {
		return cmp.Or(cmp.Compare(worst[b.Rank], worst[a.Rank]), cmp.Compare(a.Rank, b.Rank))
	})
}

func (m *measured) summary(middle, threshold float64) Measure {
	out := Measure{Name: m.name}
	if m.bytes {
		a, b := uint64(middle), uint64(threshold)
		out.MedianBytes, out.ThresholdBytes = &a, &b
		return out
	}
	a, b := int(middle), int(threshold)
	out.MedianCount, out.ThresholdCount = &a, &b
	return out
}

func (m *measured) odd(rank int, delta, middle, threshold float64) Odd {
	o := Odd{Rank: rank, Measure: m.name, excess: math.Abs(delta) / max(threshold, 1)}
	if m.bytes {
		d := int64(delta)
		o.DeltaBytes = &d
	} else {
		d := int(delta)
		o.DeltaCount = &d
	}
	if middle > 0 {
		f := delta / middle
		o.Fraction = &f
	}
	return o
}

// Threshold returns the median of values and the distance from it beyond which
// one is odd. OddShare is taken of the median of wholes, if there are any, else of
// that of the values.
func Threshold(values, wholes []float64) (middle, threshold float64) {
	middle = median(values)
	away := make([]float64, len(values))
	for i, v := range values {
		away[i] = math.Abs(v - middle)
	}
	whole := middle
	if len(wholes) > 0 {
		whole = median(wholes)
	}
	return middle, max(OddShare*whole, OddDeviations*perMAD*median(away))
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

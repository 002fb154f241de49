package eager

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// A learner grows trees that tell from features what workspaces consist of.
type learner struct {
	cases  []*measuredConv
	kinds  []workspace // that occur
	losses [][]float32 // by case and kind
	random *rand.Rand
	asked  int     // features tried at a node
	least  int     // cases in a leaf
	gain   float32 // of a split
}

// newLearner knows the cases whose workspace was measured.
func newLearner(all []*measuredConv, p convPass) *learner {
	l := &learner{random: rand.New(rand.NewPCG(7, uint64(p))), asked: 16, least: 2, gain: 0.05}
	for _, c := range all {
		if c.space[p] >= 0 {
			l.cases = append(l.cases, c)
		}
	}
	kinds := allWorkspaces()
	best := make([]float64, len(kinds))
	for _, c := range l.cases {
		least, ties := float32(math.Inf(1)), []int{}
		for i, k := range kinds {
			switch v := c.loss(k, p); {
			case v < least:
				least, ties = v, []int{i}
			case v == least:
				ties = append(ties, i)
			}
		}
		for _, i := range ties {
			best[i] += 1 / float64(len(ties))
		}
	}
	for i, k := range kinds {
		if best[i] >= 3 {
			l.kinds = append(l.kinds, k)
		}
	}
	for _, c := range l.cases {
		row := make([]float32, len(l.kinds))
		for i, k := range l.kinds {
			row[i] = c.loss(k, p) * c.weight
		}
		l.losses = append(l.losses, row)
	}
	return l
}

// allWorkspaces are those that trees choose from.
func allWorkspaces() []workspace {
	var all []workspace
	for copies := range int64(8) {
		for filling := range int64(3) {
			if copies == 0 && filling > 0 {
				continue
			}
			base := workspace{Copies: copies, Filling: filling}
			add := func(w workspace, more ...int64) {
				for _, w.More = range more {
					all = append(all, w)
				}
			}
			add(base, 0, 16, 131, 144, 147, 272, 400, 1<<20, 2<<20, 4<<20, 6<<20, 8<<20, 15<<20)
			if filling > 0 {
				continue
			}
			for _, sums := range []int64{-1, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 128, 256} {
				w := base
				w.Sums = sums
				add(w, 0, 144, 272)
			}
			for _, tile := range []int64{32, 64, 128, 256} {
				for _, columns := range []int64{32, 64, 128, 256} {
					for taps := range int64(2) {
						w := base
						w.Tile, w.Columns, w.Taps = tile, columns, taps
						add(w, 159+16*min(copies, 1))
					}
				}
			}
		}
	}
	return all
}

// loss is how bad it is to say w.
func (c *measuredConv) loss(w workspace, p convPass) float32 {
	off := math.Abs(float64(w.bytes(c.conv, p) - c.space[p]))
	switch off /= float64(c.copies); {
	case off == 0:
		return 0
	case off <= 0.001:
		return 0.02
	default:
		return float32(0.05 + min(off, 1.5))
	}
}

// forest grows trees, each from cases drawn with replacement.
func (l *learner) forest(from []int, trees int) []*convTree {
	var f []*convTree
	for range trees {
		drawn := make([]int, len(from))
		for i := range drawn {
			drawn[i] = from[l.random.IntN(len(from))]
		}
		f = append(f, l.grow(drawn))
	}
	return f
}

// grow makes the tree for some cases.
func (l *learner) grow(from []int) *convTree {
	sums := make([]float32, len(l.kinds))
	for _, i := range from {
		for k, v := range l.losses[i] {
			sums[k] += v
		}
	}
	least := slices.Min(sums)
	t := &convTree{leaf: l.kinds[slices.Index(sums, least)]}
	if least < 1e-4 || len(from) < 2*l.least {
		return t
	}
	gain := l.gain
	below := make([]float32, len(l.kinds))
	order := slices.Clone(from)
	split := false
	for _, f := range l.random.Perm(len(l.cases[0].features))[:l.asked] {
		value := func(i int) int64 { return l.cases[i].features[f] }
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(value(a), value(b)) })
		clear(below)
		for n, i := range order[:len(order)-1] {
			for k, v := range l.losses[i] {
				below[k] += v
			}
			a, b := value(i), value(order[n+1])
			if a == b || n+1 < l.least || len(order)-n-1 < l.least {
				continue
			}
			left, right := float32(math.Inf(1)), float32(math.Inf(1))
			for k, v := range below {
				left, right = min(left, v), min(right, sums[k]-v)
			}
			if g := least - left - right; g > gain {
				gain, split = g, true
				t.feature, t.below = f, a+(b-a+1)/2
			}
		}
	}
	if !split {
		return t
	}
	var left, right []int
	for _, i := range from {
		if l.cases[i].features[t.feature] < t.below {
			left = append(left, i)
		} else {
			right = append(right, i)
		}
	}
	t.left, t.right = l.grow(left), l.grow(right)
	return t
}

package eager

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

var (
	update   = flag.Bool("update", false, "learn the workspaces of convolutions anew")
	validate = flag.Int("folds", 0, "print how well workspaces are learned from all but one of so many parts")
	treeFlag = flag.Int("trees", 15, "to grow")
)

func TestLearnWorkspaces(t *testing.T) {
	all := readWorkspaces(t)
	switch {
	case *validate > 0:
		crossValidate(t, all, *validate)
	case *update:
		updateTrees(t, all)
	default:
		t.Skip("needs -update or -folds")
	}
}

// crossValidate holds one part after the other back; a network or script is
// held back whole.
func crossValidate(t *testing.T, all []*measuredConv, folds int) {
	for p := forwardPass; p <= weightPass; p++ {
		l := newLearner(all, p)
		by := map[string]*figures{}
		add := func(key string, c *measuredConv, guess int64) {
			if by[key] == nil {
				by[key] = &figures{}
			}
			by[key].add(c, p, guess)
		}
		for fold := range folds {
			var from []int
			out := func(i int) bool {
				if of := l.cases[i].of; of != "random" {
					return int(crc32.ChecksumIEEE([]byte(of)))%folds == fold
				}
				return i%folds == fold
			}
			for i := range l.cases {
				if !out(i) {
					from = append(from, i)
				}
			}
			f := l.forest(from, *treeFlag)
			for i, c := range l.cases {
				if !out(i) {
					continue
				}
				guess := middle(c.conv, p, f)
				kind := "script"
				if c.of == "random" || strings.HasPrefix(c.of, "net ") {
					kind = c.of[:3]
				}
				add(kind, c, guess)
				add(kind+" "+c.conv.Type.String(), c, guess)
				if c.copies > 16<<20 {
					add(kind+" big", c, guess)
				}
				if off := guess - c.space[p]; kind != "ran" && 10*max(off, -off) > 3*c.copies {
					t.Logf("%s %+v wants %d, guessed %d of %d", c.of, *c.conv, c.space[p], guess, c.copies)
				}
			}
		}
		for _, k := range slices.Sorted(maps.Keys(by)) {
			t.Logf("pass %d %s: %v", p, k, by[k])
		}
	}
}

func updateTrees(t *testing.T, all []*measuredConv) {
	var f convForest
	var kinds []workspace
	for p := range f.trees {
		l := newLearner(all, convPass(p))
		var from []int
		for i, c := range l.cases {
			if !c.held {
				from = append(from, i)
			}
		}
		f.trees[p] = l.forest(from, *treeFlag)
		kinds = append(kinds, l.kinds...)
	}
	f.known = map[uint64][3]int64{}
	for _, c := range all {
		if c.of != "random" {
			f.known[c.conv.fingerprint()] = [3]int64{c.space[0] + 1, c.space[1] + 1, c.space[2] + 1}
		}
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	z.Write(appendForest(nil, f, kinds))
	z.Close()
	if err := os.WriteFile("convtrees.bin.gz", b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", b.Len())
}

// appendForest writes what readForest reads.
func appendForest(b []byte, f convForest, kinds []workspace) []byte {
	slices.SortFunc(kinds, func(x, y workspace) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	kinds = slices.Compact(kinds)
	add := func(v int64) { b = binary.AppendVarint(b, v) }
	add(int64(len(kinds)))
	for _, k := range kinds {
		for _, v := range k.fields() {
			add(*v)
		}
	}
	var tree func(t *convTree)
	tree = func(t *convTree) {
		if t.left == nil {
			add(-1)
			add(int64(slices.Index(kinds, t.leaf)))
			return
		}
		add(int64(t.feature))
		add(t.below)
		tree(t.left)
		tree(t.right)
	}
	for _, trees := range f.trees {
		add(int64(len(trees)))
		for _, t := range trees {
			tree(t)
		}
	}
	add(int64(len(f.known)))
	keys := make([]uint64, 0, len(f.known))
	for k := range f.known {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		add(int64(k))
		for _, v := range f.known[k] {
			add(v)
		}
	}
	return b
}

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
	l := &learner{random: rand.New(rand.NewPCG(7, uint64(p))), asked: 16, least: 1, gain: 0.05}
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
		for filling := range groupsOf8 + 1 {
			if copies == 0 && filling > 0 {
				continue
			}
			base := workspace{Copies: copies, Filling: filling}
			add := func(w workspace, more ...int64) {
				for _, w.More = range more {
					all = append(all, w)
				}
			}
			add(base, 131, 147, 1<<20, 2<<20, 4<<20, 6<<20, 8<<20, 15<<20)
			if filling > 0 {
				add(base, 0, 16)
				if filling < groupsOf4 {
					continue
				}
			}
			for sums := int64(-1); sums <= 256; sums = max(sums+1, sums*9/8) {
				w := base
				w.Sums = sums
				add(w, 0, 16, 144, 256, 272, 400)
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

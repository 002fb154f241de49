package eager

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sync"
)

// How cuDNN chooses kernels is not public. What their workspaces consist of can
// be seen, though: copies of tensors with the channels last, and parts of sums
// in fp32. Which of these a convolution needs is learned from measured ones
// (testdata/plan/workspaces.jsonl.gz): several decision trees answer, and the
// middle answer counts. TestLearnWorkspaces -update renews them.

//go:embed convtrees.bin.gz
var convTreesFile []byte

// workspace says what a workspace consists of.
type workspace struct {
	Copies  int64 // of x, w and y: bits 1, 2 and 4
	Filling int64 // of their channels
	Sums    int64 // of the weight in fp32; -1: one per image
	Tile    int64 // rows of the tiles of a wave that sums parts, 0: none
	Columns int64 // of these tiles
	Taps    int64 // 1: tiles do not reach over positions of the kernel
	More    int64 // bytes
}

// How the channels of copies are filled up.
const (
	to16Bytes int64 = iota
	notFilled
	to4
	groupsOf4 // those of every group
	groupsOf8
)

// convTree is a node: a question, or what the workspace consists of.
type convTree struct {
	feature     int
	below       int64
	left, right *convTree
	leaf        workspace
}

type convForest struct {
	trees [3][]*convTree
	known map[uint64][3]int64 // bytes by pass plus one, or zero
}

var readTrees struct {
	once   sync.Once
	forest convForest
}

// convTrees reads the file when it is first asked. It is a function so that a
// program without a dry run does not carry the file.
func convTrees() *convForest {
	readTrees.once.Do(func() { readTrees.forest = unpackTrees() })
	return &readTrees.forest
}

func unpackTrees() convForest {
	z, err := gzip.NewReader(bytes.NewReader(convTreesFile))
	if err != nil {
		panic(fmt.Sprintf("convtrees.bin.gz: %v", err))
	}
	data, err := io.ReadAll(z)
	if err != nil {
		panic(fmt.Sprintf("convtrees.bin.gz: %v", err))
	}
	return readForest(data)
}

// readForest reads what appendForest in the tests writes: numbers of variable
// length.
func readForest(data []byte) convForest {
	next := func() int64 {
		v, n := binary.Varint(data)
		data = data[n:]
		return v
	}
	kinds := make([]workspace, next())
	for i := range kinds {
		k := &kinds[i]
		for _, v := range k.fields() {
			*v = next()
		}
	}
	var tree func() *convTree
	tree = func() *convTree {
		feature := next()
		if feature < 0 {
			return &convTree{leaf: kinds[next()]}
		}
		t := &convTree{feature: int(feature), below: next()}
		t.left, t.right = tree(), tree()
		return t
	}
	f := convForest{known: map[uint64][3]int64{}}
	for p := range f.trees {
		f.trees[p] = make([]*convTree, next())
		for i := range f.trees[p] {
			f.trees[p][i] = tree()
		}
	}
	for range next() {
		key := uint64(next())
		f.known[key] = [3]int64{next(), next(), next()}
	}
	return f
}

func (w *workspace) fields() []*int64 {
	return []*int64{&w.Copies, &w.Filling, &w.Sums, &w.Tile, &w.Columns, &w.Taps, &w.More}
}

// find is the answer of the tree.
func (t *convTree) find(features []int64) workspace {
	for t.left != nil {
		if features[t.feature] < t.below {
			t = t.left
		} else {
			t = t.right
		}
	}
	return t.leaf
}

// guess is the middle of what the trees say.
func (c *Convolution) guess(p convPass) int64 {
	return middle(c, p, convTrees().trees[p])
}

func middle(c *Convolution, p convPass, trees []*convTree) int64 {
	f := c.features()
	answers := make([]int64, len(trees))
	for i, t := range trees {
		answers[i] = t.find(f).bytes(c, p)
	}
	slices.Sort(answers)
	return answers[len(answers)/2]
}

// bytes is the size of the workspace.
func (w workspace) bytes(c *Convolution, p convPass) int64 {
	size := c.Type.Size()
	sum := w.More
	for i, s := range [][]int64{c.X, c.W, c.Y} {
		switch {
		case w.Copies>>i&1 == 0:
		case w.Filling >= groupsOf4:
			sum += c.groupCopy(s, 4*(w.Filling-groupsOf4+1))
		default:
			sum += lastCopy(s, size, w.Filling)
		}
	}
	switch weight := lastCopy(c.W, size, to16Bytes) / size * 4; {
	case w.Sums < 0:
		sum += c.X[0] * weight
	default:
		sum += w.Sums * weight
	}
	if w.Tile > 0 {
		n := w.wave(c, p)
		sum += n * (4*w.Tile*w.Columns + 4)
	}
	return sum
}

// wave is how many tiles run at once on the H200's 132 multiprocessors when
// each part of the sum has all tiles of the result.
func (w workspace) wave(c *Convolution, p convPass) int64 {
	const multiprocessors = 132
	in, area := c.X[1]/c.Groups, product(c.W[2:])
	var rows, columns int64
	switch p {
	case forwardPass:
		rows, columns = c.X[0]*product(c.Y[2:]), c.Y[1]
	case inputPass:
		rows, columns = c.X[0]*product(c.X[2:]), c.X[1]
	case weightPass:
		rows, columns = c.Y[1], in*area
	}
	tiles := ceil(rows, w.Tile) * ceil(columns, w.Columns)
	if w.Taps == 1 {
		tiles = ceil(rows, w.Tile) * ceil(in, w.Columns) * area
	}
	return max(multiprocessors/tiles, 1) * tiles
}

// lastCopy is the size of a copy with the channels last.
func lastCopy(s []int64, size, filling int64) int64 {
	c := s[1]
	switch filling {
	case to16Bytes:
		c = ceil(c, 16/size) * 16 / size
	case to4:
		c = ceil(c, 4) * 4
	}
	return ceil(product(s)/s[1]*c*size, 16) * 16
}

// groupCopy is the size of a copy of one of c's tensors in which the channels of
// every group are filled up.
func (c *Convolution) groupCopy(s []int64, to int64) int64 {
	fill := func(n int64) int64 { return ceil(n, to) * to }
	n := product(s[2:]) * c.Type.Size()
	if &s[0] == &c.W[0] {
		return n * c.Groups * fill(s[0]/c.Groups) * fill(s[1])
	}
	return n * s[0] * c.Groups * fill(s[1]/c.Groups)
}

// features are what the trees ask about.
func (c *Convolution) features() []int64 {
	flag := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	aligned := func(n int64) int64 { return min(int64(1)<<bits.TrailingZeros64(uint64(n)), 64) }
	tiles := func(a, b int64) int64 { return ceil(a, 128) * ceil(b, 128) }
	waste := func(n, tile int64) int64 { return 100 * (ceil(n, tile)*tile - n) / n }
	n, in, out, g := c.X[0], c.X[1], c.Y[1], c.Groups
	last := len(c.X) - 1
	from, to, area, step := product(c.X[2:]), product(c.Y[2:]), product(c.W[2:]), product(c.Stride)
	return []int64{
		flag(c.Type.Size() == 2), flag(c.Type == BFloat16), flag(c.ChannelsLast), int64(len(c.X)),
		n, in, out, g, in / g, out / g, aligned(in / g), aligned(out / g),
		area, c.W[last], c.W[2], c.X[2], c.X[last], from, c.Y[last], to,
		step, c.Padding[last-2], c.Dilation[last-2],
		n * from, n * to, in / g * area, out / g * area,
		n * from * in, n * to * out, product(c.W), n * to * product(c.W) >> 10,
		tiles(n*to, out), tiles(n*from, in), tiles(out, in*area),
		1000 * n * to / (in*area + 1), 1000 * in / out,
		flag(area == 1 && step == 1 && from == to), flag(from == to),
		aligned(c.X[last]), aligned(c.Y[last]), aligned(from), aligned(to),
		waste(in, 64), waste(out, 64), waste(out, 128), waste(in, 128), in * out * area, in * out,
		flag(in == g && g > 1),
	}
}

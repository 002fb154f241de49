package view

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// weight is what a stack stands for: bytes of blocks, or their average over some
// time. Of two runs or moments that are compared it has the bytes of both.
type weight struct {
	bytes  float64
	blocks int
	a, b   float64
}

func (w *weight) add(o weight) {
	w.bytes += o.bytes
	w.blocks += o.blocks
	w.a += o.a
	w.b += o.b
}

// node is a frame of the tree of call stacks, with all that was allocated below
// it.
type node struct {
	frame  trace.FrameID
	parent int32
	end    int32 // the first node that is not below it
	total  weight
	self   float64
	match  bool // of a search
	leads  bool // a node below it matches
}

// tree is a tree of call stacks: its nodes depth first, node 0 is the root.
type tree struct {
	frame  func(trace.FrameID) (f timeline.Frame, own bool)
	stacks []treeStack
	nodes  []node
	none   weight // of blocks without a stack
}

// treeStack is a stack by its frames, the one at the root first.
type treeStack struct {
	path []trace.FrameID
	weight
}

// The names of nodes that are no frames.
const (
	othersName  = "(others)"
	noStackName = "(no stack)"
)

func newEmptyTree(frame func(trace.FrameID) (f timeline.Frame, own bool)) *tree {
	return &tree{frame: frame}
}

// add adds a stack.
func (t *tree) add(path []trace.FrameID, w weight) {
	if len(path) == 0 {
		t.none.add(w)
	}
	t.grow(path, w)
}

// grow is add, but a stack without frames is nobody's.
func (t *tree) grow(path []trace.FrameID, w weight) {
	t.stacks = append(t.stacks, treeStack{path, w})
}

// build makes the nodes. Sorted stacks need no search for those that they share
// with others: they are those of the stack before.
func (t *tree) build() {
	slices.SortStableFunc(t.stacks, func(x, y treeStack) int { return slices.Compare(x.path, y.path) })
	t.nodes = append(t.nodes, node{parent: -1})
	open := []int32{0} // the nodes of the stack before
	for _, s := range t.stacks {
		shared := 1
		for shared < len(open) && shared <= len(s.path) && t.nodes[open[shared]].frame == s.path[shared-1] {
			shared++
		}
		t.close(open[shared:])
		open = open[:shared]
		for _, f := range s.path[shared-1:] {
			t.nodes = append(t.nodes, node{frame: f, parent: open[len(open)-1]})
			open = append(open, int32(len(t.nodes)-1))
		}
		for _, id := range open {
			t.nodes[id].total.add(s.weight)
		}
		if id := open[len(open)-1]; id > 0 {
			t.nodes[id].self += s.bytes
		}
	}
	t.close(open)
}

// close ends nodes.
func (t *tree) close(some []int32) {
	for _, id := range some {
		t.nodes[id].end = int32(len(t.nodes))
	}
}

// children appends the nodes right below one.
func (t *tree) children(dst []int32, id int32) []int32 {
	for c := id + 1; c < t.nodes[id].end; c = t.nodes[c].end {
		dst = append(dst, c)
	}
	return dst
}

// byWeight orders nodes, the heaviest first; equal ones in an order that does not
// depend on chance.
func (t *tree) byWeight(x, y int32) int {
	return cmp.Or(cmp.Compare(t.nodes[y].total.bytes, t.nodes[x].total.bytes), cmp.Compare(t.nodes[x].frame, t.nodes[y].frame))
}

// find returns the nodes along a path from the root on; fewer than it has frames
// if it ends somewhere.
func (t *tree) find(path []trace.FrameID) (way []int32) {
	at := int32(0)
	for _, f := range path {
		below := t.children(nil, at)
		i := slices.IndexFunc(below, func(c int32) bool { return t.nodes[c].frame == f })
		if i < 0 {
			break
		}
		at = below[i]
		way = append(way, at)
	}
	return way
}

// mark marks the frames that a search finds, and returns how many there are. What
// has no width is not in the picture.
func (t *tree) mark(matching []bool) (frames int) {
	for i := len(t.nodes) - 1; i > 0; i-- { // children come after their parents
		n := &t.nodes[i]
		if n.match = matching[n.frame] && n.total.bytes > 0; n.match {
			frames++
		}
		if n.match || n.leads {
			t.nodes[n.parent].leads = true
		}
	}
	return frames
}

// treeNode is a node as the page has it.
type treeNode struct {
	Frame  int    `json:"frame"` // the number of the frame in the file; -1 if it is none
	Name   string `json:"name"`
	File   string `json:"file"`
	Line   int64  `json:"line"`
	Bytes  uint64 `json:"bytes"`
	Blocks int    `json:"blocks"`
	Depth  int    `json:"depth"`
	Self   uint64 `json:"self"`
	User   bool   `json:"user"`
	Native bool   `json:"native"` // compiled code
	Match  bool   `json:"match,omitempty"`
	// Of two runs or moments that are compared.
	A uint64 `json:"a_bytes,omitempty"`
	B uint64 `json:"b_bytes,omitempty"`
}

// newTreeNode is what has no frame.
func newTreeNode(name string, w weight, depth int) treeNode {
	return treeNode{Frame: -1, Name: name, Bytes: whole(w.bytes), Blocks: w.blocks, Depth: depth, Self: whole(w.bytes), A: whole(w.a), B: whole(w.b)}
}

const (
	// leastShare is the part of the whole below which a node cannot be seen in a
	// picture a few thousand pixels wide.
	leastShare = 0.0005
	maxNodes   = 20_000
)

// lister lists the nodes of a tree.
type lister struct {
	*tree
	out   []treeNode
	least float64 // what is smaller is folded
	way   []int32 // to the node that is as wide as the picture: below it less is seen
	marks bool    // what leads to a match is not folded
}

// flatten lists the nodes depth first. Small ones are folded into one, but not
// what a search finds or what leads to a node that the picture is zoomed to; if
// there are too many, larger ones as well.
func (t *tree) flatten(way []int32) []treeNode {
	for share := leastShare; ; share *= 2 {
		l := &lister{tree: t, out: []treeNode{}, least: share * t.nodes[0].total.bytes, way: way, marks: share == leastShare}
		l.list(0, 0, share)
		if t.none.bytes > 0 {
			l.out = append(l.out, newTreeNode(noStackName, t.none, 0))
		}
		if len(l.out) <= maxNodes {
			return l.out
		}
	}
}

func (l *lister) list(parent int32, depth int, share float64) {
	var others weight
	below := l.children(nil, parent)
	if len(l.way) > 0 && parent == l.way[len(l.way)-1] {
		was := l.least
		l.least = share * l.nodes[parent].total.bytes
		defer func() { l.least = was }()
	}
	below = slices.DeleteFunc(below, func(id int32) bool {
		n := &l.nodes[id]
		small := n.total.bytes == 0 || n.total.bytes < l.least && !slices.Contains(l.way, id) && !(l.marks && (n.match || n.leads))
		if small && n.total.bytes > 0 { // else nothing changed there
			others.add(n.total)
		}
		return small
	})
	slices.SortFunc(below, l.byWeight)
	for _, id := range below {
		n := &l.nodes[id]
		f, own := l.frame(n.frame)
		one := newTreeNode(f.Name, n.total, depth)
		one.Frame, one.File, one.Line, one.Self = int(n.frame), f.Filename, f.Line, whole(n.self)
		one.User, one.Native, one.Match = own, f.Native(), n.match
		l.out = append(l.out, one)
		if len(l.out) > maxNodes {
			return
		}
		l.list(id, depth+1, share)
	}
	if others.blocks > 0 {
		l.out = append(l.out, newTreeNode(othersName, others, depth))
	}
}

func whole(bytes float64) uint64 { return uint64(bytes + 0.5) }

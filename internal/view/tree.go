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
	frame    trace.FrameID
	total    weight
	self     float64
	children []int32
	match    bool // of a search
	leads    bool // a node below it matches
}

// tree is a tree of call stacks; node 0 is the root.
type tree struct {
	frame func(trace.FrameID) (f timeline.Frame, own bool)
	nodes []node
	child map[[2]uint32]int32 // parent and frame -> node
	none  weight              // of blocks without a stack
}

// The names of nodes that are no frames.
const (
	othersName  = "(others)"
	noStackName = "(no stack)"
)

func newEmptyTree(frame func(trace.FrameID) (f timeline.Frame, own bool)) *tree {
	return &tree{frame: frame, nodes: make([]node, 1), child: map[[2]uint32]int32{}}
}

// add adds a stack by its frames, the one at the root first.
func (t *tree) add(path []trace.FrameID, w weight) {
	if len(path) == 0 {
		t.none.add(w)
	}
	t.grow(path, w)
}

// grow is add, but a stack without frames is nobody's.
func (t *tree) grow(path []trace.FrameID, w weight) {
	t.nodes[0].total.add(w)
	at := int32(0)
	for _, f := range path {
		at = t.below(at, f)
		t.nodes[at].total.add(w)
	}
	if at > 0 {
		t.nodes[at].self += w.bytes
	}
}

// sort orders children by weight; equal ones in an order that does not depend on
// chance.
func (t *tree) sort() {
	for i := range t.nodes {
		slices.SortFunc(t.nodes[i].children, func(x, y int32) int {
			return cmp.Or(cmp.Compare(t.nodes[y].total.bytes, t.nodes[x].total.bytes), cmp.Compare(t.nodes[x].frame, t.nodes[y].frame))
		})
	}
}

// below returns the node of a frame under another.
func (t *tree) below(parent int32, f trace.FrameID) int32 {
	key := [2]uint32{uint32(parent), uint32(f)}
	id, ok := t.child[key]
	if !ok {
		id = int32(len(t.nodes))
		t.child[key] = id
		t.nodes = append(t.nodes, node{frame: f})
		t.nodes[parent].children = append(t.nodes[parent].children, id)
	}
	return id
}

// find returns the nodes along a path from the root on; fewer than it has frames
// if it ends somewhere.
func (t *tree) find(path []trace.FrameID) (way []int32) {
	at := int32(0)
	for _, f := range path {
		next, ok := t.child[[2]uint32{uint32(at), uint32(f)}]
		if !ok {
			break
		}
		at = next
		way = append(way, at)
	}
	return way
}

// mark marks the frames that a search finds, and returns how many there are.
// Children come after their parents.
func (t *tree) mark(matching []bool) (frames int) {
	for i := len(t.nodes) - 1; i > 0; i-- {
		if n := &t.nodes[i]; matching[n.frame] {
			n.match = true
			frames++
		}
	}
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := &t.nodes[i]
		n.leads = slices.ContainsFunc(n.children, func(c int32) bool { return t.nodes[c].match || t.nodes[c].leads })
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
	if len(l.way) > 0 && parent == l.way[len(l.way)-1] {
		was := l.least
		l.least = share * l.nodes[parent].total.bytes
		defer func() { l.least = was }()
	}
	for _, id := range l.nodes[parent].children {
		n := &l.nodes[id]
		if n.total.bytes == 0 {
			continue // nothing changed there
		}
		if n.total.bytes < l.least && !slices.Contains(l.way, id) && !(l.marks && (n.match || n.leads)) {
			others.add(n.total)
			continue
		}
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

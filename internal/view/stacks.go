package view

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// weight is what a stack stands for: bytes of blocks, or their average over some
// time. Of two runs that are compared it has the bytes of both.
type weight struct {
	bytes  float64
	blocks int
	a, b   float64
}

// node is a frame of the tree of call stacks, with all that was allocated below
// it.
type node struct {
	frame    trace.FrameID
	total    weight
	self     float64
	children []int32
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

// newTree adds stacks up by their frames, outermost first. Own leaves out the
// frames of libraries, but for the one where memory was asked for.
func (r *pageRun) newTree(weights map[trace.StackID]weight, own bool) *tree {
	t := newEmptyTree(func(id trace.FrameID) (timeline.Frame, bool) { return r.frame(id), r.own()[id] })
	for id, w := range weights {
		var path []trace.FrameID
		if own {
			path = timeline.OwnPath(r.trace, id, r.own())
		} else {
			path = slices.Clone(r.trace.Stacks.Frames(id))
			slices.Reverse(path)
		}
		t.add(path, w)
	}
	t.sort()
	return t
}

func newEmptyTree(frame func(trace.FrameID) (f timeline.Frame, own bool)) *tree {
	return &tree{frame: frame, nodes: make([]node, 1), child: map[[2]uint32]int32{}}
}

// add adds a stack, outermost frame first.
func (t *tree) add(path []trace.FrameID, w weight) {
	t.nodes[0].total.add(w)
	if len(path) == 0 {
		t.none.add(w)
		return
	}
	at := int32(0)
	for _, f := range path {
		at = t.below(at, f)
		t.nodes[at].total.add(w)
	}
	t.nodes[at].self += w.bytes
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

func (w *weight) add(o weight) {
	w.bytes += o.bytes
	w.blocks += o.blocks
	w.a += o.a
	w.b += o.b
}

// below returns the node of a frame called by another.
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

// treeNode is a node as the page has it.
type treeNode struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	Line   int64  `json:"line"`
	Bytes  uint64 `json:"bytes"`
	Blocks int    `json:"blocks"`
	Depth  int    `json:"depth"`
	Self   uint64 `json:"self"`
	User   bool   `json:"user"`
	Native bool   `json:"native"` // compiled code
	// Of two runs that are compared.
	A uint64 `json:"a_bytes,omitempty"`
	B uint64 `json:"b_bytes,omitempty"`
}

// stackTree is a tree as the page has it: its nodes depth first.
type stackTree struct {
	Event *int       `json:"event"` // nil if it is of a piece of the run
	Total uint64     `json:"total_bytes"`
	Nodes []treeNode `json:"nodes"`
}

// newTreeNode is what has no frame.
func newTreeNode(name string, w weight, depth int) treeNode {
	return treeNode{Name: name, Bytes: whole(w.bytes), Blocks: w.blocks, Depth: depth, Self: whole(w.bytes), A: whole(w.a), B: whole(w.b)}
}

const (
	// leastShare is the part of the whole below which a node cannot be seen in a
	// picture a few thousand pixels wide.
	leastShare = 0.0005
	maxNodes   = 20_000
)

// flatten lists the nodes depth first. Small ones are folded into one; if there
// are too many, larger ones as well.
func (t *tree) flatten() []treeNode {
	least := leastShare * t.nodes[0].total.bytes
	for {
		out := t.list([]treeNode{}, 0, 0, least)
		if t.none.bytes > 0 {
			out = append(out, newTreeNode(noStackName, t.none, 0))
		}
		if len(out) <= maxNodes {
			return out
		}
		least *= 2
	}
}

func (t *tree) list(out []treeNode, parent int32, depth int, least float64) []treeNode {
	var others weight
	for _, id := range t.nodes[parent].children {
		n := &t.nodes[id]
		if n.total.bytes == 0 {
			continue // nothing changed there
		}
		if n.total.bytes < least {
			others.add(n.total)
			continue
		}
		f, own := t.frame(n.frame)
		one := newTreeNode(f.Name, n.total, depth)
		one.File, one.Line, one.Self, one.User, one.Native = f.Filename, f.Line, whole(n.self), own, f.Native()
		out = append(out, one)
		if len(out) > maxNodes {
			return out
		}
		out = t.list(out, id, depth+1, least)
	}
	if others.blocks > 0 {
		out = append(out, newTreeNode(othersName, others, depth))
	}
	return out
}

func whole(bytes float64) uint64 { return uint64(bytes + 0.5) }

// weigh adds up by stacks what is chosen.
func weigh(some []int32, s *selection, bytes func(i int32) float64) map[trace.StackID]weight {
	out := map[trace.StackID]weight{}
	for _, i := range some {
		if s.has(int(i)) {
			id := s.of.stack(int(i))
			w := out[id]
			w.add(weight{bytes: bytes(i), blocks: 1})
			out[id] = w
		}
	}
	return out
}

// moment reads event or peak: the moment that a question is about.
func (r *request) moment() int {
	if r.query.flag("peak") {
		return r.run.allocatedPeak().Event
	}
	return r.query.event("event", r.run.events()-1, r.run)
}

// stacks is api/stacks.
func (r *request) stacks() error {
	of := r.stacked()
	event, area, own, chosen := r.moment(), r.query.flag("area"), r.query.flag("user"), r.selection(of)
	if r.query.values.Get("what") == "segments" && r.query.flag("peak") {
		event = r.run.peaks.Reserved.Event
	}
	from, to := r.query.integer("from", 0, 0, r.run.events()), r.query.integer("to", r.run.events(), 0, r.run.events())
	if area && from >= to && r.run.events() > 0 {
		r.query.bad("from %d to %d is no piece of the run", from, to)
	}
	if r.query.err != nil {
		return r.query.err
	}
	var weights map[trace.StackID]weight
	if area {
		weights = r.run.averages(from, to, chosen)
	} else {
		weights = weigh(of.Alive(nil, event), chosen, func(i int32) float64 { return float64(of.Size[i]) })
	}
	t := r.run.newTree(weights, own)
	return r.json(stackTree{unless(area, event), whole(t.nodes[0].total.bytes), t.flatten()})
}

// unless is a number, or nil.
func unless(not bool, n int) *int {
	if not {
		return nil
	}
	return &n
}

// averages are what stacks held on average between two events, over time if the
// file has times.
func (r *pageRun) averages(from, to int, s *selection) map[trace.StackID]weight {
	place := func(event int) float64 { return float64(event) }
	if r.clock.First != trace.NoTime && from < to && r.clock.At(from) < r.clock.At(to-1) {
		place = func(event int) float64 { return float64(r.clock.At(min(event, to-1))) }
	}
	begin, end := place(from), place(to)
	if from >= to { // a file without events: the state is all there is
		begin, end = 0, 1
	}
	of := s.of
	some := of.Alive(nil, from-1)
	for i := of.Begun(from - 1); i < of.Begun(to-1); i++ {
		some = append(some, int32(i))
	}
	return weigh(some, s, func(i int32) float64 {
		a, b := begin, end
		if born := int(of.Born[i]); born > from {
			a = place(born)
		}
		if gone := int(of.Gone[i]); gone < to {
			b = place(gone)
		}
		return float64(of.Size[i]) * (b - a) / (end - begin)
	})
}

package eager

import (
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// last is the sequence number of nodes that run as soon as they can.
const last = math.MaxInt64

// Node is an op in autograd's graph: what its derivative needs, and where its
// gradients go.
type Node struct {
	machine  *Machine
	name     string
	module   ledger.Name
	kind     ledger.Kind
	sequence int64
	refs     int32 // tensors it made, nodes that lead to it
	edges    []edge
	saved    []saved
	apply    Derivative
	leaf     *Tensor // AccumulateGrad: whose gradient it adds to
	owns     bool    // AccumulateGrad: it keeps the leaf
	outputs  int     // 0 is one
	turn     turn    // its part in a backward pass

	// Storage for what the pass and the derivative hand around.
	one     [1]*Tensor // the buffer of a node with one output
	results [3]*Tensor // what give returns

	// What derivatives need beside tensors.
	at        [2]int  // dimensions
	byColumns [2]bool // how the matrices of a product lie in memory

	// Hook is called after the node ran (DDP, FSDP).
	hook func()
	// before is called before the node runs.
	before func(g []*Tensor)
}

// Derivative computes the gradients of an op's inputs from those of its
// outputs. It borrows g and returns one gradient for each input, nil where
// none is needed.
type Derivative func(n *Node, g []*Tensor) []*Tensor

// edge is where the gradient of an input goes, and what it must look like.
type edge struct {
	node  *Node
	slot  int
	dtype DType
	dims  int8
	dim   [MaxDims]int64
}

func (e *edge) shape() []int64 { return e.dim[:e.dims] }

// saved is a tensor that a node keeps.
type saved struct {
	tensor *Tensor // nil once released, or if a checkpoint has it
	frame  *frame
	index  int // in the frame
	output bool
}

// node begins an op: nil if no gradient is needed.
func (m *Machine) node(name string, inputs ...*Tensor) *Node {
	if m.noGrad {
		return nil
	}
	if !slices.ContainsFunc(inputs, func(t *Tensor) bool { return t != nil && t.needs }) {
		return nil
	}
	n := m.arena.nodes.take()
	edges, saves := n.edges[:0], n.saved[:0]
	if cap(edges) < len(inputs) {
		edges = m.arena.edgesFor(len(inputs))
	}
	*n = Node{
		machine: m, name: name, module: m.module, kind: m.kind, sequence: m.sequence,
		edges: edges[:len(inputs)], saved: saves,
	}
	m.sequence++
	for i, t := range inputs {
		e := &n.edges[i]
		if t == nil || !t.needs {
			e.node = nil
			continue
		}
		*e = edge{node: t.node, slot: t.slot, dtype: t.dtype, dims: t.dims, dim: t.dim}
		if t.node == nil {
			e.node, e.slot = t.sink, 0
		}
		e.node.refs++
	}
	return n
}

// shape is that of input i, which needs its gradient.
func (n *Node) shape(i int) []int64 { return n.edges[i].shape() }

// give returns the gradients of the inputs, in their order.
func (n *Node) give(gradients ...*Tensor) []*Tensor {
	out := n.results[:0]
	return append(out, gradients...)
}

// wants reports whether input i needs its gradient.
func (n *Node) wants(i int) bool { return n != nil && n.edges[i].node != nil }

// save keeps an input for the derivative. Its number for unpack is the count
// of saves before.
func (n *Node) save(t *Tensor) { n.saveAs(t, false) }

// saveOutput keeps an output.
func (n *Node) saveOutput(t *Tensor) { n.saveAs(t, true) }

func (n *Node) saveAs(t *Tensor, output bool) {
	if n == nil {
		return
	}
	if t == nil {
		n.saved = append(n.saved, saved{})
		return
	}
	if f := n.machine.frame; f != nil {
		n.pack(f, t)
		return
	}
	n.saved = append(n.saved, saved{tensor: n.hold(t, output), output: output})
}

// pack leaves a tensor to a checkpoint. If that has all it wants the node is
// given up: the op does not go on.
func (n *Node) pack(f *frame, t *Tensor) {
	done := false
	defer func() {
		if !done {
			n.refs++
			n.unref()
		}
	}()
	n.saved = append(n.saved, f.pack(t))
	done = true
}

// mark says that the memory of t is kept for the backward pass.
func (n *Node) mark(t *Tensor) {
	if id := t.store.id; id != noEntry {
		if e := &n.machine.Ledger.Tensors[id]; e.Kind == ledger.Temporary {
			e.Kind = ledger.Activation
		}
	}
}

// hold is the tensor that a node keeps for t: an output is kept without its
// node, so that the node does not keep itself.
func (n *Node) hold(t *Tensor, output bool) *Tensor {
	n.mark(t)
	if !output {
		return t.retain()
	}
	return n.machine.alias(t)
}

// alias is a tensor on the same storage, without history, that no name holds.
func (m *Machine) alias(t *Tensor) *Tensor {
	a := m.arena.tensors.take()
	*a = *t
	a.owners, a.held, a.node, a.sink, a.grad, a.needs, a.scope = 1, 0, nil, nil, nil, false, nil
	a.store.refs++
	return a
}

// unpack returns saved tensor i, held until the node has run.
func (n *Node) unpack(i int) *Tensor {
	s := &n.saved[i]
	if s.frame != nil {
		t := s.frame.unpack(s.index)
		n.machine.pass.loans = append(n.machine.pass.loans, t)
		return t
	}
	return s.tensor
}

// made says that the op is done: t is output 0, more are the next ones.
func (n *Node) made(t *Tensor, more ...*Tensor) {
	if n == nil {
		return
	}
	n.output(t, 0)
	for i, t := range more {
		n.output(t, i+1)
	}
}

func (n *Node) output(t *Tensor, slot int) {
	t.node, t.slot, t.needs = n, slot, true
	n.refs++
	n.outputs = max(n.outputs, slot+1)
}

func (n *Node) unref() {
	n.refs--
	if n.refs > 0 {
		return
	}
	n.releaseSaved()
	for i := len(n.edges) - 1; i >= 0; i-- { // torch deletes the graph behind the last input first
		if next := n.edges[i].node; next != nil {
			n.edges[i].node = nil
			next.unref()
		}
	}
	if n.owns {
		n.owns = false
		n.leaf.ZeroGrad()
		n.leaf.release()
	}
	n.machine.giveNode(n)
}

// releaseSaved frees what the node kept.
func (n *Node) releaseSaved() {
	for i := range n.saved {
		s := &n.saved[i]
		if s.frame != nil {
			s.frame.unref(s.index)
			s.frame = nil
		}
		if s.tensor != nil {
			s.tensor.release()
			s.tensor = nil
		}
	}
}

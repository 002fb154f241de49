package eager

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// pass is one run of the backward engine.
type pass struct {
	machine *Machine
	outer   *pass // that it runs within
	ready   queue
	loans   []*Tensor // what unpack lent to the node that runs
	// shadowed is what nodes have to do in an outer pass that take part in this
	// one too.
	shadowed []shadow
}

// turn is a node's part in a pass.
type turn struct {
	pass    *pass
	waiting int32     // edges whose gradients have not come yet
	buffer  []*Tensor // the gradients of its outputs that have
}

type shadow struct {
	node *Node
	turn turn
}

// Backward is loss.backward(): it runs the graph behind a tensor and leaves
// gradients at the leaves.
func (m *Machine) Backward(loss *Tensor) {
	if loss.node == nil {
		return
	}
	one := m.emptyLike("ones_like", loss, loss.dtype)
	m.run(loss.node, loss.slot, one.retain())
	one.Drop()
}

// run gives a gradient, which it takes over, to a node and runs all behind it.
func (m *Machine) run(root *Node, slot int, g *Tensor) {
	p := &pass{machine: m, outer: m.pass}
	p.count(root)
	thread, grad, kind, module := m.backward, m.noGrad, m.kind, m.module
	m.pass, m.backward, m.noGrad, m.kind = p, true, true, ledger.Temporary
	p.add(root, slot, g)
	p.ready.push(root)
	for len(p.ready) > 0 {
		p.evaluate(p.ready.pop())
	}
	m.pass, m.backward, m.noGrad, m.kind, m.module = p.outer, thread, grad, kind, module
	for _, s := range p.shadowed {
		s.node.turn = s.turn
	}
}

// count finds how many gradients each node waits for.
func (p *pass) count(root *Node) {
	p.enter(root)
	stack := []*Node{root}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for i := range n.edges {
			next := n.edges[i].node
			if next == nil {
				continue
			}
			if next.turn.pass != p {
				p.enter(next)
				stack = append(stack, next)
			}
			next.turn.waiting++
		}
	}
}

// enter makes a node take part.
func (p *pass) enter(n *Node) {
	for o := p.outer; o != nil; o = o.outer {
		if n.turn.pass == o {
			before := n.turn
			before.buffer = slices.Clone(before.buffer)
			p.shadowed = append(p.shadowed, shadow{n, before})
		}
	}
	n.turn = turn{pass: p}
}

// evaluate runs a node and hands its gradients on.
func (p *pass) evaluate(n *Node) {
	m := p.machine
	in := n.turn.buffer
	n.turn.buffer = nil
	if n.leaf != nil {
		n.accumulate(in[0])
		if n.hook != nil {
			n.hook()
		}
		return
	}
	m.module, m.kind = n.module, n.kind
	if n.before != nil {
		n.before(in)
	}
	// Between these two the node runs; what it unpacked is its own until then.
	outer := p.loans
	p.loans = nil
	out := n.apply(n, in)
	for i := len(p.loans) - 1; i >= 0; i-- { // C++ destroys what it made last first
		p.loans[i].release()
	}
	p.loans = outer
	for i := range out {
		if out[i] != nil {
			out[i] = p.fit(out[i], &n.edges[i])
		}
	}
	for _, t := range in {
		if t != nil {
			t.release()
		}
	}
	n.releaseSaved()
	if n.hook != nil {
		n.hook()
	}
	for i, t := range out {
		e := &n.edges[i]
		if e.node == nil {
			if t != nil {
				t.Drop()
			}
			continue
		}
		if t != nil {
			t.held-- // a name of the derivative becomes one of the engine
			m.scope.keep(t, -1)
			p.add(e.node, e.slot, t)
		}
		p.arrived(e.node)
	}
}

// arrived says that one of the gradients has come that a node waits for, or
// that it will not.
func (p *pass) arrived(n *Node) {
	n.turn.waiting--
	switch {
	case n.turn.waiting > 0:
	case n.turn.buffer != nil:
		p.ready.push(n)
	default:
		p.skip(n)
	}
}

// skip passes over a node that no gradient reached. Torch runs it with
// undefined gradients, which allocate nothing.
func (p *pass) skip(n *Node) {
	n.releaseSaved()
	for i := range n.edges {
		if next := n.edges[i].node; next != nil {
			p.arrived(next)
		}
	}
}

// fit makes a gradient look like the input it belongs to: summed over what was
// broadcast, and of its type.
func (p *pass) fit(g *Tensor, e *edge) *Tensor {
	if e.node == nil {
		return g
	}
	if !g.sameShape(e.shape()) {
		s := p.machine.SumTo(g, e.shape())
		g.Drop()
		g = s
	}
	if g.dtype != e.dtype {
		c := p.machine.toCopy(g, e.dtype)
		g.Drop()
		g = c
	}
	return g
}

// add puts a gradient, which it takes over, into the buffer of a node's input.
func (p *pass) add(n *Node, slot int, g *Tensor) {
	b := n.turn.buffer
	if b == nil {
		b = n.one[:]
		if n.outputs > 1 {
			b = make([]*Tensor, n.outputs)
		}
		n.one[0] = nil
		n.turn.buffer = b
	}
	old := b[slot]
	if old == nil {
		b[slot] = g
		return
	}
	// In place if nobody else has the tensor or its memory.
	if old.owners == 1 && old.store.refs == 1 && !old.view && old.isDense() {
		g.release()
		return
	}
	module := p.machine.module
	sum := p.machine.pointwise("add", promote(old.dtype, g.dtype), old, g)
	p.machine.module = module
	sum.held--
	p.machine.scope.keep(sum, -1)
	b[slot] = sum
	old.release()
	g.release()
}

// accumulate adds a gradient, which it takes over, to that of a leaf.
func (n *Node) accumulate(g *Tensor) {
	leaf := n.leaf
	if leaf.grad != nil {
		g.release()
		return
	}
	m := n.machine
	if g.owners == 1 && obeysLayout(g, leaf) {
		leaf.grad = m.alias(g)
		g.release()
	} else {
		c := m.tensor(g.dtype, g.Shape())
		c.stride = leaf.stride
		c.store = m.alloc(c.Bytes(), "clone")
		leaf.grad = m.alias(c)
		c.Drop()
		g.release()
	}
	if !n.owns {
		leaf.grad.SetKind(ledger.Gradient)
	}
}

// obeysLayout reports whether a gradient lies in memory as its leaf does.
func obeysLayout(g, leaf *Tensor) bool {
	if !leaf.isDense() {
		return g.IsContiguous()
	}
	for i := range leaf.dims {
		if leaf.dim[i] != 1 && g.stride[i] != leaf.stride[i] {
			return false
		}
	}
	return true
}

// queue is a heap with the highest sequence number first. Which of two equal
// ones comes first is left to the order of swaps, which is that of
// container/heap.
type queue []*Node

func (q queue) before(i, j int) bool { return q[i].sequence > q[j].sequence }

func (q *queue) push(n *Node) {
	*q = append(*q, n)
	h := *q
	for j := len(h) - 1; j > 0; {
		i := (j - 1) / 2
		if !h.before(j, i) {
			break
		}
		h[i], h[j] = h[j], h[i]
		j = i
	}
}

func (q *queue) pop() *Node {
	h := *q
	n := len(h) - 1
	h[0], h[n] = h[n], h[0]
	for i := 0; ; {
		j := 2*i + 1
		if j >= n {
			break
		}
		if j+1 < n && h.before(j+1, j) {
			j++
		}
		if !h.before(j, i) {
			break
		}
		h[i], h[j] = h[j], h[i]
		i = j
	}
	*q = h[:n]
	return h[n]
}

package eager

import (
	"container/heap"

	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// pass is one run of the backward engine.
type pass struct {
	m     *Machine
	ready queue
	// waiting counts, for a node, the edges whose gradients have not come yet.
	waiting map[*Node]int
	buffers map[*Node][]*Tensor
	loans   []*Tensor // what unpack lent to the node that runs
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
	p := &pass{m: m, waiting: map[*Node]int{}, buffers: map[*Node][]*Tensor{}}
	p.count(root)
	outer := m.pass
	thread, grad, kind, module := m.backward, m.noGrad, m.kind, m.module
	m.pass, m.backward, m.noGrad, m.kind = p, true, true, ledger.Temporary
	p.add(root, slot, g)
	heap.Push(&p.ready, root)
	for len(p.ready) > 0 {
		p.evaluate(heap.Pop(&p.ready).(*Node))
	}
	m.pass, m.backward, m.noGrad, m.kind, m.module = outer, thread, grad, kind, module
}

// count finds how many gradients each node waits for.
func (p *pass) count(root *Node) {
	seen := map[*Node]bool{root: true}
	stack := []*Node{root}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for i := range n.edges {
			next := n.edges[i].node
			if next == nil {
				continue
			}
			p.waiting[next]++
			if !seen[next] {
				seen[next] = true
				stack = append(stack, next)
			}
		}
	}
}

// evaluate runs a node and hands its gradients on.
func (p *pass) evaluate(n *Node) {
	m := p.m
	in := p.buffers[n]
	delete(p.buffers, n)
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
		if p.waiting[e.node]--; p.waiting[e.node] == 0 {
			delete(p.waiting, e.node)
			if p.buffers[e.node] != nil {
				heap.Push(&p.ready, e.node)
			} else {
				p.skip(e.node)
			}
		}
	}
}

// skip passes over a node that no gradient reached. Torch runs it with
// undefined gradients, which allocate nothing.
func (p *pass) skip(n *Node) {
	n.releaseSaved()
	for i := range n.edges {
		e := &n.edges[i]
		if e.node == nil {
			continue
		}
		if p.waiting[e.node]--; p.waiting[e.node] == 0 {
			delete(p.waiting, e.node)
			if p.buffers[e.node] != nil {
				heap.Push(&p.ready, e.node)
			} else {
				p.skip(e.node)
			}
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
		s := p.m.SumTo(g, e.shape())
		g.Drop()
		g = s
	}
	if g.dtype != e.dtype {
		c := p.m.toCopy(g, e.dtype)
		g.Drop()
		g = c
	}
	return g
}

// add puts a gradient, which it takes over, into the buffer of a node's input.
func (p *pass) add(n *Node, slot int, g *Tensor) {
	b := p.buffers[n]
	if b == nil {
		b = make([]*Tensor, max(n.outputs, 1))
		p.buffers[n] = b
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
	module := p.m.module
	sum := p.m.pointwise("add", promote(old.dtype, g.dtype), old, g)
	p.m.module = module
	sum.held--
	p.m.scope.keep(sum, -1)
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
	m := n.m
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

// obeysLayout tells whether a gradient lies in memory as its leaf does.
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

// queue has the node with the highest sequence number first.
type queue []*Node

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].sequence > q[j].sequence }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*Node)) }

func (q *queue) Pop() any {
	old := *q
	n := old[len(old)-1]
	*q = old[:len(old)-1]
	return n
}

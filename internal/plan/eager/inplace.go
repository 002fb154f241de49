package eager

// Ops that overwrite their first argument. It becomes what the op's node made.

// rebase says that n changed x in place: x is now what n made.
func (n *Node) rebase(x *Tensor) {
	if n == nil {
		return
	}
	before := x.node
	n.made(x)
	if before != nil {
		before.unref()
	}
}

// AddInPlace is x += other.
func (m *Machine) AddInPlace(x, other *Tensor) { m.addInPlace(x, other) }

// MulInPlace is x *= factor, where no gradient flows into the factor.
func (m *Machine) MulInPlace(x, factor *Tensor) {
	n := m.node("MulBackward0", x)
	n.save(factor)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return []*Tensor{m.binary("mul", g[0], n.unpack(0))}
		}
	}
	n.rebase(x)
}

// Div is a / b.
func (m *Machine) Div(a, b *Tensor) *Tensor {
	n := m.divNode(a, b, false)
	y := m.binary("div", a, b)
	n.made(y)
	return y
}

// DivInPlace is a /= b.
func (m *Machine) DivInPlace(a, b *Tensor) { m.divNode(a, b, true).rebase(a) }

// divNode is the node of a / b. What is about to be overwritten is kept as a
// copy.
func (m *Machine) divNode(a, b *Tensor, inPlace bool) *Node {
	n := m.node("DivBackward0", a, b)
	if n == nil {
		return nil
	}
	n.save(b)
	if inPlace && n.wants(1) {
		c := m.emptyLike("clone", a, a.dtype)
		n.save(c)
		c.Drop()
	} else {
		n.saveIf(1, a)
	}
	n.apply = func(n *Node, g []*Tensor) []*Tensor {
		out := make([]*Tensor, 2)
		b, a := n.unpack(0), n.unpack(1)
		if n.wants(1) {
			q := m.binary("div", a, b)
			qq := m.binary("div", q, b)
			neg := m.unary("neg", g[0])
			out[1] = m.binary("mul", neg, qq)
			Drop(neg, qq, q)
		}
		if n.wants(0) {
			out[0] = m.binary("div", g[0], b)
		}
		return out
	}
	return n
}

// CopyInto is part.copy_(x), where the part is a slice of the base along one
// dimension. To autograd the base becomes what the copy made; the derivative
// takes the gradient of the base apart, on a copy of it that lies in memory as
// the base does.
func (m *Machine) CopyInto(base, x *Tensor) {
	n := m.node("CopySlices", base, x)
	if n == nil {
		return
	}
	d := x.dtype
	shape, stride := append([]int64(nil), x.Shape()...), base.stride
	n.apply = func(n *Node, g []*Tensor) []*Tensor {
		const op = "CopySlices"
		out := make([]*Tensor, 2)
		rest := m.Empty(op, g[0].dtype, g[0].Shape()...)
		rest.stride = stride
		part := m.Empty(op, g[0].dtype, shape...)
		var zeros *Tensor
		if n.wants(0) {
			zeros = m.unary(op, part)
		}
		if n.wants(1) {
			out[1] = m.To(part, d)
		}
		Drop(part, zeros)
		if n.wants(0) {
			out[0] = rest
		} else {
			rest.Drop()
		}
		return out
	}
	n.rebase(base)
}

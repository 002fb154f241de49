package eager

// GatherRows joins the parts that ranks have of dimension 1: an all-gather,
// whose derivative sums over the ranks and divides.
func (m *Machine) GatherRows(x *Tensor, ranks int64) *Tensor {
	n := m.node("AllGather", x)
	y := m.rows("all_gather", x, x.dim[1]*ranks)
	if n != nil {
		part := x.dim[1]
		n.apply = func(_ *Node, g []*Tensor) []*Tensor {
			return []*Tensor{m.rows("reduce_scatter", g[0], part)}
		}
		n.made(y)
	}
	return y
}

// ScatterRows sums over the ranks and keeps this rank's part of dimension 1: a
// reduce-scatter, whose derivative joins the parts.
func (m *Machine) ScatterRows(x *Tensor, ranks int64) *Tensor {
	n := m.node("ReduceScatter", x)
	y := m.rows("reduce_scatter", x, x.dim[1]/ranks)
	if n != nil {
		whole := x.dim[1]
		n.apply = func(_ *Node, g []*Tensor) []*Tensor {
			return []*Tensor{m.rows("all_gather", g[0], whole)}
		}
		n.made(y)
	}
	return y
}

// Exchange is an all-to-all in which every rank gets as much as it sends.
func (m *Machine) Exchange(x *Tensor) *Tensor {
	n := m.node("AllToAll", x)
	y := m.unary("all_to_all", x)
	if n != nil {
		n.apply = func(_ *Node, g []*Tensor) []*Tensor { return []*Tensor{m.unary("all_to_all", g[0])} }
		n.made(y)
	}
	return y
}

// rows is a tensor like x with another length of dimension 1.
func (m *Machine) rows(op string, x *Tensor, n int64) *Tensor {
	shape := append([]int64(nil), x.Shape()...)
	shape[1] = n
	return m.Empty(op, x.dtype, shape...)
}

// Received is an activation that another rank sent: a leaf that needs a
// gradient, to be sent back.
func (m *Machine) Received(d DType, shape ...int64) *Tensor {
	t := m.Empty("receive", d, shape...)
	m.RequireGrad(t)
	return t
}

// BackwardFrom runs the graph behind y with a gradient that another rank sent.
func (m *Machine) BackwardFrom(y *Tensor) {
	if y.node == nil {
		return
	}
	g := m.emptyLike("receive", y, y.dtype)
	m.run(y.node, y.slot, g.retain())
	g.Drop()
}

package eager

// Matmul is torch.matmul of two stacks of matrices of the same depth, in the
// lower type under autocast. It is bmm, with copies where the stacks do not lie
// in memory as one.
func (m *Machine) Matmul(a, b *Tensor) (y *Tensor) {
	b = m.Lower(b)
	a = m.Lower(a)
	defer Drop(a, b)
	m.AutocastOff(func() {
		fa, fb := m.stack(a), m.stack(b)
		p := m.Bmm(fa, fb)
		Drop(fa, fb)
		shape := append([]int64(nil), a.Shape()...)
		shape[len(shape)-1] = b.Size(-1)
		y = m.unsafeView(p, shape...)
		p.Drop()
	})
	return y
}

// stack is a tensor as one stack of matrices.
func (m *Machine) stack(x *Tensor) *Tensor {
	e := m.Expand(x, x.Shape()...)
	depth := int64(1)
	for _, d := range x.Shape()[:x.dims-2] {
		depth *= d
	}
	f := m.Reshape(e, depth, x.Size(-2), x.Size(-1))
	e.Drop()
	return f
}

// Pad is pad(x, (0, width-x.size(-1))): the last dimension is filled up.
func (m *Machine) Pad(x *Tensor, width int64) *Tensor { return m.PadDim(x, -1, width) }

// PadDim fills a dimension up. It copies even if there is nothing to fill.
func (m *Machine) PadDim(x *Tensor, dim int, length int64) *Tensor {
	const op = "constant_pad_nd"
	dim = x.axis(dim)
	n := m.node("ConstantPadNdBackward0", x)
	from := x.dim[dim]
	var y *Tensor
	if from == length {
		y = m.emptyLike(op, x, x.dtype)
	} else {
		shape := append([]int64(nil), x.Shape()...)
		shape[dim] = length
		y = m.Empty(op, x.dtype, shape...)
	}
	if n != nil {
		n.apply = func(_ *Node, g []*Tensor) []*Tensor {
			part := m.narrow(g[0], dim, from)
			c := m.Clone(part)
			part.Drop()
			return []*Tensor{c}
		}
		n.made(y)
	}
	return y
}

package eager

// CumSum is x.cumsum(dim). The derivative sums from the end.
func (m *Machine) CumSum(x *Tensor, dim int) *Tensor {
	dim = x.axis(dim)
	n := m.node("CumsumBackward0", x)
	y := m.cumsum(x)
	if n != nil {
		n.apply = func(_ *Node, g []*Tensor) []*Tensor {
			if g[0].Elements() <= 1 || g[0].dim[dim] == 1 {
				return []*Tensor{g[0].Keep()}
			}
			turned := m.unary("flip", g[0])
			sum := m.cumsum(turned)
			out := m.unary("flip", sum)
			Drop(sum, turned)
			return []*Tensor{out}
		}
		n.made(y)
	}
	return y
}

// cumsum is contiguous, and so is what its kernel reads.
func (m *Machine) cumsum(x *Tensor) *Tensor {
	y := m.Empty("cumsum", x.dtype, x.Shape()...)
	m.contiguousCopy(x).Drop()
	return y
}

// Exp is e to the power of x, in fp32 under autocast.
func (m *Machine) Exp(x *Tensor) *Tensor {
	in := m.Upper(x)
	n := m.node("ExpBackward0", in)
	y := m.unary("exp", in)
	if n != nil {
		n.saveOutput(y)
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return []*Tensor{m.binary("mul", g[0], n.unpack(0))}
		}
		n.made(y)
	}
	in.Drop()
	return y
}

// RepeatInterleave is x.repeat_interleave(times, dim): a contiguous copy.
func (m *Machine) RepeatInterleave(x *Tensor, times int64, dim int) *Tensor {
	dim = x.axis(dim)
	wide := append([]int64(nil), x.Shape()...)
	shape := append([]int64(nil), wide...)
	shape[dim] *= times
	wide = append(wide[:dim+1], append([]int64{times}, wide[dim+1:]...)...)
	u := m.Unsqueeze(x, dim+1)
	e := m.Expand(u, wide...)
	u.Drop()
	c := m.cloneContiguous(e)
	e.Drop()
	y := m.View(c, shape...)
	c.Drop()
	return y
}

// ToContiguous is x.to(dtype, memory_format=contiguous_format): of another type
// a contiguous copy, and x itself otherwise, however it lies in memory.
func (m *Machine) ToContiguous(x *Tensor, d DType) *Tensor {
	if x.dtype == d {
		return x.Keep()
	}
	n := m.node("ToCopyBackward0", x)
	y := m.Empty("to", d, x.Shape()...)
	if n != nil {
		from := x.dtype
		n.apply = func(_ *Node, g []*Tensor) []*Tensor { return []*Tensor{m.To(g[0], from)} }
		n.made(y)
	}
	return y
}

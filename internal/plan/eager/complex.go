package eager

// Complex numbers, which deepseek_v2 rotates positions with.

// Complex is a real tensor whose last dimension has two parts, seen as complex
// numbers (view_as_complex).
func (m *Machine) Complex(x *Tensor) *Tensor {
	var stride [MaxDims]int64
	last := int(x.dims) - 1
	for i := range last {
		stride[i] = x.stride[i] / 2
	}
	y := m.viewNode("ViewAsComplexBackward0", x, x.Shape()[:last], stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.viewed(g[0], m.Real)}
	})
	y.dtype = Complex64
	return y
}

// Real is the opposite of Complex (view_as_real).
func (m *Machine) Real(x *Tensor) *Tensor {
	var stride [MaxDims]int64
	shape := append(append([]int64(nil), x.Shape()...), 2)
	for i := range int(x.dims) {
		stride[i] = x.stride[i] * 2
	}
	stride[x.dims] = 1
	y := m.viewNode("ViewAsRealBackward0", x, shape, stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.viewed(g[0], m.Complex)}
	})
	y.dtype = Float32
	return y
}

// viewed is a view of a gradient, of a copy where it is not contiguous.
func (m *Machine) viewed(g *Tensor, view func(*Tensor) *Tensor) *Tensor {
	c := m.Contiguous(g)
	y := view(c)
	c.Drop()
	return y
}

// Turn is x * f of complex numbers, where no gradient flows into f. The
// derivative multiplies with the conjugate, which is made for it.
func (m *Machine) Turn(x, f *Tensor) *Tensor {
	n := m.node("MulBackward0", x)
	n.save(f)
	y := m.binary("mul", x, f)
	if n != nil {
		n.apply = inTwo("clone", "mul")
		n.made(y)
	}
	return y
}

// Polar is complex numbers of length one at the angles x.
func (m *Machine) Polar(x *Tensor) *Tensor {
	ones := m.unary("ones_like", x)
	y := m.Empty("polar", Complex64, x.Shape()...)
	ones.Drop()
	return y
}

package eager

// LogSoftmax is log_softmax over the last dimension, in fp32 under autocast.
func (m *Machine) LogSoftmax(x *Tensor) *Tensor {
	return m.softmax("LogSoftmax", "log_softmax", x, x.dtype)
}

// Softmax is softmax over the last dimension with a result of type d.
func (m *Machine) Softmax(x *Tensor, d DType) *Tensor { return m.softmax("Softmax", "softmax", x, d) }

// SoftmaxTo is softmax with the type of the result spelled out, which autocast
// leaves as it is.
func (m *Machine) SoftmaxTo(x *Tensor, d DType) (y *Tensor) {
	m.AutocastOff(func() { y = m.Softmax(x, d) })
	return y
}

func (m *Machine) softmax(name, op string, x *Tensor, d DType) *Tensor {
	in := m.Upper(x)
	defer in.Drop()
	if m.cast.on {
		d = max(d, in.dtype)
	}
	// Only from fp16 to fp32 does the kernel cast by itself.
	if in.dtype != d && !(in.dtype == Float16 && d == Float32) {
		c := m.To(in, d)
		defer c.Drop()
		in = c
	}
	n := m.node(name+"Backward0", in)
	y := m.Empty(op, d, in.Shape()...)
	if !in.IsContiguous() {
		m.Scratch(in.Bytes(), op)
	}
	if n != nil {
		n.saveOutput(y)
		from := in.dtype
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			y := n.unpack(0)
			if name == "Softmax" {
				return []*Tensor{m.softmaxGrad(op, g[0], y, from)}
			}
			dx := m.Empty(op+"_backward", from, y.Shape()...)
			if !g[0].IsContiguous() {
				m.Scratch(g[0].Bytes(), op)
			}
			return []*Tensor{dx}
		}
		n.made(y)
	}
	return y
}

// softmaxGrad is _softmax_backward_data: the product of the gradient and the
// result is a tensor of its own.
func (m *Machine) softmaxGrad(op string, g, y *Tensor, d DType) *Tensor {
	dx := m.Empty(op, d, y.Shape()...)
	p := m.binary("mul", g, y)
	if !p.IsContiguous() {
		m.Scratch(p.Bytes(), op)
	}
	p.Drop()
	return dx
}

package eager

// Elementwise functions that activations are made of, beside those whose
// derivative is one kernel (Activation, ByResult).

// Erf is the error function.
func (m *Machine) Erf(x *Tensor) *Tensor {
	n := m.node("ErfBackward0", x)
	n.save(x)
	y := m.unary("erf", x)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			p := m.unary("pow", n.unpack(0))
			neg := m.unary("neg", p)
			p.Drop()
			e := m.unary("exp", neg)
			neg.Drop()
			c := m.unary("mul", e)
			e.Drop()
			out := m.binary("mul", c, g[0])
			c.Drop()
			return []*Tensor{out}
		}
		n.made(y)
	}
	return y
}

// Sqrt is the square root.
func (m *Machine) Sqrt(x *Tensor) *Tensor {
	n := m.node("SqrtBackward0", x)
	y := m.unary("sqrt", x)
	if n != nil {
		n.saveOutput(y)
		n.apply = inTwo("mul", "div") // by twice the root
		n.made(y)
	}
	return y
}

// inTwo is a derivative of two kernels: one makes something of what was saved,
// the other takes the gradient and that.
func inTwo(first, second string) func(n *Node, g []*Tensor) []*Tensor {
	return func(n *Node, g []*Tensor) []*Tensor {
		t := n.machine.unary(first, n.unpack(0))
		out := n.machine.binary(second, g[0], t)
		t.Drop()
		return []*Tensor{out}
	}
}

// Clamp keeps values between two numbers.
func (m *Machine) Clamp(x *Tensor) *Tensor { return m.clamp(x, 2) }

// ClampTo keeps values between two scalar tensors.
func (m *Machine) ClampTo(x, least, most *Tensor) *Tensor { return m.clamp(x, 2, least, most) }

// ClampMax keeps values below a number.
func (m *Machine) ClampMax(x *Tensor) *Tensor { return m.clamp(x, 1) }

// clamp has one or two bounds, which may be tensors. The derivative compares
// with each.
func (m *Machine) clamp(x *Tensor, bounds int, tensors ...*Tensor) *Tensor {
	n := m.node("ClampBackward1", x)
	n.save(x)
	for _, t := range tensors {
		n.save(t)
	}
	y := m.unary("clamp", x)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			const op = "clamp_backward"
			x := n.unpack(0)
			for i := range tensors {
				n.unpack(1 + i)
			}
			zero := m.Empty(op, g[0].dtype)
			within := make([]*Tensor, bounds)
			for i := range within {
				within[i] = m.pointwise(op, Bool, x)
			}
			out := m.pointwise(op, g[0].dtype, within[0], g[0])
			for i := len(within) - 1; i >= 0; i-- {
				within[i].Drop()
			}
			zero.Drop()
			return []*Tensor{out}
		}
		n.made(y)
	}
	return y
}

// Softplus is log(1 + exp(x)), in fp32 under autocast.
func (m *Machine) Softplus(x *Tensor) *Tensor {
	in := m.Upper(x)
	y := m.Activation("softplus", in)
	in.Drop()
	return y
}

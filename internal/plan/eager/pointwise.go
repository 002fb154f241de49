package eager

// pointwise allocates the result of an elementwise op, of the shape that the
// operands broadcast to and in the order of memory that TensorIterator picks.
func (m *Machine) pointwise(op string, d DType, in ...*Tensor) *Tensor {
	first := in[0]
	same := true
	for _, t := range in[1:] {
		if t.dims != first.dims || t.dim != first.dim || t.stride != first.stride {
			same = false
			break
		}
	}
	if same {
		return m.emptyLike(op, first, d)
	}
	var shape [MaxDims]int64
	dims := broadcast(&shape, in)
	t := m.tensor(d, shape[:dims])
	t.stride = m.permuted(t.Shape(), in)
	t.store = m.alloc(t.Bytes(), op)
	return t
}

// broadcast writes the common shape of tensors and returns its length.
func broadcast(shape *[MaxDims]int64, in []*Tensor) (dims int) {
	for _, t := range in {
		dims = max(dims, int(t.dims))
	}
	for i := range dims {
		shape[i] = 1
	}
	for _, t := range in {
		shift := dims - int(t.dims)
		for i, d := range t.Shape() {
			if d != 1 {
				shape[shift+i] = d
			}
		}
	}
	return dims
}

// permuted is the strides that TensorIterator gives a new output: dense, with
// the dimensions in the order that the strides of the operands suggest, the
// first operand that distinguishes two dimensions deciding.
func (m *Machine) permuted(shape []int64, in []*Tensor) (stride [MaxDims]int64) {
	dims := len(shape)
	if dims == 0 {
		return stride
	}
	strideOf := func(t *Tensor, d int) int64 {
		i := d - (dims - int(t.dims))
		if i < 0 || t.dim[i] == 1 && shape[d] != 1 {
			return 0
		}
		return t.stride[i]
	}
	// perm lists the dimensions from the innermost outwards.
	var perm [MaxDims]int
	for i := range dims {
		perm[i] = dims - 1 - i
	}
	order := func(a, b int) int {
		for _, t := range in {
			sa, sb := strideOf(t, a), strideOf(t, b)
			switch {
			case sa == 0 || sb == 0:
			case sa < sb:
				return -1
			case sa > sb:
				return 1
			case shape[a] > shape[b]:
				return 1
			}
		}
		return 0
	}
	for i := 1; i < dims; i++ {
		d1 := i
		for d0 := i - 1; d0 >= 0; d0-- {
			c := order(perm[d0], perm[d1])
			if c > 0 {
				perm[d0], perm[d1] = perm[d1], perm[d0]
				d1 = d0
			} else if c < 0 {
				break
			}
		}
	}
	step := int64(1)
	for _, d := range perm[:dims] {
		stride[d] = step
		step *= max(shape[d], 1)
	}
	return stride
}

// Add is a + b.
func (m *Machine) Add(a, b *Tensor) *Tensor {
	n := m.node("AddBackward0", a, b)
	y := m.pointwise("add", promote(a.dtype, b.dtype), a, b)
	if n != nil {
		n.apply = passOn
		n.made(y)
	}
	return y
}

// passOn gives the gradient itself to every input that wants it.
func passOn(n *Node, g []*Tensor) []*Tensor {
	out := n.give()
	for i := range n.edges {
		out = append(out, n.passed(i, g[0]))
	}
	return out
}

// passed is the gradient itself if input i wants one.
func (n *Node) passed(i int, g *Tensor) *Tensor {
	if !n.wants(i) {
		return nil
	}
	return g.Keep()
}

// Sub is a - b.
func (m *Machine) Sub(a, b *Tensor) *Tensor {
	n := m.node("SubBackward0", a, b)
	y := m.pointwise("sub", promote(a.dtype, b.dtype), a, b)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			out := n.give(nil, nil)
			if n.wants(1) {
				out[1] = n.machine.unary("neg", g[0])
			}
			out[0] = n.passed(0, g[0])
			return out
		}
		n.made(y)
	}
	return y
}

// AddScalar is x + c.
func (m *Machine) AddScalar(x *Tensor) *Tensor {
	n := m.node("AddBackward0", x)
	y := m.unary("add", x)
	if n != nil {
		n.apply = passOn
		n.made(y)
	}
	return y
}

// unary is an elementwise op on one tensor that no derivative is needed of.
func (m *Machine) unary(op string, x *Tensor) *Tensor { return m.pointwise(op, x.dtype, x) }

// binary is an elementwise op that no derivative is needed of.
func (m *Machine) binary(op string, a, b *Tensor) *Tensor {
	return m.pointwise(op, promote(a.dtype, b.dtype), a, b)
}

// Unary is an elementwise op without a derivative, such as cos.
func (m *Machine) Unary(op string, x *Tensor) *Tensor { return m.unary(op, x) }

// Binary is an elementwise op without a derivative.
func (m *Machine) Binary(op string, a, b *Tensor) *Tensor { return m.binary(op, a, b) }

// Compare is an elementwise op with a boolean result.
func (m *Machine) Compare(op string, in ...*Tensor) *Tensor { return m.pointwise(op, Bool, in...) }

// Mul is a * b. Of two inputs the gradient of the second is computed first, as
// everywhere in torch: derivatives come in the order of the names of the
// arguments, and "other" is before "self". The engine casts them to the types
// of the inputs.
func (m *Machine) Mul(a, b *Tensor) *Tensor {
	n := m.node("MulBackward0", a, b)
	if n != nil {
		n.saveIf(0, b)
		n.saveIf(1, a)
	}
	y := m.binary("mul", a, b)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			out := n.give(nil, nil)
			b, a := n.unpack(0), n.unpack(1)
			if n.wants(1) {
				out[1] = n.machine.binary("mul", g[0], a)
			}
			if n.wants(0) {
				out[0] = n.machine.binary("mul", g[0], b)
			}
			return out
		}
		n.made(y)
	}
	return y
}

// saveIf keeps t if input i needs its gradient, and a gap otherwise.
func (n *Node) saveIf(i int, t *Tensor) {
	if n.wants(i) {
		n.save(t)
		return
	}
	n.saved = append(n.saved, saved{})
}

// Scale is x * c.
func (m *Machine) Scale(x *Tensor) *Tensor {
	n := m.node("MulBackward0", x)
	y := m.unary("mul", x)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor { return n.give(n.machine.unary("mul", g[0])) }
		n.made(y)
	}
	return y
}

// DivScalar is x / c.
func (m *Machine) DivScalar(x *Tensor) *Tensor {
	n := m.node("DivBackward0", x)
	y := m.unary("div", x)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor { return n.give(n.machine.unary("div", g[0])) }
		n.made(y)
	}
	return y
}

// Neg is -x.
func (m *Machine) Neg(x *Tensor) *Tensor {
	n := m.node("NegBackward0", x)
	y := m.unary("neg", x)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor { return n.give(n.machine.unary("neg", g[0])) }
		n.made(y)
	}
	return y
}

// Activation is a fused elementwise op whose derivative needs its input alone:
// silu, gelu.
func (m *Machine) Activation(op string, x *Tensor) *Tensor {
	n := m.node(op, x)
	n.save(x)
	y := m.unary(op, x)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return n.give(m.binary(op+"_backward", g[0], n.unpack(0)))
		}
		n.made(y)
	}
	return y
}

// ByResult is an elementwise op whose derivative needs its result alone and is
// computed by one kernel: tanh, sigmoid, relu.
func (m *Machine) ByResult(op string, x *Tensor) *Tensor {
	n := m.node(op, x)
	y := m.unary(op, x)
	if n != nil {
		n.saveOutput(y)
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return n.give(m.binary(op+"_backward", g[0], n.unpack(0)))
		}
		n.made(y)
	}
	return y
}

// Pow is x to a constant power, in fp32 under autocast.
func (m *Machine) Pow(x *Tensor) *Tensor {
	in := m.Upper(x)
	n := m.node("PowBackward0", in)
	n.save(in)
	y := m.unary("pow", in)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			m := n.machine
			p := m.unary("pow", n.unpack(0))
			c := m.unary("mul", p)
			out := m.binary("mul", g[0], c)
			Drop(c, p)
			return n.give(out)
		}
		n.made(y)
	}
	in.Drop()
	return y
}

// Rsqrt is 1 / sqrt(x), in fp32 under autocast.
func (m *Machine) Rsqrt(x *Tensor) *Tensor {
	in := m.Upper(x)
	n := m.node("RsqrtBackward0", in)
	y := m.unary("rsqrt", in)
	if n != nil {
		n.saveOutput(y)
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			m := n.machine
			p := m.unary("pow", n.unpack(0))
			h := m.unary("mul", g[0])
			out := m.binary("mul", h, p)
			Drop(h, p)
			return n.give(out)
		}
		n.made(y)
	}
	in.Drop()
	return y
}

// To is x.to(dtype): x itself if it is of that type.
func (m *Machine) To(x *Tensor, d DType) *Tensor {
	if x.dtype == d {
		return x.Keep()
	}
	n := m.node("ToCopyBackward0", x)
	y := m.toCopy(x, d)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor { return n.give(n.machine.To(g[0], n.edges[0].dtype)) }
		n.made(y)
	}
	return y
}

// toCopy is _to_copy.
func (m *Machine) toCopy(x *Tensor, d DType) *Tensor { return m.emptyLike("to", x, d) }

// Dropout is native_dropout: the result and a mask of a byte per element.
func (m *Machine) Dropout(x *Tensor, p float64, training bool) *Tensor {
	if p == 0 || !training {
		return x.Keep()
	}
	n := m.node("NativeDropoutBackward0", x)
	mask := m.pointwise("native_dropout", Bool, x)
	y := m.unary("native_dropout", x)
	if n != nil {
		n.saveOutput(mask)
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			n.unpack(0)
			return []*Tensor{m.Empty("native_dropout_backward", g[0].dtype, g[0].Shape()...)}
		}
		n.made(y)
	}
	mask.Drop()
	return y
}

// Where is torch.where(condition, x, c) with a number c: a tensor of the type
// of x.
func (m *Machine) Where(condition, x *Tensor) *Tensor {
	n := m.node("WhereBackward0", x)
	n.save(condition)
	y := m.where(condition, x)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return []*Tensor{m.where(n.unpack(0), g[0])}
		}
		n.made(y)
	}
	return y
}

// where makes a tensor of the number first, which then takes part.
func (m *Machine) where(condition, x *Tensor) *Tensor {
	c := m.Empty("scalar_tensor", x.dtype)
	y := m.pointwise("where", x.dtype, condition, x)
	c.Drop()
	return y
}

// WhereNumbers is torch.where(condition, a, b) of a scalar tensor on the device
// and a number, both of type d.
func (m *Machine) WhereNumbers(condition *Tensor, d DType) *Tensor {
	a := m.Empty("scalar_tensor", d)
	b := m.Empty("scalar_tensor", d)
	y := m.pointwise("where", d, condition)
	Drop(b, a)
	return y
}

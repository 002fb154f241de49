package eager

// aliasOf is a view of x with another shape and strides.
func (m *Machine) aliasOf(x *Tensor, shape []int64, stride [MaxDims]int64) *Tensor {
	t := m.tensor(x.dtype, shape)
	t.stride = stride
	t.store = x.store
	t.store.refs++
	t.view = true
	return t
}

// viewNode is a view with its derivative.
func (m *Machine) viewNode(name string, x *Tensor, shape []int64, stride [MaxDims]int64, d Derivative) *Tensor {
	n := m.node(name, x)
	y := m.aliasOf(x, shape, stride)
	if n != nil {
		n.apply = d
		n.made(y)
	}
	return y
}

// remember leaves dimensions to the derivative of a view, if it has one.
func (t *Tensor) remember(dims ...int) {
	if t.node != nil {
		copy(t.node.at[:], dims)
	}
}

// Transpose swaps two dimensions.
func (m *Machine) Transpose(x *Tensor, i, j int) *Tensor {
	i, j = x.axis(i), x.axis(j)
	y := m.viewNode("TransposeBackward0", x, x.Shape(), x.stride, func(n *Node, g []*Tensor) []*Tensor {
		return n.give(n.machine.Transpose(g[0], n.at[0], n.at[1]))
	})
	y.remember(i, j)
	y.dim[i], y.dim[j] = y.dim[j], y.dim[i]
	y.stride[i], y.stride[j] = y.stride[j], y.stride[i]
	return y
}

// Permute reorders the dimensions.
func (m *Machine) Permute(x *Tensor, order ...int) *Tensor {
	back := make([]int, len(order))
	var shape, stride [MaxDims]int64
	for i, o := range order {
		back[o] = i
		shape[i], stride[i] = x.dim[o], x.stride[o]
	}
	return m.viewNode("PermuteBackward0", x, shape[:len(order)], stride, func(n *Node, g []*Tensor) []*Tensor {
		return n.give(m.Permute(g[0], back...))
	})
}

// fill writes a shape into full, with a -1 replaced.
func fill(full *[MaxDims]int64, x *Tensor, shape []int64) []int64 {
	out := full[:copy(full[:], shape)]
	known, at := int64(1), -1
	for i, d := range out {
		if d == -1 {
			at = i
		} else {
			known *= d
		}
	}
	if at >= 0 {
		out[at] = x.Elements() / known
	}
	return out
}

// viewStride is the strides that x has under another shape, if it can be seen
// so without a copy.
func viewStride(x *Tensor, shape []int64) (stride [MaxDims]int64, ok bool) {
	if x.Elements() == 0 {
		return contiguous(shape), true
	}
	if x.dims == 0 {
		for i := range shape {
			stride[i] = 1
		}
		return stride, true
	}
	v := len(shape) - 1
	chunk := x.stride[x.dims-1]
	elements, seen := int64(1), int64(1)
	for d := int(x.dims) - 1; d >= 0; d-- {
		elements *= x.dim[d]
		if d != 0 && (x.dim[d-1] == 1 || x.stride[d-1] == elements*chunk) {
			continue
		}
		for v >= 0 && (seen < elements || shape[v] == 1) {
			stride[v] = seen * chunk
			seen *= shape[v]
			v--
		}
		if seen != elements {
			return stride, false
		}
		if d > 0 {
			chunk = x.stride[d-1]
			elements, seen = 1, 1
		}
	}
	return stride, v == -1
}

// View is x.view(shape). The shape must fit the strides.
func (m *Machine) View(x *Tensor, shape ...int64) *Tensor {
	var full [MaxDims]int64
	shape = fill(&full, x, shape)
	stride, ok := viewStride(x, shape)
	if !ok {
		panic("eager: a view that needs a copy")
	}
	return m.viewNode("ViewBackward0", x, shape, stride, shapeBack)
}

// shapeBack gives a gradient the shape of the input.
func shapeBack(n *Node, g []*Tensor) []*Tensor { return n.give(n.machine.Reshape(g[0], n.shape(0)...)) }

// Reshape is x.reshape(shape): a view, or a copy where the strides allow none.
func (m *Machine) Reshape(x *Tensor, shape ...int64) *Tensor {
	var full [MaxDims]int64
	shape = fill(&full, x, shape)
	if stride, ok := viewStride(x, shape); ok {
		return m.viewNode("ViewBackward0", x, shape, stride, shapeBack)
	}
	c := m.cloneContiguous(x)
	y := m.unsafeView(c, shape...)
	c.Drop()
	return y
}

// unsafeView is _unsafe_view: no view to autograd, so it keeps no base.
func (m *Machine) unsafeView(x *Tensor, shape ...int64) *Tensor {
	var full [MaxDims]int64
	shape = fill(&full, x, shape)
	y := m.viewNode("UnsafeViewBackward0", x, shape, contiguous(shape), shapeBack)
	y.view = false
	return y
}

// Clone is a copy in the same order of memory.
func (m *Machine) Clone(x *Tensor) *Tensor {
	n := m.node("CloneBackward0", x)
	y := m.emptyLike("clone", x, x.dtype)
	if n != nil {
		n.apply = passOn
		n.made(y)
	}
	return y
}

func (m *Machine) cloneContiguous(x *Tensor) *Tensor {
	n := m.node("CloneBackward0", x)
	y := m.Empty("clone", x.dtype, x.Shape()...)
	if n != nil {
		n.apply = passOn
		n.made(y)
	}
	return y
}

// Contiguous is x itself if it is, else a copy.
func (m *Machine) Contiguous(x *Tensor) *Tensor {
	if x.IsContiguous() {
		return x.Keep()
	}
	return m.cloneContiguous(x)
}

// Unsqueeze puts in a dimension of length one.
func (m *Machine) Unsqueeze(x *Tensor, at int) *Tensor {
	if at < 0 {
		at += int(x.dims) + 1
	}
	var shape, stride [MaxDims]int64
	for i := range int(x.dims) + 1 {
		switch {
		case i == at && i < int(x.dims):
			shape[i], stride[i] = 1, x.dim[i]*x.stride[i]
		case i == at:
			shape[i], stride[i] = 1, 1
		case i < at:
			shape[i], stride[i] = x.dim[i], x.stride[i]
		default:
			shape[i], stride[i] = x.dim[i-1], x.stride[i-1]
		}
	}
	y := m.viewNode("UnsqueezeBackward0", x, shape[:x.dims+1], stride, func(n *Node, g []*Tensor) []*Tensor {
		return n.give(n.machine.Squeeze(g[0], n.at[0]))
	})
	y.remember(at)
	return y
}

// Squeeze takes out a dimension of length one.
func (m *Machine) Squeeze(x *Tensor, at int) *Tensor {
	at = x.axis(at)
	shape, stride := x.without(at)
	y := m.viewNode("SqueezeBackward1", x, shape[:x.dims-1], stride, func(n *Node, g []*Tensor) []*Tensor {
		return n.give(n.machine.Unsqueeze(g[0], n.at[0]))
	})
	y.remember(at)
	return y
}

// without is the shape and the strides that are left when a dimension is taken
// out.
func (t *Tensor) without(at int) (shape, stride [MaxDims]int64) {
	n := 0
	for i := range int(t.dims) {
		if i != at {
			shape[n], stride[n] = t.dim[i], t.stride[i]
			n++
		}
	}
	return shape, stride
}

// Expand repeats dimensions of length one without copying.
func (m *Machine) Expand(x *Tensor, shape ...int64) *Tensor {
	var full, stride [MaxDims]int64
	shift := len(shape) - int(x.dims)
	copy(full[:], shape)
	for i := range shape {
		if i < shift {
			continue
		}
		if full[i] == -1 {
			full[i] = x.dim[i-shift]
		}
		if x.dim[i-shift] == full[i] {
			stride[i] = x.stride[i-shift]
		}
	}
	return m.viewNode("ExpandBackward0", x, full[:len(shape)], stride, func(n *Node, g []*Tensor) []*Tensor {
		return n.give(n.machine.SumTo(g[0], n.shape(0)))
	})
}

// narrow is a view of a part of a dimension, without a derivative.
func (m *Machine) narrow(x *Tensor, dim int, length int64) *Tensor {
	y := m.aliasOf(x, x.Shape(), x.stride)
	y.dim[x.axis(dim)] = length
	return y
}

// Slice is x[..., start:start+length, ...]. Where it starts does not show. A
// slice of everything is x itself: Python's indexing leaves it out.
func (m *Machine) Slice(x *Tensor, dim int, length int64) *Tensor {
	dim = x.axis(dim)
	if length == x.dim[dim] {
		return x.Keep()
	}
	return m.Narrow(x, dim, length)
}

// Narrow is a slice that is a view even if it is of everything, as a slice is
// that reaches beyond the end.
func (m *Machine) Narrow(x *Tensor, dim int, length int64) *Tensor {
	dim = x.axis(dim)
	y := m.viewNode("SliceBackward0", x, x.Shape(), x.stride, sliceGrad)
	y.dim[dim] = length
	return y
}

// sliceGrad puts a gradient into zeros of the shape of the input.
func sliceGrad(n *Node, g []*Tensor) []*Tensor {
	return n.give(n.machine.Empty("slice_backward", g[0].dtype, n.shape(0)...))
}

// Every is x[..., a::step] of the last dimension, for an a below the step.
func (m *Machine) Every(x *Tensor, step int64) *Tensor {
	y := m.viewNode("SliceBackward0", x, x.Shape(), x.stride, sliceGrad)
	last := int(x.dims) - 1
	y.dim[last] /= step
	y.stride[last] *= step
	return y
}

// Select is x[..., i, ...]: it takes a dimension out.
func (m *Machine) Select(x *Tensor, dim int) *Tensor {
	shape, stride := x.without(x.axis(dim))
	return m.viewNode("SelectBackward0", x, shape[:x.dims-1], stride, func(n *Node, g []*Tensor) []*Tensor {
		return n.give(n.machine.Empty("select_backward", g[0].dtype, n.shape(0)...))
	})
}

// Split cuts a dimension into parts, which are views.
func (m *Machine) Split(x *Tensor, dim int, parts ...int64) []*Tensor {
	dim = x.axis(dim)
	n := m.node("SplitBackward0", x)
	out := make([]*Tensor, len(parts))
	for i, p := range parts {
		out[i] = m.narrow(x, dim, p)
	}
	if n != nil {
		d := x.dtype
		shapes := make([][]int64, len(parts))
		for i, t := range out {
			shapes[i] = append([]int64(nil), t.Shape()...)
		}
		n.apply = func(_ *Node, g []*Tensor) []*Tensor {
			whole := make([]*Tensor, len(shapes))
			for i := range whole {
				if i < len(g) && g[i] != nil {
					whole[i] = g[i].Keep()
				} else {
					whole[i] = m.Empty("zeros", d, shapes[i]...)
				}
			}
			c := m.cat(whole, dim)
			Drop(whole...)
			return []*Tensor{c}
		}
		n.made(out[0], out[1:]...)
	}
	return out
}

// Cat joins tensors along a dimension.
func (m *Machine) Cat(dim int, in ...*Tensor) *Tensor {
	dim = in[0].axis(dim)
	n := m.node("CatBackward0", in...)
	y := m.cat(in, dim)
	if n != nil {
		n.at[0] = dim
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			out := make([]*Tensor, len(n.edges))
			for i := range out {
				if n.wants(i) {
					out[i] = n.machine.narrow(g[0], n.at[0], n.shape(i)[n.at[0]])
				}
			}
			return out
		}
		n.made(y)
	}
	return y
}

// cat allocates the joined tensor, contiguous in all but channels-last orders.
func (m *Machine) cat(in []*Tensor, dim int) *Tensor {
	shape := in[0].dim
	d := in[0].dtype
	for _, t := range in[1:] {
		shape[dim] += t.dim[dim]
		d = promote(d, t.dtype)
	}
	return m.Empty("cat", d, shape[:in[0].dims]...)
}

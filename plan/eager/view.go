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

// Transpose swaps two dimensions.
func (m *Machine) Transpose(x *Tensor, i, j int) *Tensor {
	i, j = x.axis(i), x.axis(j)
	y := m.viewNode("TransposeBackward0", x, x.Shape(), x.stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.Transpose(g[0], i, j)}
	})
	y.dim[i], y.dim[j] = y.dim[j], y.dim[i]
	y.stride[i], y.stride[j] = y.stride[j], y.stride[i]
	return y
}

// Permute reorders the dimensions.
func (m *Machine) Permute(x *Tensor, order ...int) *Tensor {
	back := make([]int, len(order))
	shape := make([]int64, len(order))
	var stride [MaxDims]int64
	for i, o := range order {
		back[o] = i
		shape[i], stride[i] = x.dim[o], x.stride[o]
	}
	return m.viewNode("PermuteBackward0", x, shape, stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.Permute(g[0], back...)}
	})
}

// fill replaces a -1 in a shape.
func fill(x *Tensor, shape []int64) []int64 {
	out := append([]int64(nil), shape...)
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
	shape = fill(x, shape)
	stride, ok := viewStride(x, shape)
	if !ok {
		panic("eager: a view that needs a copy")
	}
	from := append([]int64(nil), x.Shape()...)
	return m.viewNode("ViewBackward0", x, shape, stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.Reshape(g[0], from...)}
	})
}

// Reshape is x.reshape(shape): a view, or a copy where the strides allow none.
func (m *Machine) Reshape(x *Tensor, shape ...int64) *Tensor {
	shape = fill(x, shape)
	if _, ok := viewStride(x, shape); ok {
		return m.View(x, shape...)
	}
	c := m.cloneContiguous(x)
	y := m.unsafeView(c, shape...)
	c.Drop()
	return y
}

// unsafeView is _unsafe_view: no view to autograd, so it keeps no base.
func (m *Machine) unsafeView(x *Tensor, shape ...int64) *Tensor {
	shape = fill(x, shape)
	from := append([]int64(nil), x.Shape()...)
	y := m.viewNode("UnsafeViewBackward0", x, shape, contiguous(shape), func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.Reshape(g[0], from...)}
	})
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
	shape := make([]int64, 0, MaxDims)
	var stride [MaxDims]int64
	for i := range int(x.dims) + 1 {
		switch {
		case i == at && i < int(x.dims):
			shape, stride[i] = append(shape, 1), x.dim[i]*x.stride[i]
		case i == at:
			shape, stride[i] = append(shape, 1), 1
		case i < at:
			shape, stride[i] = append(shape, x.dim[i]), x.stride[i]
		default:
			shape, stride[i] = append(shape, x.dim[i-1]), x.stride[i-1]
		}
	}
	return m.viewNode("UnsqueezeBackward0", x, shape, stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.Squeeze(g[0], at)}
	})
}

// Squeeze takes out a dimension of length one.
func (m *Machine) Squeeze(x *Tensor, at int) *Tensor {
	at = x.axis(at)
	shape := make([]int64, 0, MaxDims)
	var stride [MaxDims]int64
	for i := range int(x.dims) {
		if i != at {
			stride[len(shape)] = x.stride[i]
			shape = append(shape, x.dim[i])
		}
	}
	return m.viewNode("SqueezeBackward1", x, shape, stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.Unsqueeze(g[0], at)}
	})
}

// Expand repeats dimensions of length one without copying.
func (m *Machine) Expand(x *Tensor, shape ...int64) *Tensor {
	var stride [MaxDims]int64
	shift := len(shape) - int(x.dims)
	full := append([]int64(nil), shape...)
	for i := range full {
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
	from := append([]int64(nil), x.Shape()...)
	return m.viewNode("ExpandBackward0", x, full, stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.SumTo(g[0], from)}
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
	from := append([]int64(nil), x.Shape()...)
	y := m.viewNode("SliceBackward0", x, x.Shape(), x.stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.Empty("slice_backward", g[0].dtype, from...)}
	})
	y.dim[dim] = length
	return y
}

// Every is x[..., a::step] of the last dimension, for an a below the step.
func (m *Machine) Every(x *Tensor, step int64) *Tensor {
	from := append([]int64(nil), x.Shape()...)
	y := m.viewNode("SliceBackward0", x, x.Shape(), x.stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.Empty("slice_backward", g[0].dtype, from...)}
	})
	last := int(x.dims) - 1
	y.dim[last] /= step
	y.stride[last] *= step
	return y
}

// Select is x[..., i, ...]: it takes a dimension out.
func (m *Machine) Select(x *Tensor, dim int) *Tensor {
	dim = x.axis(dim)
	shape := make([]int64, 0, MaxDims)
	var stride [MaxDims]int64
	for i := range int(x.dims) {
		if i != dim {
			stride[len(shape)] = x.stride[i]
			shape = append(shape, x.dim[i])
		}
	}
	from := append([]int64(nil), x.Shape()...)
	return m.viewNode("SelectBackward0", x, shape, stride, func(_ *Node, g []*Tensor) []*Tensor {
		return []*Tensor{m.Empty("select_backward", g[0].dtype, from...)}
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
		lengths := make([]int64, len(in))
		for i, t := range in {
			lengths[i] = t.dim[dim]
		}
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			out := make([]*Tensor, len(lengths))
			for i, l := range lengths {
				if n.wants(i) {
					out[i] = m.narrow(g[0], dim, l)
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
	shape := append([]int64(nil), in[0].Shape()...)
	d := in[0].dtype
	for _, t := range in[1:] {
		shape[dim] += t.dim[dim]
		d = promote(d, t.dtype)
	}
	return m.Empty("cat", d, shape...)
}

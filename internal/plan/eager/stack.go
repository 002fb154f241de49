package eager

// Stack joins tensors along a new last dimension.
func (m *Machine) Stack(in ...*Tensor) *Tensor {
	n := m.node("StackBackward0", in...)
	shape := append([]int64(nil), in[0].Shape()...)
	d := in[0].dtype
	for _, t := range in[1:] {
		d = promote(d, t.dtype)
	}
	y := m.Empty("stack", d, append(shape, int64(len(in)))...)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			out := make([]*Tensor, len(n.edges))
			for i := range out {
				if n.wants(i) {
					out[i] = n.machine.Select(g[0], -1)
				}
			}
			return out
		}
		n.made(y)
	}
	return y
}

// Unbind takes a dimension out: a view for each of its places.
func (m *Machine) Unbind(x *Tensor, dim int) []*Tensor {
	dim = x.axis(dim)
	n := m.node("UnbindBackward0", x)
	out := make([]*Tensor, x.dim[dim])
	shape, stride := x.without(dim)
	for i := range out {
		out[i] = m.aliasOf(x, shape[:x.dims-1], stride)
	}
	if n != nil {
		part := append([]int64(nil), shape[:x.dims-1]...)
		d := x.dtype
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			var zeros []*Tensor
			for i := range out {
				if i >= len(g) || g[i] == nil {
					zeros = append(zeros, m.Empty("zeros", d, part...))
				}
			}
			whole := m.Empty("stack", d, n.shape(0)...)
			Drop(zeros...)
			return []*Tensor{whole}
		}
		n.made(out[0], out[1:]...)
	}
	return out
}

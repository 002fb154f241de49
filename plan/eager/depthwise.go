package eager

// DepthwiseConv is conv1d of x [batch, channels, rows] with a kernel of its own
// for each channel, w [channels, 1, taps], and rows of zeros on both sides. In
// the lower type under autocast. It is PyTorch's own kernel, which takes what
// is contiguous.
func (m *Machine) DepthwiseConv(x, w *Tensor, padding int64) *Tensor {
	w = m.Lower(w)
	in := m.Lower(x)
	defer Drop(in, w)
	n := m.node("ConvolutionBackward0", in, w)
	n.save(in)
	n.save(w)
	c := m.contiguousCopy(in)
	y := m.Empty("conv_depthwise2d", in.dtype, in.dim[0], in.dim[1], in.dim[2]+2*padding-w.dim[2]+1)
	c.Drop()
	if n != nil {
		n.apply = m.depthwiseGrad
		n.made(y)
	}
	return y
}

func (m *Machine) depthwiseGrad(n *Node, g []*Tensor) []*Tensor {
	const op = "convolution_backward"
	x, w := n.unpack(0), n.unpack(1)
	out := make([]*Tensor, 2)
	c := m.contiguousCopy(x)
	dy := m.contiguousCopy(g[0])
	if n.wants(1) {
		out[1] = m.Empty(op, w.dtype, w.Shape()...)
	}
	if n.wants(0) {
		out[0] = m.Empty(op, x.dtype, x.Shape()...)
	}
	Drop(dy, c)
	return out
}

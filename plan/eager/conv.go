package eager

// PatchConv is conv2d by cuDNN with a kernel that is as large as its stride: it
// cuts images [batch, channels, height, width] into patches. w is [out,
// channels, height, width]. In the lower type under autocast.
func (m *Machine) PatchConv(x, w, bias *Tensor) *Tensor {
	const op = "cudnn_convolution"
	bias = m.Lower(bias)
	w = m.Lower(w)
	in := m.Lower(x)
	defer Drop(in, w, bias)
	n := m.node("ConvolutionBackward0", in, w, bias)
	if n != nil {
		n.save(in)
		n.save(w)
	}
	y := m.Empty(op, in.dtype, in.dim[0], w.dim[0], in.dim[2]/w.dim[2], in.dim[3]/w.dim[3])
	m.Scratch(convScratch(in, w, y), op)
	if n != nil {
		n.apply = m.patchConvGrad
		n.made(y)
	}
	return y
}

// patchConvGrad is convolution_backward for an input that needs no gradient.
func (m *Machine) patchConvGrad(n *Node, g []*Tensor) []*Tensor {
	const op = "convolution_backward"
	x, w := n.unpack(0), n.unpack(1)
	out := make([]*Tensor, 3)
	if n.wants(1) {
		c := m.contiguousCopy(g[0])
		out[1] = m.Empty(op, w.dtype, w.Shape()...)
		m.Scratch(convGradScratch(x, w, c), op)
		c.Drop()
	}
	if n.wants(2) {
		s := m.SumTo(g[0], []int64{1, w.dim[0], 1, 1})
		out[2] = m.View(s, w.dim[0])
		s.Drop()
	}
	return out
}

// rowsOfChannels is the size of a tensor whose channels were put last and
// filled up to 16 bytes, which is how cuDNN's kernels want images.
func rowsOfChannels(t *Tensor) int64 {
	each := 16 / t.dtype.Size()
	return t.dim[0] * ceil(t.dim[1], each) * 16 * t.dim[2] * t.dim[3]
}

// convScratch is what cuDNN wants for a convolution.
func convScratch(x, w, y *Tensor) int64 {
	if x.dtype == Float32 {
		return 0
	}
	return rowsOfChannels(x) + rowsOfChannels(w) + rowsOfChannels(y) + 16
}

// convGradScratch is what it wants for the gradient of the kernel.
func convGradScratch(x, w, g *Tensor) int64 {
	all := rowsOfChannels(x) + rowsOfChannels(w) + rowsOfChannels(g)
	if x.dtype == Float32 {
		return all + 400
	}
	return all + 6*rowsOfChannels(w) + 144
}

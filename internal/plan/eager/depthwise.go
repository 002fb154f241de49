package eager

// DepthwiseConv is conv1d of x [batch, channels, rows] with a kernel of its own
// for each channel, w [channels, 1, taps], and rows of zeros on both sides. In
// the lower type under autocast. Its kernel, PyTorch's own or for fp16 one of
// cuDNN's, takes what is contiguous.
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
	wrt := []int{1, 0}
	if x.dtype == Float16 && x.dim[1] >= cudnnChannels {
		wrt = []int{0, 1}
	}
	for _, i := range wrt {
		if t := []*Tensor{x, w}[i]; n.wants(i) {
			out[i] = m.Empty(op, t.dtype, t.Shape()...)
		}
	}
	Drop(dy, c)
	return out
}

// cudnnChannels is from how many channels on cuDNN is asked.
const cudnnChannels = 32

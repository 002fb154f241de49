package eager

// PatchConv is conv2d by cuDNN with a kernel that is as large as its stride: it
// cuts images [batch, channels, height, width] into patches. w is [out,
// channels, height, width]. In the lower type under autocast.
func (m *Machine) PatchConv(x, w, bias *Tensor) *Tensor {
	const op = "cudnn_convolution"
	in, w, bias, n := m.convolved(x, w, bias)
	defer Drop(in, w, bias)
	y := m.Empty(op, in.dtype, in.dim[0], w.dim[0], in.dim[2]/w.dim[2], in.dim[3]/w.dim[3])
	m.Scratch(patchesOf(in, w, y).forward(), op)
	if n != nil {
		n.apply = m.patchConvGrad
		n.made(y)
	}
	return y
}

// convolved is what a convolution begins with: its operands in the lower type under
// autocast, which the caller drops, and its node, which keeps two of them.
func (m *Machine) convolved(x, w, bias *Tensor) (in, kernel, add *Tensor, n *Node) {
	add = m.Lower(bias)
	kernel = m.Lower(w)
	in = m.Lower(x)
	n = m.node("ConvolutionBackward0", in, kernel, add)
	if n != nil {
		n.save(in)
		n.save(kernel)
	}
	return in, kernel, add, n
}

// patchConvGrad is convolution_backward for an input that needs no gradient.
func (m *Machine) patchConvGrad(n *Node, g []*Tensor) []*Tensor {
	const op = "convolution_backward"
	x, w := n.unpack(0), n.unpack(1)
	out := make([]*Tensor, 3)
	if n.wants(1) {
		c := m.contiguousCopy(g[0])
		out[1] = m.Empty(op, w.dtype, w.Shape()...)
		m.Scratch(patchesOf(x, w, c).backward(), op)
		c.Drop()
	}
	if n.wants(2) {
		s := m.SumTo(g[0], []int64{1, w.dim[0], 1, 1})
		out[2] = m.View(s, w.dim[0])
		s.Drop()
	}
	return out
}

// Conv1d is conv1d of x [batch, channels, length] with a kernel w [out, channels,
// taps], in the lower type under autocast. The workspaces are those of whisper's
// two convolutions in three runs: cuDNN copies what it reads and writes, channels
// last. The gradient of the kernel takes more than that where it is split.
func (m *Machine) Conv1d(x, w, bias *Tensor, stride, padding int64) *Tensor {
	const op = "cudnn_convolution"
	in, w, bias, n := m.convolved(x, w, bias)
	defer Drop(in, w, bias)
	y := m.Empty(op, in.dtype, in.dim[0], w.dim[0], (in.dim[2]+2*padding-w.dim[2])/stride+1)
	copies := in.Bytes() + w.Bytes() + y.Bytes()
	switch {
	case in.dtype != Float32:
		m.Scratch(copies+147, op)
	case stride == 1:
		m.Scratch(copies-y.Bytes()+16, op)
	default:
		m.Scratch(copies+16, op)
	}
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			const op = "convolution_backward"
			x, w := n.unpack(0), n.unpack(1)
			c := m.contiguousCopy(g[0])
			out := make([]*Tensor, 3)
			if n.wants(0) {
				out[0] = m.Empty(op, x.dtype, x.Shape()...)
				m.Scratch(copies+147, op)
			}
			if n.wants(1) {
				out[1] = m.Empty(op, w.dtype, w.Shape()...)
				m.Scratch(copies+16, op)
			}
			c.Drop()
			if n.wants(2) {
				s := m.SumTo(g[0], []int64{1, w.dim[0], 1})
				out[2] = m.View(s, w.dim[0])
				s.Drop()
			}
			return out
		}
		n.made(y)
	}
	return y
}

// The workspaces below are those of cuDNN 9.19 on compute capability 9.0. How
// cuDNN chooses its kernels is not public; the rules here are inferred from 650
// convolutions of patches (testdata/plan/convolutions.jsonl.gz).

// patches is what cuDNN's choice depends on.
type patches struct {
	x, w, y  [4]int64 // images, kernel, and what comes out
	half     bool
	brain    bool // bf16
	size     int64
	rows     int64 // patches of all images
	channels int64 // that come out
}

func patchesOf(x, w, y *Tensor) patches {
	return newPatches(x.dtype, x.Shape(), w.Shape(), y.Shape())
}

func newPatches(t DType, x, w, y []int64) patches {
	p := patches{half: t != Float32, brain: t == BFloat16, size: t.Size()}
	copy(p.x[:], x)
	copy(p.w[:], w)
	copy(p.y[:], y)
	p.rows, p.channels = p.y[0]*p.y[2]*p.y[3], p.w[0]
	return p
}

// channelsLast is the size of a tensor whose channels come last, which is how
// fast kernels want them; padded fills them up to 16 bytes.
func (p patches) channelsLast(t [4]int64, padded bool) int64 {
	c := t[1]
	if padded {
		c = ceil(c, 16/p.size) * 16 / p.size
	}
	return ceil(t[0]*c*t[2]*t[3]*p.size, 16) * 16
}

// copies is the size of copies of all three tensors with their channels last.
func (p patches) copies(padded bool) int64 {
	return p.channelsLast(p.x, padded) + p.channelsLast(p.w, padded) + p.channelsLast(p.y, padded)
}

// huge reports whether images have too many elements for most kernels.
func (p patches) huge() bool { return p.channelsLast(p.x, true)/p.size > 1<<27 }

// forward is the workspace of the convolution.
func (p patches) forward() int64 {
	small := p.w[2]*p.w[3] < 32*32
	pixels := p.x[2] * p.x[3]
	large := pixels >= 1<<18
	switch {
	case p.half && small && p.channels < 512:
		return 0
	case p.half && small && large && p.brain:
		return 0
	case p.half && small && large:
		return p.copies(false) + 16
	case p.half && small && p.huge():
		return 3072
	case p.half, p.x[0] >= 64 && p.x[0] < 256:
		return p.copies(true) + 16
	case p.x[0] >= 256:
		return p.copies(true) - p.channelsLast(p.y, true) + 16
	case p.channels >= 1024 && p.x[0]*pixels >= 1<<18:
		return p.copies(false) + 16
	}
	return 0
}

// backward is the workspace of the gradient of the kernel, which is a sum over
// the patches. Where there are many, several blocks sum parts of it in fp32.
func (p patches) backward() int64 {
	area, pixels := p.w[2]*p.w[3], p.x[2]*p.x[3]
	row := area * 16 / p.size // a row of the kernel, padded
	wide := ceil(p.channels, 256)
	all := p.copies(true)
	if !p.half {
		switch {
		case p.rows < 400:
			return 0
		case p.x[0] >= 128, pixels >= 1<<18, pixels > 1<<16 && p.channels < 1024:
			return all + 144 + 4*wide*ceil(row, 64)
		}
		return all + 144
	}
	switch {
	case area >= 32*32 && p.channels < 1024 && p.rows > 512:
		return 4*p.channels*area*p.w[1] + 24*p.channels + 16
	case p.huge():
		tiles := ceil(row, 128)
		return all + 4*256*wide*128*tiles + 8*wide*tiles + 175
	case area < 32*32 && p.rows >= 3072:
		splits := int64(3)
		if p.x[0] >= 128 {
			splits = 4
		}
		return all + splits*4*p.channels*row + 144
	case p.channels >= 1024 && p.rows > 512:
		return all + 2*p.channels + 144
	case p.channels >= 1024 && area < 32*32:
		return all + 144
	}
	return all + 16
}

package eager

// LayerNorm is layer_norm over the last dimension, in fp32 under autocast. The
// bias may be nil. The derivative needs the input, and the mean and the deviation of each row.
func (m *Machine) LayerNorm(x, w, bias *Tensor) *Tensor {
	const op = "native_layer_norm"
	bias = m.Upper(bias)
	w = m.Upper(w)
	in := m.Upper(x)
	defer Drop(in, w, bias)
	n := m.node("NativeLayerNormBackward0", in, w, bias)
	n.save(in)
	n.save(w)
	n.save(bias)
	rows := in.Elements() / in.Size(-1)
	c := m.contiguousCopy(in)
	y := m.Empty(op, in.dtype, in.Shape()...)
	wide := max(in.dtype, Float32)
	mean := m.Empty(op, wide, rows)
	deviation := m.Empty(op, wide, rows)
	c.Drop()
	if n != nil {
		n.saveOutput(mean)
		n.saveOutput(deviation)
		n.apply = m.layerNormGrad
		n.made(y)
	}
	Drop(mean, deviation)
	return y
}

func (m *Machine) layerNormGrad(n *Node, g []*Tensor) []*Tensor {
	const op = "native_layer_norm_backward"
	x, w, bias := n.unpack(0), n.unpack(1), n.unpack(2)
	n.unpack(3)
	n.unpack(4)
	c := m.contiguousCopy(x)
	defer c.Drop()
	out := make([]*Tensor, 3)
	if n.wants(0) {
		out[0] = m.Empty(op, x.dtype, x.Shape()...)
	}
	if n.wants(1) {
		out[1] = m.emptyLike(op, w, w.dtype)
	}
	if n.wants(2) {
		out[2] = m.emptyLike(op, bias, bias.dtype)
	}
	dense := m.contiguousCopy(g[0])
	defer dense.Drop()
	width := x.Size(-1)
	parts := m.Device.layerNormParts(x.Elements()/width, width)
	if parts == 0 {
		return out
	}
	// The sums of the parts replace what was allocated for the results.
	var sums [2]*Tensor
	for i := range sums {
		if out[i+1] != nil {
			sums[i] = m.Empty(op, x.dtype, parts, width)
		}
	}
	for i, s := range sums {
		if s != nil {
			y := m.Sum(s, 0, false)
			out[i+1].Drop()
			out[i+1] = y
		}
	}
	Drop(sums[1], sums[0])
	return out
}

// layerNormParts is into how many parts the rows are cut when the gradients of
// weight and bias are summed, 0 if they are summed in one go: many short rows
// would otherwise keep too few multiprocessors busy.
func (d Device) layerNormParts(rows, width int64) int64 {
	const (
		columns  = 32 // of a thread block
		each     = 32 // rows of a thread block
		manyRows = 64 << 10
		mostGrid = 32 << 10
	)
	if rows <= manyRows || width/columns >= d.Multiprocessors/2 {
		return 0
	}
	return min(mostGrid/ceil(width, columns), ceil(rows, each))
}

// contiguousCopy is expect_contiguous: the caller holds what it returns.
func (m *Machine) contiguousCopy(x *Tensor) *Tensor {
	if x.IsContiguous() {
		return x.Keep()
	}
	return m.Empty("contiguous", x.dtype, x.Shape()...)
}

package eager

// efficient is attention by the memory-efficient kernel of CUTLASS. The mask,
// if there is one, is what alignedBias made and may need a gradient.
func (m *Machine) efficient(q, k, v, bias *Tensor, dropout bool) *Tensor {
	const op = "efficient_attention"
	n := m.node("ScaledDotProductEfficientAttentionBackward0", q, k, v, bias)
	if n != nil {
		n.save(bias)
		n.save(k)
		n.save(q)
		n.save(v)
	}
	b, h, rows, width := q.dim[0], q.dim[1], q.dim[2], v.dim[3]
	outs := m.cachedOp(func() []*Tensor {
		y := m.heads(op, q.dtype, b, h, rows, width)
		// Rows of the sums are padded to the blocks of the backward kernel.
		var lse *Tensor
		if n != nil {
			lse = m.Empty(op, Float32, b, h, ceil(rows, 32)*32)
		}
		if max(width, q.dim[3]) > 128 && q.dtype != Float32 {
			m.Scratch(b*rows*h*width*4, op)
		}
		return []*Tensor{y, lse}
	})
	y := outs[0]
	if n != nil {
		n.saveOutput(outs[1])
		n.saveOutput(y)
		// The random state lies in host memory; it has places all the same.
		n.save(nil)
		n.save(nil)
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return m.efficientGrad(n, g[0], dropout)
		}
		n.made(y)
	}
	outs[1].Drop()
	return y
}

// heads is an empty tensor [batch, heads, rows, width] whose rows come before
// its heads in memory.
func (m *Machine) heads(op string, d DType, b, h, rows, width int64) *Tensor {
	o := m.Empty(op, d, b, rows, h, width)
	y := m.Transpose(o, 1, 2)
	o.Drop()
	y.view = false
	return y
}

// alignedBias is preprocess_mask: rows of the mask begin at multiples of 8
// elements, and it is seen as one for every head. It takes the mask over.
func (m *Machine) alignedBias(bias, q, k *Tensor) *Tensor {
	const alignment = 8
	x := bias
	aligned := bias.stride[bias.dims-1] == 1
	for i := range int(bias.dims) - 1 {
		aligned = aligned && bias.stride[i]%alignment == 0
	}
	if !aligned {
		last := bias.Size(-1)
		p := m.Pad(x, last+alignment-last%alignment)
		x.Drop()
		x = m.Slice(p, -1, last)
		p.Drop()
	}
	y := m.Expand(x, q.dim[0], q.dim[1], q.dim[2], k.dim[2])
	x.Drop()
	return y
}

func (m *Machine) efficientGrad(n *Node, g *Tensor, dropout bool) []*Tensor {
	const op = "efficient_attention_backward"
	bias := n.unpack(0)
	k, q, v := n.unpack(1), n.unpack(2), n.unpack(3)
	n.unpack(4)
	n.unpack(5)
	g2 := m.rowsFirst(g)
	b, h, rows, keys := q.dim[0], q.dim[1], q.dim[2], k.dim[2]
	out := make([]*Tensor, 4)
	out[0] = m.heads(op, q.dtype, b, h, rows, q.dim[3])
	out[1] = m.heads(op, k.dtype, b, h, keys, k.dim[3])
	out[2] = m.heads(op, v.dtype, b, h, keys, v.dim[3])
	if n.wants(3) {
		full := m.Empty(op, bias.dtype, b, h, rows, ceil(keys, 16)*16)
		out[3] = m.narrow(full, 3, keys)
		full.Drop()
	}
	delta := m.efficientDelta(op, q.dtype, b, h, rows, v.dim[3])
	work := m.scratch(m.Device.efficientScratch(q, v, keys, dropout), op)
	delta.Drop()
	m.unref(work)
	g2.Drop()
	return out
}

// efficientDelta is the sums of the products of the result and its gradient,
// [batch, heads, rows]. For half types the kernel computes them.
func (m *Machine) efficientDelta(op string, d DType, b, h, rows, width int64) *Tensor {
	if d != Float32 {
		return m.Empty(op, Float32, b, h, rows)
	}
	p := m.Empty(op, Float32, b, rows, h, width)
	sum := m.reduced(op, p, Float32, []int64{b, rows, h}, true)
	t := m.Transpose(sum, 1, 2)
	c := m.Contiguous(t)
	Drop(t, sum, p)
	return c
}

// efficientScratch is the workspace of the backward kernel: partial gradients
// of q, and of k and v where they do not fit into registers.
func (d Device) efficientScratch(q, v *Tensor, keys int64, dropout bool) int64 {
	width := max(q.dim[3], v.dim[3])
	half := q.dtype != Float32
	// Blocks of queries and keys, and up to which width the kernel goes.
	small := d.Capability == 86 || d.Capability == 89 || d.Capability >= 120 // little shared memory
	blockQ, blockK, most := int64(64), int64(64), int64(65536)
	switch {
	case width <= 32:
		most = 32
	case width <= 64:
		most = 64
	case width <= 96 && half && !dropout && (d.Capability == 86 || d.Capability == 89):
		blockQ, most = 128, 96
	case width <= 128:
		most = 128
		if !small {
			blockQ = 128
			if half {
				blockK = 128
			}
		}
	case !small:
		blockQ = 128
	}
	heads := q.dim[0] * q.dim[1]
	var inK, inV int64
	if half && most > blockQ {
		splits := ceil(keys, blockK)
		if heads >= 256 && keys <= 2*blockK {
			splits = 1
		}
		splits = max(min(splits, 200/heads), 1)
		inK = splits * blockK * ceil(q.dim[3], blockQ) * blockQ
		inV = splits * blockK * ceil(v.dim[3], blockQ) * blockQ
	}
	inQ := ceil(q.dim[2], blockQ) * ceil(q.dim[3], blockK) * (4 + blockQ*blockK)
	return heads * ceil(inK+inV+inQ, 4) * 4 * 4
}

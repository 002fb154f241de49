package eager

// cudnn is attention by cuDNN. The mask, if there is one, is of numbers.
func (m *Machine) cudnn(q, k, v, bias *Tensor) *Tensor {
	const op = "cudnn_attention"
	n := m.node("ScaledDotProductCudnnAttentionBackward0", q, k, v)
	if n != nil {
		n.save(bias)
		n.save(k)
		n.save(q)
		n.save(v)
	}
	outs := m.cachedOp(func() []*Tensor {
		seed := m.Empty(op, Int64)
		offset := m.Empty(op, Int64)
		y := m.likeQuery(op, q, v.dim[3])
		var lse *Tensor
		if n != nil {
			lse = m.Empty(op, Float32, q.dim[0], q.dim[1], q.dim[2], 1)
		}
		m.Scratch(m.Device.cudnnScratch(q, k, v), op)
		return []*Tensor{y, lse, seed, offset}
	})
	return attended(n, outs, [4]int{1, 0, 3, 2}, m.cudnnGrad)
}

// likeQuery is an empty result: of the shape of q but for the width of a head,
// and in its order of memory.
func (m *Machine) likeQuery(op string, q *Tensor, width int64) *Tensor {
	if q.dim[3] == width {
		return m.emptyLike(op, q, q.dtype)
	}
	t := m.tensor(q.dtype, []int64{q.dim[0], q.dim[1], q.dim[2], width})
	order := [4]int{0, 1, 2, 3}
	for i := 1; i < 4; i++ {
		for j := i; j > 0 && q.stride[order[j]] < q.stride[order[j-1]]; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	step := int64(1)
	for _, d := range order {
		t.stride[d] = step
		step *= t.dim[d]
	}
	t.store = m.alloc(t.Bytes(), op)
	return t
}

// cudnnAlign is what a workspace has beside the buffers in it.
const cudnnAlign = 256

// cudnnScratch is the workspace of the forward kernel. A single query is
// computed by another kernel, which may cut the keys into parts whose results
// meet in the workspace.
func (d Device) cudnnScratch(q, k, v *Tensor) int64 {
	if q.dim[2] > 1 {
		return cudnnAlign
	}
	parts := d.cudnnParts(q.dim[0]*k.dim[1], k.dim[2])
	if parts == 1 {
		return 0
	}
	const align = 128
	rows := parts * q.dim[0] * q.dim[1]
	return ceil(rows*v.dim[3]*4, align)*align + 2*ceil(rows*4, align)*align + align
}

// cudnnParts is into how many parts the keys of a single query are cut: as many
// as keep the multiprocessors busy, in blocks of 128 keys. The source is not
// public; this is what cuDNN 9.19 was seen to do.
func (d Device) cudnnParts(heads, keys int64) int64 {
	const fewKeys, most = 512, 64
	if keys <= fewKeys || d.Multiprocessors*2 < heads {
		return 1
	}
	parts := min(lastPower(d.Multiprocessors*2/heads), lastPower(keys/128), most)
	if parts < 4 {
		return 1
	}
	return parts
}

func (m *Machine) cudnnGrad(n *Node, g *Tensor) []*Tensor {
	const op = "cudnn_attention_backward"
	n.unpack(0)
	k, q, v := n.unpack(1), n.unpack(2), n.unpack(3)
	n.unpack(4)
	y := n.unpack(5)
	n.unpack(6)
	n.unpack(7)
	dq := m.emptyLike(op, q, q.dtype)
	dk := m.emptyLike(op, k, k.dtype)
	dv := m.emptyLike(op, v, v.dtype)
	var copied *Tensor
	if g.stride[3] != 1 {
		copied = m.emptyLike(op, y, g.dtype)
	}
	b, h, rows, keys := q.dim[0], q.dim[1], q.dim[2], k.dim[2]
	// The gradient of q is added up in fp32, the products of the gradient and
	// the result are summed, and each head has its own gradients of k and v.
	bytes := b*h*rows*q.dim[3]*4 + b*h*rows*4 + cudnnAlign
	if k.dim[1] != h {
		bytes += b * h * keys * (k.dim[3] + v.dim[3]) * k.dtype.Size()
	}
	m.Scratch(bytes, op)
	copied.Drop()
	return []*Tensor{dq, dk, dv}
}

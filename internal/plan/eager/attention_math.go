package eager

// mathAttention is _scaled_dot_product_attention_math: attention as a chain of
// plain ops, half types in fp32.
func (m *Machine) mathAttention(q, k, v, bias *Tensor, a Attention) *Tensor {
	origin := q.dtype
	wide := func(x *Tensor) *Tensor {
		if x.dtype == Float16 || x.dtype == BFloat16 {
			return m.To(x, Float32)
		}
		return x.Keep()
	}
	qa, ka, va := wide(q), wide(k), wide(v)
	query := m.Scale(qa)
	if a.Causal {
		ones := m.Empty("ones", Bool, q.dim[2], k.dim[2])
		low := m.Empty("tril", Bool, q.dim[2], k.dim[2])
		ones.Drop()
		bias = m.additive(low, query.dtype)
		low.Drop()
	} else if bias != nil {
		bias.Keep()
	}
	ke, ve := m.repeatHeads(ka, q.dim[1]), m.repeatHeads(va, q.dim[1])
	kt := m.Transpose(ke, -2, -1)
	ks := m.Scale(kt)
	kt.Drop()
	scores := m.Matmul(query, ks)
	ks.Drop()
	switch {
	case bias != nil && m.cached != nil:
		// Under a dispatch mode, which a selective checkpoint is, not in place.
		sum := m.Add(scores, bias)
		scores.Drop()
		scores = sum
	case bias != nil:
		m.addInPlace(scores, bias)
	}
	probs := m.safeSoftmax(scores)
	scores.Drop()
	if a.Dropout {
		d := m.Dropout(probs, 0.5, true)
		probs.Drop()
		probs = d
	}
	// Both results are cast; the second is thrown away by the caller.
	narrow := m.To(probs, origin)
	y := m.Matmul(probs, ve)
	out := m.To(y, origin)
	Drop(y, probs, ke, ve, query, bias, va, ka, qa, narrow)
	return out
}

// repeatHeads is repeat_interleave of the heads, where there are fewer.
func (m *Machine) repeatHeads(x *Tensor, heads int64) *Tensor {
	if x.dim[1] == heads {
		return x.Keep()
	}
	u := m.Unsqueeze(x, 2)
	e := m.Expand(u, x.dim[0], x.dim[1], heads/x.dim[1], x.dim[2], x.dim[3])
	u.Drop()
	c := m.cloneContiguous(e)
	e.Drop()
	y := m.View(c, x.dim[0], heads, x.dim[2], x.dim[3])
	c.Drop()
	return y
}

// addInPlace is x.add_(other).
func (m *Machine) addInPlace(x, other *Tensor) {
	n := m.node("AddBackward0", x, other)
	if n == nil {
		return
	}
	n.apply = passOn
	if before := x.node; before != nil {
		x.node = nil
		defer before.unref()
	}
	n.made(x)
}

// safeSoftmax is _safe_softmax: rows that are masked as a whole become zeros.
func (m *Machine) safeSoftmax(x *Tensor) *Tensor {
	const op = "safe_softmax"
	n := m.node("SafeSoftmaxBackward0", x)
	y := m.Empty(op, x.dtype, x.Shape()...)
	masked := m.pointwise(op, Bool, x)
	shape := append([]int64(nil), x.Shape()...)
	shape[len(shape)-1] = 1
	all := m.reduced(op, masked, Bool, shape, true)
	m.Scratch(x.dtype.Size(), op)
	Drop(all, masked)
	if n != nil {
		n.saveOutput(y)
		d := x.dtype
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return []*Tensor{m.softmaxGrad(op, g[0], n.unpack(0), d)}
		}
		n.made(y)
	}
	return y
}

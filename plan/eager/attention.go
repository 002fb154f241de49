package eager

// Flash is scaled dot-product attention by the flash kernel. q is [batch,
// heads, rows, d], k and v may have fewer heads. The result has the memory
// order of q.
func (m *Machine) Flash(q, k, v *Tensor, dropout bool) *Tensor {
	const op = "flash_attention"
	n := m.node("ScaledDotProductFlashAttentionBackward0", q, k, v)
	if n != nil {
		n.save(q)
		n.save(k)
		n.save(v)
	}
	outs := m.cachedOp(func() []*Tensor {
		// The kernel sees [batch, rows, heads, d].
		t := m.Transpose(q, 1, 2)
		o := m.emptyLike(op, t, q.dtype)
		t.Drop()
		y := m.Transpose(o, 1, 2)
		o.Drop()
		y.view = false
		lse := m.Empty(op, Float32, q.dim[0], q.dim[1], q.dim[2])
		seed := m.Empty(op, Int64, 2)
		unused := m.Empty(op, Int64)
		return []*Tensor{y, lse, seed, unused}
	})
	y := outs[0]
	if n != nil {
		for _, t := range outs {
			n.saveOutput(t)
		}
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return m.flashGrad(n, g[0])
		}
		n.made(y)
	}
	Drop(outs[1:]...)
	return y
}

func (m *Machine) flashGrad(n *Node, g *Tensor) []*Tensor {
	const op = "flash_attention_backward"
	q, k, v := n.unpack(0), n.unpack(1), n.unpack(2)
	for i := 3; i < len(n.saved); i++ {
		n.unpack(i)
	}
	like := func(x *Tensor) *Tensor {
		t := m.Transpose(x, 1, 2)
		o := m.emptyLike(op, t, x.dtype)
		t.Drop()
		y := m.Transpose(o, 1, 2)
		o.Drop()
		return y
	}
	dq, dk, dv := like(q), like(k), like(v)
	b, h, s, d := q.dim[0], q.dim[1], q.dim[2], q.dim[3]
	rounded := ceil(s, 128) * 128
	wide := ceil(d, 32) * 32
	sums := m.scratch(b*h*rounded*4, op)
	acc := m.scratch(b*h*rounded*wide*4, op)
	var ek, ev *storage
	if k.dim[1] != h {
		ek = m.scratch(b*k.dim[2]*h*d*k.dtype.Size(), op)
		ev = m.scratch(b*k.dim[2]*h*d*k.dtype.Size(), op)
		m.unref(ev)
		m.unref(ek)
	}
	m.unref(acc)
	m.unref(sums)
	return []*Tensor{dq, dk, dv}
}

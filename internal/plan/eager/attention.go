package eager

import "math"

// Backend is a kernel of scaled_dot_product_attention.
type Backend uint8

// The kernels.
const (
	FlashAttention Backend = iota
	EfficientAttention
	CuDNNAttention
	MathAttention
)

// Attention is what scaled_dot_product_attention is called with. Q is [batch,
// heads, rows, d]; K and V may have fewer heads.
type Attention struct {
	Q, K, V *Tensor
	Mask    *Tensor // of bools, or of numbers to add; nil without one
	Dropout bool
	Causal  bool
}

// SDPA is scaled_dot_product_attention by the given kernel. Under autocast all
// its inputs are cast. The result is [batch, heads, rows, d].
func (m *Machine) SDPA(b Backend, a Attention) (y *Tensor) {
	mask := a.Mask
	if mask != nil {
		mask = m.Lower(mask)
	}
	v := m.Lower(a.V)
	k := m.Lower(a.K)
	q := m.Lower(a.Q)
	defer Drop(mask, v, k, q)
	m.AutocastOff(func() {
		bias := m.additive(mask, q.dtype)
		if b == EfficientAttention && bias != nil {
			bias = m.alignedBias(bias, q, k)
		}
		defer bias.Drop()
		switch b {
		case FlashAttention:
			y = m.flash(q, k, v, a.Dropout)
		case EfficientAttention:
			y = m.efficient(q, k, v, bias, a.Dropout)
		case CuDNNAttention:
			y = m.cudnn(q, k, v, bias)
		default:
			y = m.mathAttention(q, k, v, bias, a)
		}
	})
	return y
}

// Lowered is the type that a tensor has in an op that autocast runs in its lower
// type.
func (m *Machine) Lowered(t *Tensor) DType {
	if m.cast.on && t.dtype.IsFloat() && t.dtype != Float64 {
		return m.cast.to
	}
	return t.dtype
}

// additive is a mask as numbers to add: a mask of bools is turned into one.
func (m *Machine) additive(mask *Tensor, d DType) *Tensor {
	switch {
	case mask == nil:
		return nil
	case mask.dtype != Bool:
		return mask.Keep()
	}
	return m.WhereNumbers(mask, d)
}

// flash is attention by the flash kernel. It wants heads whose width is a
// multiple of 8, and pads others.
func (m *Machine) flash(q, k, v *Tensor, dropout bool) *Tensor {
	width := q.Size(-1)
	if width%8 == 0 {
		return m.flashOp(q, k, v, dropout)
	}
	wide := ceil(width, 8) * 8
	q, k, v = m.Pad(q, wide), m.Pad(k, wide), m.Pad(v, wide)
	y := m.flashOp(q, k, v, dropout)
	Drop(v, k, q)
	s := m.Slice(y, -1, width)
	y.Drop()
	return s
}

func (m *Machine) flashOp(q, k, v *Tensor, dropout bool) *Tensor {
	const op = "flash_attention"
	n := m.node("ScaledDotProductFlashAttentionBackward0", q, k, v)
	if n != nil {
		n.save(k)
		n.save(q)
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
		heads, rows := q.dim[1], q.dim[2]
		if rows == 1 && heads > k.dim[1] && !dropout {
			// The groups of a single query are taken for rows.
			heads, rows = k.dim[1], heads/k.dim[1]
		}
		lse := m.Empty(op, Float32, q.dim[0], heads, rows)
		var accLse, acc *storage
		if !dropout {
			if s := m.Device.flashSplits(q.dim[0]*heads, rows, k.dim[2], q.dim[3]); s > 1 {
				each := s * q.dim[0] * heads * rows * 4
				accLse = m.scratch(each, op)
				acc = m.scratch(each*flashWidth(q.dim[3]), op)
			}
		}
		seed := m.Empty(op, Int64, 2)
		unused := m.Empty(op, Int64)
		if dropout {
			s := m.Empty(op, Int64, 2)
			seed.Drop()
			seed = s
		}
		if acc != nil {
			m.unref(accLse)
			m.unref(acc)
		}
		return []*Tensor{y, lse, seed, unused}
	})
	return attended(n, outs, [4]int{1, 0, 2, 3}, m.flashGrad)
}

// attended returns the first result of an attention kernel. The derivative needs
// all four, in an order of its own.
func attended(n *Node, outs []*Tensor, order [4]int, grad func(n *Node, g *Tensor) []*Tensor) *Tensor {
	if n != nil {
		for _, i := range order {
			n.saveOutput(outs[i])
		}
		n.apply = func(n *Node, g []*Tensor) []*Tensor { return grad(n, g[0]) }
		n.made(outs[0])
	}
	Drop(outs[1:]...)
	return outs[0]
}

// flashWidth is the width of a head in the kernel's own buffers.
func flashWidth(d int64) int64 {
	if d <= 128 {
		return ceil(d, 32) * 32
	}
	return ceil(d, 64) * 64
}

// flashSplits is into how many parts the kernel cuts the keys when there are
// too few queries to keep the multiprocessors busy.
func (d Device) flashSplits(heads, rows, keys, width int64) int64 {
	block := int64(64)
	switch {
	case width <= 64:
		block = 256
	case width <= 128:
		block = 128
	}
	blocks := ceil(keys, block)
	work := heads * ceil(rows, 64)
	procs := d.Multiprocessors * 2
	if float32(work) >= 0.8*float32(procs) {
		return 1
	}
	most := min(128, procs, blocks)
	eligible := func(s int64) bool { return s == 1 || ceil(blocks, s) != ceil(blocks, s-1) }
	efficiency := func(s int64) float32 {
		waves := float32(work*s) / float32(procs)
		return waves / float32(math.Ceil(float64(waves)))
	}
	var best float32
	for s := int64(1); s <= most; s++ {
		if eligible(s) {
			best = max(best, efficiency(s))
		}
	}
	for s := int64(1); s <= most; s++ {
		if eligible(s) && float64(efficiency(s)) >= 0.85*float64(best) {
			return s
		}
	}
	return 1
}

func (m *Machine) flashGrad(n *Node, g *Tensor) []*Tensor {
	const op = "flash_attention_backward"
	k, q, v := n.unpack(0), n.unpack(1), n.unpack(2)
	n.unpack(3)
	y := n.unpack(4)
	n.unpack(5)
	n.unpack(6)
	// The kernel wants both contiguous as [batch, rows, heads, d].
	g2, y2 := m.rowsFirst(g), m.rowsFirst(y)
	like := func(x *Tensor) *Tensor {
		t := m.Transpose(x, 1, 2)
		o := m.emptyLike(op, t, x.dtype)
		t.Drop()
		y := m.Transpose(o, 1, 2)
		o.Drop()
		return y
	}
	dq, dk, dv := like(q), like(k), like(v)
	b, h, d := q.dim[0], q.dim[1], q.dim[3]
	rows := ceil(q.dim[2], 128) * 128
	sums := m.scratch(b*h*rows*4, op)
	acc := m.scratch(b*h*rows*flashWidth(d)*4, op)
	if k.dim[1] != h {
		ek := m.scratch(b*k.dim[2]*h*d*k.dtype.Size(), op)
		ev := m.scratch(b*k.dim[2]*h*d*k.dtype.Size(), op)
		m.unref(ev)
		m.unref(ek)
	}
	m.unref(acc)
	m.unref(sums)
	Drop(y2, g2)
	return []*Tensor{dq, dk, dv}
}

// rowsFirst is x [batch, heads, rows, d] with its rows before its heads, in
// that order in memory.
func (m *Machine) rowsFirst(x *Tensor) *Tensor {
	t := m.Transpose(x, 1, 2)
	c := m.Contiguous(t)
	t.Drop()
	return c
}

package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// attention is a call of transformers' attention interface.
type attention struct {
	q, k, v *eager.Tensor // [batch, heads, rows, d]; k and v may have fewer heads
	mask    *eager.Tensor // what the mask builder made; nil without a mask
	bias    *eager.Tensor // position_bias: added to the scores (t5); nil without one
	dropout float64       // on the probabilities; 0 unless training
	softcap bool          // the scores pass a tanh (eager alone)
	// bidirectional: the module's is_causal is False.
	bidirectional bool
	style         eagerStyle
}

// eagerStyle is how a family's eager_attention_forward ends.
type eagerStyle uint8

const (
	// eagerWide: softmax in fp32, back to the type of q, contiguous (llama and
	// most others, vit).
	eagerWide eagerStyle = iota
	// eagerPlain: softmax in the type of the scores, contiguous (bert, t5).
	eagerPlain
	// eagerGPT2: softmax in the type of the scores, in the type of v, and the
	// result stays transposed.
	eagerGPT2
)

// attend computes attention: the result [batch, rows, heads, d], and the
// probabilities, which only eager attention has, nil otherwise. The caller
// holds both.
func attend(r *run, a attention) (out, weights *eager.Tensor) {
	if r.job.Attention == model.Eager {
		return eagerAttention(r, a)
	}
	if r.job.Shard.Context > 1 {
		return r.ring(a, func(a attention) *eager.Tensor { return sdpaAttention(r, a) }), nil
	}
	return sdpaAttention(r, a), nil
}

// eagerAttention is eager_attention_forward.
func eagerAttention(r *run, a attention) (out, weights *eager.Tensor) {
	m := r.machine
	groups := a.q.Size(1) / a.k.Size(1)
	k := repeatHeads(r, a.k, groups)
	v := repeatHeads(r, a.v, groups)
	kt := m.Transpose(k, 2, 3)
	p := m.Matmul(a.q, kt)
	kt.Drop()
	w := m.Scale(p)
	p.Drop()
	then := func(y *eager.Tensor) {
		w.Drop()
		w = y
	}
	if a.softcap {
		then(m.DivScalar(w))
		then(m.ByResult("tanh", w))
		then(m.Scale(w))
	}
	if a.bias != nil {
		then(m.Add(w, a.bias))
	}
	if a.mask != nil {
		then(m.Add(w, a.mask))
	}
	switch a.style {
	case eagerWide:
		s := m.Softmax(w, eager.Float32)
		y := m.To(s, a.q.DType())
		s.Drop()
		then(y)
	default:
		then(m.Softmax(w, w.DType()))
		if a.style == eagerGPT2 {
			then(m.To(w, v.DType()))
		}
	}
	then(m.Dropout(w, a.dropout, true))
	y := m.Matmul(w, v)
	out = m.Transpose(y, 1, 2)
	y.Drop()
	if a.style != eagerGPT2 {
		c := m.Contiguous(out)
		out.Drop()
		out = c
	}
	eager.Drop(k, v)
	return out, w
}

// repeatHeads is repeat_kv: a copy with each head as often as there are
// queries for it.
func repeatHeads(r *run, x *eager.Tensor, groups int64) *eager.Tensor {
	if groups == 1 {
		return x.Keep()
	}
	m := r.machine
	b, h, rows, d := x.Size(0), x.Size(1), x.Size(2), x.Size(3)
	u := m.Unsqueeze(x, 2)
	e := m.Expand(u, b, h, groups, rows, d)
	u.Drop()
	y := m.Reshape(e, b, h*groups, rows, d)
	e.Drop()
	return y
}

// llamaAttention is LlamaAttention, and with norms on q and k Qwen3Attention.
type llamaAttention struct {
	label        ledger.Name
	q, k, v, o   *linear
	joined       *joinedHeads // one projection instead of q, k and v
	qNorm, kNorm normer
	normAt       normPlace
	headDim      int64
	dropout      float64
	residual     float64 // dropout of the output (starcoder2)
	scaled       bool    // the queries are scaled before they are cut into heads (opt)
	late         bool    // all three are projected before any is cut into heads (olmo2, clip)
	// rotate is nil in a layer without rotary positions.
	rotate func(r *run, q, k *eager.Tensor, t tables) (q2, k2 *eager.Tensor)
	attend func(r *run, a attention) (out, weights *eager.Tensor)
}

// normPlace is when the norms on q and k come.
type normPlace uint8

const (
	normHead   normPlace = iota // of each head, before heads are put first (qwen3)
	normHeads                   // after heads were put first (gemma3)
	normBefore                  // of all heads together (olmo2)
)

// forward returns the output and the probabilities, which may be nil.
func (a *llamaAttention) forward(r *run, x *eager.Tensor, c *shared) (y, weights *eager.Tensor) {
	m := r.machine
	before := m.Enter(a.label)
	defer m.Enter(before)
	q, k, v, joined := a.heads(r, x)
	if a.rotate != nil {
		q2, k2 := a.rotate(r, q, k, c.rope)
		eager.Drop(q, k)
		q, k = q2, k2
	}
	if c.cache != nil {
		k2, v2 := c.cache.update(r, c.layer, k, v)
		eager.Drop(k, v)
		k, v = k2, v2
	}
	out, weights := a.attend(r, attention{q: q, k: k, v: v, mask: c.mask, dropout: r.dropout(a.dropout)})
	flat := m.Reshape(out, x.Size(0), x.Size(1), -1)
	out.Drop()
	flat2 := m.Contiguous(flat)
	flat.Drop()
	y = a.o.forward(r, flat2)
	flat2.Drop()
	y = replace(y, m.Dropout(y, a.residual, r.trains))
	eager.Drop(q, k, v, joined)
	return y, weights
}

// heads are the queries, keys and values [batch, heads, rows, d], and what they
// are parts of, nil where they are projected one by one.
func (a *llamaAttention) heads(r *run, x *eager.Tensor) (q, k, v, joined *eager.Tensor) {
	if a.joined != nil {
		return a.joined.forward(r, x)
	}
	m := r.machine
	project := func(l *linear, norm normer) *eager.Tensor {
		p := l.forward(r, x)
		if a.scaled && l == a.q {
			p = replace(p, m.Scale(p))
		}
		if norm != nil && a.normAt == normBefore {
			p = replace(p, norm.forward(r, p))
		}
		return p
	}
	cut := func(p *eager.Tensor, norm normer) *eager.Tensor {
		h := replace(p, m.View(p, x.Size(0), x.Size(1), -1, a.headDim))
		if norm != nil && a.normAt == normHead {
			h = replace(h, norm.forward(r, h))
		}
		return replace(h, m.Transpose(h, 1, 2))
	}
	// The order is that of autograd's nodes.
	switch {
	case a.late:
		q, k, v = project(a.q, a.qNorm), project(a.k, a.kNorm), project(a.v, nil)
		q, k, v = cut(q, a.qNorm), cut(k, a.kNorm), cut(v, nil)
	case a.scaled:
		q = cut(project(a.q, nil), nil)
		k, v = project(a.k, nil), project(a.v, nil)
		k, v = cut(k, nil), cut(v, nil)
	default:
		q = cut(project(a.q, a.qNorm), a.qNorm)
		k = cut(project(a.k, a.kNorm), a.kNorm)
		v = cut(project(a.v, nil), nil)
	}
	if a.normAt == normHeads {
		q = replace(q, a.qNorm.forward(r, q))
		k = replace(k, a.kNorm.forward(r, k))
	}
	return q, k, v, nil
}

// dropout is a probability as far as it is in force: 0 unless training.
func (r *run) dropout(p float64) float64 {
	if !r.trains {
		return 0
	}
	return p
}

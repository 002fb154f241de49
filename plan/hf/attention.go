package hf

import (
	"github.com/ashlar-mem/ashlar/plan/eager"
	"github.com/ashlar-mem/ashlar/plan/job"
	"github.com/ashlar-mem/ashlar/plan/ledger"
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
	if r.job.Attention == job.Eager {
		return eagerAttention(r, a)
	}
	return sdpaAttention(r, a), nil
}

// llamaAttention is LlamaAttention, and with norms on q and k Qwen3Attention.
type llamaAttention struct {
	label        ledger.Name
	q, k, v, o   *linear
	qNorm, kNorm normer
	headDim      int64
	dropout      float64
	rotate       func(r *run, q, k *eager.Tensor, t tables) (q2, k2 *eager.Tensor)
	attend       func(r *run, a attention) (out, weights *eager.Tensor)
}

// forward returns the output and the probabilities, which may be nil.
func (a *llamaAttention) forward(r *run, x *eager.Tensor, c *shared) (y, weights *eager.Tensor) {
	m := r.m
	before := m.Enter(a.label)
	defer m.Enter(before)
	project := func(l *linear, norm normer) *eager.Tensor {
		p := l.forward(r, x)
		h := m.View(p, x.Size(0), x.Size(1), -1, a.headDim)
		p.Drop()
		if norm != nil {
			n := norm.forward(r, h)
			h.Drop()
			h = n
		}
		t := m.Transpose(h, 1, 2)
		h.Drop()
		return t
	}
	q := project(a.q, a.qNorm)
	k := project(a.k, a.kNorm)
	v := project(a.v, nil)
	q2, k2 := a.rotate(r, q, k, c.rope)
	eager.Drop(q, k)
	q, k = q2, k2
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
	eager.Drop(flat2, q, k, v)
	return y, weights
}

// dropout is a probability as far as it is in force: 0 unless training.
func (r *run) dropout(p float64) float64 {
	if !r.trains {
		return 0
	}
	return p
}

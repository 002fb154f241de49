package hf

import (
	"github.com/ashlar-mem/ashlar/plan/eager"
	"github.com/ashlar-mem/ashlar/plan/job"
	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// attend is the attention interface: q, k, v [batch, heads, rows, d], the
// result [batch, rows, heads, d].
func attend(r *run, q, k, v, mask *eager.Tensor, dropout float64) *eager.Tensor {
	switch r.attention(q, k, v, mask, dropout) {
	case job.Flash:
		y := r.m.Flash(q, k, v, dropout > 0)
		t := r.m.Transpose(y, 1, 2)
		y.Drop()
		c := r.m.Contiguous(t)
		t.Drop()
		return c
	}
	panic("hf: attention " + string(r.job.Attention))
}

// attention is the backend that computes an attention.
func (r *run) attention(q, k, v, mask *eager.Tensor, dropout float64) job.Attention {
	return job.Flash
}

// llamaAttention is LlamaAttention, and with norms on q and k Qwen3Attention.
type llamaAttention struct {
	label        ledger.Name
	q, k, v, o   *linear
	qNorm, kNorm normer
	headDim      int64
	dropout      float64
}

func (a *llamaAttention) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
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
	q2, k2 := applyRotary(r, q, k, c.rope)
	eager.Drop(q, k)
	q, k = q2, k2
	out := attend(r, q, k, v, c.mask, a.dropout)
	flat := m.Reshape(out, x.Size(0), x.Size(1), -1)
	out.Drop()
	flat2 := m.Contiguous(flat)
	flat.Drop()
	y := a.o.forward(r, flat2)
	eager.Drop(flat2, q, k, v)
	return y
}

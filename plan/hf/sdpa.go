package hf

import (
	"github.com/ashlar-mem/ashlar/plan/eager"
	"github.com/ashlar-mem/ashlar/plan/job"
)

// sdpaAttention is sdpa_attention_forward.
func sdpaAttention(r *run, a attention) *eager.Tensor {
	m := r.m
	q, k, v, mask := m.LowerAttention(a.q, a.k, a.v, a.mask)
	a.q, a.k, a.v, a.mask = q, k, v, mask
	var y *eager.Tensor
	switch r.backend(a) {
	default:
		y = m.Flash(a.q, a.k, a.v, a.dropout > 0)
	}
	eager.Drop(q, k, v, mask)
	t := m.Transpose(y, 1, 2)
	y.Drop()
	c := m.Contiguous(t)
	t.Drop()
	return c
}

// backend is what torch computes the attention with.
func (r *run) backend(_ attention) job.Attention {
	return job.Flash
}

// eagerAttention is eager_attention_forward.
func eagerAttention(_ *run, _ attention) (out, weights *eager.Tensor) {
	panic("hf: eager attention")
}

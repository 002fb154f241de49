package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// attentionPool is SiglipMultiheadAttentionPoolingHead: a learned query attends
// to all states by torch's own MultiheadAttention.
type attentionPool struct {
	label            ledger.Name
	probe            *eager.Tensor
	inWeight, inBias *eager.Tensor
	out              *linear
	norm             *layerNorm
	mlp              *plainMLP
	heads            int64
}

func (b *builder) attentionPool(name string, c *model.Model) *attentionPool {
	in, wide := b.in(name), int64(c.Hidden)
	p := &attentionPool{label: b.label(name), heads: int64(c.Heads)}
	p.probe = in.weight("probe", 1, 1, wide)
	p.inWeight = in.weight("attention.in_proj_weight", 3*wide, wide)
	p.inBias = in.weight("attention.in_proj_bias", 3*wide)
	p.out = in.headLinear("attention.out_proj", c.Hidden, c.Hidden, true)
	p.norm = in.layerNorm("layernorm", c.Hidden)
	p.mlp = in.towerMLP("mlp", c)
	return p
}

func (p *attentionPool) forward(r *run, h *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(p.label)
	defer m.Enter(before)
	batch, rows, wide := h.Size(0), h.Size(1), h.Size(2)
	each := m.Expand(p.probe, batch, 1, wide)
	probe := replace(each, m.Contiguous(each))
	attended := p.attend(r, probe, h, batch, rows, wide)
	n := p.norm.forward(r, attended)
	f := p.mlp.forward(r, n)
	y := m.Add(attended, f)
	eager.Drop(f, n, attended, probe)
	return replace(y, m.Select(y, 1))
}

// attend is multi_head_attention_forward with one query for each image.
func (p *attentionPool) attend(r *run, probe, h *eager.Tensor, batch, rows, wide int64) *eager.Tensor {
	m := r.machine
	query, key := m.Transpose(probe, 0, 1), m.Transpose(h, 0, 1)
	w := m.Split(p.inWeight, 0, wide, 2*wide)
	b := m.Split(p.inBias, 0, wide, 2*wide)
	q := m.Linear(query, w[0], b[0])
	kv := m.Linear(key, w[1], b[1])
	apart := replace(kv, m.View(kv, rows, batch, 2, wide))
	first := replace(apart, m.Permute(apart, 2, 0, 1, 3))
	both := replace(first, m.Contiguous(first))
	k, v := m.Select(both, 0), m.Select(both, 0)
	both.Drop()
	eager.Drop(w...)
	eager.Drop(b...)
	inHeads := func(x *eager.Tensor, n int64) *eager.Tensor {
		y := m.View(x, n, batch*p.heads, wide/p.heads)
		x.Drop()
		return replace(y, m.Transpose(y, 0, 1))
	}
	q, k, v = inHeads(q, 1), inHeads(k, rows), inHeads(v, rows)
	scaled := m.Scale(q)
	turned := m.Transpose(k, 1, 2)
	scores := m.Matmul(scaled, turned)
	turned.Drop()
	scores = replace(scores, m.Softmax(scores, scores.DType()))
	out := m.Matmul(scores, v)
	t := replace(out, m.Transpose(out, 0, 1))
	flat := replace(t, m.Reshape(t, batch, wide))
	y := replace(flat, p.out.forward(r, flat))
	y = replace(y, m.View(y, 1, batch, wide))
	weights := m.View(scores, batch, p.heads, 1, rows)
	mean := replace(weights, m.MeanOver(weights, 1))
	eager.Drop(scaled, q, k, v, scores, query, key, mean)
	return replace(y, m.Transpose(y, 0, 1))
}

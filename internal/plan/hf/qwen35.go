package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// newQwen35 makes qwen3_5 and qwen3_5_moe: most layers mix tokens with a gated
// delta net, the others with attention whose output is gated.
func newQwen35(r *run) network {
	c := r.job.Model
	d := &decoder{}
	top := &builder{run: r}
	base := top.in(insideName(r.job.Model))
	d.embed = base.embedding("embed_tokens", c.Vocab, c.Hidden)
	var nets []*deltaNet
	for i := range c.Layers {
		b := base.in(fmt.Sprintf("layers.%d", i))
		l := &llamaLayer{}
		if c.LayerTypes[i] == model.LinearAttention {
			n := b.deltaNet("linear_attn")
			nets = append(nets, n)
			l.attention = n
		} else {
			l.attention = b.gatedAttention("self_attn")
		}
		l.mlp = b.feedForward("mlp", i)
		l.input = b.centredNorm("input_layernorm", c.Hidden)
		l.middle = b.centredNorm("post_attention_layernorm", c.Hidden)
		d.layers = append(d.layers, l)
	}
	d.norm = base.centredNorm("norm", c.Hidden)
	tables, initialise := base.rotaryModule("rotary_emb", c.Rope.Dim, 1)
	for _, n := range nets {
		r.machine.Scratch(n.decay.Bytes(), "uniform") // new values of A_log
	}
	initialise()
	d.rotary = tables[0]
	d.rotary.style = ropeGrid
	d.head, d.tail = top.head(d.embed), top.decoderTail()
	if len(nets) > 0 {
		r.notes = append(r.notes, "flash-linear-attention and causal-conv1d: the gated delta rule is planned as transformers computes it without these packages; with them it takes other memory")
	}
	return d
}

// gatedAttention is Qwen3_5Attention: q_proj makes the queries and a gate, and
// a part of each head is turned.
type gatedAttention struct {
	label        ledger.Name
	q, k, v, o   *linear
	qNorm, kNorm normer
	headDim      int64
	dropout      float64
}

func (b *builder) gatedAttention(name string) *gatedAttention {
	c := b.run.job.Model
	in := b.in(name)
	return &gatedAttention{
		label: b.label(name), headDim: int64(c.HeadDim), dropout: c.AttentionDropout,
		q:     in.linear("q_proj", c.Hidden, 2*c.Heads*c.HeadDim, c.QKVBias),
		k:     in.linear("k_proj", c.Hidden, c.KVHeads*c.HeadDim, c.QKVBias),
		v:     in.linear("v_proj", c.Hidden, c.KVHeads*c.HeadDim, c.QKVBias),
		o:     in.linear("o_proj", c.Heads*c.HeadDim, c.Hidden, c.OutBias),
		qNorm: in.centredNorm("q_norm", c.HeadDim),
		kNorm: in.centredNorm("k_norm", c.HeadDim),
	}
}

func (a *gatedAttention) forward(r *run, x *eager.Tensor, c *shared) (y, weights *eager.Tensor) {
	m := r.machine
	before := m.Enter(a.label)
	defer m.Enter(before)
	batch, rows := x.Size(0), x.Size(1)
	both := a.q.forward(r, x)
	both = replace(both, m.View(both, batch, rows, -1, 2*a.headDim))
	parts := m.Split(both, -1, a.headDim, a.headDim)
	both.Drop()
	q, gate := parts[0], parts[1]
	gate = replace(gate, m.Reshape(gate, batch, rows, -1))
	heads := func(h *eager.Tensor, norm normer) *eager.Tensor {
		h = replace(h, m.View(h, batch, rows, -1, a.headDim))
		if norm != nil {
			h = replace(h, norm.forward(r, h))
		}
		return replace(h, m.Transpose(h, 1, 2))
	}
	q = heads(q, a.qNorm)
	k := heads(a.k.forward(r, x), a.kNorm)
	v := heads(a.v.forward(r, x), nil)
	q2, k2 := partialRotary(r, q, k, c.rope)
	q, k = replace(q, q2), replace(k, k2)
	if c.cache != nil {
		k2, v2 := c.cache.update(r, c.layer, k, v)
		k, v = replace(k, k2), replace(v, v2)
	}
	out, weights := attend(r, attention{q: q, k: k, v: v, mask: c.mask, dropout: r.dropout(a.dropout)})
	out = replace(out, m.Reshape(out, batch, rows, -1))
	out = replace(out, m.Contiguous(out))
	s := m.ByResult("sigmoid", gate)
	out = rebind(out, m.Mul(out, s), s)
	y = a.o.forward(r, out)
	eager.Drop(out, q, gate, k, v)
	return y, weights
}

// partialRotary is qwen3_5's apply_rotary_pos_emb: only the first dimensions of
// a head turn.
func partialRotary(r *run, q, k *eager.Tensor, t tables) (q2, k2 *eager.Tensor) {
	m := r.machine
	cos, sin := m.Unsqueeze(t.cos, 1), m.Unsqueeze(t.sin, 1)
	turns := cos.Size(-1)
	halves := func(x *eager.Tensor) (turned, rest *eager.Tensor) {
		return m.Slice(x, -1, turns), m.Slice(x, -1, x.Size(-1)-turns)
	}
	qRot, qPass := halves(q)
	kRot, kPass := halves(k)
	q2, k2 = rotate(r, qRot, cos, sin), rotate(r, kRot, cos, sin)
	q2 = replace(q2, m.Cat(-1, q2, qPass))
	k2 = replace(k2, m.Cat(-1, k2, kPass))
	eager.Drop(cos, sin, qRot, qPass, kRot, kPass)
	return q2, k2
}

// grid is Qwen3_5TextRotaryEmbedding.forward: angles for three positions per
// token, of which each dimension takes one. For text they are the same.
func (ro *rotary) grid(r *run, x, positions *eager.Tensor) tables {
	m := r.machine
	const axes = 3
	batch, rows, half := x.Size(0), positions.Size(-1), ro.dim/2
	p := m.Empty("to", eager.Float32, axes, batch, 1, rows)
	f := m.Empty("bmm", eager.Float32, axes, batch, rows, half)
	m.Handle()
	wave := func(op string) *eager.Tensor {
		w := m.Unary(op, f)
		return replace(w, m.Unary("mul", w))
	}
	cos, sin := wave("cos"), wave("sin")
	twice := func(w *eager.Tensor) *eager.Tensor {
		return replace(w, m.Empty("cat", eager.Float32, batch, rows, ro.dim))
	}
	sin = twice(sin)
	cos = twice(cos)
	out := tables{cos: m.To(cos, x.DType()), sin: m.To(sin, x.DType())}
	eager.Drop(p, f, cos, sin)
	return out
}

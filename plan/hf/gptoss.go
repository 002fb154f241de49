package hf

import (
	"github.com/ashlar-mem/ashlar/plan/eager"
	"github.com/ashlar-mem/ashlar/plan/job"
	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// newGptOss makes gpt_oss. It has no scaled_dot_product_attention: whatever is
// asked for, its attention is eager.
func newGptOss(r *run) network {
	if r.job.Attention != job.Eager {
		j := *r.job
		j.Attention = job.Eager
		r.job = &j
	}
	return newLlama(r)
}

// sinkAttention is GptOssAttention: a learned score per head that takes a share
// of the probabilities.
type sinkAttention struct {
	llamaAttention
	sinks *eager.Tensor
}

func (b *builder) sinkAttention(name string) *sinkAttention {
	c := b.r.job.Model
	first := len(b.r.params)
	s := &sinkAttention{llamaAttention: *b.llamaAttention(name)}
	s.sinks = b.in(name).weight("sinks", int64(c.Heads))
	// A module's own parameters are listed before those of its parts.
	list := b.r.params[first:]
	own := list[len(list)-1]
	copy(list[1:], list)
	list[0] = own
	return s
}

func (a *sinkAttention) forward(r *run, x *eager.Tensor, c *shared) (y, weights *eager.Tensor) {
	m := r.m
	before := m.Enter(a.label)
	defer m.Enter(before)
	q, k, v := a.project(r, a.q, x), a.project(r, a.k, x), a.project(r, a.v, x)
	q2, k2 := halvesRotary(r, q, k, c.rope)
	eager.Drop(q, k)
	q, k = q2, k2
	out, weights := a.attend(r, q, k, v, c.mask)
	flat := m.Reshape(out, x.Size(0), x.Size(1), -1)
	out.Drop()
	flat = replace(flat, m.Contiguous(flat))
	y = a.o.forward(r, flat)
	eager.Drop(flat, q, k, v)
	return y, weights
}

// project is a projection with its heads apart, [batch, heads, rows, d].
func (a *sinkAttention) project(r *run, l *linear, x *eager.Tensor) *eager.Tensor {
	p := l.forward(r, x)
	h := r.m.View(p, x.Size(0), x.Size(1), -1, a.headDim)
	t := r.m.Transpose(h, 1, 2)
	eager.Drop(p, h)
	return t
}

// attend is gpt_oss' eager_attention_forward.
func (a *sinkAttention) attend(r *run, q, k, v, mask *eager.Tensor) (out, weights *eager.Tensor) {
	m := r.m
	groups := q.Size(1) / k.Size(1)
	k, v = repeatHeads(r, k, groups), repeatHeads(r, v, groups)
	kt := m.Transpose(k, 2, 3)
	p := m.Matmul(q, kt)
	kt.Drop()
	weights = m.Scale(p)
	p.Drop()
	if mask != nil {
		weights = replace(weights, m.Add(weights, mask))
	}
	s := m.Reshape(a.sinks, 1, -1, 1, 1)
	sinks := m.Expand(s, q.Size(0), -1, q.Size(2), -1)
	s.Drop()
	logits := m.Cat(-1, weights, sinks)
	top := m.Max(logits, true)
	less := m.Sub(logits, top)
	top.Drop()
	logits = replace(logits, less)
	probs := m.SoftmaxTo(logits, logits.DType())
	scores := m.Narrow(probs, -1, probs.Size(-1)-1)
	kept := m.Dropout(scores, r.dropout(a.dropout), true)
	weights = replace(weights, m.To(kept, v.DType()))
	kept.Drop()
	o := m.Matmul(weights, v)
	t := m.Transpose(o, 1, 2)
	out = m.Contiguous(t)
	eager.Drop(o, t, k, v, sinks, logits, probs, scores)
	return out, weights
}

// halvesRotary is gpt_oss' apply_rotary_pos_emb.
func halvesRotary(r *run, q, k *eager.Tensor, t tables) (q2, k2 *eager.Tensor) {
	m := r.m
	cos, sin := m.Unsqueeze(t.cos, 1), m.Unsqueeze(t.sin, 1)
	turn := func(x *eager.Tensor) *eager.Tensor {
		half := x.Size(-1) / 2
		parts := m.Split(x, -1, half, half)
		first, second := turnPairs(r, parts[0], parts[1], cos, sin)
		y := m.Cat(-1, first, second)
		eager.Drop(parts[0], parts[1], first, second)
		return y
	}
	q2, k2 = turn(q), turn(k)
	eager.Drop(cos, sin)
	return q2, k2
}

// biasedRouter is GptOssTopKRouter: softmax over the chosen experts alone.
type biasedRouter struct {
	label   ledger.Name
	w, bias *eager.Tensor
	k       int64
}

func (b *builder) biasedRouter(name string) *biasedRouter {
	c := b.r.job.Model
	in := b.in(name)
	g := &biasedRouter{label: b.label(name), k: int64(c.MoE.TopK)}
	g.w = in.weight("weight", int64(c.MoE.Experts), int64(c.Hidden))
	g.bias = in.weight("bias", int64(c.MoE.Experts))
	return g
}

func (g *biasedRouter) forward(r *run, x *eager.Tensor) (logits, weights, indices *eager.Tensor) {
	m := r.m
	before := m.Enter(g.label)
	defer m.Enter(before)
	logits = m.Linear(x, g.w, g.bias)
	values, indices := m.TopK(logits, g.k)
	weights = m.SoftmaxTo(values, values.DType())
	values.Drop()
	return logits, weights, indices
}

// biasedExperts is GptOssExperts: the weights lie the other way round, and
// there are biases.
func (b *builder) biasedExperts(name string) *experts {
	c := b.r.job.Model
	in := b.in(name)
	e := &experts{label: b.label(name), count: int64(c.MoE.Experts), transposed: true, gate: gateClamped}
	hidden, width := int64(c.Hidden), int64(c.MoE.Intermediate)
	e.gateUp = in.weight("gate_up_proj", e.count, hidden, 2*width)
	e.gateUpBias = in.weight("gate_up_proj_bias", e.count, 2*width)
	e.down = in.weight("down_proj", e.count, width, hidden)
	e.downBias = in.weight("down_proj_bias", e.count, hidden)
	return e
}

// gateClamped is GptOssExperts._apply_gate.
func gateClamped(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.m
	gate, up := m.Every(x, 2), m.Every(x, 2)
	gate = replace(gate, m.ClampMax(gate))
	up = replace(up, m.Clamp(up))
	scaled := m.Scale(gate)
	s := m.ByResult("sigmoid", scaled)
	scaled.Drop()
	glu := m.Mul(gate, s)
	s.Drop()
	more := m.AddScalar(up)
	y := m.Mul(more, glu)
	eager.Drop(more, gate, up, glu)
	return y
}

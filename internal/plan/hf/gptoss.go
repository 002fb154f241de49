package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// newGptOss makes gpt_oss. It has no scaled_dot_product_attention: whatever is
// asked for, its attention is eager.
func newGptOss(r *run) network {
	if r.job.Attention != model.Eager {
		j := *r.job
		j.Attention = model.Eager
		r.job = &j
		r.assumed = append(r.assumed, "attention is eager: transformers has no other for gpt_oss without a flash kernel of its own")
	}
	return newLlama(r)
}

// sinkAttention is GptOssAttention: llama's, with a learned score per head that
// takes a share of the probabilities.
func (b *builder) sinkAttention(name string) *llamaAttention {
	first := len(b.run.params)
	a := b.llamaAttention(name)
	sinks := b.in(name).weight("sinks", int64(b.run.job.Model.Heads))
	// A module's own parameters are listed before those of its parts.
	list := b.run.params[first:]
	own := list[len(list)-1]
	copy(list[1:], list)
	list[0] = own
	a.rotate = halvesRotary
	a.attend = func(r *run, a attention) (out, weights *eager.Tensor) { return attendSinks(r, a, sinks) }
	return a
}

// attendSinks is gpt_oss' eager_attention_forward.
func attendSinks(r *run, a attention, sinks *eager.Tensor) (out, weights *eager.Tensor) {
	m := r.machine
	q, groups := a.q, a.q.Size(1)/a.k.Size(1)
	k, v := repeatHeads(r, a.k, groups), repeatHeads(r, a.v, groups)
	kt := m.Transpose(k, 2, 3)
	p := m.Matmul(q, kt)
	kt.Drop()
	weights = m.Scale(p)
	p.Drop()
	if a.mask != nil {
		weights = replace(weights, m.Add(weights, a.mask))
	}
	s := m.Reshape(sinks, 1, -1, 1, 1)
	column := m.Expand(s, q.Size(0), -1, q.Size(2), -1)
	s.Drop()
	logits := m.Cat(-1, weights, column)
	top := m.Max(logits, true)
	less := m.Sub(logits, top)
	top.Drop()
	logits = replace(logits, less)
	probs := m.SoftmaxTo(logits, logits.DType())
	scores := m.Narrow(probs, -1, probs.Size(-1)-1)
	kept := m.Dropout(scores, a.dropout, true)
	weights = replace(weights, m.To(kept, v.DType()))
	kept.Drop()
	o := m.Matmul(weights, v)
	t := m.Transpose(o, 1, 2)
	out = m.Contiguous(t)
	eager.Drop(o, t, k, v, column, logits, probs, scores)
	return out, weights
}

// halvesRotary is gpt_oss' apply_rotary_pos_emb.
func halvesRotary(r *run, q, k *eager.Tensor, t tables) (q2, k2 *eager.Tensor) {
	m := r.machine
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

// scoredBlock is GptOssMLP, which returns the weights of the experts too.
type scoredBlock struct{ *sparseBlock }

func (s *scoredBlock) scored(r *run, x *eager.Tensor) (y, scores *eager.Tensor) {
	return s.run(r, x, true)
}

// biasedRouter is GptOssTopKRouter: softmax over the chosen experts alone.
type biasedRouter struct {
	label        ledger.Name
	weight, bias *eager.Tensor
	topK         int64
}

func (b *builder) biasedRouter(name string) *biasedRouter {
	c := b.run.job.Model
	in := b.in(name)
	g := &biasedRouter{label: b.label(name), topK: int64(c.MoE.TopK)}
	g.weight = in.weight("weight", int64(c.MoE.Experts), int64(c.Hidden))
	g.bias = in.weight("bias", int64(c.MoE.Experts))
	return g
}

func (g *biasedRouter) forward(r *run, x *eager.Tensor) (logits, weights, indices *eager.Tensor) {
	m := r.machine
	before := m.Enter(g.label)
	defer m.Enter(before)
	logits = m.Linear(x, g.weight, g.bias)
	values, indices := m.TopK(logits, g.topK)
	weights = m.SoftmaxTo(values, values.DType())
	values.Drop()
	return logits, weights, indices
}

// biasedExperts is GptOssExperts: the weights lie the other way round, and
// there are biases.
func (b *builder) biasedExperts(name string) *experts {
	c := b.run.job.Model
	in := b.in(name)
	e := &experts{label: b.label(name), count: b.run.localExperts(), transposed: true, gate: gateClamped}
	hidden, width := b.aligned(c.Hidden), b.aligned(c.MoE.Intermediate)
	if e.packed = in.packsExperts(); e.packed { // their kernel takes them the other way round
		e.transposed = false
		e.gateUp, e.down = in.stack("gate_up_proj", e.count, 2*width, hidden), in.stack("down_proj", e.count, hidden, width)
	} else {
		e.gateUp = in.weight("gate_up_proj", e.count, hidden, 2*width)
	}
	e.gateUpBias = in.weight("gate_up_proj_bias", e.count, 2*width)
	if !e.packed {
		e.down = in.weight("down_proj", e.count, width, hidden)
	}
	e.downBias = in.weight("down_proj_bias", e.count, hidden)
	return e
}

// gateClamped is GptOssExperts._apply_gate.
func gateClamped(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
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

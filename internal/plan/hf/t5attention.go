package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// t5Attention is T5Attention, within a stack or from a decoder to the states of
// the encoder.
type t5Attention struct {
	label      ledger.Name
	q, k, v, o *linear
	table      *embedding // of relative positions, in the first block of a stack
	heads      int64
	headDim    int64
	dropout    float64
	decodes    bool // is_decoder: positions are seen one way
	crosses    bool
}

func (b *builder) t5Attention(name string, first, decodes bool) *t5Attention {
	c := b.run.job.Model
	in := b.in(name)
	width := c.Heads * c.HeadDim
	a := &t5Attention{
		label: b.label(name), heads: int64(c.Heads), headDim: int64(c.HeadDim),
		dropout: c.AttentionDropout, decodes: decodes,
	}
	a.q = in.linear("q", c.Hidden, width, false)
	a.k = in.linear("k", c.Hidden, width, false)
	a.v = in.linear("v", c.Hidden, width, false)
	a.o = in.linear("o", width, c.Hidden, false)
	if first {
		a.table = in.embedding("relative_attention_bias", c.T5.RelativeBuckets, c.Heads)
	}
	return a
}

// forward attends from x to the states, or to x itself without crossing. A bias
// that is nil is made; it belongs to whoever holds made.
func (a *t5Attention) forward(
	r *run, x, mask *eager.Tensor, bias, made **eager.Tensor, c *shared,
) (y, weights *eager.Tensor) {
	m := r.machine
	before := m.Enter(a.label)
	defer m.Enter(before)
	q := inHeads(r, a.q, x, a.headDim)
	k, v := a.keys(r, x, c)
	if *bias == nil {
		if *made == nil {
			*made = a.bias(r, q, k.Size(2))
		}
		*bias = *made
	}
	out, weights := attend(r, attention{
		q: q, k: k, v: v, mask: mask, bias: *bias, dropout: r.dropout(a.dropout),
		bidirectional: !a.decodes || a.crosses, style: eagerPlain,
	})
	flat := m.Reshape(out, x.Size(0), x.Size(1), -1)
	out.Drop()
	flat = replace(flat, m.Contiguous(flat))
	y = replace(flat, a.o.forward(r, flat))
	eager.Drop(q, k, v)
	return y, weights
}

// keys are the keys and values, joined to those of the cache where there is one.
// Those of the encoder's states are computed once.
func (a *t5Attention) keys(r *run, x *eager.Tensor, c *shared) (k, v *eager.Tensor) {
	from, past := x, c.cache
	if a.crosses {
		from = c.t5.states
		if past != nil {
			past = past.cross
			if l := &past.layers[c.layer]; l.keys != nil {
				return l.keys.Keep(), l.values.Keep()
			}
		}
	}
	k, v = inHeads(r, a.k, from, a.headDim), inHeads(r, a.v, from, a.headDim)
	if past == nil {
		return k, v
	}
	k2, v2 := past.update(r, c.layer, k, v)
	eager.Drop(k, v)
	return k2, v2
}

// bias is what is added to the scores: looked up by distance, or zeros, which
// have a gradient if layers are recomputed.
func (a *t5Attention) bias(r *run, q *eager.Tensor, keys int64) *eager.Tensor {
	m := r.machine
	rows := q.Size(2)
	if a.table == nil {
		z := m.Empty("zeros", q.DType(), 1, a.heads, rows, keys)
		if r.checkpoints() && r.trains {
			m.RequireGrad(z)
		}
		return z
	}
	at := m.Empty("arange", eager.Int64, rows)
	context := replace(at, m.Unary("add", at))
	memory := m.Empty("arange", eager.Int64, keys)
	c2, m2 := m.Unsqueeze(context, 1), m.Unsqueeze(memory, 0)
	distance := m.Binary("sub", m2, c2)
	eager.Drop(c2, m2)
	bucket := a.bucket(r, distance)
	values := a.table.forward(r, bucket)
	p := replace(values, m.Permute(values, 2, 0, 1))
	y := replace(p, m.Unsqueeze(p, 0))
	eager.Drop(context, memory, distance, bucket)
	return y
}

// bucket is _relative_position_bucket: small distances by themselves, large
// ones by their logarithm.
func (a *t5Attention) bucket(r *run, distance *eager.Tensor) *eager.Tensor {
	m := r.machine
	var sum, position *eager.Tensor
	if a.decodes {
		zeros := m.Unary("zeros_like", distance)
		least := replace(zeros, m.Binary("minimum", distance, zeros))
		position = replace(least, m.Unary("neg", least))
	} else {
		later := m.Compare("gt", distance)
		sum = replace(later, m.To(later, eager.Int64))
		sum = replace(sum, m.Unary("mul", sum))
		sum = replace(sum, m.Unary("add", sum))
		position = m.Unary("abs", distance)
	}
	small := m.Compare("lt", position)
	f := m.To(position, eager.Float32)
	for _, op := range [...]string{"div", "log", "div", "mul"} {
		f = replace(f, m.Unary(op, f))
	}
	large := replace(f, m.To(f, eager.Int64))
	large = replace(large, m.Unary("add", large))
	limit := m.Unary("full_like", large)
	capped := m.Binary("minimum", large, limit)
	eager.Drop(limit, large)
	where := m.Binary("where", position, capped)
	if sum == nil {
		sum = m.Unary("add", where)
	}
	eager.Drop(where, position, small, capped)
	return sum
}

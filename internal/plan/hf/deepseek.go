package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// mla is DeepseekV3Attention and DeepseekV2Attention: queries, keys and values
// go through narrow projections, and a part of each head is rotated.
type mla struct {
	label ledger.Name
	q     *linear // without a narrow projection, else nil
	qA    *linear
	qNorm normer
	qB    *linear

	kvA    *linear
	kvNorm normer
	kvB    *linear
	o      *linear

	nope, rope, v, rank int64 // widths of a head's parts, and of the narrow keys
	dropout             float64
	rotate              func(r *run, q, k *eager.Tensor, t tables) (q2, k2 *eager.Tensor)
}

func (b *builder) mla(name string) *mla {
	c := b.run.job.Model
	d := c.MLA
	in := b.in(name)
	a := &mla{
		label: b.label(name), dropout: c.AttentionDropout,
		nope: int64(d.NopeDim), rope: int64(d.RopeDim), v: int64(d.VDim), rank: int64(d.KVRank),
	}
	heads := c.Heads
	if d.QRank == 0 {
		a.q = in.linear("q_proj", c.Hidden, heads*d.QKHeadDim, false)
	} else {
		a.qA = in.linear("q_a_proj", c.Hidden, d.QRank, c.QKVBias)
		a.qNorm = in.rmsNorm("q_a_layernorm", d.QRank)
		a.qB = in.linear("q_b_proj", d.QRank, heads*d.QKHeadDim, false)
	}
	a.kvA = in.linear("kv_a_proj_with_mqa", c.Hidden, d.KVRank+d.RopeDim, c.QKVBias)
	a.kvNorm = in.rmsNorm("kv_a_layernorm", d.KVRank)
	a.kvB = in.linear("kv_b_proj", d.KVRank, heads*(d.NopeDim+d.VDim), false)
	a.o = in.linear("o_proj", heads*d.VDim, c.Hidden, c.OutBias)
	switch {
	case c.Family == "deepseek_v2":
		a.rotate = turnRotary
	case c.Rope.Interleaved:
		a.rotate = interleavedRotary
	default:
		a.rotate = applyRotary
	}
	return a
}

func (a *mla) forward(r *run, x *eager.Tensor, c *shared) (y, weights *eager.Tensor) {
	m := r.machine
	before := m.Enter(a.label)
	defer m.Enter(before)
	batch, rows := x.Size(0), x.Size(1)
	states := a.queries(r, x)
	wide := m.View(states, batch, rows, -1, a.nope+a.rope)
	states = replace(states, m.Transpose(wide, 1, 2))
	wide.Drop()
	qParts := m.Split(states, -1, a.nope, a.rope)
	qPass, qRot := qParts[0], qParts[1]

	narrow := a.kvA.forward(r, x)
	kvParts := m.Split(narrow, -1, a.rank, a.rope)
	kv, kRot := kvParts[0], kvParts[1]
	kv = replace(kv, a.kvNorm.forward(r, kv))
	kv = replace(kv, m.View(kv, batch, 1, rows, a.rank))
	kRot = replace(kRot, m.View(kRot, batch, 1, rows, a.rope))

	q2, k2 := a.rotate(r, qRot, kRot, c.rope)
	eager.Drop(qRot, kRot)
	qRot, kRot = q2, k2
	if c.cache != nil { // which keeps them while they are narrow
		kv2, k2 := c.cache.update(r, c.layer, kv, kRot)
		eager.Drop(kv, kRot)
		kv, kRot = kv2, k2
	}
	q := m.Cat(-1, qPass, qRot)
	k, v := a.expand(r, kv, kRot)
	out, weights := attend(r, attention{q: q, k: k, v: v, mask: c.mask, dropout: r.dropout(a.dropout)})
	flat := m.Reshape(out, batch, rows, -1)
	out.Drop()
	flat = replace(flat, m.Contiguous(flat))
	y = a.o.forward(r, flat)
	eager.Drop(flat, states, qPass, qRot, narrow, kv, kRot, q, k, v)
	return y, weights
}

// queries are all heads side by side.
func (a *mla) queries(r *run, x *eager.Tensor) *eager.Tensor {
	if a.q != nil {
		return a.q.forward(r, x)
	}
	p := a.qA.forward(r, x)
	n := a.qNorm.forward(r, p)
	p.Drop()
	y := a.qB.forward(r, n)
	n.Drop()
	return y
}

// expand is expand_kv: keys and values of all heads, [batch, heads, keys, d].
// The rotated part of the keys is the same for all heads.
func (a *mla) expand(r *run, kv, kRot *eager.Tensor) (k, v *eager.Tensor) {
	m := r.machine
	batch, keys := kv.Size(0), kv.Size(2)
	p := a.kvB.forward(r, kv)
	h := m.View(p, batch, keys, -1, a.nope+a.v)
	p.Drop()
	wide := m.Transpose(h, 1, 2)
	h.Drop()
	parts := m.Split(wide, -1, a.nope, a.v)
	rot := m.Expand(kRot, -1, wide.Size(1), -1, -1)
	k = m.Empty("new_empty", wide.DType(), batch, wide.Size(1), keys, a.nope+a.rope)
	m.CopyInto(k, parts[0])
	m.CopyInto(k, rot)
	eager.Drop(wide, parts[0], rot)
	return k, parts[1]
}

// interleavedRotary is apply_rotary_pos_emb_interleave: pairs that lie next to
// each other turn together.
func interleavedRotary(r *run, q, k *eager.Tensor, t tables) (q2, k2 *eager.Tensor) {
	m := r.machine
	half := func(x *eager.Tensor) *eager.Tensor {
		s := m.Slice(x, -1, x.Size(-1)/2)
		u := m.Unsqueeze(s, 1)
		s.Drop()
		return u
	}
	cos, sin := half(t.cos), half(t.sin)
	q1, q2 := m.Every(q, 2), m.Every(q, 2)
	k1, k2 := m.Every(k, 2), m.Every(k, 2)
	turn := func(a, b *eager.Tensor) *eager.Tensor {
		first, second := turnPairs(r, a, b, cos, sin)
		y := m.Cat(-1, first, second)
		eager.Drop(second, first)
		return y
	}
	qOut, kOut := turn(q1, q2), turn(k1, k2)
	eager.Drop(cos, sin, q1, q2, k1, k2)
	return qOut, kOut
}

// turnPairs is a·cos - b·sin and b·cos + a·sin.
func turnPairs(r *run, a, b, cos, sin *eager.Tensor) (first, second *eager.Tensor) {
	m := r.machine
	ac, bs := m.Mul(a, cos), m.Mul(b, sin)
	first = m.Sub(ac, bs)
	eager.Drop(ac, bs)
	bc, as := m.Mul(b, cos), m.Mul(a, sin)
	second = m.Add(bc, as)
	eager.Drop(bc, as)
	return first, second
}

// turnRotary is deepseek_v2's apply_rotary_emb: pairs are complex numbers.
func turnRotary(r *run, q, k *eager.Tensor, t tables) (q2, k2 *eager.Tensor) {
	m := r.machine
	pairs := func(x *eager.Tensor) *eager.Tensor {
		f := m.To(x, eager.Float32)
		s := m.Reshape(f, x.Size(0), x.Size(1), x.Size(2), -1, 2)
		f.Drop()
		c := m.Complex(s)
		s.Drop()
		return c
	}
	back := func(x, f *eager.Tensor, d eager.DType) *eager.Tensor {
		p := m.Turn(x, f)
		s := m.Real(p)
		p.Drop()
		flat := m.Reshape(s, s.Size(0), s.Size(1), s.Size(2), -1)
		s.Drop()
		y := m.To(flat, d)
		flat.Drop()
		return y
	}
	qc, kc := pairs(q), pairs(k)
	f := m.Unsqueeze(t.cos, 1)
	q2 = back(qc, f, q.DType())
	k2 = back(kc, f, k.DType())
	eager.Drop(qc, kc, f)
	return q2, k2
}

// sharedBlock is DeepseekV3MoE: routed experts, and an MLP for every token.
type sharedBlock struct {
	label   ledger.Name
	gate    router
	experts *experts
	shared  *gatedMLP
}

func (b *builder) sharedBlock(name string) *sharedBlock {
	c := b.run.job.Model
	in := b.in(name)
	s := &sharedBlock{label: b.label(name), experts: in.experts("experts")}
	s.gate = in.groupRouter("gate")
	s.shared = in.gatedMLP("shared_experts", c.Hidden, c.MoE.SharedIntermediate, c.MLPBias, c.Activation)
	return s
}

func (s *sharedBlock) forward(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(s.label)
	defer m.Enter(before)
	logits, weights, indices := s.gate.forward(r, x)
	flat := m.View(x, -1, x.Size(-1))
	routed := s.experts.forward(r, flat, indices, weights)
	h := m.View(routed, x.Shape()...)
	eager.Drop(routed, flat)
	e := s.shared.forward(r, x)
	y := m.Add(h, e)
	eager.Drop(e, h, logits, weights, indices)
	return y
}

// groupRouter is deepseek's router, which works in fp32 and may first choose
// groups of experts.
type groupRouter struct {
	label   ledger.Name
	weight  *eager.Tensor
	bias    *eager.Tensor // deepseek_v3: e_score_correction_bias
	experts int64
	topK    int64
	groups  int64 // 0 without groups
	kGroups int64
	norm    bool
}

func (b *builder) groupRouter(name string) *groupRouter {
	c := b.run.job.Model
	in := b.in(name)
	g := &groupRouter{label: b.label(name), experts: int64(c.MoE.Experts), topK: int64(c.MoE.TopK), kGroups: int64(c.MoE.TopKGroups)}
	g.weight = in.weight("weight", g.experts, int64(c.Hidden))
	if c.Family == "deepseek_v3" {
		g.groups, g.norm = int64(c.MoE.Groups), c.MoE.NormTopK
		g.bias = in.buffer(b.run.dtype, "e_score_correction_bias", g.experts)
	} else if c.MoE.TopKMethod == "group_limited_greedy" {
		g.groups = int64(c.MoE.Groups)
	}
	return g
}

func (g *groupRouter) forward(r *run, x *eager.Tensor) (logits, weights, indices *eager.Tensor) {
	m := r.machine
	before := m.Enter(g.label)
	defer m.Enter(before)
	flat := m.View(x, -1, x.Size(-1))
	defer flat.Drop()
	x32 := m.To(flat, eager.Float32)
	w32 := m.To(g.weight, eager.Float32)
	logits = m.Linear(x32, w32, nil)
	eager.Drop(x32, w32)
	if g.bias != nil {
		weights, indices = g.sigmoid(r, logits)
	} else {
		weights, indices = g.softmax(r, logits)
	}
	return logits, weights, indices
}

// sigmoid is deepseek_v3's choice: by scores with a correction, of which the
// weights have none.
func (g *groupRouter) sigmoid(r *run, logits *eager.Tensor) (weights, indices *eager.Tensor) {
	m := r.machine
	scores := m.ByResult("sigmoid", logits)
	choice := m.Add(scores, g.bias)
	grouped := m.View(choice, -1, g.groups, g.experts/g.groups)
	best, places := m.TopK(grouped, 2)
	eager.Drop(grouped, places)
	of := m.Sum(best, -1, false)
	best.Drop()
	masked, locals := g.within(r, choice, of)
	choice = replace(choice, masked)
	values, indices := m.TopK(choice, g.topK)
	values.Drop()
	weights = m.Gather(scores, indices)
	if g.norm {
		s := m.Sum(weights, -1, true)
		total := m.AddScalar(s)
		s.Drop()
		m.DivInPlace(weights, total)
		locals = append(locals, total)
	}
	weights = replace(weights, m.Scale(weights))
	eager.Drop(scores, choice)
	eager.Drop(locals...)
	return weights, indices
}

// softmax is deepseek_v2's choice.
func (g *groupRouter) softmax(r *run, logits *eager.Tensor) (weights, indices *eager.Tensor) {
	m := r.machine
	scores := m.Softmax(logits, eager.Float32)
	var locals []*eager.Tensor
	if g.groups > 0 {
		grouped := m.View(scores, -1, g.groups, g.experts/g.groups)
		of := m.Max(grouped, false)
		grouped.Drop()
		var masked *eager.Tensor
		masked, locals = g.within(r, scores, of)
		scores = replace(scores, masked)
	}
	weights, indices = m.TopK(scores, g.topK)
	weights = replace(weights, m.Scale(weights))
	scores.Drop()
	eager.Drop(locals...)
	return weights, indices
}

// within is the scores with those outside of the best groups masked, and the
// names that the router holds until it returns, the groups' scores among them.
func (g *groupRouter) within(r *run, scores, of *eager.Tensor) (out *eager.Tensor, locals []*eager.Tensor) {
	m := r.machine
	values, best := m.TopK(of, g.kGroups)
	values.Drop()
	chosen := m.Unary("zeros_like", of)
	u := m.Unsqueeze(chosen, -1)
	e := m.Expand(u, -1, g.groups, g.experts/g.groups)
	u.Drop()
	mask := m.Reshape(e, -1, g.experts)
	e.Drop()
	yes := m.To(mask, eager.Bool)
	no := m.Unary("bitwise_not", yes)
	yes.Drop()
	out = m.MaskedFill(scores, no)
	no.Drop()
	return out, []*eager.Tensor{of, best, chosen, mask}
}

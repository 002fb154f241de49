package hf

import "github.com/ashlar-mem/ashlar/internal/plan/eager"

// batched is batched_mm_experts_forward, which generate() switches to once the
// prompt is done: every token multiplies with copies of the weights of its
// experts. It is fast for a few tokens, and the copies are what counts.
func (e *experts) batched(r *run, x, indices, weights *eager.Tensor) *eager.Tensor {
	m := r.machine
	tokens, k, hidden := x.Size(0), indices.Size(-1), x.Size(-1)
	selected := r.exchange(m.Empty("repeat_interleave", x.DType(), tokens*k, hidden))
	sample := m.Reshape(weights, -1)
	ids := m.Reshape(indices, -1)
	ids = replace(ids, m.Unary("clamp", ids))
	copies := m.Index(e.gateUp, ids)
	bias := e.biasOf(r, e.gateUpBias, ids)
	out := e.each(r, selected, copies, bias)
	out = replace(out, e.gate(r, out))
	// The copies for one product live until those for the next are there.
	copies = replace(copies, m.Index(e.down, ids))
	downBias := e.biasOf(r, e.downBias, ids)
	bias.Drop()
	bias = downBias
	out = r.exchange(replace(out, e.each(r, out, copies, bias)))
	column := m.Unsqueeze(sample, -1)
	weighted := m.Mul(out, column)
	column.Drop()
	apart := m.View(weighted, tokens, k, hidden)
	sum := m.Sum(apart, 1, false)
	apart.Drop()
	y := m.To(sum, x.DType())
	eager.Drop(selected, sample, ids, copies, bias, out, weighted, sum)
	return y
}

// each is _batched_linear: rows of x, each by its own matrix.
func (e *experts) each(r *run, x, w, bias *eager.Tensor) *eager.Tensor {
	m := r.machine
	at := -1
	if e.transposed {
		at = 1
	}
	u := m.Unsqueeze(x, at)
	var p *eager.Tensor
	if e.transposed {
		p = m.Bmm(u, w)
	} else {
		p = m.Bmm(w, u)
	}
	u.Drop()
	y := replace(p, m.Squeeze(p, at))
	if bias != nil {
		m.AddInPlace(y, bias)
	}
	return y
}

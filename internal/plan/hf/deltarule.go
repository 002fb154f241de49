package hf

import "github.com/ashlar-mem/ashlar/internal/plan/eager"

// deltaRule is a call of the gated delta rule. The tensors are borrowed: q, k
// and v [batch, rows, heads, d], beta and decay [batch, rows, heads].
type deltaRule struct {
	q, k, v, beta, decay *eager.Tensor
	state                *eager.Tensor // of the rows before, nil at the beginning
	final                bool          // the state after the last row is wanted
}

// deltaChunk is how many rows are computed at a time.
const deltaChunk = 64

// heads puts the heads first, in fp32.
func (d *deltaRule) heads(r *run) (q, k, v, beta, decay *eager.Tensor) {
	m := r.machine
	wide := func(x *eager.Tensor) *eager.Tensor {
		t := m.Transpose(x, 1, 2)
		return replace(t, m.ToContiguous(t, eager.Float32))
	}
	return wide(d.q), wide(d.k), wide(d.v), wide(d.beta), wide(d.decay)
}

// unitLength is l2norm over the last dimension.
func unitLength(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	s := m.Mul(x, x)
	s = replace(s, m.Sum(s, -1, true))
	s = replace(s, m.AddScalar(s))
	s = replace(s, m.Rsqrt(s))
	y := m.Mul(x, s)
	s.Drop()
	return y
}

// chunks is torch_chunk_gated_delta_rule: within chunks of rows everything is
// computed at once, from chunk to chunk a state is handed on. The state returned
// is nil if it is not wanted.
func (d *deltaRule) chunks(r *run) (out, state *eager.Tensor) {
	m := r.machine
	rows := d.q.Size(1)
	q, k, v, beta, decay := d.heads(r)
	q = replace(q, unitLength(r, q))
	k = replace(k, unitLength(r, k))
	q = replace(q, m.Scale(q))
	padded := (rows + deltaChunk - 1) / deltaChunk * deltaChunk
	pq, pk, pv := m.PadDim(q, 2, padded), m.PadDim(k, 2, padded), m.PadDim(v, 2, padded)
	q, k, v = replace(q, pq), replace(k, pk), replace(v, pv)
	pb, pd := m.PadDim(beta, 2, padded), m.PadDim(decay, 2, padded)
	beta, decay = replace(beta, pb), replace(decay, pd)

	vBeta, kBeta := perRow(r, v, beta), perRow(r, k, beta)
	cut := func(x *eager.Tensor) *eager.Tensor {
		return replace(x, m.Reshape(x, x.Size(0), x.Size(1), -1, deltaChunk, x.Size(-1)))
	}
	q, k, kBeta, vBeta = cut(q), cut(k), cut(kBeta), cut(vBeta)
	decay = replace(decay, m.Reshape(decay, decay.Size(0), decay.Size(1), -1, deltaChunk))
	later := m.Empty("ones", eager.Bool, deltaChunk, deltaChunk)
	later = replace(later, m.Unary("triu", later))
	sums := m.CumSum(decay, 3)
	pairs := pairDecays(r, sums, later)
	system := scores(r, kBeta, k, pairs)
	intra := scores(r, q, k, pairs)
	decayed := scaledRows(r, kBeta, sums)
	values := m.SolveTriangular(system, vBeta)
	reads := m.SolveTriangular(system, decayed)
	if d.state == nil {
		state = m.Empty("zeros", eager.Float32, k.Size(0), k.Size(1), k.Size(4), v.Size(3))
	} else {
		state = m.To(d.state, eager.Float32)
	}
	core := m.Unary("zeros_like", values)
	q = replace(q, scaledRows(r, q, sums))
	k = replace(k, keysToEnd(r, k, sums))
	whole := chunkDecays(r, sums)
	scan := deltaScan{q: q, k: k, values: values, reads: reads, intra: intra, decays: whole, core: core, state: state}
	for range padded / deltaChunk {
		scan.step(r)
	}
	state = scan.state
	if !d.final {
		state.Drop()
		state = nil
	}
	core = replace(core, m.Reshape(core, core.Size(0), core.Size(1), -1, core.Size(4)))
	core = replace(core, m.Slice(core, 2, rows))
	core = replace(core, m.Transpose(core, 1, 2))
	core = replace(core, m.ToContiguous(core, d.q.DType()))
	eager.Drop(q, k, v, beta, decay, vBeta, kBeta, later, sums, pairs, system, intra, decayed, values, reads, whole, scan.update, scan.inter)
	return core, state
}

// perRow multiplies each row with a number.
func perRow(r *run, x, number *eager.Tensor) *eager.Tensor {
	u := r.machine.Unsqueeze(number, -1)
	y := r.machine.Mul(x, u)
	u.Drop()
	return y
}

// pairDecays is pairwise_decay: how much is left at a row of what came in at an
// earlier one of its chunk.
func pairDecays(r *run, sums, later *eager.Tensor) *eager.Tensor {
	m := r.machine
	at, from := m.Unsqueeze(sums, 4), m.Unsqueeze(sums, 3)
	p := m.Sub(at, from)
	eager.Drop(at, from)
	p = replace(p, m.MaskedFill(p, later))
	return replace(p, m.Exp(p))
}

// scores is (x @ k') * pairs.
func scores(r *run, x, k, pairs *eager.Tensor) *eager.Tensor {
	m := r.machine
	t := m.Transpose(k, -1, -2)
	p := m.Matmul(x, t)
	t.Drop()
	return replace(p, m.Mul(p, pairs))
}

// scaledRows is x * sums.exp().unsqueeze(-1).
func scaledRows(r *run, x, sums *eager.Tensor) *eager.Tensor {
	e := r.machine.Exp(sums)
	y := perRow(r, x, e)
	e.Drop()
	return y
}

// keysToEnd is the keys as far as they are left at the end of their chunk.
func keysToEnd(r *run, k, sums *eager.Tensor) *eager.Tensor {
	m := r.machine
	end := m.Slice(sums, -1, 1)
	e := m.Sub(end, sums)
	end.Drop()
	e = replace(e, m.Exp(e))
	y := perRow(r, k, e)
	e.Drop()
	return y
}

// chunkDecays is chunk_decay [batch, heads, chunks, 1, 1].
func chunkDecays(r *run, sums *eager.Tensor) *eager.Tensor {
	m := r.machine
	end := m.Select(sums, -1)
	e := m.Exp(end)
	end.Drop()
	e = replace(e, m.Unsqueeze(e, 3))
	return replace(e, m.Unsqueeze(e, 4))
}

// deltaScan is the loop over chunks.
type deltaScan struct {
	q, k, values, reads, intra, decays, core *eager.Tensor
	state, update, inter                     *eager.Tensor // held: last_recurrent_state, v_new, inter_chunk_attn
}

func (s *deltaScan) step(r *run) {
	m := r.machine
	of := func(x *eager.Tensor) *eager.Tensor { return m.Select(x, 2) }
	times := func(a, b *eager.Tensor) *eager.Tensor { return replace(a, m.Matmul(a, b)) }
	value := of(s.values)
	read := times(of(s.reads), s.state)
	s.update = rebind(s.update, m.Sub(value, read), read, value)
	s.inter = replace(s.inter, times(of(s.q), s.state))
	within := times(of(s.intra), s.update)
	row := m.Add(s.inter, within)
	within.Drop()
	m.CopyInto(s.core, row)
	row.Drop()
	decay := of(s.decays)
	kept := m.Mul(s.state, decay)
	decay.Drop()
	key := of(s.k)
	key = replace(key, m.Transpose(key, -1, -2))
	written := times(key, s.update)
	s.state = rebind(s.state, m.Add(kept, written), kept, written)
}

// token is torch_recurrent_gated_delta_rule, for one row.
func (d *deltaRule) token(r *run) (out, state *eager.Tensor) {
	m := r.machine
	q, k, v, beta, decay := d.heads(r)
	q = replace(q, unitLength(r, q))
	k = replace(k, unitLength(r, k))
	q = replace(q, m.DivScalar(q))
	state = m.To(d.state, eager.Float32)
	core := m.Unary("zeros_like", v)
	of := func(x *eager.Tensor) *eager.Tensor { return m.Select(x, 2) }
	qt, kt, vt := of(q), of(k), of(v)
	left := of(decay)
	left = replace(left, m.Exp(left))
	left = replace(left, m.Unsqueeze(left, -1))
	left = replace(left, m.Unsqueeze(left, -1))
	state = replace(state, m.Mul(state, left))
	share := of(beta)
	share = replace(share, m.Unsqueeze(share, -1))
	column := m.Unsqueeze(kt, -1)
	memory := m.Mul(state, column)
	memory = replace(memory, m.Sum(memory, -2, false))
	delta := m.Sub(vt, memory)
	delta = replace(delta, m.Mul(delta, share))
	line := m.Unsqueeze(delta, -2)
	written := m.Mul(column, line)
	state = rebind(state, m.Add(state, written), written, line, column)
	query := m.Unsqueeze(qt, -1)
	row := m.Mul(state, query)
	query.Drop()
	row = replace(row, m.Sum(row, -2, false))
	m.CopyInto(core, row)
	row.Drop()
	t := m.Transpose(core, 1, 2)
	core.Drop()
	t = replace(t, m.Contiguous(t))
	out = m.To(t, d.q.DType())
	t.Drop()
	eager.Drop(q, k, v, beta, decay, qt, kt, vt, left, share, memory, delta)
	return out, state
}

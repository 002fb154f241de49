package hf

import "github.com/ashlar-mem/ashlar/internal/plan/eager"

// collectRouters has the routers' logits kept for the balancing loss, if the
// model has one. A recomputation does not collect.
func (r *run) collectRouters() {
	r.collecting = r.job.Model.MoE != nil && r.job.Model.MoE.RouterLogits
}

// route keeps a router's logits while they are collected.
func (r *run) route(logits *eager.Tensor) {
	if r.collecting {
		r.routers = append(r.routers, logits.Keep())
	}
}

// balance adds the balancing loss (load_balancing_loss_func) to a loss, which
// it takes over. mask is the batch's attention_mask, or nil.
func (r *run) balance(loss, mask *eager.Tensor) *eager.Tensor {
	logits := r.routers
	r.routers, r.collecting = nil, false
	if len(logits) == 0 {
		return loss
	}
	m, moe := r.machine, r.job.Model.MoE
	experts, k := int64(moe.Experts), int64(moe.TopK)
	tokens := m.Empty("zeros", eager.Float32, experts)
	probs := m.Empty("zeros", eager.Float32, experts)
	var flat, total, share, values, chosen *eager.Tensor
	if mask != nil {
		v := m.Reshape(mask, -1)
		flat = m.To(v, eager.Float32)
		v.Drop()
	}
	for _, l := range logits {
		share = replace(share, m.Softmax(l, l.DType()))
		v, c := m.TopK(share, k)
		eager.Drop(values, chosen)
		values, chosen = v, c
		ids := m.Reshape(chosen, -1)
		if flat == nil {
			counts := m.Bincount(ids, experts)
			wide := m.To(counts, eager.Float32)
			counts.Drop()
			more := m.Binary("add", tokens, wide)
			eager.Drop(wide, tokens)
			tokens = more
			probs = replace(probs, r.columns(share, nil, probs))
		} else {
			into := m.Empty("zeros", eager.Float32, experts)
			weight := m.Empty("repeat_interleave", eager.Float32, flat.Size(0)*k)
			weight.Drop()
			tokens = replace(tokens, m.Binary("add", tokens, into))
			into.Drop()
			probs = replace(probs, r.columns(share, flat, probs))
			s := m.Sum(flat, 0, false)
			if total == nil {
				total = m.Unary("add", s)
			} else {
				total = replace(total, m.Binary("add", total, s))
			}
			s.Drop()
		}
		ids.Drop()
	}
	var mean, each *eager.Tensor
	if total == nil {
		mean, each = m.Unary("div", tokens), m.DivScalar(probs)
	} else {
		mean, each = m.Binary("div", tokens, total), m.Div(probs, total)
	}
	row := m.Unsqueeze(each, 0)
	product := m.Mul(mean, row)
	row.Drop()
	line := m.View(product, -1)
	sum := m.Sum(line, 0, false)
	eager.Drop(product, line)
	aux := m.Scale(sum)
	eager.Drop(tokens, probs, flat, total, share, values, chosen, mean, each, sum)
	part := m.Scale(aux)
	m.AddInPlace(loss, part)
	part.Drop()
	for _, l := range append(logits, aux) {
		r.output(l)
		l.Drop()
	}
	return loss
}

// columns is before plus the sums of the columns, of tokens that count.
func (r *run) columns(share, flat, before *eager.Tensor) *eager.Tensor {
	m := r.machine
	in := m.To(share, eager.Float32)
	if flat != nil {
		c := m.Unsqueeze(flat, -1)
		in = replace(in, m.Mul(in, c))
		c.Drop()
	}
	s := m.Sum(in, 0, false)
	in.Drop()
	y := m.Add(before, s)
	s.Drop()
	return y
}

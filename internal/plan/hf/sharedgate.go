package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// gatedShare is Qwen3_5MoeSparseMoeBlock: beside its experts an MLP that every
// token passes, whose output a gate scales.
type gatedShare struct {
	label   ledger.Name
	gate    *softmaxRouter
	experts *experts
	shared  *gatedMLP
	open    *linear
}

func (b *builder) gatedShare(name string) *gatedShare {
	c := b.run.job.Model
	in := b.in(name)
	return &gatedShare{
		label:   b.label(name),
		gate:    in.softmaxRouter("gate"),
		experts: in.experts("experts"),
		shared:  in.gatedMLP("shared_expert", c.Hidden, c.MoE.SharedIntermediate, false, c.Activation),
		open:    in.linear("shared_expert_gate", c.Hidden, 1, false),
	}
}

func (s *gatedShare) forward(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(s.label)
	defer m.Enter(before)
	flat := m.View(x, -1, x.Size(-1))
	shared := s.shared.forward(r, flat)
	logits, weights, indices := s.gate.forward(r, flat)
	r.route(logits)
	out := s.experts.forward(r, flat, indices, weights)
	gate := s.open.forward(r, flat)
	gate = replace(gate, m.ByResult("sigmoid", gate))
	shared = rebind(shared, m.Mul(gate, shared), gate)
	out = replace(out, m.Add(out, shared))
	y := m.Reshape(out, x.Shape()...)
	eager.Drop(out, flat, shared, logits, weights, indices)
	return y
}

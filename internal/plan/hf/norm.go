package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// normer is a normalisation.
type normer interface {
	forward(r *run, x *eager.Tensor) *eager.Tensor
}

// rmsNorm is LlamaRMSNorm, which most families share.
type rmsNorm struct {
	label  ledger.Name
	weight *eager.Tensor
	wide   bool // gpt_oss: the weight is multiplied with what is still fp32
}

func (b *builder) rmsNorm(name string, width int) *rmsNorm {
	return &rmsNorm{
		label: b.label(name), weight: b.in(name).weight("weight", int64(width)),
		wide: b.run.job.Model.Family == "gpt_oss",
	}
}

func (n *rmsNorm) forward(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(n.label)
	defer m.Enter(before)
	h := m.To(x, eager.Float32)
	p := m.Pow(h)
	variance := m.Mean(p)
	p.Drop()
	e := m.AddScalar(variance)
	s := m.Rsqrt(e)
	e.Drop()
	scaled := m.Mul(h, s)
	eager.Drop(s, h)
	var c, y *eager.Tensor
	if n.wide {
		c = m.Mul(n.weight, scaled)
		y = m.To(c, x.DType())
	} else {
		c = m.To(scaled, x.DType())
		y = m.Mul(n.weight, c)
	}
	eager.Drop(c, scaled, variance)
	return y
}

// layerNorm is nn.LayerNorm.
type layerNorm struct {
	label        ledger.Name
	weight, bias *eager.Tensor
}

func (b *builder) layerNorm(name string, width int) *layerNorm {
	c := b.in(name)
	return &layerNorm{label: b.label(name), weight: c.weight("weight", int64(width)), bias: c.weight("bias", int64(width))}
}

func (n *layerNorm) forward(r *run, x *eager.Tensor) *eager.Tensor {
	before := r.machine.Enter(n.label)
	defer r.machine.Enter(before)
	return r.machine.LayerNorm(x, n.weight, n.bias)
}

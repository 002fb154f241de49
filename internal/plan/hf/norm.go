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
	wide   bool // gpt_oss, olmo2: the weight is multiplied with what is still fp32
}

func (b *builder) rmsNorm(name string, width int) *rmsNorm {
	family := b.run.job.Model.Family
	return &rmsNorm{
		label: b.label(name), weight: b.in(name).weight("weight", int64(width)),
		wide: family == "gpt_oss" || family == "olmo2",
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

// plainNorm is nn.LayerNorm that may have no bias.
func (b *builder) plainNorm(name string, width int, bias bool) *layerNorm {
	if bias {
		return b.layerNorm(name, width)
	}
	return &layerNorm{label: b.label(name), weight: b.in(name).weight("weight", int64(width))}
}

func (n *layerNorm) forward(r *run, x *eager.Tensor) *eager.Tensor {
	before := r.machine.Enter(n.label)
	defer r.machine.Enter(before)
	return r.machine.LayerNorm(x, n.weight, n.bias)
}

// widenedNorm is Cohere2LayerNorm: a layer norm without a bias, written out in
// fp32.
type widenedNorm struct {
	label  ledger.Name
	weight *eager.Tensor
}

func (b *builder) widenedNorm(name string, width int) *widenedNorm {
	return &widenedNorm{label: b.label(name), weight: b.in(name).weight("weight", int64(width))}
}

func (n *widenedNorm) forward(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(n.label)
	defer m.Enter(before)
	h := m.To(x, eager.Float32)
	mean := m.Mean(h)
	v := m.Sub(h, mean)
	v = replace(v, m.Pow(v))
	variance := replace(v, m.Mean(v))
	centred := m.Sub(h, mean)
	s := m.AddScalar(variance)
	s = replace(s, m.Rsqrt(s))
	scaled := m.Mul(centred, s)
	eager.Drop(centred, s)
	h = replace(h, scaled)
	w := m.To(n.weight, eager.Float32)
	product := m.Mul(w, h)
	w.Drop()
	h = replace(h, product)
	y := m.To(h, x.DType())
	eager.Drop(h, mean, variance)
	return y
}

package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// layerNorm is nn.LayerNorm.
type layerNorm struct {
	label   ledger.Name
	w, bias *eager.Tensor
}

func (b *builder) layerNorm(name string, width int) *layerNorm {
	c := b.in(name)
	return &layerNorm{label: b.label(name), w: c.weight("weight", int64(width)), bias: c.weight("bias", int64(width))}
}

func (n *layerNorm) forward(r *run, x *eager.Tensor) *eager.Tensor {
	before := r.m.Enter(n.label)
	defer r.m.Enter(before)
	return r.m.LayerNorm(x, n.w, n.bias)
}

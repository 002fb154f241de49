package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// packsExperts reports whether the experts that the builder is in are quantised.
// bitsandbytes takes Linears alone, which stacked experts are not.
func (b *builder) packsExperts() bool {
	q := b.run.job.Quant
	if q == nil || q.Stacked(1, 1, 32, 32) == nil {
		return false
	}
	if q.Files != nil {
		return q.Files[b.path("down_proj")] != nil
	}
	return q.ConvertsExperts(b.prefix) && (q.Method != model.MXFP4 || b.run.job.Model.Family == "gpt_oss")
}

// stack makes the weights of experts, [experts, out, in].
func (b *builder) stack(name string, experts, out, in int64) *eager.Tensor {
	if !b.packsExperts() {
		return b.weight(name, experts, out, in)
	}
	tensors := b.run.job.Quant.Files[b.path(name)]
	if tensors == nil {
		parts := int64(1)
		if name == "gate_up_proj" {
			parts = 2
		}
		tensors = b.run.job.Quant.Stacked(experts, parts, in, out)
	}
	return b.stored(name, tensors, experts, out, in)
}

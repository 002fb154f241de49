package hf

import "github.com/ashlar-mem/ashlar/plan/eager"

// fsdp is fully_shard on each layer and on the whole model.
type fsdp struct{ r *run }

func (f *fsdp) layer(l layer, x *eager.Tensor, c *shared) *eager.Tensor {
	return l.forward(f.r, x, c)
}

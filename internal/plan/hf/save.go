package hf

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// save copies the state of the model and of the optimizer on the GPU, and drops
// the copies once they are written. A weight that is tied is in the state dict
// under both its names, so there are two copies of it. Copies that go straight
// to host memory take nothing on the GPU: neither those through pinned memory nor
// those of torch.save, which moves one storage after the other to the CPU.
func (r *run) save(o optimizer) {
	if r.job.Save != model.SaveSync {
		return
	}
	m := r.machine
	kind := m.Kind(ledger.Copy)
	defer m.Kind(kind)
	var copies []*eager.Tensor
	for _, t := range slices.Concat(r.stateDict(), o.state()) {
		copies = append(copies, m.Unary("clone", t))
	}
	eager.Drop(copies...)
}

// stateDict lists the tensors of model.state_dict(): parameters in the order of
// the modules, and buffers that are saved.
func (r *run) stateDict() []*eager.Tensor {
	var out []*eager.Tensor
	for _, p := range slices.Concat(r.params, r.adapters) {
		t := p.Tensor
		if p.Packed != nil {
			out = append(out, p.Packed...)
			continue
		}
		if r.fsdp != nil {
			t = r.fsdp.shards[t]
		}
		out = append(out, t)
	}
	return out
}

package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// offloaded is an optimizer that runs on the host: DeepSpeed's CPUAdam over fp32
// copies of the weights, or torch's own over FSDP's shards. Gradients go there as
// they are reduced.
type offloaded struct{ run *run }

func newOffloaded(r *run, elements int64) *offloaded {
	bytes := elements * eager.Float32.Size()
	if r.job.Shard.Zero > 0 || r.job.Master {
		r.besides("master weights", Host, bytes)
	}
	if stage := r.job.Shard.ZeroStage; stage == 1 || stage == 2 {
		var largest int64
		for _, p := range r.trained {
			largest = max(largest, p.Bytes())
		}
		// A gradient is added to what the host has by way of a buffer on each side;
		// updated weights come back through another on the host.
		m := r.machine
		m.Empty("temp_grad_buffer", eager.UInt8, largest).SetKind(ledger.Gradient)
		r.besides("buffers", Host, largest+bytes/4*r.dtype.Size())
	}
	if r.job.Shard.Zero == 0 && !r.job.Master && len(r.trained) > 0 {
		bytes = elements * r.trained[0].DType().Size()
	}
	if r.job.Shard.ZeroStage == 3 { // they are copied to fp32 before the step
		r.besides("gradients", Host, elements*r.dtype.Size())
	}
	r.besides("gradients", Host, bytes)
	r.besides("optimizer state", Host, 2*bytes)
	return &offloaded{r}
}

func (o *offloaded) step() {
	for _, p := range o.run.trained {
		p.ZeroGrad()
	}
}

// zero has nothing left to do.
func (o *offloaded) zero() {}

func (o *offloaded) state() []*eager.Tensor { return nil }

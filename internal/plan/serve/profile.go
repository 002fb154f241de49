package serve

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// profiled is the memory of the profiling run, as PyTorch's allocator has it.
type profiled struct {
	weights  uint64 // allocated once the model is loaded
	peak     uint64 // allocated at most
	reserved uint64 // held from the driver at most
}

// activations is what the run takes on top of the weights.
func (p profiled) activations() uint64 { return p.peak - min(p.peak, p.weights) }

// profile runs the model through the allocator.
func (r *Request) profile(ctx context.Context) (profiled, error) {
	n := newNetwork(r)
	n.build()
	loaded := len(n.Ledger.Events)
	n.forward(r.batched(), r.seqs())
	s := settings.Default()
	program, err := plan.Program(n.Ledger, s)
	if err != nil {
		return profiled{}, err
	}
	o, err := program.Run(ctx, replay.Conditions{Settings: s, BlockSizes: true})
	if err != nil {
		return profiled{}, err
	}
	p := profiled{peak: o.Allocated.Bytes, reserved: o.Reserved.Bytes}
	for i := range n.Ledger.Tensors {
		t := &n.Ledger.Tensors[i]
		if int(t.Birth) < loaded && (t.Death == ledger.Lives || int(t.Death) >= loaded) {
			p.weights += o.BlockSizes[i]
		}
	}
	if r.WeightBytes > 0 { // the files say more than the config
		file := r.WeightBytes / uint64(r.TP)
		p.peak, p.reserved = p.peak-p.weights+file, p.reserved-p.weights+file
		p.weights = file
	}
	return p, nil
}

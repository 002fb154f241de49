package hf

import (
	"github.com/ashlar-mem/ashlar/plan/eager"
	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// train runs the training loop.
func (r *run) train() error {
	j, m := r.job, r.m
	optimizer := newOptimizer(r)
	for step := 1; step <= max(j.Steps, 3); step++ {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		for range max(j.Accumulate, 1) {
			m.Ledger.Begin("forward", step)
			in := r.batch()
			var loss *eager.Tensor
			forward := func() { loss = r.net.loss(r, in) }
			if j.Autocast {
				m.Autocast(eager.BFloat16, forward)
			} else {
				forward()
			}
			m.Ledger.Begin("backward", step)
			m.Backward(loss)
			loss.Drop()
			in.drop()
		}
		m.Ledger.Begin("optimizer", step)
		optimizer.step()
		for _, p := range r.params {
			p.Tensor.ZeroGrad()
		}
	}
	return nil
}

// batch makes the tensors that a step is called with.
func (r *run) batch() *batch {
	kind := r.m.Kind(ledger.Input)
	defer r.m.Kind(kind)
	ids := r.m.Empty("randint", eager.Int64, r.job.Batch, r.job.Seq)
	return &batch{ids: ids, labels: ids.Keep()}
}

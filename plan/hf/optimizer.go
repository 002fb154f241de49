package hf

import (
	"github.com/ashlar-mem/ashlar/plan/eager"
	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// optimizer is a torch.optim optimizer.
type optimizer interface{ step() }

func newOptimizer(r *run) optimizer { return &adam{r: r} }

// adam is AdamW with fused=True.
type adam struct {
	r     *run
	state bool
}

func (a *adam) step() {
	m := a.r.m
	if a.state {
		return
	}
	a.state = true
	kind := m.Kind(ledger.Optimizer)
	defer m.Kind(kind)
	for _, p := range a.r.params {
		m.Empty("step", eager.Float32)
		m.Unary("exp_avg", p.Tensor)
		m.Unary("exp_avg_sq", p.Tensor)
	}
}

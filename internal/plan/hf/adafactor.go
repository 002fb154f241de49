package hf

import (
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// ownAdafactor is transformers' Adafactor, which Trainer takes, without a first
// moment: it works in fp32 and squares whole gradients.
type ownAdafactor struct{ base }

func (a *ownAdafactor) step() {
	m := a.run.machine
	var grad, data, update *eager.Tensor
	// wide is a name's next value in fp32; the last one is gone by then.
	wide := func(last, t *eager.Tensor) *eager.Tensor {
		last.Drop()
		return m.Detached(t, eager.Float32)
	}
	for _, p := range a.params {
		if p.Grad() == nil {
			continue
		}
		grad = wide(grad, p.Grad())
		a.initState(p, grad)
		data = wide(data, p)
		m.VectorNormAll(data).Drop()
		squared := m.Unary("pow", grad)
		squared = replace(squared, m.Unary("add", squared))
		update = replace(update, squared)
		state := a.states[p]
		if len(state) > 2 {
			m.MeanDim(update, -1).Drop()
			m.MeanDim(update, -2).Drop()
			mean := m.MeanDim(state[0], -1)
			row := m.Binary("div", state[0], mean)
			mean.Drop()
			column := m.Unary("rsqrt", state[1])
			r, c := m.Unsqueeze(row, row.Dims()), m.Unsqueeze(column, column.Dims()-1)
			product := m.Binary("mul", r, c)
			eager.Drop(r, c, row, column)
			update = replace(update, product)
		} else {
			update = replace(update, m.Unary("rsqrt", state[0]))
		}
		m.VectorNormAll(update).Drop()
		m.Unary("neg", update).Drop()
	}
	eager.Drop(update, data, grad)
}

// initState makes the state of a parameter: means of rows and columns, or all of a
// squared gradient, and the norm of the parameter.
func (a *ownAdafactor) initState(p, grad *eager.Tensor) {
	if a.states[p] != nil {
		return
	}
	m := a.run.machine
	kind := m.Kind(ledger.Optimizer)
	defer m.Kind(kind)
	shape := grad.Shape()
	n := len(shape)
	var s []*eager.Tensor
	if n < 2 {
		s = append(s, m.Unary("exp_avg_sq", grad))
	} else {
		s = append(s, m.Empty("exp_avg_sq_row", eager.Float32, shape[:n-1]...))
		column := append(append([]int64(nil), shape[:n-2]...), shape[n-1])
		s = append(s, m.Empty("exp_avg_sq_col", eager.Float32, column...))
	}
	a.states[p] = append(s, m.Empty("RMS", eager.Float32))
}

package hf

import "github.com/ashlar-mem/ashlar/plan/eager"

// adapter is a LoRA pair around a frozen Linear.
type adapter struct{ a, b *eager.Tensor }

func (a *adapter) forward(r *run, l *linear, x *eager.Tensor) *eager.Tensor {
	m := r.m
	base := m.Linear(x, l.w, l.bias)
	low := m.Linear(x, a.a, nil)
	up := m.Linear(low, a.b, nil)
	low.Drop()
	y := m.Add(base, up)
	eager.Drop(base, up)
	return y
}

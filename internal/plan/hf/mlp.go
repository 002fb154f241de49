package hf

import "github.com/ashlar-mem/ashlar/internal/plan/eager"

// gatedMLP is LlamaMLP.
type gatedMLP struct {
	gate, up, down *linear
	act            string
}

func (b *builder) gatedMLP(name string, hidden, width int, bias bool, act string) *gatedMLP {
	c := b.in(name)
	return &gatedMLP{
		gate: c.linear("gate_proj", hidden, width, bias),
		up:   c.linear("up_proj", hidden, width, bias),
		down: c.linear("down_proj", width, hidden, bias),
		act:  act,
	}
}

func (l *gatedMLP) forward(r *run, x *eager.Tensor) *eager.Tensor {
	g := l.gate.forward(r, x)
	a := activate(r, l.act, g)
	g.Drop()
	u := l.up.forward(r, x)
	p := r.m.Mul(a, u)
	eager.Drop(a, u)
	y := l.down.forward(r, p)
	p.Drop()
	return y
}

package hf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
)

// adapter is a LoRA pair around a frozen Linear.
type adapter struct{ a, b *eager.Tensor }

// adapt freezes the model and puts adapters around its Linears, all but the
// head or those that are named. The embeddings are made to require a gradient,
// without which a checkpoint of the first layer would have none; transformers does
// that with gradient_checkpointing_enable, so without checkpoints PEFT's do not.
func (r *run) adapt() error {
	for _, p := range r.params {
		p.Tensor.Freeze()
	}
	m, c := r.machine, r.job.LoRA
	d := r.dtype
	if c.DType != "" {
		d = dtypeOf(c.DType)
	}
	// PEFT makes them in the weights' type, and casts them once all are there.
	made := d
	if c.PEFT && r.job.Quant == nil && !r.job.Shard.BuildSharded {
		made = r.dtype
	}
	found := map[string]bool{}
	for _, l := range r.linears {
		name := l.name[strings.LastIndexByte(l.name, '.')+1:]
		found[name] = true
		if len(c.Targets) > 0 && !slices.Contains(c.Targets, name) {
			continue
		}
		before := m.Enter(l.label)
		rank := int64(c.Rank)
		in, out := l.sizes()
		l.adapter = &adapter{a: r.parameter(made, true, rank, in), b: r.parameter(made, true, out, rank)}
		m.Enter(before)
	}
	for _, l := range r.linears {
		if l.adapter == nil {
			continue
		}
		before := m.Enter(l.label)
		for _, t := range []**eager.Tensor{&l.adapter.a, &l.adapter.b} {
			if made != d {
				*t = replace(*t, r.parameter(d, true, (*t).Shape()...))
			}
		}
		m.Enter(before)
		path := m.Ledger.Text(l.label)
		r.adapters = append(r.adapters,
			Parameter{Name: path + ".a", Tensor: l.adapter.a}, Parameter{Name: path + ".b", Tensor: l.adapter.b})
	}
	for _, t := range c.Targets {
		if !found[t] {
			return fmt.Errorf("LoRA: the model has no Linear named %s; it has %s", t, strings.Join(slices.Sorted(maps.Keys(found)), ", "))
		}
	}
	if len(r.adapters) == 0 {
		return errors.New("LoRA: the model has no Linear to put an adapter on")
	}
	r.inputGrad = !c.PEFT || r.recomputes()
	return nil
}

// forward is base(x) + b·(a·x), in the type of the adapters.
func (a *adapter) forward(r *run, l *linear, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	base := l.base(r, x)
	if l.packed != nil {
		return a.onPacked(r, l, base, x)
	}
	if r.job.LoRA.PEFT {
		return a.peft(r, base, x)
	}
	in := m.To(x, a.a.DType())
	low := m.Linear(in, a.a, nil)
	in.Drop()
	up := m.Linear(low, a.b, nil)
	low.Drop()
	out := m.To(up, x.DType())
	up.Drop()
	y := m.Add(base, out)
	eager.Drop(base, out)
	return y
}

// loraDropout stands for any lora_dropout: a mask is as large for all of them.
const loraDropout = 0.1

// peft is the forward pass of PEFT's lora.Linear after the base layer, whose
// result it takes over. The name x is bound to the cast until the function
// returns.
func (a *adapter) peft(r *run, base, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	d := base.DType()
	x = m.To(x, a.a.DType())
	scaled := a.scaled(r, x.Keep())
	y := m.Add(base, scaled)
	eager.Drop(scaled, base)
	y = replace(y, m.To(y, d))
	x.Drop()
	return y
}

// scaled is lora_B(lora_A(dropout(x))) * scaling. It takes x over.
func (a *adapter) scaled(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	if r.job.LoRA.Dropout {
		x = replace(x, m.Dropout(x, loraDropout, r.trains))
	}
	x = replace(x, m.Linear(x, a.a, nil))
	x = replace(x, m.Linear(x, a.b, nil))
	return replace(x, m.Scale(x))
}

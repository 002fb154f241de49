package hf

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// bnb is an optimizer of bitsandbytes: Adam has two states, Lion and RMSprop have
// one. They are made parameter by parameter, each before its first update.
type bnb struct {
	base
	states int
	maps   []*eager.Tensor // the levels of the states, once they are on the GPU
}

// Parameters of less than smallest8bit elements have states of 32 bits, whatever
// was asked for. Others have a scale for each stateBlock elements. States of less
// than smallestPaged elements are not paged.
const (
	smallest8bit  = 4096
	stateBlock    = 256
	smallestPaged = 100_000
)

func newBnb(b base) *bnb {
	o := &bnb{base: b, states: 2}
	if k := b.run.job.Optimizer; k.Lion() || k == model.RMSprop8bit || k == model.RMSprop32bit {
		o.states = 1
	}
	return o
}

func (o *bnb) step() {
	o.initState(func(p *eager.Tensor) []*eager.Tensor {
		if !o.eightBit(p) {
			return o.buffers(p, eager.Float32)
		}
		m := o.run.machine
		for len(o.maps) < o.states {
			o.maps = append(o.maps, m.Empty("qmap", eager.Float32, 256))
		}
		list := o.buffers(p, eager.UInt8)
		blocks := (p.Elements() + stateBlock - 1) / stateBlock
		for range o.states {
			list = append(list, m.Empty("absmax", eager.Float32, blocks))
		}
		return list
	})
}

// eightBit reports whether the states of p have eight bits: transformers' Trainer
// keeps those of embeddings in 32.
func (o *bnb) eightBit(p *eager.Tensor) bool {
	return o.run.job.Optimizer.EightBit() && p.Elements() >= smallest8bit && !slices.Contains(o.run.tables, p)
}

// buffers makes the states themselves.
func (o *bnb) buffers(p *eager.Tensor, d eager.DType) []*eager.Tensor {
	var list []*eager.Tensor
	for range o.states {
		if o.run.job.Optimizer.Paged() && p.Elements() >= smallestPaged {
			o.run.besides("optimizer state", Managed, p.Elements()*d.Size())
			continue
		}
		list = append(list, o.run.machine.Empty("state", d, p.Shape()...))
	}
	return list
}

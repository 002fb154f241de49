package hf

import (
	"regexp"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// inLayer finds the layer that a parameter belongs to.
var inLayer = regexp.MustCompile(`^(.*?\b(?:layers|layer|h|block)\.\d+)\.`)

// newFSDP replaces the parameters by their shards. Where the model was built
// whole that is done unit by unit: first all shards are made, then the
// parameters are freed.
func newFSDP(r *run) *fsdp {
	s := &r.job.Shard
	f := &fsdp{
		run: r, ranks: int64(max(s.FSDP, s.Zero)), flat: s.Zero > 0,
		root: &unit{}, of: map[layer]*unit{}, shards: map[*eager.Tensor]*eager.Tensor{},
	}
	names := map[string]*unit{}
	params := r.withAdapters()
	for _, p := range params {
		u := f.root
		if m := inLayer.FindStringSubmatch(p.Name); m != nil {
			if u = names[m[1]]; u == nil {
				u = &unit{}
				names[m[1]] = u
				f.units = append(f.units, u)
			}
		}
		u.params = append(u.params, &sharded{whole: p.Tensor})
	}
	if s.BuildSharded {
		f.materialise(params)
	}
	for _, u := range append(f.units[:len(f.units):len(f.units)], f.root) {
		if !s.BuildSharded {
			f.shard(u)
		}
		for _, p := range u.params {
			p.shard = f.shards[p.whole]
			p.padded = p.shard.Elements()
			p.whole.SetDType(f.computeType(p))
		}
	}
	for i, t := range r.trained {
		r.trained[i] = f.shards[t]
	}
	return f
}

// withAdapters lists the parameters in the order in which fully_shard meets
// them: a Linear's adapter comes after it.
func (r *run) withAdapters() []Parameter {
	adapters := map[string][]Parameter{}
	for _, a := range r.adapters {
		path := a.Name[:strings.LastIndexByte(a.Name, '.')]
		adapters[path] = append(adapters[path], a)
	}
	var out []Parameter
	for i, p := range r.params {
		if p.Tied {
			continue
		}
		out = append(out, p)
		path := p.Name[:strings.LastIndexByte(p.Name, '.')]
		if i+1 == len(r.params) || !strings.HasPrefix(r.params[i+1].Name, path+".") {
			out = append(out, adapters[path]...)
		}
	}
	return out
}

// shard replaces the parameters of a unit, which are whole until now.
func (f *fsdp) shard(u *unit) {
	for _, p := range u.params {
		f.part(p.whole)
	}
	for _, p := range u.params {
		f.run.machine.FreeStorage(p.whole)
	}
}

// materialise makes the parts of a model that has no memory yet, in the order
// of its modules. FSDP's model is on the meta device and to_empty gives each
// module its own part of every parameter. DeepSpeed's zero.Init has each
// parameter whole for a moment, divides it and frees it.
func (f *fsdp) materialise(params []Parameter) {
	m := f.run.machine
	for _, p := range params {
		before := m.Enter(m.Ledger.Name(p.Name))
		if f.flat {
			kind := m.Kind(ledger.Weight)
			m.AllocStorage(p.Tensor, p.Tensor.Bytes(), "parameter")
			m.Kind(kind)
		}
		f.part(p.Tensor)
		m.FreeStorage(p.Tensor)
		m.Enter(before)
	}
}

// part makes this rank's part of a parameter.
func (f *fsdp) part(whole *eager.Tensor) {
	shape := f.partShape(whole.Shape())
	m := f.run.machine
	if f.run.job.Offload.Parameters {
		f.shards[whole] = m.MetaParameter(whole.DType(), whole.NeedsGrad(), shape...)
		f.run.besides("parameters", Host, f.shards[whole].Bytes())
		return
	}
	kind := m.Kind(ledger.Weight)
	f.shards[whole] = m.Empty("shard", whole.DType(), shape...)
	m.Kind(kind)
}

// partShape is the shape of the largest part of a parameter, padding included.
// FSDP cuts the first dimension into whole rows, and pads: eight experts over
// sixteen ranks are one expert on each, and gathered they are sixteen. DeepSpeed
// cuts the elements in a row.
func (f *fsdp) partShape(whole []int64) []int64 {
	if f.flat {
		n := int64(1)
		for _, d := range whole {
			n *= d
		}
		return []int64{(n + f.ranks - 1) / f.ranks}
	}
	shape := append([]int64(nil), whole...)
	shape[0] = (shape[0] + f.ranks - 1) / f.ranks
	return shape
}

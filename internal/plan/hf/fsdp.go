package hf

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// fsdp is fully_shard on each layer and then on the whole model. Each rank
// keeps a part of every parameter. A layer's parameters are gathered before its
// forward pass and freed after it, gathered again before its backward pass, and
// its gradients are reduced and divided after that. The parameters outside of
// layers are gathered once a step.
//
// With one rank there is nothing to gather: parameters are copied.
type fsdp struct {
	run   *run
	ranks int64
	flat  bool // ZeRO: parts are cut from the elements, not from the rows
	root  *unit
	units []*unit
	// of is the unit of a layer; units are taken in the order of the first calls.
	of map[layer]*unit

	order   []*unit       // units in the order of this step's forward passes
	flying  *eager.Tensor // the last all-gather of the forward pass, whose output lives until the next
	reduced *eager.Tensor // the input of the last reduce-scatter, likewise
	shards  map[*eager.Tensor]*eager.Tensor
}

// Streams beside that of the computation, which is 0.
const (
	reduceStream = 1
	gatherStream = 2
)

// unit is a group of parameters that is gathered and reduced together.
type unit struct {
	params   []*sharded
	state    unitState
	full     bool          // the parameters are gathered
	gathered *eager.Tensor // output of an all-gather that was not copied out yet
	place    []int         // in the order of forward passes
}

// unitState is what a unit is doing.
type unitState uint8

const (
	idle unitState = iota
	forward
	preBackward
	postBackward
)

// sharded is a parameter: whole is what modules compute with, its memory comes
// and goes; shard is this rank's part, which the optimizer has.
type sharded struct {
	whole, shard *eager.Tensor
	padded       int64 // elements of a part; the last ones may be padding
}

// computeType is the type that a parameter is gathered in.
func (f *fsdp) computeType(p *sharded) eager.DType {
	if d := f.run.job.Shard.ParamDType; d != "" {
		return dtypeOf(d)
	}
	return p.shard.DType()
}

// reduceType is the type that gradients of a type are reduced in.
func (f *fsdp) reduceType(d eager.DType) eager.DType {
	if t := f.run.job.Shard.ReduceDType; t != "" {
		return dtypeOf(t)
	}
	return d
}

// layer is a layer's forward pass between its hooks. When it is run again for a
// checkpoint, its parameters are there already.
func (f *fsdp) layer(l layer, x *eager.Tensor, c *shared) *eager.Tensor {
	u := f.of[l]
	if u == nil {
		if len(f.of) == len(f.units) {
			return l.forward(f.run, x, c)
		}
		u = f.units[len(f.of)]
		f.of[l] = u
	}
	if u.state == preBackward {
		if !u.full {
			f.unshard(u)
			f.wait(u)
		}
		return l.forward(f.run, x, c)
	}
	in := x.Keep()
	if d := f.run.job.Shard.ParamDType; d != "" {
		in.Drop()
		in = f.run.machine.To(x, dtypeOf(d))
	}
	f.beforeForward(u)
	hooked := f.run.machine.AfterBackward(in, func() { f.reduce(u) })
	in.Drop()
	y := l.forward(f.run, hooked, c)
	hooked.Drop()
	if f.run.job.Shard.ReshardAfterForward || f.run.job.Shard.Zero > 0 {
		f.reshard(u)
	}
	f.afterForward(u)
	y.BeforeBackward(func() { f.backward(u) })
	return y
}

// model is the whole model's forward pass between its hooks.
func (f *fsdp) model(run func() *eager.Tensor) *eager.Tensor {
	f.beforeForward(f.root)
	loss := run()
	f.afterForward(f.root)
	f.flying.Drop()
	f.flying = nil
	loss.BeforeBackward(func() { f.backward(f.root) })
	return loss
}

func (f *fsdp) beforeForward(u *unit) {
	u.state = forward
	f.unshard(u)
	f.wait(u)
}

func (f *fsdp) afterForward(u *unit) {
	u.state = idle
	u.place = append(u.place, len(f.order))
	f.order = append(f.order, u)
}

// backward gathers the parameters for the backward pass, and begins to gather
// those of the unit that comes next.
func (f *fsdp) backward(u *unit) {
	if u.state == preBackward {
		return
	}
	u.state = preBackward
	f.unshard(u)
	f.wait(u)
	if len(u.place) == 0 {
		return
	}
	at := u.place[len(u.place)-1]
	u.place = u.place[:len(u.place)-1]
	if at > 0 {
		f.unshard(f.order[at-1])
	}
}

// unshard begins an all-gather: the shards are joined, in another type in a
// copy of their own, and the output holds those of all ranks.
func (f *fsdp) unshard(u *unit) {
	if u.full || u.gathered != nil || f.ranks == 1 || len(u.params) == 0 {
		return
	}
	m := f.run.machine
	kind, stream := m.Kind(ledger.Collective), m.Stream(gatherStream)
	defer func() { m.Kind(kind); m.Stream(stream) }()
	var joined, cast int64
	d := f.computeType(u.params[0])
	for _, p := range u.params {
		joined += p.padded
		if p.shard.DType() != d {
			cast += p.padded
		}
	}
	var fetched *eager.Tensor
	if f.run.job.Offload.Parameters {
		fetched = m.Empty("to", u.params[0].shard.DType(), joined)
	}
	input := m.Empty("all_gather_copy_in", d, cast)
	u.gathered = m.Empty("all_gather", d, joined*f.ranks)
	eager.Drop(fetched, input)
}

// wait fills the parameters from an all-gather. In the forward pass its output
// is kept until the next unit has its own.
func (f *fsdp) wait(u *unit) {
	if u.full || len(u.params) == 0 {
		return
	}
	u.full = true
	m := f.run.machine
	kind := m.Kind(ledger.Collective)
	defer m.Kind(kind)
	if f.ranks == 1 {
		var cast *eager.Tensor
		for _, p := range u.params {
			var next *eager.Tensor
			if d := f.computeType(p); d != p.shard.DType() {
				next = m.Detached(p.shard, d)
			}
			cast.Drop()
			cast = next
			m.AllocStorage(p.whole, p.padded*p.whole.DType().Size(), "copy_out")
		}
		cast.Drop()
		return
	}
	// A local variable keeps the last unit's output until this is done.
	var before *eager.Tensor
	if u.state == forward {
		before, f.flying = f.flying, nil
	}
	sizes := make([]int64, len(u.params))
	for i, p := range u.params {
		sizes[i] = p.padded * p.whole.DType().Size()
		m.AllocStorage(p.whole, sizes[i]*f.ranks, "copy_out")
	}
	m.SplitCopyScratch(sizes, f.ranks)
	if u.state == forward {
		f.flying = u.gathered
	} else {
		u.gathered.Drop()
	}
	u.gathered = nil
	before.Drop()
}

func (f *fsdp) reshard(u *unit) {
	u.full = false
	for _, p := range u.params {
		f.run.machine.FreeStorage(p.whole)
	}
}

// reduce is what comes after a unit's backward pass: the gradients are joined
// and reduced, and each shard's gradient is a part of the result.
func (f *fsdp) reduce(u *unit) {
	m := f.run.machine
	u.state = postBackward
	var with []*sharded
	var grads []*eager.Tensor
	for _, p := range u.params {
		if g := p.whole.Grad(); g != nil {
			with = append(with, p)
			grads = append(grads, g.Keep())
			p.whole.ZeroGrad()
		}
	}
	f.reshard(u)
	if len(grads) == 0 {
		return
	}
	kind := m.Kind(ledger.Collective)
	f.reduced.Drop()
	d := f.reduceType(grads[0].DType())
	var padded int64
	sizes := make([]int64, len(with))
	for i, p := range with {
		padded += p.padded
		sizes[i] = p.padded * d.Size()
	}
	f.reduced = m.Empty("reduce_scatter_input", d, padded*f.ranks)
	m.ChunkCatScratch(sizes)
	slices.Reverse(grads)
	var last *eager.Tensor
	if f.ranks > 1 { // the variable of a loop over the gradients keeps the last one
		last = grads[0].Keep()
	}
	eager.Drop(grads...)
	stream := m.Stream(reduceStream)
	m.Kind(ledger.Gradient)
	out := m.Empty("reduce_scatter", d, padded)
	if own := with[0].shard.DType(); own != d {
		cast := m.Detached(out, own)
		out.Drop()
		out = cast
	}
	m.Kind(kind)
	m.Stream(stream)
	for _, p := range with {
		if p.shard.Grad() == nil && !f.run.job.Offload.Optimizer {
			p.shard.SetGrad(m.ViewInto(out, p.shard))
		}
	}
	eager.Drop(last, out)
}

// finish is the callback at the end of the backward pass: units that no
// gradient passed through, the whole model's among them, are reduced now.
func (f *fsdp) finish() {
	for _, u := range append([]*unit{f.root}, f.units...) {
		if u.state != postBackward {
			f.reduce(u)
		}
		u.state = idle
		u.place = u.place[:0]
		u.gathered.Drop()
		u.gathered = nil
	}
	f.order = f.order[:0]
	f.reduced.Drop()
	f.reduced = nil
}

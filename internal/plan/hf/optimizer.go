package hf

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// optimizer is a torch.optim optimizer.
type optimizer interface {
	step()
	// zero is zero_grad(set_to_none=True).
	zero()
	// state lists what the optimizer keeps on the GPU, parameter by parameter.
	state() []*eager.Tensor
}

// newOptimizer makes the optimizer of a job. The kinds of Adam differ in their
// arithmetic alone, as long as Adam has no weight decay.
func newOptimizer(r *run) optimizer {
	switch stage := r.job.Shard.ZeroStage; {
	case r.job.Shard.Zero > 0 && stage < 3:
		r.zero = newZero(r)
		return r.zero
	case r.job.Offload.Optimizer:
		return newOffloaded(r, elements(r.trained))
	case r.job.Master || r.job.Shard.Zero > 0:
		return newMaster(r)
	}
	return optimizerOf(r, r.trained)
}

func optimizerOf(r *run, params []*eager.Tensor) optimizer {
	b := base{run: r, params: params, states: map[*eager.Tensor][]*eager.Tensor{}}
	if r.job.Optimizer.BitsAndBytes() {
		return newBnb(b)
	}
	switch r.job.Optimizer {
	case model.SGD:
		return &sgd{base: b}
	case model.SGDMomentum, model.SGDFused:
		return &sgd{base: b, momentum: true}
	case model.Adafactor:
		if r.job.Trainer {
			return &ownAdafactor{base: b}
		}
		return &adafactor{base: b}
	case model.AdamWForeach, model.AdamForeach:
		return &adam{base: b, foreach: true}
	case model.AdamW, model.Adam:
		return &adam{base: b}
	}
	return &adam{base: b, fused: true}
}

// base is what optimizers have in common.
type base struct {
	run    *run
	params []*eager.Tensor
	states map[*eager.Tensor][]*eager.Tensor
}

func (b *base) zero() {
	for _, p := range b.params {
		p.ZeroGrad()
	}
}

func (b *base) state() []*eager.Tensor {
	var out []*eager.Tensor
	for _, p := range b.params {
		out = append(out, b.states[p]...)
	}
	return out
}

// initState makes the state of a parameter in the first step in which it has a
// gradient, and lists the parameters that have one.
func (b *base) initState(init func(p *eager.Tensor) []*eager.Tensor) []*eager.Tensor {
	m := b.run.machine
	kind := m.Kind(ledger.Optimizer)
	defer m.Kind(kind)
	var out []*eager.Tensor
	for _, p := range b.params {
		if p.Grad() == nil {
			continue
		}
		out = append(out, p)
		if _, ok := b.states[p]; !ok && init != nil {
			b.states[p] = init(p)
		}
	}
	return out
}

// adam is Adam and AdamW, fused, foreach or tensor by tensor.
type adam struct {
	base
	fused, foreach bool
}

func (a *adam) step() {
	m := a.run.machine
	params := a.initState(func(p *eager.Tensor) []*eager.Tensor {
		var s []*eager.Tensor
		if a.fused { // otherwise it is counted on the CPU
			s = append(s, m.Empty("step", eager.Float32))
		}
		return append(s, m.Unary("exp_avg", p), m.Unary("exp_avg_sq", p))
	})
	switch {
	case a.fused:
	case a.foreach:
		a.multi(params)
	default:
		a.single(params)
	}
}

// multi is _multi_tensor_adam, once for each of the optimizer's groups.
func (a *adam) multi(params []*eager.Tensor) {
	first := params
	if a.run.job.Trainer {
		first = params[:decayed(params)]
	}
	a.group(first)
	a.group(params[len(first):])
}

// group is _multi_tensor_adam: the roots of all second moments of a type live until
// the next type has its own.
func (a *adam) group(params []*eager.Tensor) {
	var roots []*eager.Tensor
	for _, group := range byType(params) {
		next := make([]*eager.Tensor, len(group))
		for i, p := range group {
			next[len(group)-1-i] = a.run.machine.Unary("_foreach_sqrt", p)
		}
		eager.Drop(roots...)
		roots = next
	}
	eager.Drop(roots...)
}

// single is _single_tensor_adam: the denominator of a parameter lives until
// the next one has its own.
func (a *adam) single(params []*eager.Tensor) {
	m := a.run.machine
	var denominator *eager.Tensor
	for _, p := range params {
		root := m.Unary("sqrt", p)
		next := m.Unary("div", root)
		root.Drop()
		denominator.Drop()
		denominator = next
	}
	denominator.Drop()
}

// sgd is SGD, fused or foreach: with momentum its buffers begin as copies of
// the gradients.
type sgd struct {
	base
	momentum bool
}

func (s *sgd) step() {
	if !s.momentum {
		return
	}
	s.initState(func(p *eager.Tensor) []*eager.Tensor {
		return []*eager.Tensor{s.run.machine.Unary("momentum_buffer", p.Grad())}
	})
}

// master is an optimizer on fp32 copies of the weights. Gradients are copied
// before its step, one by one, and the weights after it.
type master struct {
	optimizer
	run    *run
	copies []*eager.Tensor
}

func newMaster(r *run) *master {
	m := r.machine
	kind := m.Kind(ledger.Master)
	defer m.Kind(kind)
	o := &master{run: r}
	for _, p := range r.trained {
		o.copies = append(o.copies, m.Detached(p, eager.Float32))
	}
	o.optimizer = optimizerOf(r, o.copies)
	return o
}

func (o *master) step() {
	m := o.run.machine
	kind := m.Kind(ledger.Gradient)
	for i, p := range o.run.trained {
		if g := p.Grad(); g != nil {
			o.copies[i].SetGrad(m.Detached(g, eager.Float32))
			p.ZeroGrad()
		}
	}
	m.Kind(kind)
	o.optimizer.step()
	o.optimizer.zero()
}

// zero has nothing left to do.
func (o *master) zero() {}

// adafactor is Adafactor, which keeps the means of rows and columns of a squared
// gradient instead of all of it.
type adafactor struct{ base }

// step is _single_tensor_adafactor: names are bound anew for each parameter,
// after the new value is there.
func (a *adafactor) step() {
	m := a.run.machine
	params := a.initState(func(p *eager.Tensor) []*eager.Tensor {
		g := p.Grad()
		if g.Dims() < 2 {
			return []*eager.Tensor{m.Unary("variance", g)}
		}
		row, col := slices.Clone(g.Shape()), slices.Clone(g.Shape())
		row[len(row)-1], col[len(col)-2] = 1, 1
		return []*eager.Tensor{m.Empty("row_var", g.DType(), row...), m.Empty("col_var", g.DType(), col...)}
	})
	var rowMean, colMean, squared, update *eager.Tensor
	rebind := func(name **eager.Tensor, t *eager.Tensor) {
		(*name).Drop()
		*name = t
	}
	for _, p := range params {
		g := p.Grad()
		m.VectorNormAll(p).Drop()
		var estimate *eager.Tensor
		if g.Dims() > 1 {
			rebind(&rowMean, m.VectorNorm(g, -1))
			rebind(&colMean, m.VectorNorm(g, -2))
			estimate = m.Outer(a.states[p][0], a.states[p][1])
			m.MeanDim(a.states[p][0], -2).Drop()
		} else {
			rebind(&squared, m.Unary("mul", g))
			estimate = m.Unary("clone", g)
		}
		// var_estimate and update are the same tensor; the name update is the
		// last one to leave the tensor before.
		rebind(&update, estimate)
		m.VectorNormAll(update).Drop()
	}
	eager.Drop(rowMean, colMean, squared, update)
}

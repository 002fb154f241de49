package hf

import (
	"context"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

// Role is what a tensor of a checkpoint is to a model that no family describes.
type Role int

// The roles. Kept is what is neither trained nor cast: buffers, and the parts of
// quantised weights.
const (
	Other  Role = iota // a parameter
	Linear             // the weight of a Linear
	Table              // the weight of an embedding
	Kept
)

// Weight is a tensor of a checkpoint.
type Weight struct {
	safetensors.Tensor
	Role   Role
	Frozen bool
	// Own: it stays in the type of its file, and is not cast to the job's.
	Own bool
}

// States runs a job without its forward and backward passes: the weights are
// made, every parameter that trains gets a gradient, and the optimizer steps. So
// all is there that does not depend on the batch.
func States(ctx context.Context, j *model.Job, weights []Weight) (out *Result, err error) {
	defer func() {
		if err == nil {
			err = stopped(recover())
		}
	}()
	r := newRun(ctx, j)
	r.machine.Ledger.Watch = watch{}.watcher(ctx)
	r.machine.Ledger.Begin(ledger.Build, 0)
	for i := range weights {
		r.load(&weights[i])
	}
	if r.trains {
		if err := r.prepare(); err != nil {
			return nil, err
		}
		o := newOptimizer(r)
		for r.step = 1; r.step <= 2; r.step++ { // the optimizer's state is there from the second on
			r.stateStep(o)
		}
	}
	r.machine.Ledger.Watch = nil
	return &Result{Ledger: r.machine.Ledger, Parameters: r.params, NotModelled: r.notes, Assumed: r.assumed, Beside: r.beside}, nil
}

// load makes a weight.
func (r *run) load(w *Weight) {
	d, float := floats[w.DType]
	shape := w.Shape
	if len(shape) == 0 || len(shape) > eager.MaxDims {
		shape = []int64{int64(w.Elements())}
	}
	if w.Role == Kept || !float {
		kind := r.machine.Kind(ledger.Weight)
		r.machine.Empty(w.Name, bytesType(w.Tensor), shape...)
		r.machine.Kind(kind)
		return
	}
	trains, dtype := r.trains, r.dtype
	defer func() { r.trains, r.dtype = trains, dtype }()
	r.trains = trains && !w.Frozen
	if w.Own {
		r.dtype = d
	}
	b := &builder{run: r}
	module, isWeight := strings.CutSuffix(w.Name, ".weight")
	if w.Role == Linear && isWeight && len(shape) == 2 {
		linears := r.linears
		b.linear(module, int(shape[1]), int(shape[0]), false)
		if w.Frozen {
			r.linears = linears // no adapter
		}
		return
	}
	t := b.weight(w.Name, shape...)
	if w.Role == Table {
		r.tables = append(r.tables, t)
	}
}

// floats are the types of files that are parameters of a model.
var floats = map[string]eager.DType{"F16": eager.Float16, "BF16": eager.BFloat16, "F32": eager.Float32}

// stateStep is a step of training of which only gradients and the optimizer are
// known.
func (r *run) stateStep(o optimizer) {
	m := r.machine
	if r.job.ZeroGrad == model.ZeroBefore {
		o.zero()
	}
	r.phase(ledger.Forward)
	if r.ddp != nil {
		r.ddp.forward()
	}
	r.phase(ledger.Backward)
	if r.zero != nil {
		r.zero.beforeBackward()
	}
	kind := m.Kind(ledger.Gradient)
	for i := len(r.trained) - 1; i >= 0; i-- {
		if p := r.trained[i]; p.Grad() == nil {
			p.Arrive(m.Empty("gradient", p.DType(), p.Shape()...))
		}
	}
	m.Kind(kind)
	if r.zero != nil {
		r.zero.afterBackward()
	}
	r.phase(ledger.Step)
	if r.job.Clip && !r.job.Offload.Optimizer {
		clip(r)
	}
	o.step()
	if r.job.ZeroGrad == model.ZeroNone || r.job.ZeroGrad == "" {
		o.zero()
	}
}

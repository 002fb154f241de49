package hf

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// train runs the training loop.
func (r *run) train() error {
	j := r.job
	if err := r.prepare(); err != nil {
		return err
	}
	o := newOptimizer(r)
	if j.Trainer {
		return newTrainer(r, o).loop()
	}
	for step := 1; step <= cmp.Or(j.Steps, 3); step++ {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.step = step
		if j.ZeroGrad == model.ZeroBefore {
			o.zero()
		}
		r.batches()
		r.phase(ledger.Step)
		if j.Clip && !j.Offload.Optimizer { // otherwise on the host
			clip(r).Drop()
		}
		o.step()
		if j.ZeroGrad == model.ZeroNone || j.ZeroGrad == "" {
			o.zero()
		}
		if j.Save != model.SaveNone && j.Save != "" {
			r.phase(ledger.Saving)
			r.save(o)
		}
	}
	return nil
}

// prepare does what comes between the model and the optimizer: adapters and
// wrappers. It leaves the list of parameters that train.
func (r *run) prepare() error {
	trained := r.params
	if r.job.LoRA.Rank > 0 {
		if err := r.adapt(); err != nil {
			return err
		}
		trained = r.adapters
	}
	for _, p := range trained {
		if !p.Tied && p.Tensor.NeedsGrad() {
			r.trained = append(r.trained, p.Tensor)
		}
	}
	if r.job.Trainer {
		r.toDevice()
		byDecay(r.trained)
	}
	switch {
	case r.job.Shard.DDP > 0:
		r.ddp = newDDP(r)
	case r.job.Shard.FSDP > 0 || r.job.Shard.ZeroStage == 3:
		r.fsdp = newFSDP(r)
	}
	return nil
}

// batches runs the forward and backward passes of a step: one after the other,
// or, in a pipeline, as many forward passes ahead as the stage has batches under
// way.
func (r *run) batches() {
	n, ahead := max(r.job.Accumulate, 1), 1
	if r.stage != nil {
		ahead = r.stage.flying
	}
	var flying []flight
	for i := range n {
		flying = append(flying, r.forward())
		if len(flying) == ahead || i == n-1 {
			r.backward(flying[0])
			flying = flying[1:]
		}
	}
	for _, f := range flying {
		r.backward(f)
	}
}

// flight is a batch between its forward and its backward pass: the loss, or
// what goes to the next stage of a pipeline.
type flight struct {
	in   *batch
	loss *eager.Tensor
}

func (r *run) forward() flight {
	r.phase(ledger.Forward)
	in := r.batch()
	held := r.outputs
	r.outputs = nil
	loss := r.called(in)
	// The outputs of the last batch live until the name is bound to new ones.
	r.output(loss)
	eager.Drop(held...)
	return flight{in, loss}
}

// called is the model's result, under autocast if the job has that.
func (r *run) called(in *batch) (loss *eager.Tensor) {
	if r.job.Autocast {
		r.machine.Autocast(eager.BFloat16, func() { loss = r.loss(in) })
		return loss
	}
	return r.loss(in)
}

func (r *run) backward(f flight) {
	r.differentiate(f.loss)
	f.loss.Drop()
	f.in.drop()
}

// differentiate is the backward pass from a loss.
func (r *run) differentiate(loss *eager.Tensor) {
	r.phase(ledger.Backward)
	if r.zero != nil {
		r.zero.beforeBackward()
	}
	if r.sends() {
		r.machine.BackwardFrom(loss)
	} else {
		r.machine.Backward(loss)
	}
	if r.fsdp != nil {
		r.fsdp.finish()
	}
	if r.zero != nil {
		r.zero.afterBackward()
	}
}

// loss is the forward pass.
func (r *run) loss(in *batch) *eager.Tensor {
	switch {
	case r.ddp != nil:
		r.ddp.forward()
	case r.fsdp != nil:
		return r.fsdp.model(func() *eager.Tensor { return r.inner(in) })
	}
	return r.inner(in)
}

// inner is the forward pass of the model itself, without its wrapper.
func (r *run) inner(in *batch) *eager.Tensor {
	if net, ok := r.net.(chunkable); ok && r.job.LossChunk > 0 && !r.sends() {
		return r.chunkedLoss(net, in)
	}
	return r.net.loss(r, in)
}

// phase begins a phase within a step.
func (r *run) phase(name string) { r.machine.Ledger.Begin(name, r.step) }

// output says that tensors are part of what the model returns. They are
// dropped with it, unless the job holds it until the next batch or Trainer has
// yet to look at it.
func (r *run) output(ts ...*eager.Tensor) {
	if !r.job.HoldOutput && !r.job.Trainer {
		return
	}
	for _, t := range ts {
		if t != nil {
			r.outputs = append(r.outputs, t.Keep())
		}
	}
}

// batch makes the tensors that a step is called with: images and their classes,
// or tokens, which are their own labels unless the head wants others.
func (r *run) batch() *batch {
	kind := r.machine.Kind(ledger.Input)
	defer r.machine.Kind(kind)
	m, j := r.machine, r.job
	if v := j.Model.ViT; v != nil {
		return &batch{pixels: r.pixels(v), labels: m.Empty("randint", eager.Int64, j.Batch)}
	}
	if a := j.Model.Audio; a != nil {
		sound := m.Empty("randn", r.dtype, j.Batch, int64(a.Mels), 2*int64(a.Positions))
		return &batch{pixels: sound, labels: m.Empty("randint", eager.Int64, j.Batch, j.TargetSeq)}
	}
	rows := j.Batch
	if j.Model.Head == model.HeadReward {
		rows *= 2 // pairs
	}
	in := &batch{ids: m.Empty("randint", eager.Int64, rows, j.Seq)}
	switch j.Model.Head {
	case model.HeadSeq2Seq:
		in.labels = m.Empty("randint", eager.Int64, rows, j.TargetSeq)
	case model.HeadSequence:
		in.labels = m.Empty("randint", eager.Int64, rows)
	case model.HeadToken:
		in.labels = m.Empty("randint", eager.Int64, rows, j.Seq)
	case model.HeadQuestion:
		in.labels, in.ends = m.Empty("randint", eager.Int64, rows), m.Empty("randint", eager.Int64, rows)
	case model.HeadContrastive:
		in.pixels = r.pixels(j.Model.Images())
	case model.HeadReward:
	default:
		in.labels = in.ids.Keep()
	}
	if k := j.Mask; k != model.NoMask && k != "" {
		in.mask = m.Empty("ones", eager.Int64, rows, j.Seq)
	}
	return in
}

// pixels are images for a batch.
func (r *run) pixels(v *model.ViT) *eager.Tensor {
	return r.machine.Empty("randn", r.dtype, r.job.Batch, int64(v.Channels), int64(v.ImageHeight), int64(v.ImageWidth))
}

// gradients lists the gradients there are.
func (r *run) gradients() []*eager.Tensor {
	var out []*eager.Tensor
	for _, p := range r.trained {
		if g := p.Grad(); g != nil {
			out = append(out, g)
		}
	}
	return out
}

// byType cuts tensors into groups of one type, as foreach ops want them.
func byType(ts []*eager.Tensor) [][]*eager.Tensor {
	var out [][]*eager.Tensor
	for _, t := range ts {
		i := slices.IndexFunc(out, func(g []*eager.Tensor) bool { return g[0].DType() == t.DType() })
		if i < 0 {
			out = append(out, nil)
			i = len(out) - 1
		}
		out[i] = append(out[i], t)
	}
	return out
}

// clip is clip_grad_norm_: the norms of all gradients, their norm, which it returns,
// and a factor. Without gradients there is none.
func clip(r *run) *eager.Tensor {
	m := r.machine
	var norms []*eager.Tensor
	for _, g := range byType(r.gradients()) {
		norms = append(norms, m.ForeachNorm(g)...)
	}
	if len(norms) == 0 {
		return nil
	}
	d := norms[0].DType()
	for _, n := range norms {
		d = max(d, n.DType())
	}
	stacked := m.Empty("stack", d, int64(len(norms)))
	total := m.VectorNormAll(stacked)
	stacked.Drop()
	slices.Reverse(norms)
	eager.Drop(norms...)
	sum := m.Unary("add", total)
	inverse := m.Unary("reciprocal", sum)
	factor := m.Unary("mul", inverse)
	eager.Drop(inverse, sum)
	clamped := m.Unary("clamp", factor)
	eager.Drop(factor, clamped)
	return total
}

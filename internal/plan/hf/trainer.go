package hf

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// TrainerPreset names the loop that a [model.Job] with Trainer has: that of
// transformers' Trainer 5.17 over accelerate 1.15.
const TrainerPreset = "trainer-5.17"

// trainer is a run of Trainer: _run_epoch, training_step and evaluation_loop, with
// what accelerate puts around the model and the data.
type trainer struct {
	*run
	optimizer optimizer
	samples   []*batch        // batch_samples: the batches of a step
	items     *eager.Tensor   // num_items_in_batch
	sum       *eager.Tensor   // _tr_loss
	part      *eager.Tensor   // tr_loss_step
	norm      *eager.Tensor   // grad_norm
	kept      []*eager.Tensor // all_losses, all_preds and all_labels of an evaluation
}

func newTrainer(r *run, o optimizer) *trainer {
	return &trainer{run: r, optimizer: o, sum: r.machine.Empty("tensor", eager.Float32)}
}

// loop is _run_epoch. Saving is not in it: it copies to the host tensor by tensor.
func (t *trainer) loop() error {
	j := t.job
	for step := 1; step <= cmp.Or(j.Steps, 3); step++ {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		t.step = step
		t.phase(ledger.Forward)
		t.fetch()
		for _, in := range t.samples {
			t.train(in)
		}
		t.phase(ledger.Step)
		if !j.Offload.Optimizer { // the norm is logged, even where max_grad_norm is 0
			t.norm.Drop()
			t.norm = clip(t.run)
		}
		t.optimizer.step()
		t.optimizer.zero()
		if j.Evaluation.Batch > 0 {
			t.evaluate()
		}
	}
	return nil
}

// fetch is get_batch_samples: all batches of a step go to the GPU at once, while
// those of the step before are still there.
func (t *trainer) fetch() {
	var next []*batch
	for range max(t.job.Accumulate, 1) {
		next = append(next, t.loaded(t.job.Batch))
	}
	items := t.count(next)
	old := t.samples
	t.items.Drop()
	t.samples, t.items = next, items
	for _, b := range old {
		b.drop()
	}
}

// loaded is a batch that the data loader has sent to the GPU. Its labels are a tensor
// of their own.
func (t *trainer) loaded(size int64) *batch {
	whole, sized := t.job, *t.job
	sized.Batch = size
	t.job = &sized
	in := t.batch()
	t.job = whole
	if in.labels != nil && in.labels == in.ids {
		in.labels.Drop()
		kind := t.machine.Kind(ledger.Input)
		in.labels = t.machine.Unary("to", in.ids)
		t.machine.Kind(kind)
	}
	return in
}

// count is _get_num_items_in_batch.
func (t *trainer) count(of []*batch) *eager.Tensor {
	m := t.machine
	var sum *eager.Tensor
	for _, b := range of {
		if b.labels == nil {
			return nil
		}
		labels := b.labels.Keep()
		if t.shifts() {
			labels = replace(labels, m.Slice(labels, 1, labels.Size(1)-1))
		}
		counted := m.Compare("ne", labels)
		n := m.Total(counted)
		eager.Drop(counted, labels)
		var next *eager.Tensor
		if sum == nil {
			next = m.Unary("add", n)
		} else {
			next = m.Binary("add", sum, n)
		}
		eager.Drop(n, sum)
		sum = next
	}
	return sum
}

// shifts reports whether the loss moves labels by one.
func (t *trainer) shifts() bool { return t.job.Model.Head == model.HeadCausal }

// train is training_step.
func (t *trainer) train(in *batch) {
	m := t.machine
	t.phase(ledger.Forward)
	loss, outputs := t.computeLoss(in)
	eager.Drop(outputs...)
	if n := t.job.EmptyCache; n > 0 && (t.step-1)%n == 0 {
		m.Ledger.EmptyCache()
	}
	scaled := m.DivScalar(loss) // accelerate's share of gradient_accumulation_steps
	t.differentiate(scaled)
	scaled.Drop()
	detached := m.Detached(loss, loss.DType())
	loss.Drop()
	t.part.Drop()
	t.part = detached
}

// computeLoss is compute_loss: the loss, and the outputs that the model returned.
// accelerate makes copies of the outputs in fp32 once autocast has ended.
func (t *trainer) computeLoss(in *batch) (loss *eager.Tensor, outputs []*eager.Tensor) {
	m := t.machine
	if t.job.Smoothing {
		m.WithoutLoss(func() { loss = t.called(in) })
	} else {
		loss = t.called(in)
	}
	raw := t.outputs
	t.outputs = nil
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	for _, o := range raw {
		if t.job.Autocast && o.DType().IsFloat() {
			outputs = append(outputs, m.To(o, eager.Float32))
		} else {
			outputs = append(outputs, o.Keep())
		}
	}
	eager.Drop(raw...)
	if t.job.Smoothing {
		loss.Drop()
		loss = t.smooth(outputs[0], in.labels)
	}
	return loss, outputs
}

// smooth is LabelSmoother.
func (t *trainer) smooth(logits, labels *eager.Tensor) *eager.Tensor {
	m := t.machine
	logits, labels = logits.Keep(), labels.Keep()
	if t.shifts() {
		rows := logits.Size(1) - 1
		part := m.Slice(logits, 1, rows)
		logits = replace(logits, m.Contiguous(part))
		part.Drop()
		part = m.Slice(labels, 1, rows)
		labels = replace(labels, m.Contiguous(part))
		part.Drop()
	}
	y := m.LogSoftmax(logits)
	logProbs := m.Neg(y)
	y.Drop()
	labels = replace(labels, m.Unsqueeze(labels, labels.Dims()))
	padding := m.Compare("eq", labels)
	labels = replace(labels, m.Unary("clamp", labels))
	nll := m.Gather(logProbs, labels)
	smoothed := m.SumWide(logProbs, -1, true)
	m.MaskedFillInPlace(nll, padding)
	m.MaskedFillInPlace(smoothed, padding)
	mean := func(x *eager.Tensor) *eager.Tensor {
		flat := m.View(x, -1)
		sum := m.Sum(flat, 0, false)
		eager.Drop(flat, x)
		return replace(sum, m.DivScalar(sum))
	}
	nll = mean(nll)
	smoothed = mean(smoothed)
	a, b := m.Scale(nll), m.Scale(smoothed)
	loss := m.Add(a, b)
	eager.Drop(a, b, logits, labels, logProbs, padding, nll, smoothed)
	return loss
}

// evaluate is evaluation_loop. Without compute_metrics it keeps losses alone, so one
// batch is like the next; with it, the outputs and labels of all batches are joined.
func (t *trainer) evaluate() {
	m, e := t.machine, t.job.Evaluation
	t.phase(ledger.Evaluate)
	grad := m.NoGrad(true)
	t.trains = false
	defer func() {
		t.trains = true
		m.NoGrad(grad)
	}()
	var in *batch
	var last []*eager.Tensor // losses, logits and labels
	for i := range max(e.Kept, 2) {
		next := t.loaded(e.Batch)
		if in != nil {
			in.drop()
		}
		in = next
		items := t.count([]*batch{in})
		loss, outputs := t.computeLoss(in)
		items.Drop()
		if e.Kept == 0 {
			eager.Drop(outputs...)
			outputs = nil
		} else {
			outputs = append(outputs, in.labels.Keep())
		}
		eager.Drop(last...)
		last = append([]*eager.Tensor{m.Empty("repeat", loss.DType(), e.Batch)}, outputs...)
		loss.Drop()
		t.keep(last)
		if e.Moved > 0 && (i+1)%e.Moved == 0 {
			t.toHost()
			eager.Drop(last...)
			in.drop()
			last, in = nil, nil
			m.Ledger.EmptyCache()
		}
	}
	if in != nil {
		in.drop()
	}
	eager.Drop(last...)
	t.toHost()
}

// toHost is get_arrays of what an evaluation has kept.
func (t *trainer) toHost() {
	eager.Drop(t.kept...)
	t.kept = nil
}

// keep joins what an evaluation keeps to that of the batches before.
func (t *trainer) keep(ts []*eager.Tensor) {
	if t.kept == nil {
		for _, o := range ts {
			t.kept = append(t.kept, o.Keep())
		}
		return
	}
	for i, o := range ts {
		t.kept[i] = replace(t.kept[i], t.machine.Cat(0, t.kept[i], o))
	}
}

// builtOnHost reports whether the model is built in host memory, as from_pretrained
// and from_config do where nobody names a device, for Trainer to move it.
func (r *run) builtOnHost() bool {
	s := &r.job.Shard
	return r.job.Trainer && r.job.Quant == nil && !s.BuildSharded && s.FSDP == 0 && s.ZeroStage < 3
}

// toDevice is model.to(device): modules in their order, each with its adapters.
func (r *run) toDevice() {
	m := r.machine
	if !r.builtOnHost() {
		return
	}
	m.OnHost(false)
	kind := m.Kind(ledger.Weight)
	move := func(p Parameter) {
		before := m.Enter(m.Ledger.Name(p.Name))
		m.AllocStorage(p.Tensor, p.Tensor.Bytes(), "to")
		m.Enter(before)
	}
	adapters := map[*eager.Tensor][]Parameter{} // by the last parameter before them
	for _, l := range r.linears {
		if l.adapter == nil {
			continue
		}
		i := slices.IndexFunc(r.adapters, func(p Parameter) bool { return p.Tensor == l.adapter.a })
		last := l.weight
		if l.bias != nil {
			last = l.bias
		}
		adapters[last] = r.adapters[i : i+2]
	}
	for _, p := range r.params {
		move(p)
		for _, a := range adapters[p.Tensor] {
			move(a)
		}
	}
	m.Kind(ledger.Buffer)
	for _, b := range r.buffers {
		m.AllocStorage(b, b.Bytes(), "to")
	}
	m.Kind(kind)
}

// byDecay puts parameters in the order of create_optimizer's groups: those with
// weight decay first, then biases and norms, which have one dimension.
func byDecay(ps []*eager.Tensor) {
	slices.SortStableFunc(ps, func(a, b *eager.Tensor) int { return cmp.Compare(min(b.Dims(), 2), min(a.Dims(), 2)) })
}

// decayed is the number of parameters in the first group.
func decayed(ps []*eager.Tensor) int {
	if i := slices.IndexFunc(ps, func(p *eager.Tensor) bool { return p.Dims() < 2 }); i >= 0 {
		return i
	}
	return len(ps)
}

package hf

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// tail is a head that scores tokens or whole sequences. It borrows the last
// hidden state.
type tail interface {
	loss(r *run, h *eager.Tensor, in *batch) *eager.Tensor
}

// scored is the loss of a model whose last hidden state is h. It takes h over.
func scored(r *run, t tail, h *eager.Tensor, in *batch) *eager.Tensor {
	kind := r.machine.Kind(ledger.Loss)
	defer r.machine.Kind(kind)
	r.phase(ledger.LossPhase)
	y := t.loss(r, h, in)
	h.Drop()
	return y
}

// insideName is what the model is called inside the class that has its head.
func insideName(c *model.Model) string {
	if c.Head == model.HeadQuestion && slices.Contains([]string{"llama", "qwen2", "qwen3", "smollm3"}, c.Family) {
		return "transformer"
	}
	return "model"
}

// headLinear is a Linear of a head, which takes no adapter.
func (b *builder) headLinear(name string, in, out int, bias bool) *linear {
	l := b.linear(name, in, out, bias)
	b.run.linears = b.run.linears[:len(b.run.linears)-1]
	return l
}

// decoderTail is the scoring head of a decoder, nil if it has its own head.
func (b *builder) decoderTail() tail {
	c := b.run.job.Model
	width := cmp.Or(c.WordDim, c.Hidden)
	switch c.Head {
	case model.HeadSequence, model.HeadReward:
		return &lastScore{b.headLinear("score", width, c.NumLabels, false)}
	case model.HeadToken:
		name := "score"
		if c.Family == "gpt2" || c.Family == "gpt_neox" {
			name = "classifier"
		}
		return &tokenScore{score: b.headLinear(name, width, c.NumLabels, true), dropout: c.ClassifierDropout, wide: c.Family != "gpt2"}
	case model.HeadQuestion:
		return &spanScore{out: b.headLinear("qa_outputs", width, 2, true)}
	}
	return nil
}

// lastScore is GenericForSequenceClassification: all tokens are scored, and the
// last one that is no padding counts.
type lastScore struct{ score *linear }

func (t *lastScore) loss(r *run, h *eager.Tensor, in *batch) *eager.Tensor {
	m := r.machine
	logits := t.score.forward(r, h)
	seen := m.Compare("ne", in.ids)
	seen = replace(seen, m.To(seen, eager.Int32))
	at := m.Empty("arange", eager.Int32, in.ids.Size(1))
	product := m.Binary("mul", at, seen)
	last := m.Argmax(product)
	product.Drop()
	rows := m.Empty("arange", eager.Int64, in.ids.Size(0))
	flat := m.View(logits, -1, logits.Size(2))
	pooled := m.Index(flat, last)
	eager.Drop(flat, rows)
	var loss *eager.Tensor
	if r.job.Model.Head == model.HeadReward {
		loss = pairLoss(r, pooled)
	} else {
		loss = classLoss(r, pooled, in.labels)
	}
	r.output(pooled)
	eager.Drop(logits, seen, at, last, pooled)
	return loss
}

// classLoss is the loss of scores [rows, classes]: cross entropy, or with one
// class the mean of the squared distances.
func classLoss(r *run, logits, labels *eager.Tensor) *eager.Tensor {
	m := r.machine
	if logits.Size(1) > 1 {
		flat := m.View(logits, -1, logits.Size(1))
		loss := m.CrossEntropy(flat, labels)
		flat.Drop()
		return loss
	}
	line := m.Squeeze(logits, 1)
	p := m.Pow(line)
	line.Drop()
	return replace(p, m.Sum(p, 0, false))
}

// pairLoss is that of TRL's RewardTrainer: the first half of the rows are to
// score higher than the second.
func pairLoss(r *run, logits *eager.Tensor) *eager.Tensor {
	m := r.machine
	line := m.Squeeze(logits, 1)
	half := line.Size(0) / 2
	parts := m.Split(line, 0, half, half)
	line.Drop()
	d := m.Sub(parts[0], parts[1])
	d = replace(d, m.Activation("log_sigmoid", d))
	d = replace(d, m.Sum(d, 0, false))
	eager.Drop(parts...)
	return replace(d, m.Neg(d))
}

// tokenScore is GenericForTokenClassification.
type tokenScore struct {
	before  func(r *run, h *eager.Tensor) *eager.Tensor // nil without
	score   *linear
	dropout float64
	wide    bool // the loss is that of logits in fp32
}

func (t *tokenScore) loss(r *run, h *eager.Tensor, in *batch) *eager.Tensor {
	m := r.machine
	x := headInput(r, h, t.before, t.dropout)
	logits := t.score.forward(r, x)
	flat := m.View(logits, -1, logits.Size(2))
	target := m.View(in.labels, -1)
	if t.wide {
		flat = replace(flat, m.To(flat, eager.Float32))
	}
	loss := m.CrossEntropy(flat, target)
	r.output(logits)
	eager.Drop(flat, target, x, logits)
	return loss
}

// headInput is what a head scores of the states h.
func headInput(r *run, h *eager.Tensor, before func(r *run, h *eager.Tensor) *eager.Tensor, dropout float64) *eager.Tensor {
	x := h.Keep()
	if before != nil {
		x = replace(x, before(r, x))
	}
	return replace(x, r.machine.Dropout(x, dropout, r.trains))
}

// spanScore is GenericForQuestionAnswering: where an answer begins and ends.
type spanScore struct {
	before  func(r *run, h *eager.Tensor) *eager.Tensor // nil without
	out     *linear
	dropout float64
}

func (t *spanScore) loss(r *run, h *eager.Tensor, in *batch) *eager.Tensor {
	m := r.machine
	x := headInput(r, h, t.before, t.dropout)
	logits := t.out.forward(r, x)
	parts := m.Split(logits, -1, 1, 1)
	for i, p := range parts {
		s := m.Squeeze(p, -1)
		parts[i] = replace(p, replace(s, m.Contiguous(s)))
	}
	first, last := m.Unary("clamp", in.labels), m.Unary("clamp", in.ends)
	a := m.CrossEntropy(parts[0], first)
	b := m.CrossEntropy(parts[1], last)
	sum := m.Add(a, b)
	loss := replace(sum, m.DivScalar(sum))
	r.output(parts...)
	eager.Drop(first, last, a, b)
	eager.Drop(parts...)
	eager.Drop(logits, x)
	return loss
}

// pooler makes one vector of a sequence's states.
type pooler interface {
	forward(r *run, h *eager.Tensor) *eager.Tensor
}

// encoderTail is the scoring head of bert and roberta. The pooler is bert's.
func (b *builder) encoderTail(dense *linear) tail {
	c := b.run.job.Model
	switch c.Head {
	case model.HeadToken:
		return &tokenScore{score: b.headLinear("classifier", c.Hidden, c.NumLabels, true), dropout: c.ClassifierDropout}
	case model.HeadQuestion:
		return &spanScore{out: b.headLinear("qa_outputs", c.Hidden, c.NumLabels, true)}
	}
	t := &pooledScore{dropout: c.ClassifierDropout}
	if dense != nil {
		t.pool, t.score = &firstPooled{dense: dense, act: "tanh"}, b.headLinear("classifier", c.Hidden, c.NumLabels, true)
		return t
	}
	in := b.in("classifier")
	t.pool = &firstPooled{dense: in.headLinear("dense", c.Hidden, c.Hidden, true), act: "tanh", dropout: c.ClassifierDropout}
	t.score = in.headLinear("out_proj", c.Hidden, c.NumLabels, true)
	return t
}

// pairTail is the scoring head of an encoder and a decoder.
func (b *builder) pairTail() tail {
	c := b.run.job.Model
	switch c.Head {
	case model.HeadToken:
		return &tokenScore{score: b.headLinear("classifier", c.Hidden, c.NumLabels, true), dropout: c.ClassifierDropout}
	case model.HeadQuestion:
		return &spanScore{out: b.headLinear("qa_outputs", c.Hidden, 2, true)}
	case model.HeadSequence, model.HeadReward:
		in := b.in("classification_head")
		pool := &endPooled{firstPooled{dense: in.headLinear("dense", c.Hidden, c.Hidden, true), act: "tanh", dropout: c.ClassifierDropout}}
		return &pooledScore{pool: pool, score: in.headLinear("out_proj", c.Hidden, c.NumLabels, true), dropout: c.ClassifierDropout}
	}
	return nil
}

// endPooled is the state at the token that ends a sequence, of which each has
// one, through a Linear and an activation.
type endPooled struct{ firstPooled }

func (p *endPooled) forward(r *run, h *eager.Tensor) *eager.Tensor {
	m := r.machine
	batch := h.Size(0)
	ends := m.Empty("eq", eager.Bool, batch, h.Size(1))
	count := m.Empty("sum", eager.Int64, batch)
	count.Drop()
	at := m.Empty("nonzero", eager.Int64, batch)
	flat := m.View(h, -1, h.Size(2))
	selected := m.Index(flat, at)
	eager.Drop(flat, at)
	apart := m.View(selected, batch, 1, -1)
	y := p.project(r, m.Select(apart, 1))
	eager.Drop(apart, selected, ends)
	return y
}

// pooledScore scores what a pooler makes of a sequence.
type pooledScore struct {
	pool    pooler
	dropout float64
	score   *linear
}

func (t *pooledScore) loss(r *run, h *eager.Tensor, in *batch) *eager.Tensor {
	m := r.machine
	pooled := t.pool.forward(r, h)
	x := m.Dropout(pooled, t.dropout, r.trains)
	logits := t.score.forward(r, x)
	var loss *eager.Tensor
	if r.job.Model.Head == model.HeadReward {
		loss = pairLoss(r, logits)
	} else {
		loss = classLoss(r, logits, in.labels)
	}
	r.output(logits)
	eager.Drop(x, logits, pooled)
	return loss
}

// firstPooled is the first token's state through a Linear and an activation:
// BertPooler, and what roberta and distilbert have in its place.
type firstPooled struct {
	dense   *linear
	act     string
	dropout float64 // before the Linear
}

func (p *firstPooled) forward(r *run, h *eager.Tensor) *eager.Tensor {
	return p.project(r, r.machine.Select(h, 1))
}

// project takes x over.
func (p *firstPooled) project(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	x = replace(x, m.Dropout(x, p.dropout, r.trains))
	x = replace(x, p.dense.forward(r, x))
	return replace(x, m.ByResult(p.act, x))
}

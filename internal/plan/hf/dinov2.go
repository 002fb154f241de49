package hf

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// dinov2 is Dinov2ForImageClassification.
type dinov2 struct {
	embed      *vitEmbeddings
	layers     []layer
	norm       *layerNorm
	classifier *linear
}

func newDinov2(r *run) network {
	c := r.job.Model
	n := &dinov2{}
	top, base := r.builders("dinov2")
	n.embed = base.vitEmbeddings("embeddings")
	if c.Dino.MaskToken {
		base.maskToken("embeddings.mask_token")
	}
	for i := range c.Layers {
		n.layers = append(n.layers, base.in(fmt.Sprintf("encoder.layer.%d", i)).dinoLayer())
	}
	n.norm = base.layerNorm("layernorm", c.Hidden)
	if c.Head != model.HeadNone {
		n.classifier = top.imageClassifier(2 * c.Hidden)
	}
	return n
}

// maskToken is a parameter that a classifier leaves alone. It is listed after
// the class token.
func (b *builder) maskToken(name string) {
	r := b.run
	b.weight(name, 1, int64(r.job.Model.Hidden))
	last := len(r.params) - 1
	r.params = slices.Insert(r.params[:last], 1, r.params[last])
}

// imageClassifier is the Linear that classifies images.
func (b *builder) imageClassifier(width int) *linear {
	c := b.run.job.Model
	if c.NumLabels == 0 {
		b.run.fail(errNoLabels)
		return nil
	}
	return b.headLinear("classifier", width, c.NumLabels, true)
}

func (n *dinov2) loss(r *run, in *batch) *eager.Tensor {
	m := r.machine
	x := n.embed.forward(r, in.pixels)
	h := r.layers(n.layers, x, func(i int) shared { return shared{layer: i} })
	states := n.norm.forward(r, h)
	eager.Drop(x, h)
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	class := m.Select(states, 1)
	patches := m.Narrow(states, 1, states.Size(1)-1)
	mean := m.MeanOver(patches, 1)
	both := m.Cat(1, class, mean)
	mean.Drop()
	logits := n.classifier.forward(r, both)
	loss := classLoss(r, logits, in.labels)
	r.output(logits)
	eager.Drop(class, patches, both, logits, states)
	return loss
}

// dinoLayer is Dinov2Layer: each part is scaled before it is added.
type dinoLayer struct {
	attention      *dinoAttention
	first, second  *layerNorm
	scale1, scale2 *eager.Tensor
	up, down       *linear
	gated          bool
	act            string
	label1, label2 ledger.Name
}

func (b *builder) dinoLayer() *dinoLayer {
	c := b.run.job.Model
	l := &dinoLayer{act: c.Activation, gated: c.Dino.SwiGLU, label1: b.label("layer_scale1"), label2: b.label("layer_scale2")}
	l.first = b.layerNorm("norm1", c.Hidden)
	l.attention = b.dinoAttention("attention")
	l.scale1 = b.weight("layer_scale1.lambda1", int64(c.Hidden))
	l.second = b.layerNorm("norm2", c.Hidden)
	if l.gated {
		l.up = b.linear("mlp.weights_in", c.Hidden, 2*c.Intermediate, true)
		l.down = b.linear("mlp.weights_out", c.Intermediate, c.Hidden, true)
	} else {
		l.up = b.linear("mlp.fc1", c.Hidden, c.Intermediate, true)
		l.down = b.linear("mlp.fc2", c.Intermediate, c.Hidden, true)
	}
	l.scale2 = b.weight("layer_scale2.lambda1", int64(c.Hidden))
	return l
}

func (l *dinoLayer) forward(r *run, x *eager.Tensor, _ *shared) *eager.Tensor {
	m := r.machine
	n := l.first.forward(r, x)
	a := l.attention.forward(r, n)
	a = replace(a, m.Mul(a, l.scale1))
	h := m.Add(a, x)
	f := l.second.forward(r, h)
	f = replace(f, l.mlp(r, f))
	f = replace(f, m.Mul(f, l.scale2))
	y := m.Add(f, h)
	eager.Drop(f, h, n, a)
	return y
}

func (l *dinoLayer) mlp(r *run, x *eager.Tensor) *eager.Tensor {
	h := l.up.forward(r, x)
	if !l.gated {
		h = replace(h, activate(r, l.act, h))
		return replace(h, l.down.forward(r, h))
	}
	p := gateHalves(r, h, "silu")
	y := l.down.forward(r, p)
	eager.Drop(h, p)
	return y
}

// dinoAttention is Dinov2Attention.
type dinoAttention struct {
	label      ledger.Name
	q, k, v, o *linear
	headDim    int64
	dropout    float64
	residual   float64
}

func (b *builder) dinoAttention(name string) *dinoAttention {
	c := b.run.job.Model
	in := b.in(name)
	a := &dinoAttention{label: b.label(name), headDim: int64(c.HeadDim), dropout: c.AttentionDropout, residual: c.ResidualDropout}
	a.q = in.linear("attention.query", c.Hidden, c.Hidden, c.QKVBias)
	a.k = in.linear("attention.key", c.Hidden, c.Hidden, c.QKVBias)
	a.v = in.linear("attention.value", c.Hidden, c.Hidden, c.QKVBias)
	a.o = in.linear("output.dense", c.Hidden, c.Hidden, true)
	return a
}

func (a *dinoAttention) forward(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(a.label)
	defer m.Enter(before)
	k := inHeads(r, a.k, x, a.headDim)
	v := inHeads(r, a.v, x, a.headDim)
	q := inHeads(r, a.q, x, a.headDim)
	out, weights := attend(r, attention{q: q, k: k, v: v, dropout: r.dropout(a.dropout), bidirectional: true, style: eagerPlain})
	flat := m.Reshape(out, x.Size(0), x.Size(1), -1)
	eager.Drop(out, k, v, q)
	y := a.o.forward(r, flat)
	y = replace(y, m.Dropout(y, a.residual, r.trains))
	eager.Drop(flat, weights)
	return y
}

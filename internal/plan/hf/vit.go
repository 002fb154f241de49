package hf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

var errNoLabels = errors.New("num_labels is 0: a classifier needs labels to train with")

// vit is ViTForImageClassification.
type vit struct {
	embed      *vitEmbeddings
	layers     []layer
	norm       *layerNorm
	classifier *linear // nil without labels
}

func newViT(r *run) network {
	c := r.job.Model
	n := &vit{}
	top, base := r.builders("vit")
	n.embed = base.vitEmbeddings("embeddings")
	for i := range c.Layers {
		n.layers = append(n.layers, base.vitLayer(fmt.Sprintf("layers.%d", i)))
	}
	n.norm = base.layerNorm("layernorm", c.Hidden)
	switch {
	case c.Head == model.HeadNone:
		base.linear("pooler.dense", c.Hidden, c.ViT.PoolerSize, true)
	case c.NumLabels > 0:
		n.classifier = top.linear("classifier", c.Hidden, c.NumLabels, true)
		r.linears = r.linears[:len(r.linears)-1]
	default:
		r.fail(errNoLabels)
	}
	return n
}

func (n *vit) loss(r *run, in *batch) *eager.Tensor {
	m := r.machine
	x := n.embed.forward(r, in.pixels)
	mask := bidirectionalMask(r, maskArgs{x: x}, 0)
	h := r.layers(n.layers, x, func(i int) shared { return shared{mask: mask, layer: i} })
	states := n.norm.forward(r, h)
	eager.Drop(x, mask, h)
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	pooled := m.Select(states, 1)
	logits := pooled.Keep()
	if n.classifier != nil {
		logits = replace(logits, n.classifier.forward(r, pooled))
	}
	flat := m.View(logits, -1, logits.Size(1))
	loss := m.CrossEntropy(flat, in.labels)
	r.output(logits)
	eager.Drop(flat, pooled, states, logits)
	return loss
}

// vitEmbeddings is ViTEmbeddings: patches by a convolution, a token for the
// class, and positions.
type vitEmbeddings struct {
	label           ledger.Name
	class, position *eager.Tensor
	weight, bias    *eager.Tensor
	dropout         float64
}

func (b *builder) vitEmbeddings(name string) *vitEmbeddings {
	c := b.run.job.Model
	v := c.ViT
	in := b.in(name)
	e := &vitEmbeddings{label: b.label(name), dropout: c.EmbeddingDropout}
	e.class = in.weight("cls_token", 1, 1, int64(c.Hidden))
	patches := in.in("patch_embeddings.projection")
	e.weight = patches.weight("weight", int64(c.Hidden), int64(v.Channels), int64(v.PatchHeight), int64(v.PatchWidth))
	e.bias = patches.weight("bias", int64(c.Hidden))
	e.position = in.weight("position_embeddings", 1, int64(v.Tokens()), int64(c.Hidden))
	// The parameters of the module itself are listed before those of its parts.
	p := b.run.params
	last := len(p) - 1
	own := p[last]
	b.run.params = slices.Insert(p[:last], last-2, own)
	return e
}

func (e *vitEmbeddings) forward(r *run, pixels *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(e.label)
	defer m.Enter(before)
	batch, width := pixels.Size(0), e.class.Size(2)
	y := m.PatchConv(pixels, e.weight, e.bias)
	flat := m.View(y, batch, width, -1)
	y.Drop()
	h := replace(flat, m.Transpose(flat, 1, 2))
	if r.inputGrad {
		m.RequireGrad(h)
	}
	class := m.Expand(e.class, batch, -1, -1)
	h = replace(h, m.Cat(1, class, h))
	h = replace(h, m.Add(h, e.position))
	h = replace(h, m.Dropout(h, e.dropout, r.trains))
	class.Drop()
	return h
}

// vitLayer is ViTLayer.
type vitLayer struct {
	attention     *vitAttention
	first, second *layerNorm
	up, down      *linear
	act           string
	dropout       float64
}

func (b *builder) vitLayer(name string) *vitLayer {
	c := b.run.job.Model
	in := b.in(name)
	l := &vitLayer{act: c.Activation, dropout: c.ResidualDropout}
	l.attention = in.encoderAttention("attention", "q_proj", "k_proj", "v_proj", "o_proj")
	l.first = in.layerNorm("layernorm_before", c.Hidden)
	l.second = in.layerNorm("layernorm_after", c.Hidden)
	l.up = in.linear("mlp.fc1", c.Hidden, c.Intermediate, true)
	l.down = in.linear("mlp.fc2", c.Intermediate, c.Hidden, true)
	return l
}

func (l *vitLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	m := r.machine
	h := l.first.forward(r, x)
	a, weights := l.attention.forward(r, h, c)
	defer weights.Drop()
	h = replace(h, a)
	h = replace(h, m.Dropout(h, l.dropout, r.trains))
	h = replace(h, m.Add(h, x))
	residual := h.Keep()
	h = replace(h, l.second.forward(r, h))
	f := l.up.forward(r, h)
	f = replace(f, activate(r, l.act, f))
	f = replace(f, l.down.forward(r, f))
	h = replace(h, f)
	h = replace(h, m.Dropout(h, l.dropout, r.trains))
	h = replace(h, m.Add(h, residual))
	residual.Drop()
	return h
}

// vitAttention is ViTAttention.
type vitAttention struct {
	label      ledger.Name
	q, k, v, o *linear
	headDim    int64
	dropout    float64
	style      eagerStyle
}

// encoderAttention makes the attention of an encoder, whose Linears each family
// names in its own way.
func (b *builder) encoderAttention(name, q, k, v, o string) *vitAttention {
	c := b.run.job.Model
	in := b.in(name)
	width := c.Heads * c.HeadDim
	a := &vitAttention{label: b.label(name), headDim: int64(c.HeadDim), dropout: c.AttentionDropout}
	a.q = in.linear(q, c.Hidden, width, c.QKVBias)
	a.k = in.linear(k, c.Hidden, width, c.QKVBias)
	a.v = in.linear(v, c.Hidden, width, c.QKVBias)
	a.o = in.linear(o, width, c.Hidden, true)
	return a
}

func (a *vitAttention) forward(r *run, x *eager.Tensor, c *shared) (y, weights *eager.Tensor) {
	m := r.machine
	before := m.Enter(a.label)
	defer m.Enter(before)
	q := inHeads(r, a.q, x, a.headDim)
	k := inHeads(r, a.k, x, a.headDim)
	v := inHeads(r, a.v, x, a.headDim)
	out, weights := attend(r, attention{
		q: q, k: k, v: v, mask: c.mask, dropout: r.dropout(a.dropout), bidirectional: true, style: a.style,
	})
	flat := m.Reshape(out, x.Size(0), x.Size(1), -1)
	out.Drop()
	flat = replace(flat, m.Contiguous(flat))
	y = replace(flat, a.o.forward(r, flat))
	eager.Drop(q, k, v)
	return y, weights
}

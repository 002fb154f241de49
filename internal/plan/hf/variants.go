package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
)

// newVariant makes a decoder that differs from llama in a step or two.
func newVariant(r *run) network {
	c := r.job.Model
	d := &decoder{}
	inside, embed, norm := insideName(c), "embed_tokens", "norm"
	if c.Family == "gpt_neox" {
		inside, embed, norm = "gpt_neox", "embed_in", "final_layer_norm"
	}
	top := &builder{run: r}
	base := top.in(inside)
	if c.Family == "gemma" {
		d.embed = base.scaledEmbedding(embed, c.Vocab, c.Hidden)
	} else {
		d.embed = base.embedding(embed, c.Vocab, c.Hidden)
	}
	d.embed.times = c.Family == "granite"
	d.dropout = c.EmbeddingDropout
	for i := range c.Layers {
		d.layers = append(d.layers, base.in(fmt.Sprintf("layers.%d", i)).variantLayer(i))
	}
	d.norm = base.variantNorm(norm)
	d.rotary = base.rotary("rotary_emb", c.Rope.Dim)
	d.rotary.wide = c.Family == "olmo2"
	d.head, d.tail = top.head(d.embed), top.decoderTail()
	return d
}

// variantNorm is the norm of the residual stream.
func (b *builder) variantNorm(name string) normer {
	c := b.run.job.Model
	switch c.Family {
	case "gemma":
		return b.centredNorm(name, c.Hidden)
	case "cohere2":
		return b.widenedNorm(name, c.Hidden)
	case "starcoder2", "gpt_neox":
		return b.layerNorm(name, c.Hidden)
	}
	return b.rmsNorm(name, c.Hidden)
}

func (b *builder) variantLayer(i int) layer {
	c := b.run.job.Model
	if c.Family == "gpt_neox" {
		l := &neoxLayer{parallel: c.ParallelResidual, dropout: c.ResidualDropout}
		l.input, l.middle = b.variantNorm("input_layernorm"), b.variantNorm("post_attention_layernorm")
		l.attention = b.variantAttention("attention", i)
		l.mlp = b.plainMLP("mlp", "dense_h_to_4h", "dense_4h_to_h", 0)
		return l
	}
	attention := b.variantAttention("self_attn", i)
	mlp := b.variantMLP("mlp")
	switch c.Family {
	case "olmo2":
		l := &postNormLayer{attention: attention, mlp: mlp}
		l.attended, l.mixed = b.variantNorm("post_attention_layernorm"), b.variantNorm("post_feedforward_layernorm")
		return l
	case "cohere2":
		return &sideBySideLayer{attention: attention, mlp: mlp, input: b.variantNorm("input_layernorm")}
	case "glm4":
		l := &gemmaLayer{attention: attention, mlp: mlp}
		l.input, l.middle = b.variantNorm("input_layernorm"), b.variantNorm("post_attention_layernorm")
		l.attended, l.mixed = b.variantNorm("post_self_attn_layernorm"), b.variantNorm("post_mlp_layernorm")
		return l
	}
	l := &llamaLayer{attention: attention, mlp: mlp, scaled: c.Family == "granite"}
	if c.Family == "phi3" {
		l.dropout = c.ResidualDropout
	}
	l.input, l.middle = b.variantNorm("input_layernorm"), b.variantNorm("post_attention_layernorm")
	return l
}

func (b *builder) variantMLP(name string) feedForward {
	c := b.run.job.Model
	switch c.Family {
	case "phi3", "glm4":
		return b.joinedMLP(name)
	case "starcoder2":
		return b.plainMLP(name, "c_fc", "c_proj", c.ResidualDropout)
	}
	return b.gatedMLP(name, c.Hidden, c.Intermediate, c.MLPBias, c.Activation)
}

func (b *builder) variantAttention(name string, i int) *llamaAttention {
	c := b.run.job.Model
	in := b.in(name)
	width := c.Heads * c.HeadDim
	a := &llamaAttention{label: b.label(name), headDim: int64(c.HeadDim), dropout: c.AttentionDropout, rotate: applyRotary, attend: attend}
	switch c.Family {
	case "phi3":
		a.o = in.linear("o_proj", width, c.Hidden, false)
		a.joined = in.joinedHeads("qkv_proj", headsSliced)
		a.rotate = rotateFirst
		return a
	case "gpt_neox":
		a.joined = in.joinedHeads("query_key_value", headsByHead)
		a.o = in.linear("dense", width, c.Hidden, c.OutBias)
		a.rotate = rotateParts
		return a
	}
	a = b.llamaAttention(name)
	switch c.Family {
	case "gemma":
		a.attend = func(r *run, call attention) (out, weights *eager.Tensor) {
			call.bidirectional = c.Bidirectional
			return attend(r, call)
		}
	case "olmo2":
		a.qNorm, a.kNorm = in.rmsNorm("q_norm", width), in.rmsNorm("k_norm", c.KVHeads*c.HeadDim)
		a.normAt, a.late = normBefore, true
		a.rotate = rotateWide
	case "glm4":
		a.rotate = rotatePairParts
	case "cohere2":
		a.rotate = rotatePairsWide
	case "starcoder2":
		a.residual = c.ResidualDropout
	}
	if c.NoRope != nil && c.NoRope[i] {
		a.rotate = nil
	}
	return a
}

// postNormLayer is Olmo2DecoderLayer: norms after attention and the MLP alone.
type postNormLayer struct {
	attention       *llamaAttention
	mlp             feedForward
	attended, mixed normer
}

func (l *postNormLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	m := r.machine
	h, weights := l.attention.forward(r, x, c)
	h = replace(h, l.attended.forward(r, h))
	h = replace(h, m.Add(x, h))
	residual := h.Keep()
	h = replace(h, l.mlp.forward(r, h))
	h = replace(h, l.mixed.forward(r, h))
	h = replace(h, m.Add(residual, h))
	eager.Drop(residual, weights)
	return h
}

// sideBySideLayer is Cohere2DecoderLayer: attention and the MLP read the same
// norm.
type sideBySideLayer struct {
	attention *llamaAttention
	mlp       feedForward
	input     normer
}

func (l *sideBySideLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	m := r.machine
	h := l.input.forward(r, x)
	a, weights := l.attention.forward(r, h, c)
	f := l.mlp.forward(r, h)
	sum := m.Add(x, a)
	y := m.Add(sum, f)
	sum.Drop()
	eager.Drop(h, a, weights, f)
	return y
}

// neoxLayer is GPTNeoXLayer.
type neoxLayer struct {
	attention     *llamaAttention
	mlp           feedForward
	input, middle normer
	parallel      bool // both parts read the layer's input
	dropout       float64
}

func (l *neoxLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	m := r.machine
	n := l.input.forward(r, x)
	a, weights := l.attention.forward(r, n, c)
	n.Drop()
	a = replace(a, m.Dropout(a, l.dropout, r.trains))
	from := x
	if !l.parallel {
		a = replace(a, m.Add(a, x))
		from = a
	}
	n = l.middle.forward(r, from)
	f := l.mlp.forward(r, n)
	n.Drop()
	f = replace(f, m.Dropout(f, l.dropout, r.trains))
	y := m.Add(f, a)
	if l.parallel {
		y = replace(y, m.Add(y, x))
	}
	eager.Drop(a, weights, f)
	return y
}

// plainMLP is an MLP without gates: Starcoder2MLP, GPTNeoXMLP.
type plainMLP struct {
	up, down *linear
	act      string
	dropout  float64
}

func (b *builder) plainMLP(name, up, down string, dropout float64) *plainMLP {
	c := b.run.job.Model
	in := b.in(name)
	return &plainMLP{
		up: in.linear(up, c.Hidden, c.Intermediate, c.MLPBias), down: in.linear(down, c.Intermediate, c.Hidden, c.MLPBias),
		act: c.Activation, dropout: dropout,
	}
}

func (l *plainMLP) forward(r *run, x *eager.Tensor) *eager.Tensor {
	h := l.up.forward(r, x)
	h = replace(h, activate(r, l.act, h))
	h = replace(h, l.down.forward(r, h))
	return replace(h, r.machine.Dropout(h, l.dropout, r.trains))
}

// joinedMLP is Phi3MLP and Glm4MLP: gates and values come from one projection.
type joinedMLP struct {
	gateUp, down *linear
	act          string
}

func (b *builder) joinedMLP(name string) *joinedMLP {
	c := b.run.job.Model
	in := b.in(name)
	return &joinedMLP{
		gateUp: in.linear("gate_up_proj", c.Hidden, 2*c.Intermediate, false),
		down:   in.linear("down_proj", c.Intermediate, c.Hidden, false), act: c.Activation,
	}
}

func (l *joinedMLP) forward(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	both := l.gateUp.forward(r, x)
	half := both.Size(-1) / 2
	parts := m.Split(both, -1, half, half)
	both.Drop()
	gate, up := parts[0], parts[1]
	g := activate(r, l.act, gate)
	up = replace(up, m.Mul(up, g))
	g.Drop()
	y := l.down.forward(r, up)
	eager.Drop(up, gate)
	return y
}

// joinedHeads is one projection of queries, keys and values.
type joinedHeads struct {
	all     *linear
	q, kv   int64
	headDim int64
	order   headOrder
}

// headOrder is how queries, keys and values lie in what they are parts of.
type headOrder uint8

const (
	headsSliced headOrder = iota // all queries, all keys, all values: slices (phi3)
	headsByHead                  // the three of a head side by side (gpt_neox)
	headsApart                   // as sliced, but taken out of a dimension of three (modernbert)
)

func (b *builder) joinedHeads(name string, order headOrder) *joinedHeads {
	c := b.run.job.Model
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	return &joinedHeads{
		all: b.linear(name, c.Hidden, q+2*kv, c.QKVBias), order: order, q: int64(q), kv: int64(kv), headDim: int64(c.HeadDim),
	}
}

func (j *joinedHeads) forward(r *run, x *eager.Tensor) (q, k, v, joined *eager.Tensor) {
	m := r.machine
	p := j.all.forward(r, x)
	switch j.order {
	case headsApart:
		joined = replace(p, m.View(p, x.Size(0), x.Size(1), 3, -1, j.headDim))
		parts := m.Unbind(joined, 2)
		for i, t := range parts {
			parts[i] = replace(t, m.Transpose(t, 1, 2))
		}
		return parts[0], parts[1], parts[2], joined
	case headsByHead:
		h := m.View(p, x.Size(0), x.Size(1), -1, 3*j.headDim)
		p.Drop()
		joined = replace(h, m.Transpose(h, 1, 2))
		parts := m.Split(joined, -1, j.headDim, j.headDim, j.headDim)
		return parts[0], parts[1], parts[2], joined
	}
	part := func(width int64) *eager.Tensor { return m.Slice(p, -1, width) }
	q, k, v = part(j.q), part(j.kv), part(j.kv)
	for _, t := range []**eager.Tensor{&q, &k, &v} {
		h := replace(*t, m.View(*t, x.Size(0), x.Size(1), -1, j.headDim))
		*t = replace(h, m.Transpose(h, 1, 2))
	}
	return q, k, v, p
}

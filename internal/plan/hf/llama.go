package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
)

// llamaLayer is LlamaDecoderLayer.
type llamaLayer struct {
	attention     mixer
	mlp           feedForward
	input, middle normer
	dropout       float64 // of what is added to the residual stream (phi3)
	scaled        bool    // it is multiplied with a number (granite)
}

// mixer is a layer's attention: its output, and the probabilities, which may be
// nil.
type mixer interface {
	forward(r *run, x *eager.Tensor, c *shared) (y, weights *eager.Tensor)
}

// feedForward is what comes after attention.
type feedForward interface {
	forward(r *run, x *eager.Tensor) *eager.Tensor
}

// scorer is a feedForward that returns the weights of the experts as well.
type scorer interface {
	scored(r *run, x *eager.Tensor) (y, scores *eager.Tensor)
}

func newLlama(r *run) network {
	c := r.job.Model
	d := &decoder{}
	top := &builder{run: r}
	base := top.in(insideName(r.job.Model))
	d.embed = base.embedding("embed_tokens", c.Vocab, c.Hidden)
	for i := range c.Layers {
		b := base.in(fmt.Sprintf("layers.%d", i))
		l := &llamaLayer{}
		l.attention = b.mixer("self_attn")
		l.mlp = b.feedForward("mlp", i)
		l.input = b.rmsNorm("input_layernorm", c.Hidden)
		l.middle = b.rmsNorm("post_attention_layernorm", c.Hidden)
		d.layers = append(d.layers, l)
	}
	d.norm = base.rmsNorm("norm", c.Hidden)
	d.rotary = base.rotary("rotary_emb", c.Rope.Dim)
	switch c.Family {
	case "deepseek_v2":
		d.rotary.style = ropeComplex
	case "gpt_oss":
		d.rotary.style = ropeOnce
	}
	d.head, d.tail = top.head(d.embed), top.decoderTail()
	return d
}

// mixer makes the attention of a family whose layers are otherwise llama's.
func (b *builder) mixer(name string) mixer {
	c := b.run.job.Model
	switch {
	case c.MLA != nil:
		return b.mla(name)
	case c.Family == "gpt_oss":
		return b.sinkAttention(name)
	}
	return b.llamaAttention(name)
}

func (b *builder) llamaAttention(name string) *llamaAttention {
	c := b.run.job.Model
	a := b.in(name)
	out := &llamaAttention{
		label: b.label(name), headDim: int64(c.HeadDim), dropout: c.AttentionDropout,
		rotate: applyRotary, attend: attend,
	}
	out.q = a.linear("q_proj", c.Hidden, c.Heads*c.HeadDim, c.QKVBias)
	out.k = a.linear("k_proj", c.Hidden, c.KVHeads*c.HeadDim, c.QKVBias)
	out.v = a.linear("v_proj", c.Hidden, c.KVHeads*c.HeadDim, c.QKVBias)
	out.o = a.linear("o_proj", c.Heads*c.HeadDim, c.Hidden, c.OutBias)
	if c.Family == "qwen3" || c.Family == "qwen3_moe" {
		out.qNorm = a.rmsNorm("q_norm", c.HeadDim)
		out.kNorm = a.rmsNorm("k_norm", c.HeadDim)
	}
	return out
}

func (l *llamaLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	n := r.gather(l.input.forward(r, x))
	a, weights := l.attention.forward(r, n, c)
	defer func() { weights.Drop() }()
	n.Drop()
	a = r.scatter(a)
	h := l.sum(r, x, a)
	a.Drop()
	n = r.gather(l.middle.forward(r, h))
	var f *eager.Tensor
	if s, ok := l.mlp.(scorer); ok {
		var scores *eager.Tensor
		f, scores = s.scored(r, n)
		n = replace(n, nil)                // names are bound from the left
		weights = replace(weights, scores) // Python has one name for both
	} else {
		f = l.mlp.forward(r, n)
	}
	f = r.scatter(f)
	n.Drop()
	y := l.sum(r, h, f)
	eager.Drop(f, h)
	return y
}

// sum adds what a part of the layer made to the residual stream.
func (l *llamaLayer) sum(r *run, x, y *eager.Tensor) *eager.Tensor {
	m := r.machine
	part := m.Dropout(y, l.dropout, r.trains)
	if l.scaled {
		part = replace(part, m.Scale(part))
	}
	defer part.Drop()
	return m.Add(x, part)
}

// gatedMLP is LlamaMLP.
type gatedMLP struct {
	gate, up, down *linear
	act            string
}

func (b *builder) gatedMLP(name string, hidden, width int, bias bool, act string) *gatedMLP {
	c := b.in(name)
	return &gatedMLP{
		gate: c.linear("gate_proj", hidden, width, bias),
		up:   c.linear("up_proj", hidden, width, bias),
		down: c.linear("down_proj", width, hidden, bias),
		act:  act,
	}
}

func (l *gatedMLP) forward(r *run, x *eager.Tensor) *eager.Tensor {
	g := l.gate.forward(r, x)
	a := activate(r, l.act, g)
	g.Drop()
	u := l.up.forward(r, x)
	p := r.machine.Mul(a, u)
	eager.Drop(a, u)
	y := l.down.forward(r, p)
	p.Drop()
	return y
}

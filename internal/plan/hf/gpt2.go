package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// gpt2 is GPT2LMHeadModel.
type gpt2 struct {
	tokens, positions *embedding
	dropout           float64
	layers            []layer
	norm              *layerNorm
	head              *linear
	tail              tail
}

func newGPT2(r *run) network {
	c := r.job.Model
	g := &gpt2{dropout: c.EmbeddingDropout}
	top, base := r.builders("transformer")
	g.tokens = base.embedding("wte", c.Vocab, c.Hidden)
	g.positions = base.embedding("wpe", c.MaxPositions, c.Hidden)
	for i := range c.Layers {
		g.layers = append(g.layers, base.gpt2Block(fmt.Sprintf("h.%d", i)))
	}
	g.norm = base.layerNorm("ln_f", c.Hidden)
	g.head, g.tail = top.head(g.tokens), top.decoderTail()
	return g
}

func (g *gpt2) loss(r *run, in *batch) *eager.Tensor { return causalLM(r, g, g.tail, in) }

func (g *gpt2) logits(r *run, h *eager.Tensor) *eager.Tensor { return g.head.forward(r, h) }

// base is GPT2Model: the last hidden state.
func (g *gpt2) base(r *run, in *batch) *eager.Tensor {
	m := r.machine
	x := g.tokens.forward(r, in.ids)
	ids := in.positionIDs(r)
	p := g.positions.forward(r, ids)
	h := m.Add(x, p)
	mask := causalMask(r, maskArgs{x: x, attention: in.mask, positions: ids, cache: in.cache}, 0)
	h = replace(h, m.Dropout(h, g.dropout, r.trains))
	h = r.through(g.layers, h, func(i int) shared {
		return shared{mask: mask, positions: ids, cache: in.cache, layer: i}
	})
	h = replace(h, r.last(g.norm, h))
	eager.Drop(ids, x, p, mask)
	return h
}

// gpt2Block is GPT2Block.
type gpt2Block struct {
	first, second *layerNorm
	attention     *gpt2Attention
	mlp           *gpt2MLP
}

func (b *builder) gpt2Block(name string) *gpt2Block {
	c := b.run.job.Model
	in := b.in(name)
	l := &gpt2Block{}
	l.first = in.layerNorm("ln_1", c.Hidden)
	l.attention = in.gpt2Attention("attn")
	l.second = in.layerNorm("ln_2", c.Hidden)
	l.mlp = in.gpt2MLP("mlp")
	return l
}

func (l *gpt2Block) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	m := r.machine
	n := l.first.forward(r, x)
	a, weights := l.attention.forward(r, n, c)
	h := replace(n, m.Add(a, x))
	n = l.second.forward(r, h)
	f := l.mlp.forward(r, n)
	y := replace(n, m.Add(h, f))
	eager.Drop(h, a, weights, f)
	return y
}

// gpt2Attention is GPT2Attention: one projection for queries, keys and values.
type gpt2Attention struct {
	label             ledger.Name
	qkv, out          *linear
	width, headDim    int64
	dropout, residual float64
}

func (b *builder) gpt2Attention(name string) *gpt2Attention {
	c := b.run.job.Model
	in := b.in(name)
	return &gpt2Attention{
		label: b.label(name), width: int64(c.Heads * c.HeadDim), headDim: int64(c.HeadDim),
		qkv: in.conv1D("c_attn", c.Hidden, 3*c.Heads*c.HeadDim), out: in.conv1D("c_proj", c.Heads*c.HeadDim, c.Hidden),
		dropout: c.AttentionDropout, residual: c.ResidualDropout,
	}
}

func (a *gpt2Attention) forward(r *run, x *eager.Tensor, c *shared) (y, weights *eager.Tensor) {
	m := r.machine
	before := m.Enter(a.label)
	defer m.Enter(before)
	joined := a.qkv.forward(r, x)
	parts := m.Split(joined, 2, a.width, a.width, a.width)
	joined.Drop()
	heads := func(i int) {
		v := m.View(parts[i], x.Size(0), x.Size(1), -1, a.headDim)
		t := m.Transpose(v, 1, 2)
		v.Drop()
		parts[i].Drop()
		parts[i] = t
	}
	heads(1)
	heads(2)
	heads(0)
	if c.cache != nil {
		k, v := c.cache.update(r, c.layer, parts[1], parts[2])
		eager.Drop(parts[1], parts[2])
		parts[1], parts[2] = k, v
	}
	out, weights := attend(r, attention{
		q: parts[0], k: parts[1], v: parts[2], mask: c.mask,
		dropout: r.dropout(a.dropout), style: eagerGPT2,
	})
	flat := m.Reshape(out, x.Size(0), x.Size(1), -1)
	out.Drop()
	flat = replace(flat, m.Contiguous(flat))
	y = a.out.forward(r, flat)
	flat.Drop()
	y = replace(y, m.Dropout(y, a.residual, r.trains))
	eager.Drop(parts...)
	return y, weights
}

// gpt2MLP is GPT2MLP.
type gpt2MLP struct {
	up, down *linear
	act      string
	dropout  float64
}

func (b *builder) gpt2MLP(name string) *gpt2MLP {
	c := b.run.job.Model
	in := b.in(name)
	return &gpt2MLP{
		up: in.conv1D("c_fc", c.Hidden, c.Intermediate), down: in.conv1D("c_proj", c.Intermediate, c.Hidden),
		act: c.Activation, dropout: c.ResidualDropout,
	}
}

func (l *gpt2MLP) forward(r *run, x *eager.Tensor) *eager.Tensor {
	h := l.up.forward(r, x)
	h = replace(h, activate(r, l.act, h))
	h = replace(h, l.down.forward(r, h))
	return replace(h, r.machine.Dropout(h, l.dropout, r.trains))
}

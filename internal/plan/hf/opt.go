package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
)

// opt is OPTForCausalLM: learned positions that follow from the mask.
type opt struct {
	embed, positions *embedding
	in, out          *linear // between the width of the embeddings and the model's; nil where they are the same
	norm             normer  // nil without one
	layers           []layer
	head             *linear
	tail             tail
}

func newOPT(r *run) network {
	c := r.job.Model
	o := &opt{}
	top := &builder{run: r}
	base := top.in("model.decoder")
	o.embed = base.embedding("embed_tokens", c.Vocab, c.WordDim)
	o.positions = base.embedding("embed_positions", c.MaxPositions+2, c.Hidden)
	if c.WordDim != c.Hidden {
		o.out = base.linear("project_out", c.Hidden, c.WordDim, false)
		o.in = base.linear("project_in", c.WordDim, c.Hidden, false)
	}
	if !c.NoFinalNorm {
		o.norm = base.layerNorm("final_layer_norm", c.Hidden)
	}
	for i := range c.Layers {
		o.layers = append(o.layers, base.in(fmt.Sprintf("layers.%d", i)).optLayer())
	}
	o.head, o.tail = top.head(o.embed), top.decoderTail()
	return o
}

func (o *opt) loss(r *run, in *batch) *eager.Tensor { return causalLM(r, o, o.tail, in) }

func (o *opt) logits(r *run, h *eager.Tensor) *eager.Tensor { return o.head.forward(r, h) }

// base is OPTDecoder. A mask of ones stands in for one that is not given.
func (o *opt) base(r *run, in *batch) *eager.Tensor {
	m := r.machine
	x := o.embed.forward(r, in.ids)
	rows, seen := x.Size(1), int64(0)
	if in.cache != nil {
		seen = in.cache.layers[0].seen
	}
	var seenTokens *eager.Tensor
	if in.mask != nil {
		seenTokens = in.mask.Keep()
	} else {
		seenTokens = m.Empty("ones", eager.Float32, x.Size(0), seen+rows)
	}
	ids := o.positionIDs(r, in, seenTokens, rows)
	mask := causalMask(r, maskArgs{x: x, attention: seenTokens, cache: in.cache}, 0)
	moved := m.Unary("add", ids)
	p := o.positions.forward(r, moved)
	moved.Drop()
	if o.in != nil {
		x = replace(x, o.in.forward(r, x))
	}
	h := r.through(o.layers, m.Add(x, p), func(i int) shared {
		return shared{mask: mask, positions: ids, cache: in.cache, layer: i}
	})
	if o.norm != nil {
		h = replace(h, r.last(o.norm, h))
	}
	if o.out != nil {
		h = replace(h, o.out.forward(r, h))
	}
	eager.Drop(seenTokens, x, ids, mask, p)
	return h
}

// positionIDs counts the tokens that the mask lets be seen.
func (o *opt) positionIDs(r *run, in *batch, mask *eager.Tensor, rows int64) *eager.Tensor {
	if in.positions != nil {
		return in.positions.Keep()
	}
	m := r.machine
	var sum *eager.Tensor
	if mask.Size(0) == 1 {
		sum = m.Cumsum(mask)
	} else {
		sum = m.CumSum(mask, 1)
	}
	t := m.Binary("mul", sum, mask)
	t = replace(t, m.Unary("sub", t))
	t = replace(t, m.To(t, eager.Int64))
	sum.Drop()
	return replace(t, m.Slice(t, 1, rows))
}

// optLayer is OPTDecoderLayer.
type optLayer struct {
	attention     *llamaAttention
	first, second normer
	up, down      *linear
	act           string
	dropout       float64
	after         bool // norms come after the parts of the layer
}

func (b *builder) optLayer() *optLayer {
	c := b.run.job.Model
	l := &optLayer{act: c.Activation, dropout: c.ResidualDropout, after: c.PostNorm}
	l.attention = b.optAttention("self_attn")
	l.first = b.layerNorm("self_attn_layer_norm", c.Hidden)
	l.up = b.linear("fc1", c.Hidden, c.Intermediate, c.MLPBias)
	l.down = b.linear("fc2", c.Intermediate, c.Hidden, c.MLPBias)
	l.second = b.layerNorm("final_layer_norm", c.Hidden)
	return l
}

func (b *builder) optAttention(name string) *llamaAttention {
	c := b.run.job.Model
	in := b.in(name)
	a := &llamaAttention{label: b.label(name), headDim: int64(c.HeadDim), dropout: c.AttentionDropout, attend: attend, scaled: true}
	width := c.Heads * c.HeadDim
	a.k = in.linear("k_proj", c.Hidden, width, c.QKVBias)
	a.v = in.linear("v_proj", c.Hidden, width, c.QKVBias)
	a.q = in.linear("q_proj", c.Hidden, width, c.QKVBias)
	a.o = in.linear("out_proj", width, c.Hidden, c.OutBias)
	return a
}

func (l *optLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	m := r.machine
	n := x.Keep()
	if !l.after {
		n = replace(n, l.first.forward(r, x))
	}
	h, weights := l.attention.forward(r, n, c)
	n.Drop()
	h = replace(h, m.Dropout(h, l.dropout, r.trains))
	h = replace(h, m.Add(x, h))
	if l.after {
		h = replace(h, l.first.forward(r, h))
	}
	h = replace(h, m.Reshape(h, -1, h.Size(-1)))
	residual := h.Keep()
	if !l.after {
		h = replace(h, l.second.forward(r, h))
	}
	h = replace(h, l.up.forward(r, h))
	h = replace(h, activate(r, l.act, h))
	h = replace(h, l.down.forward(r, h))
	h = replace(h, m.Dropout(h, l.dropout, r.trains))
	sum := m.Add(residual, h)
	h = replace(h, replace(sum, m.View(sum, x.Shape()...)))
	if l.after {
		h = replace(h, l.second.forward(r, h))
	}
	eager.Drop(residual, weights)
	return h
}

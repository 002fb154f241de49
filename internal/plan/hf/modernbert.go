package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// modernBert is ModernBertForMaskedLM, and with another head in its place.
type modernBert struct {
	words       *embedding
	norm, final *layerNorm
	dropout     float64
	layers      []layer
	tables      []*rotary // of full layers, and of sliding ones
	head        *maskedHead
	tail        tail
}

func newModernBert(r *run) network {
	c := r.job.Model
	n := &modernBert{dropout: c.EmbeddingDropout}
	top, base := r.builders("model")
	in := base.in("embeddings")
	n.words = in.embedding("tok_embeddings", c.Vocab, c.Hidden)
	n.norm = in.plainNorm("norm", c.Hidden, c.ModernBert.NormBias)
	for i := range c.Layers {
		n.layers = append(n.layers, base.in(fmt.Sprintf("layers.%d", i)).modernLayer(i))
	}
	n.final = base.plainNorm("final_norm", c.Hidden, c.ModernBert.NormBias)
	n.tables = base.rotaries("rotary_emb", c.Rope.Dim, max(c.Rope.Tables, 1))
	if c.Head == model.HeadNone {
		return n
	}
	h := &maskedHead{act: c.ModernBert.ClassifierActivation, wide: true}
	h.dense = top.linear("head.dense", c.Hidden, c.Hidden, c.ModernBert.HeadBias)
	h.norm = top.plainNorm("head.norm", c.Hidden, c.ModernBert.NormBias)
	if c.Head == model.HeadMasked {
		h.decoder = top.tiedDecoder("decoder", n.words, c.ModernBert.DecoderBias)
		n.head = h
		return n
	}
	score := top.headLinear("classifier", c.Hidden, c.NumLabels, true)
	switch c.Head {
	case model.HeadToken:
		n.tail = &tokenScore{before: h.transform, score: score, dropout: c.ClassifierDropout}
	case model.HeadQuestion:
		n.tail = &spanScore{before: h.transform, out: score, dropout: c.ClassifierDropout}
	default:
		n.tail = &pooledScore{pool: &modernPool{head: h, mean: c.ModernBert.MeanPooling}, score: score, dropout: c.ClassifierDropout}
	}
	return n
}

func (n *modernBert) loss(r *run, in *batch) *eager.Tensor {
	m := r.machine
	at := m.Empty("arange", eager.Int64, in.ids.Size(1))
	positions := replace(at, m.Unsqueeze(at, 0))
	x := n.words.forward(r, in.ids)
	x = replace(x, n.norm.forward(r, x))
	x = replace(x, m.Dropout(x, n.dropout, r.trains))
	args := maskArgs{x: x, attention: in.mask}
	full := bidirectionalMask(r, args, 0)
	sliding := bidirectionalMask(r, args, int64(r.job.Model.SlidingWindow))
	turns := ropes{all: n.tables[0].forward(r, x, positions)}
	if len(n.tables) > 1 {
		turns.local = n.tables[1].forward(r, x, positions)
	}
	types := r.job.Model.LayerTypes
	h := r.layers(n.layers, x, func(i int) shared {
		mask := full
		if types[i] == model.SlidingAttention {
			mask = sliding
		}
		return shared{mask: mask, rope: turns.forLayer(types[i]), layer: i}
	})
	h = replace(h, n.final.forward(r, h))
	eager.Drop(positions, full, sliding, x)
	turns.drop()
	if n.tail != nil {
		return scored(r, n.tail, h, in)
	}
	return n.head.loss(r, h, in)
}

// modernPool makes one vector of a sequence: the first state or their mean,
// through the prediction head.
type modernPool struct {
	head *maskedHead
	mean bool
}

func (p *modernPool) forward(r *run, h *eager.Tensor) *eager.Tensor {
	m := r.machine
	var x *eager.Tensor
	if p.mean {
		seen := m.Empty("ones", eager.Bool, h.Size(0), h.Size(1), 1)
		product := m.Mul(h, seen)
		sum := replace(product, m.Sum(product, 1, false))
		count := m.Empty("sum", eager.Int64, h.Size(0), 1)
		x = m.Div(sum, count)
		eager.Drop(sum, count, seen)
	} else {
		x = m.Select(h, 1)
	}
	return replace(x, p.head.transform(r, x))
}

// modernLayer is ModernBertEncoderLayer.
type modernLayer struct {
	first     *layerNorm // nil in the first layer
	second    *layerNorm
	attention *llamaAttention
	mlp       *modernMLP
}

func (b *builder) modernLayer(i int) *modernLayer {
	c := b.run.job.Model
	l := &modernLayer{}
	if i > 0 {
		l.first = b.plainNorm("attn_norm", c.Hidden, c.ModernBert.NormBias)
	}
	in := b.in("attn")
	l.attention = &llamaAttention{
		label: b.label("attn"), headDim: int64(c.HeadDim), dropout: c.AttentionDropout, residual: c.AttentionDropout,
		joined: in.joinedHeads("Wqkv", headsApart), o: in.linear("Wo", c.Heads*c.HeadDim, c.Hidden, c.OutBias), rotate: rotateCopies,
		attend: func(r *run, a attention) (out, weights *eager.Tensor) {
			a.bidirectional = true
			return attend(r, a)
		},
	}
	l.second = b.plainNorm("mlp_norm", c.Hidden, c.ModernBert.NormBias)
	l.mlp = &modernMLP{
		label: b.label("mlp"), in: b.linear("mlp.Wi", c.Hidden, 2*c.Intermediate, c.MLPBias),
		out: b.linear("mlp.Wo", c.Intermediate, c.Hidden, c.MLPBias), act: c.Activation, dropout: c.ResidualDropout,
	}
	return l
}

func (l *modernLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	m := r.machine
	n := x.Keep()
	if l.first != nil {
		n = replace(n, l.first.forward(r, x))
	}
	a, weights := l.attention.forward(r, n, c)
	n.Drop()
	h := m.Add(x, a)
	n = l.second.forward(r, h)
	f := l.mlp.forward(r, n)
	n.Drop()
	y := m.Add(h, f)
	f.Drop()
	eager.Drop(h, a, weights)
	return y
}

// modernMLP is ModernBertMLP.
type modernMLP struct {
	label   ledger.Name
	in, out *linear
	act     string
	dropout float64
}

func (l *modernMLP) forward(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(l.label)
	defer m.Enter(before)
	both := l.in.forward(r, x)
	half := both.Size(-1) / 2
	parts := m.Split(both, -1, half, half)
	both.Drop()
	a := activate(r, l.act, parts[0])
	p := m.Mul(a, parts[1])
	a.Drop()
	p = replace(p, m.Dropout(p, l.dropout, r.trains))
	y := l.out.forward(r, p)
	p.Drop()
	eager.Drop(parts...)
	return y
}

// rotateCopies is modernbert's apply_rotary_pos_emb: in fp32, of a copy for each
// use.
func rotateCopies(r *run, q, k *eager.Tensor, t tables) (*eager.Tensor, *eager.Tensor) {
	m := r.machine
	cos, sin := m.Unsqueeze(t.cos, 1), m.Unsqueeze(t.sin, 1)
	turn := func(x *eager.Tensor) *eager.Tensor {
		wide := m.To(x, eager.Float32)
		a := m.Mul(wide, cos)
		wide.Drop()
		wide = m.To(x, eager.Float32)
		h := rotateHalf(r, wide)
		wide.Drop()
		b := m.Mul(h, sin)
		h.Drop()
		y := m.Add(a, b)
		eager.Drop(a, b)
		return y
	}
	a, b := turn(q), turn(k)
	y, z := m.To(a, q.DType()), m.To(b, q.DType())
	eager.Drop(cos, sin, a, b)
	return y, z
}

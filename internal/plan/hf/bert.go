package hf

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// bert is BertForMaskedLM and what is built like it.
type bert struct {
	embed  *bertEmbeddings
	layers []layer
	pooler *linear
	head   *bertHead
	tail   tail // a head that scores, in the place of head
}

func newBert(r *run) network {
	c := r.job.Model
	n := &bert{}
	roberta := c.Family != "bert"
	inside := "bert"
	if roberta {
		inside = "roberta"
	}
	top, base := r.builders(inside)
	if c.Family == "xlm_roberta" && c.Head.Scores() { // which makes its head first
		n.tail = top.encoderTail(nil)
	}
	n.embed = base.bertEmbeddings("embeddings")
	for i := range c.Layers {
		n.layers = append(n.layers, base.bertLayer(fmt.Sprintf("encoder.layer.%d", i)))
	}
	if c.Head == model.HeadNone || !roberta && (c.Head == model.HeadSequence || c.Head == model.HeadReward) {
		n.pooler = base.linear("pooler.dense", c.Hidden, c.Hidden, true)
	}
	n.embed.positionIDs(r).Drop() // when weights are initialised
	switch {
	case n.tail != nil:
	case c.Head.Scores():
		n.tail = top.encoderTail(n.pooler)
	case roberta && c.Head != model.HeadNone:
		n.head = top.bertHead("lm_head", "dense", "layer_norm", n.embed.words)
		n.head.act = "gelu"
	case c.Head != model.HeadNone:
		n.head = top.bertHead("cls.predictions", "transform.dense", "transform.LayerNorm", n.embed.words)
	}
	return n
}

func (n *bert) loss(r *run, in *batch) *eager.Tensor {
	m := r.machine
	x := n.embed.forward(r, in.ids)
	mask := bidirectionalMask(r, maskArgs{x: x, attention: in.mask}, 0)
	h := r.layers(n.layers, x, func(i int) shared { return shared{mask: mask, layer: i} })
	eager.Drop(x, mask)
	if n.tail != nil {
		return scored(r, n.tail, h, in)
	}
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	logits := n.head.forward(r, h)
	flat := m.View(logits, -1, logits.Size(2))
	target := m.View(in.labels, -1)
	loss := m.CrossEntropy(flat, target)
	r.output(logits)
	eager.Drop(flat, target, h, logits)
	return loss
}

// bertEmbeddings is BertEmbeddings.
type bertEmbeddings struct {
	words, positions, types *embedding
	norm                    *layerNorm
	dropout                 float64
	label                   ledger.Name
	ids, typeIDs            *eager.Tensor // buffers [1, positions]
	counted                 bool          // roberta: positions count the tokens that are no padding
}

func (b *builder) bertEmbeddings(name string) *bertEmbeddings {
	c := b.run.job.Model
	in := b.in(name)
	e := &bertEmbeddings{dropout: c.EmbeddingDropout, label: b.label(name)}
	e.counted = c.Family != "bert"
	e.words = in.embedding("word_embeddings", c.Vocab, c.Hidden)
	if !e.counted {
		e.positions = in.embedding("position_embeddings", c.MaxPositions, c.Hidden)
	}
	e.types = in.embedding("token_type_embeddings", c.TypeVocab, c.Hidden)
	e.norm = in.layerNorm("LayerNorm", c.Hidden)
	e.ids = in.buffer(eager.Int64, "position_ids", 1, int64(c.MaxPositions))
	e.typeIDs = in.buffer(eager.Int64, "token_type_ids", 1, int64(c.MaxPositions))
	if e.counted {
		e.positions = in.embedding("position_embeddings", c.MaxPositions, c.Hidden)
	}
	return e
}

// positionIDs is all positions once more.
func (e *bertEmbeddings) positionIDs(r *run) *eager.Tensor {
	before := r.machine.Enter(e.label)
	defer r.machine.Enter(before)
	return r.machine.Unary("arange", e.ids)
}

func (e *bertEmbeddings) forward(r *run, ids *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(e.label)
	defer m.Enter(before)
	batch, rows := ids.Size(0), ids.Size(1)
	var positions *eager.Tensor
	if e.counted {
		positions = countTokens(r, ids)
	} else {
		positions = m.Slice(e.ids, 1, rows)
	}
	gathered := m.Unary("gather", positions)
	types := m.Expand(gathered, batch, rows)
	w := e.words.forward(r, ids)
	t := e.types.forward(r, types)
	h := m.Add(w, t)
	p := e.positions.forward(r, positions)
	h = replace(h, m.Add(h, p))
	h = replace(h, e.norm.forward(r, h))
	h = replace(h, m.Dropout(h, e.dropout, r.trains))
	eager.Drop(positions, gathered, types, w, t, p)
	return h
}

// countTokens is create_position_ids_from_input_ids: tokens are counted, but for
// padding.
func countTokens(r *run, ids *eager.Tensor) *eager.Tensor {
	m := r.machine
	seen := m.Compare("ne", ids)
	seen = replace(seen, m.To(seen, eager.Int32))
	sum := m.Empty("cumsum", eager.Int64, ids.Shape()...)
	m.Scratch(sum.Bytes(), "cumsum")
	t := replace(sum, m.To(sum, eager.Int32))
	t = replace(t, m.Unary("add", t))
	t = replace(t, m.Binary("mul", t, seen))
	wide := m.To(t, eager.Int64)
	y := replace(wide, m.Unary("add", wide))
	eager.Drop(seen, t)
	return y
}

// bertLayer is BertLayer.
type bertLayer struct {
	attention *bertAttention
	sum       *bertSum
	up        *linear
	act       string
	down      *bertSum
}

func (b *builder) bertLayer(name string) *bertLayer {
	c := b.run.job.Model
	in := b.in(name)
	return &bertLayer{
		attention: in.bertAttention("attention.self"),
		sum:       in.bertSum("attention.output", c.Heads*c.HeadDim),
		up:        in.linear("intermediate.dense", c.Hidden, c.Intermediate, true),
		act:       c.Activation,
		down:      in.bertSum("output", c.Intermediate),
	}
}

func (l *bertLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	a, weights := l.attention.forward(r, x, c)
	a = replace(a, l.sum.forward(r, a, x))
	h := l.up.forward(r, a)
	h = replace(h, activate(r, l.act, h))
	y := l.down.forward(r, h, a)
	eager.Drop(h, weights, a) // a has two names
	return y
}

// bertAttention is BertSelfAttention, without the projection of its output.
type bertAttention struct {
	label   ledger.Name
	q, k, v *linear
	headDim int64
	dropout float64
}

func (b *builder) bertAttention(name string) *bertAttention {
	c := b.run.job.Model
	in := b.in(name)
	width := c.Heads * c.HeadDim
	return &bertAttention{
		label: b.label(name), headDim: int64(c.HeadDim), dropout: c.AttentionDropout,
		q: in.linear("query", c.Hidden, width, true),
		k: in.linear("key", c.Hidden, width, true),
		v: in.linear("value", c.Hidden, width, true),
	}
}

func (a *bertAttention) forward(r *run, x *eager.Tensor, c *shared) (y, weights *eager.Tensor) {
	m := r.machine
	before := m.Enter(a.label)
	defer m.Enter(before)
	q := inHeads(r, a.q, x, a.headDim)
	k := inHeads(r, a.k, x, a.headDim)
	v := inHeads(r, a.v, x, a.headDim)
	out, weights := attend(r, attention{
		q: q, k: k, v: v, mask: c.mask, dropout: r.dropout(a.dropout), bidirectional: true, style: eagerPlain,
	})
	y = m.Reshape(out, x.Size(0), x.Size(1), -1)
	out.Drop()
	y = replace(y, m.Contiguous(y))
	eager.Drop(q, k, v)
	return y, weights
}

// inHeads is the projection of x, cut into heads: [batch, heads, rows, d].
func inHeads(r *run, l *linear, x *eager.Tensor, headDim int64) *eager.Tensor {
	return cutIntoHeads(r, l.forward(r, x), headDim)
}

// cutIntoHeads is a projection p, which it takes over, as [batch, heads, rows, d].
func cutIntoHeads(r *run, p *eager.Tensor, headDim int64) *eager.Tensor {
	m := r.machine
	h := replace(p, m.View(p, p.Size(0), p.Size(1), -1, headDim))
	return replace(h, m.Transpose(h, 1, 2))
}

// bertSum is BertSelfOutput and BertOutput: a projection that is added to the
// residual stream and normalised with it.
type bertSum struct {
	dense   *linear
	norm    *layerNorm
	dropout float64
}

func (b *builder) bertSum(name string, width int) *bertSum {
	c := b.run.job.Model
	in := b.in(name)
	return &bertSum{
		dense:   in.linear("dense", width, c.Hidden, true),
		norm:    in.layerNorm("LayerNorm", c.Hidden),
		dropout: c.ResidualDropout,
	}
}

func (s *bertSum) forward(r *run, h, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	p := s.dense.forward(r, h)
	p = replace(p, m.Dropout(p, s.dropout, r.trains))
	sum := m.Add(p, x)
	y := s.norm.forward(r, sum)
	eager.Drop(sum, p)
	return y
}

// bertHead is BertLMPredictionHead.
type bertHead struct {
	dense   *linear
	act     string
	norm    *layerNorm
	decoder *linear
}

func (b *builder) bertHead(name, dense, norm string, words *embedding) *bertHead {
	r := b.run
	c := r.job.Model
	in := b.in(name)
	first := len(r.params)
	h := &bertHead{act: c.Activation}
	h.dense = in.linear(dense, c.Hidden, c.Hidden, true)
	h.norm = in.layerNorm(norm, c.Hidden)
	h.decoder = in.linear("decoder", c.Hidden, c.Vocab, true)
	r.linears = r.linears[:len(r.linears)-1]
	bias := in.weight("bias", int64(c.Vocab))
	if c.Tied {
		h.tie(r, words, bias)
	}
	// The parameter of the module itself is listed before those of its parts.
	last := len(r.params) - 1
	own := r.params[last]
	r.params = slices.Insert(r.params[:last], first, own)
	return h
}

// tie makes the decoder share the table of words and the head's own bias. With
// each of them tie_weights pads the bias of the decoder, which copies it.
func (h *bertHead) tie(r *run, words *embedding, bias *eager.Tensor) {
	m := r.machine
	last := len(r.params) - 1
	weight, own, head := &r.params[last-2], &r.params[last-1], &r.params[last]
	h.decoder.weight.Drop()
	h.decoder.weight = words.weight
	padded := m.Unary("pad", h.decoder.bias)
	eager.Drop(h.decoder.bias, padded)
	before := m.Enter(m.Ledger.Name(head.Name))
	bias = replace(bias, r.parameter(r.dtype, r.trains, bias.Size(0)))
	m.Enter(before)
	h.decoder.bias = bias
	weight.Tensor, weight.Tied = words.weight, true
	own.Tensor, own.Tied = bias, true
	head.Tensor = bias
}

func (h *bertHead) forward(r *run, x *eager.Tensor) *eager.Tensor {
	t := h.dense.forward(r, x)
	t = replace(t, activate(r, h.act, t))
	t = replace(t, h.norm.forward(r, t))
	return replace(t, h.decoder.forward(r, t))
}

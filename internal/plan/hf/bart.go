package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// bart is BartForConditionalGeneration.
type bart struct {
	encoder, decoder *bartStack
	head             *linear
	tail             tail          // a head that scores, in the place of head
	bias             *eager.Tensor // a buffer that is added to the logits
}

func newBart(r *run) network {
	c := r.job.Model
	n := &bart{}
	top, base := r.builders("model")
	table := base.embedding("shared", c.Vocab, c.Hidden)
	n.encoder = base.bartStack("encoder", c.Layers, c.Heads, c.Intermediate, false)
	n.decoder = base.bartStack("decoder", c.Bart.DecoderLayers, c.Bart.DecoderHeads, c.Bart.DecoderIntermediate, true)
	// BartModel ties its tables before the head is made.
	n.decoder.tie(r, table)
	n.encoder.tie(r, table)
	n.tail = top.pairTail()
	if c.Head == model.HeadSeq2Seq {
		n.bias = top.buffer(r.dtype, "final_logits_bias", 1, int64(c.Vocab))
		n.head = top.head(table)
	}
	return n
}

func (n *bart) loss(r *run, in *batch) *eager.Tensor {
	m := r.machine
	ids := shiftRight(r, in.target(n.tail != nil))
	states := n.encoder.encode(r, in)
	h := n.decoder.decode(r, ids, states, in.mask)
	if n.tail != nil {
		defer eager.Drop(states, ids)
		return scored(r, n.tail, h, in)
	}
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	logits := n.head.forward(r, h)
	logits = replace(logits, m.Add(logits, n.bias))
	flat := m.View(logits, -1, logits.Size(2))
	target := m.View(in.labels, -1)
	loss := m.CrossEntropy(flat, target)
	r.output(logits, states)
	eager.Drop(flat, target, ids, logits, h, states)
	return loss
}

// bartStack is BartEncoder or BartDecoder.
type bartStack struct {
	embed, positions *embedding
	param            int // of the embedding's own weight
	layers           []layer
	norm             *layerNorm
	dropout          float64
}

func (b *builder) bartStack(name string, layers, heads, feed int, decodes bool) *bartStack {
	c := b.run.job.Model
	in := b.in(name)
	s := &bartStack{param: len(b.run.params), dropout: c.EmbeddingDropout}
	s.embed = in.embedding("embed_tokens", c.Vocab, c.Hidden)
	s.embed.times = true
	s.positions = in.embedding("embed_positions", c.MaxPositions+2, c.Hidden)
	for i := range layers {
		s.layers = append(s.layers, in.in(fmt.Sprintf("layers.%d", i)).bartLayer(heads, feed, decodes))
	}
	s.norm = in.layerNorm("layernorm_embedding", c.Hidden)
	return s
}

// tie makes the stack use a table instead of its own.
func (s *bartStack) tie(r *run, table *embedding) {
	s.embed.weight.Drop()
	s.embed.weight = table.weight
	p := &r.params[s.param]
	p.Tensor, p.Tied = table.weight, true
}

// begin adds positions p to embeddings x: what the layers begin with.
func (s *bartStack) begin(r *run, x, p *eager.Tensor) *eager.Tensor {
	m := r.machine
	h := m.Add(x, p)
	h = replace(h, s.norm.forward(r, h))
	return replace(h, m.Dropout(h, s.dropout, r.trains))
}

func (s *bartStack) encode(r *run, in *batch) *eager.Tensor {
	m := r.machine
	x := s.embed.forward(r, in.ids)
	at := m.Empty("arange", eager.Int64, x.Size(1))
	ids := replace(at, m.Expand(at, x.Size(0), x.Size(1)))
	moved := m.Unary("add", ids)
	p := s.positions.forward(r, moved)
	eager.Drop(moved, ids)
	h := s.begin(r, x, p)
	mask := bidirectionalMask(r, maskArgs{x: x, attention: in.mask}, 0)
	h = r.through(s.layers, h, func(i int) shared { return shared{mask: mask, layer: i} })
	eager.Drop(mask, x, p)
	return h
}

func (s *bartStack) decode(r *run, ids, states, statesMask *eager.Tensor) *eager.Tensor {
	m := r.machine
	x := s.embed.forward(r, ids)
	at := m.Empty("arange", eager.Int64, x.Size(1))
	at = replace(at, m.Unary("add", at))
	ones := m.Empty("ones", eager.Float32, x.Size(0), x.Size(1))
	mask := causalMask(r, maskArgs{x: x, attention: ones, ones: true}, 0)
	ones.Drop()
	cross := bidirectionalMask(r, maskArgs{x: x, attention: statesMask, states: states}, 0)
	row := m.Unsqueeze(at, 0)
	moved := m.Unary("add", row)
	p := s.positions.forward(r, moved)
	eager.Drop(moved, row)
	h := s.begin(r, x, p)
	h = r.through(s.layers, h, func(i int) shared {
		return shared{mask: mask, layer: i, t5: &t5Call{states: states, mask: cross}}
	})
	eager.Drop(mask, cross, x, at, p)
	return h
}

// bartLayer is BartEncoderLayer and BartDecoderLayer.
type bartLayer struct {
	self, cross                *bartAttention // cross is nil in an encoder
	selfNorm, crossNorm, final *layerNorm
	up, down                   *linear
	act                        string
	dropout, inner             float64
	before                     bool // norms come before the parts (whisper)
}

func (b *builder) bartLayer(heads, feed int, decodes bool) *bartLayer {
	c := b.run.job.Model
	l := &bartLayer{act: c.Activation, dropout: c.ResidualDropout, inner: c.Bart.ActivationDropout, before: c.Audio != nil}
	l.self = b.bartAttention("self_attn", heads)
	l.self.causal = decodes
	l.selfNorm = b.layerNorm("self_attn_layer_norm", c.Hidden)
	if decodes {
		l.cross = b.bartAttention("encoder_attn", heads)
		l.crossNorm = b.layerNorm("encoder_attn_layer_norm", c.Hidden)
	}
	l.up = b.linear("fc1", c.Hidden, feed, true)
	l.down = b.linear("fc2", feed, c.Hidden, true)
	l.final = b.layerNorm("final_layer_norm", c.Hidden)
	return l
}

func (l *bartLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	if l.before {
		return l.forwardBefore(r, x, c)
	}
	m := r.machine
	h, weights := l.self.forward(r, x, x, c.mask)
	h = l.add(r, x, h, l.selfNorm)
	if l.cross != nil {
		y, w := l.cross.forward(r, h, c.t5.states, c.t5.mask)
		weights = replace(weights, w)
		h = replace(h, l.add(r, h, y, l.crossNorm))
	}
	f := l.up.forward(r, h)
	f = replace(f, activate(r, l.act, f))
	f = replace(f, m.Dropout(f, l.inner, r.trains))
	f = replace(f, l.down.forward(r, f))
	y := l.add(r, h, f, l.final)
	eager.Drop(h, weights)
	return y
}

// add is dropout, the sum with the residual stream, and a norm. It takes y over.
func (l *bartLayer) add(r *run, x, y *eager.Tensor, norm *layerNorm) *eager.Tensor {
	m := r.machine
	y = replace(y, m.Dropout(y, l.dropout, r.trains))
	y = replace(y, m.Add(x, y))
	return replace(y, norm.forward(r, y))
}

// bartAttention is BartAttention, within a stack or to the encoder's states.
type bartAttention struct {
	label      ledger.Name
	q, k, v, o *linear
	headDim    int64
	dropout    float64
	causal     bool
	copies     bool // whisper: queries are scaled first, and heads are made contiguous
}

func (b *builder) bartAttention(name string, heads int) *bartAttention {
	c := b.run.job.Model
	in := b.in(name)
	a := &bartAttention{label: b.label(name), headDim: int64(c.Hidden / heads), dropout: c.AttentionDropout}
	a.copies = c.Audio != nil
	a.k = in.linear("k_proj", c.Hidden, c.Hidden, !a.copies)
	a.v = in.linear("v_proj", c.Hidden, c.Hidden, true)
	a.q = in.linear("q_proj", c.Hidden, c.Hidden, true)
	a.o = in.linear("out_proj", c.Hidden, c.Hidden, true)
	return a
}

// heads is the projection of x, cut into heads.
func (a *bartAttention) heads(r *run, l *linear, x *eager.Tensor) *eager.Tensor {
	if !a.copies {
		return inHeads(r, l, x, a.headDim)
	}
	m := r.machine
	p := l.forward(r, x)
	if l == a.q {
		p = replace(p, m.Scale(p))
	}
	h := replace(p, m.View(p, x.Size(0), x.Size(1), -1, a.headDim))
	h = replace(h, m.Transpose(h, 1, 2))
	return replace(h, m.Contiguous(h))
}

func (a *bartAttention) forward(r *run, x, states, mask *eager.Tensor) (y, weights *eager.Tensor) {
	m := r.machine
	before := m.Enter(a.label)
	defer m.Enter(before)
	q := a.heads(r, a.q, x)
	var k, v *eager.Tensor
	if a.copies {
		k, v = a.heads(r, a.k, states), a.heads(r, a.v, states)
	} else {
		k, v = a.k.forward(r, states), a.v.forward(r, states)
		k, v = cutIntoHeads(r, k, a.headDim), cutIntoHeads(r, v, a.headDim)
	}
	out, weights := attend(r, attention{q: q, k: k, v: v, mask: mask, dropout: r.dropout(a.dropout), bidirectional: !a.causal, style: eagerPlain})
	flat := m.Reshape(out, x.Size(0), x.Size(1), -1)
	out.Drop()
	flat = replace(flat, m.Contiguous(flat))
	y = replace(flat, a.o.forward(r, flat))
	eager.Drop(q, k, v)
	return y, weights
}

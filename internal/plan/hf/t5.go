package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// t5 is T5ForConditionalGeneration.
type t5 struct {
	encoder, decoder *t5Stack
	head             *linear
	tail             tail // a head that scores, in the place of head
	scaled           bool // the head's input
}

func newT5(r *run) network {
	c := r.job.Model
	n := &t5{scaled: c.T5.ScaleDecoderOutputs}
	top := &builder{run: r}
	base := top
	if c.Head == model.HeadSequence || c.Head == model.HeadReward || c.Head == model.HeadToken {
		base = top.in("transformer")
	}
	table := base.embedding("shared", c.Vocab, c.Hidden)
	n.encoder = base.t5Stack("encoder", c.Layers, false)
	if c.Head != model.HeadToken { // which has an encoder alone
		n.decoder = base.t5Stack("decoder", c.T5.DecoderLayers, true)
	}
	n.head, n.tail = top.head(table), top.pairTail()
	n.encoder.tie(r, table)
	if n.decoder != nil {
		n.decoder.tie(r, table)
	}
	if r.dtype == eager.Float16 {
		r.notes = append(r.notes, "from_pretrained keeps wo in fp32 when t5 is loaded in fp16")
	}
	return n
}

func (n *t5) loss(r *run, in *batch) *eager.Tensor {
	if n.tail != nil {
		return n.scored(r, in)
	}
	m := r.machine
	states := n.encode(r, in.ids, in.mask)
	ids := shiftRight(r, in.labels)
	h := n.decoder.forward(r, t5Input{ids: ids, states: states, statesMask: in.mask})
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	logits, x := n.logits(r, h)
	flat := m.View(logits, -1, logits.Size(2))
	target := m.View(in.labels, -1)
	loss := m.CrossEntropy(flat, target)
	r.output(logits, states)
	eager.Drop(flat, target, ids, h, x, logits, states)
	return loss
}

// scored is the loss of a head that scores: what the decoder makes of the tokens
// that the encoder read, or of an encoder alone its states.
func (n *t5) scored(r *run, in *batch) *eager.Tensor {
	if n.decoder == nil {
		return scored(r, n.tail, n.encode(r, in.ids, in.mask), in)
	}
	ids := shiftRight(r, in.ids)
	states := n.encode(r, in.ids, in.mask)
	defer eager.Drop(states, ids)
	return scored(r, n.tail, n.decoder.forward(r, t5Input{ids: ids, states: states, statesMask: in.mask}), in)
}

// encode runs the encoder.
func (n *t5) encode(r *run, ids, mask *eager.Tensor) *eager.Tensor {
	return n.encoder.forward(r, t5Input{ids: ids, mask: mask})
}

// logits are the head's of the decoder's states h, and what they were computed
// from. The caller holds both.
func (n *t5) logits(r *run, h *eager.Tensor) (logits, x *eager.Tensor) {
	x = h.Keep()
	if n.scaled {
		x = replace(x, r.machine.Scale(x))
	}
	return n.head.forward(r, x), x
}

// next is a step of generation.
func (n *t5) next(r *run, in *batch) *eager.Tensor {
	h := n.decoder.forward(r, t5Input{ids: in.ids, states: in.states, statesMask: in.mask, cache: in.cache})
	kind := r.machine.Kind(ledger.Loss)
	defer r.machine.Kind(kind)
	logits, x := n.logits(r, h)
	eager.Drop(h, x)
	return logits
}

// cache is an EncoderDecoderCache.
func (n *t5) cache(r *run) *cache {
	layers := len(n.decoder.blocks)
	return &cache{layers: make([]cached, layers), cross: &cache{layers: make([]cached, layers)}}
}

// shiftRight is _shift_right: what the decoder is fed with the labels.
func shiftRight(r *run, labels *eager.Tensor) *eager.Tensor {
	m := r.machine
	y := m.Unary("new_zeros", labels)
	s := m.Slice(labels, 1, labels.Size(1)-1)
	m.Unary("clone", s).Drop()
	s.Drop()
	m.Compare("eq", y).Drop()
	return y
}

// t5Stack is T5Stack: the encoder or the decoder.
type t5Stack struct {
	embed   *embedding
	param   int // of the embedding's own weight
	blocks  []layer
	norm    *t5Norm
	dropout float64
	decodes bool
}

func (b *builder) t5Stack(name string, layers int, decodes bool) *t5Stack {
	c := b.run.job.Model
	in := b.in(name)
	s := &t5Stack{param: len(b.run.params), dropout: c.EmbeddingDropout, decodes: decodes}
	s.embed = in.embedding("embed_tokens", c.Vocab, c.Hidden)
	for i := range layers {
		s.blocks = append(s.blocks, in.t5Block(fmt.Sprintf("block.%d", i), i == 0, decodes))
	}
	s.norm = in.t5Norm("final_layer_norm")
	return s
}

// tie makes the stack use a table instead of its own.
func (s *t5Stack) tie(r *run, table *embedding) {
	s.embed.weight.Drop()
	s.embed.weight = table.weight
	p := &r.params[s.param]
	p.Tensor, p.Tied = table.weight, true
}

// t5Input is what a stack is called with. A decoder gets the states of the
// encoder and their mask, and when it generates a cache.
type t5Input struct {
	ids, mask, states, statesMask *eager.Tensor
	cache                         *cache
}

// forward returns the last hidden state.
func (s *t5Stack) forward(r *run, in t5Input) *eager.Tensor {
	m := r.machine
	x := s.embed.forward(r, in.ids)
	var mask, cross *eager.Tensor
	if s.decodes {
		mask = causalMask(r, maskArgs{x: x, attention: in.mask, cache: in.cache}, 0)
		cross = bidirectionalMask(r, maskArgs{x: x, attention: in.statesMask, states: in.states}, 0)
	} else {
		mask = bidirectionalMask(r, maskArgs{x: x, attention: in.mask}, 0)
	}
	made := &t5Biases{}
	h := m.Dropout(x, s.dropout, r.trains)
	h = r.through(s.blocks, h, func(i int) shared {
		return shared{
			mask: mask, cache: in.cache, layer: i, t5: &t5Call{states: in.states, mask: cross, t5Biases: *made, made: made},
		}
	})
	h = replace(h, s.norm.forward(r, h))
	h = replace(h, m.Dropout(h, s.dropout, r.trains))
	eager.Drop(mask, x, cross, made.self, made.cross)
	made.self, made.cross = nil, nil
	return h
}

// t5Call is what a block is called with beside its input.
type t5Call struct {
	states, mask *eager.Tensor // of the encoder, for a decoder
	t5Biases                   // nil where the block has to make them
	made         *t5Biases     // where those go that it makes
}

// t5Biases are the relative positions as numbers to add to the scores. The
// first block of a stack makes them for all.
type t5Biases struct{ self, cross *eager.Tensor }

// kept is what a checkpoint keeps of the call.
func (c *t5Call) kept() []*eager.Tensor {
	if c == nil {
		return nil
	}
	return []*eager.Tensor{c.states, c.mask, c.self, c.cross}
}

// t5Block is T5Block.
type t5Block struct {
	attention, cross *t5Attention // cross is nil in an encoder
	norm, crossNorm  *t5Norm
	feed             *t5FeedForward
	dropout          float64
}

func (b *builder) t5Block(name string, first, decodes bool) *t5Block {
	in := b.in(name)
	l := &t5Block{dropout: b.run.job.Model.ResidualDropout}
	l.attention = in.t5Attention("layer.0.SelfAttention", first, decodes)
	l.norm = in.t5Norm("layer.0.layer_norm")
	last := "layer.1"
	if decodes {
		l.cross = in.t5Attention("layer.1.EncDecAttention", false, decodes)
		l.cross.crosses = true
		l.crossNorm = in.t5Norm("layer.1.layer_norm")
		last = "layer.2"
	}
	l.feed = in.t5FeedForward(last)
	return l
}

func (l *t5Block) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	call := *c.t5
	h, weights := l.attend(r, l.attention, l.norm, x, c.mask, &call.self, c)
	h = clampHalf(r, h)
	if l.cross != nil {
		y, w := l.attend(r, l.cross, l.crossNorm, h, call.mask, &call.cross, c)
		h, weights = replace(h, y), replace(weights, w)
		h = clampHalf(r, h)
	}
	h = replace(h, l.feed.forward(r, h))
	h = clampHalf(r, h)
	weights.Drop()
	return h
}

// attend is T5LayerSelfAttention and T5LayerCrossAttention. A bias that is not
// there is made and left to the blocks that come after.
func (l *t5Block) attend(
	r *run, a *t5Attention, norm *t5Norm, x, mask *eager.Tensor, bias **eager.Tensor, c *shared,
) (y, weights *eager.Tensor) {
	m := r.machine
	n := norm.forward(r, x)
	made := &c.t5.made.self
	if a.crosses {
		made = &c.t5.made.cross
	}
	out, weights := a.forward(r, n, mask, bias, made, c)
	d := m.Dropout(out, l.dropout, r.trains)
	y = m.Add(x, d)
	if a.crosses {
		eager.Drop(d, n, out)
	} else {
		eager.Drop(d, out, n)
	}
	return y, weights
}

// clampHalf keeps the infinities of fp16 out of the residual stream. It takes h
// over.
func clampHalf(r *run, h *eager.Tensor) *eager.Tensor {
	if h.DType() != eager.Float16 {
		return h
	}
	m := r.machine
	inf := m.Unary("abs", h)
	inf = replace(inf, m.Compare("isinf", inf))
	any := m.All(inf)
	inf.Drop()
	limit := m.WhereNumbers(any, eager.Float32)
	any.Drop()
	least := m.Unary("neg", limit)
	h = replace(h, m.ClampTo(h, least, limit))
	eager.Drop(least, limit)
	return h
}

// t5Norm is T5LayerNorm.
type t5Norm struct {
	label  ledger.Name
	weight *eager.Tensor
}

func (b *builder) t5Norm(name string) *t5Norm {
	return &t5Norm{label: b.label(name), weight: b.in(name).weight("weight", int64(b.run.job.Model.Hidden))}
}

func (n *t5Norm) forward(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(n.label)
	defer m.Enter(before)
	p := m.To(x, eager.Float32)
	p = replace(p, m.Pow(p))
	variance := replace(p, m.Mean(p))
	s := m.AddScalar(variance)
	s = replace(s, m.Rsqrt(s))
	h := replace(s, m.Mul(x, s))
	if d := n.weight.DType(); d != eager.Float32 {
		h = replace(h, m.To(h, d))
	}
	y := m.Mul(n.weight, h)
	eager.Drop(h, variance)
	return y
}

// t5FeedForward is T5LayerFF.
type t5FeedForward struct {
	in, gate, out *linear // gate is nil without gates
	norm          *t5Norm
	act           string
	dropout       float64
}

func (b *builder) t5FeedForward(name string) *t5FeedForward {
	c := b.run.job.Model
	in := b.in(name)
	dense := in.in("DenseReluDense")
	f := &t5FeedForward{act: c.Activation, dropout: c.ResidualDropout}
	if c.GatedMLP {
		f.in = dense.linear("wi_0", c.Hidden, c.Intermediate, false)
		f.gate = dense.linear("wi_1", c.Hidden, c.Intermediate, false)
	} else {
		f.in = dense.linear("wi", c.Hidden, c.Intermediate, false)
	}
	f.out = dense.linear("wo", c.Intermediate, c.Hidden, false)
	f.norm = in.t5Norm("layer_norm")
	return f
}

func (f *t5FeedForward) forward(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	n := f.norm.forward(r, x)
	n = replace(n, f.dense(r, n))
	d := m.Dropout(n, f.dropout, r.trains)
	y := m.Add(x, d)
	eager.Drop(d, n)
	return y
}

// dense is T5DenseActDense and T5DenseGatedActDense.
func (f *t5FeedForward) dense(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	h := f.in.forward(r, x)
	h = replace(h, activate(r, f.act, h))
	if f.gate != nil {
		act, lin := h, f.gate.forward(r, x)
		defer eager.Drop(act, lin)
		h = m.Mul(act, lin)
	}
	h = replace(h, m.Dropout(h, f.dropout, r.trains))
	h = replace(h, m.To(h, f.out.weight.DType()))
	return replace(h, f.out.forward(r, h))
}

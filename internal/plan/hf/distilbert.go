package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// distilBert is DistilBertForMaskedLM, and with another head in its place.
type distilBert struct {
	label            ledger.Name
	words, positions *embedding
	norm             *layerNorm
	dropout          float64
	ids              *eager.Tensor // a buffer [1, positions]
	layers           []layer
	head             *maskedHead
	tail             tail
}

func newDistilBert(r *run) network {
	c := r.job.Model
	n := &distilBert{dropout: c.EmbeddingDropout}
	top, base := r.builders("distilbert")
	in := base.in("embeddings")
	n.label = base.label("embeddings")
	n.words = in.embedding("word_embeddings", c.Vocab, c.Hidden)
	n.positions = in.embedding("position_embeddings", c.MaxPositions, c.Hidden)
	n.norm = in.layerNorm("LayerNorm", c.Hidden)
	n.ids = in.buffer(eager.Int64, "position_ids", 1, int64(c.MaxPositions))
	for i := range c.Layers {
		n.layers = append(n.layers, base.in(fmt.Sprintf("transformer.layer.%d", i)).distilLayer())
	}
	switch c.Head {
	case model.HeadNone:
	case model.HeadMasked:
		n.head = &maskedHead{
			dense: top.linear("vocab_transform", c.Hidden, c.Hidden, true), act: c.Activation, norm: top.layerNorm("vocab_layer_norm", c.Hidden),
			decoder: top.tiedDecoder("vocab_projector", n.words, true),
		}
	case model.HeadToken:
		n.tail = &tokenScore{score: top.headLinear("classifier", c.Hidden, c.NumLabels, true), dropout: c.ClassifierDropout}
	case model.HeadQuestion:
		n.tail = &spanScore{out: top.headLinear("qa_outputs", c.Hidden, c.NumLabels, true), dropout: c.ClassifierDropout}
	default:
		pool := &firstPooled{dense: top.headLinear("pre_classifier", c.Hidden, c.Hidden, true), act: "relu"}
		n.tail = &pooledScore{pool: pool, score: top.headLinear("classifier", c.Hidden, c.NumLabels, true), dropout: c.ClassifierDropout}
	}
	return n
}

func (n *distilBert) loss(r *run, in *batch) *eager.Tensor {
	x := n.embed(r, in.ids)
	mask := bidirectionalMask(r, maskArgs{x: x, attention: in.mask}, 0)
	h := r.layers(n.layers, x, func(i int) shared { return shared{mask: mask, layer: i} })
	eager.Drop(mask, x)
	if n.tail != nil {
		return scored(r, n.tail, h, in)
	}
	return n.head.loss(r, h, in)
}

func (n *distilBert) embed(r *run, ids *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(n.label)
	defer m.Enter(before)
	w := n.words.forward(r, ids)
	at := m.Slice(n.ids, 1, ids.Size(1))
	p := n.positions.forward(r, at)
	h := m.Add(w, p)
	h = replace(h, n.norm.forward(r, h))
	h = replace(h, m.Dropout(h, n.dropout, r.trains))
	eager.Drop(w, at, p)
	return h
}

// maskedHead predicts masked tokens: a Linear, an activation and a norm before
// the decoder.
type maskedHead struct {
	dense   *linear
	act     string
	norm    *layerNorm
	decoder *linear
	wide    bool // the loss is that of logits in fp32
}

// tiedDecoder is a Linear to the vocabulary that may share the table of words.
func (b *builder) tiedDecoder(name string, words *embedding, bias bool) *linear {
	c := b.run.job.Model
	at := len(b.run.params)
	l := b.headLinear(name, c.Hidden, c.Vocab, bias)
	if c.Tied {
		l.weight.Drop()
		l.weight = words.weight
		b.run.params[at].Tensor, b.run.params[at].Tied = words.weight, true
	}
	return l
}

// transform is what comes before the decoder.
func (t *maskedHead) transform(r *run, h *eager.Tensor) *eager.Tensor {
	x := t.dense.forward(r, h)
	x = replace(x, activate(r, t.act, x))
	return replace(x, t.norm.forward(r, x))
}

// loss takes h over.
func (t *maskedHead) loss(r *run, h *eager.Tensor, in *batch) *eager.Tensor {
	m := r.machine
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	x := t.transform(r, h)
	logits := replace(x, t.decoder.forward(r, x))
	in32 := logits.Keep()
	if t.wide {
		in32 = replace(in32, m.To(logits, eager.Float32))
	}
	flat := m.View(in32, -1, logits.Size(2))
	in32.Drop()
	target := m.View(in.labels, -1)
	loss := m.CrossEntropy(flat, target)
	r.output(logits)
	eager.Drop(flat, target, h, logits)
	return loss
}

// distilLayer is DistilBert's TransformerBlock.
type distilLayer struct {
	attention *vitAttention
	up, down  *linear
	first     *layerNorm
	second    *layerNorm
	act       string
	dropout   float64
}

func (b *builder) distilLayer() *distilLayer {
	c := b.run.job.Model
	l := &distilLayer{act: c.Activation, dropout: c.ResidualDropout}
	l.attention = b.encoderAttention("attention", "q_lin", "k_lin", "v_lin", "out_lin")
	l.attention.style = eagerPlain
	l.first = b.layerNorm("sa_layer_norm", c.Hidden)
	l.up = b.linear("ffn.lin1", c.Hidden, c.Intermediate, true)
	l.down = b.linear("ffn.lin2", c.Intermediate, c.Hidden, true)
	l.second = b.layerNorm("output_layer_norm", c.Hidden)
	return l
}

func (l *distilLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	m := r.machine
	a, weights := l.attention.forward(r, x, c)
	sum := m.Add(a, x)
	a = rebind(a, l.first.forward(r, sum), sum)
	f := l.up.forward(r, a)
	f = replace(f, activate(r, l.act, f))
	f = replace(f, l.down.forward(r, f))
	f = replace(f, m.Dropout(f, l.dropout, r.trains))
	sum = m.Add(f, a)
	f = rebind(f, l.second.forward(r, sum), sum)
	eager.Drop(a, weights)
	return f
}

package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// gemmaLayer is Gemma2DecoderLayer, Gemma3's and Glm4's: llama's with norms
// after attention and after the MLP as well.
type gemmaLayer struct {
	attention                      *llamaAttention
	mlp                            feedForward
	input, attended, middle, mixed normer
}

func newGemma(r *run) network {
	c := r.job.Model
	d := &decoder{}
	top := &builder{run: r}
	base := top.in(insideName(r.job.Model))
	d.embed = base.scaledEmbedding("embed_tokens", c.Vocab, c.Hidden)
	for i := range c.Layers {
		b := base.in(fmt.Sprintf("layers.%d", i))
		d.layers = append(d.layers, &gemmaLayer{
			attention: b.gemmaAttention("self_attn"),
			mlp:       b.gatedMLP("mlp", c.Hidden, c.Intermediate, false, c.Activation),
			input:     b.centredNorm("input_layernorm", c.Hidden),
			attended:  b.centredNorm("post_attention_layernorm", c.Hidden),
			middle:    b.centredNorm("pre_feedforward_layernorm", c.Hidden),
			mixed:     b.centredNorm("post_feedforward_layernorm", c.Hidden),
		})
	}
	d.norm = base.centredNorm("norm", c.Hidden)
	tables := base.rotaries("rotary_emb", c.Rope.Dim, max(c.Rope.Tables, 1))
	d.rotary = tables[0]
	if len(tables) > 1 {
		d.local = tables[1]
	}
	d.head, d.tail = top.head(d.embed), top.decoderTail()
	return d
}

// gemmaAttention is Gemma2Attention and Gemma3Attention. The first caps its
// scores, as far as the attention is eager; the other has norms on q and k.
func (b *builder) gemmaAttention(name string) *llamaAttention {
	c := b.run.job.Model
	a := b.llamaAttention(name)
	capped := c.Family == "gemma2" && c.AttnSoftcap > 0
	a.attend = func(r *run, a attention) (out, weights *eager.Tensor) {
		a.softcap, a.bidirectional = capped, c.Bidirectional
		return attend(r, a)
	}
	if c.Family == "gemma3" {
		in := b.in(name)
		a.qNorm, a.kNorm = in.centredNorm("q_norm", c.HeadDim), in.centredNorm("k_norm", c.HeadDim)
		a.normAt = normHeads
	}
	return a
}

func (l *gemmaLayer) forward(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	m := r.machine
	h := l.input.forward(r, x)
	a, weights := l.attention.forward(r, h, c)
	defer weights.Drop()
	h = replace(h, a)
	h = replace(h, l.attended.forward(r, h))
	residual := m.Add(x, h)
	h.Drop()
	h = l.middle.forward(r, residual)
	h = replace(h, l.mlp.forward(r, h))
	h = replace(h, l.mixed.forward(r, h))
	y := m.Add(residual, h)
	eager.Drop(h, residual)
	return y
}

// scaledEmbedding is Gemma3TextScaledWordEmbedding: its factor is a tensor.
func (b *builder) scaledEmbedding(name string, rows, width int) *embedding {
	e := b.embedding(name, rows, width)
	e.scale = b.in(name).buffer(b.run.dtype, "embed_scale")
	return e
}

// centredNorm is Gemma's RMSNorm: it works in fp32 to its end, and its weight
// is what is to be added to 1.
type centredNorm struct {
	label  ledger.Name
	weight *eager.Tensor
}

func (b *builder) centredNorm(name string, width int) *centredNorm {
	return &centredNorm{label: b.label(name), weight: b.in(name).weight("weight", int64(width))}
}

func (n *centredNorm) forward(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(n.label)
	defer m.Enter(before)
	h := m.To(x, eager.Float32)
	v := m.Pow(h)
	v = replace(v, m.Mean(v))
	v = replace(v, m.AddScalar(v))
	v = replace(v, m.Rsqrt(v))
	scaled := m.Mul(h, v)
	eager.Drop(v, h)
	w := m.To(n.weight, eager.Float32)
	w = replace(w, m.AddScalar(w))
	wide := m.Mul(scaled, w)
	eager.Drop(w, scaled)
	y := m.To(wide, x.DType())
	wide.Drop()
	return y
}

// finishLogits is what a family does to the logits: granite and cohere2 scale
// them, gemma caps them if the config has a final_logit_softcapping. It takes
// them over.
func finishLogits(r *run, logits *eager.Tensor) *eager.Tensor {
	m := r.machine
	switch r.job.Model.Family {
	case "granite":
		return replace(logits, m.DivScalar(logits))
	case "cohere2":
		return replace(logits, m.Scale(logits))
	}
	if r.job.Model.FinalSoftcap == 0 {
		return logits
	}
	logits = replace(logits, m.DivScalar(logits))
	logits = replace(logits, m.ByResult("tanh", logits))
	return replace(logits, m.Scale(logits))
}

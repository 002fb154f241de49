package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// whisper is WhisperForConditionalGeneration: bart's layers with norms before
// their parts, and sound in the place of the encoder's tokens.
type whisper struct {
	convolutions [2]convolution
	places       *embedding // of the encoder, frozen
	encoder      []layer
	encoded      *layerNorm
	words        *embedding
	positions    *eager.Tensor
	decoder      []layer
	decoded      *layerNorm
	head         *linear
	dropout      float64
}

// convolution is nn.Conv1d.
type convolution struct {
	label        ledger.Name
	weight, bias *eager.Tensor
}

func (b *builder) convolution(name string, in, out, taps int) convolution {
	c := b.in(name)
	return convolution{b.label(name), c.weight("weight", int64(out), int64(in), int64(taps)), c.weight("bias", int64(out))}
}

func newWhisper(r *run) network {
	c := r.job.Model
	n := &whisper{dropout: c.EmbeddingDropout}
	top, base := r.builders("model")
	in := base.in("encoder")
	n.convolutions[0] = in.convolution("conv1", c.Audio.Mels, c.Hidden, 3)
	n.convolutions[1] = in.convolution("conv2", c.Hidden, c.Hidden, 3)
	n.places = in.embedding("embed_positions", c.Audio.Positions, c.Hidden)
	n.places.weight.Freeze()
	for i := range c.Layers {
		n.encoder = append(n.encoder, in.in(fmt.Sprintf("layers.%d", i)).bartLayer(c.Heads, c.Intermediate, false))
	}
	n.encoded = in.layerNorm("layer_norm", c.Hidden)
	in = base.in("decoder")
	n.words = in.embedding("embed_tokens", c.Vocab, c.Hidden)
	n.positions = in.weight("embed_positions.weight", int64(c.MaxPositions), int64(c.Hidden))
	for i := range c.Bart.DecoderLayers {
		n.decoder = append(n.decoder, in.in(fmt.Sprintf("layers.%d", i)).bartLayer(c.Bart.DecoderHeads, c.Bart.DecoderIntermediate, true))
	}
	n.decoded = in.layerNorm("layer_norm", c.Hidden)
	if c.Head != model.HeadNone {
		n.head = top.tiedDecoder("proj_out", n.words, false)
	}
	r.note("cuDNN's workspaces for the gradients of the two kernels over sound, as far as they are more than copies")
	return n
}

func (n *whisper) loss(r *run, in *batch) *eager.Tensor {
	m := r.machine
	ids := shiftRight(r, in.labels)
	states := n.encode(r, in.pixels)
	h := n.decode(r, ids, states)
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	logits := n.head.forward(r, h)
	flat := m.View(logits, -1, logits.Size(2))
	target := m.Reshape(in.labels, -1)
	loss := m.CrossEntropy(flat, target)
	r.output(logits, states)
	eager.Drop(flat, target, ids, logits, h, states)
	return loss
}

// encode runs the encoder. Its residual stream lies in memory as the
// convolutions left it: position by position of each channel.
func (n *whisper) encode(r *run, sound *eager.Tensor) *eager.Tensor {
	m := r.machine
	x := sound.Keep()
	for i, c := range n.convolutions {
		before := m.Enter(c.label)
		y := m.Conv1d(x, c.weight, c.bias, int64(i)+1, 1)
		m.Enter(before)
		x = replace(x, replace(y, m.Activation("gelu", y)))
	}
	x = replace(x, m.Permute(x, 0, 2, 1))
	if r.inputGrad {
		m.RequireGrad(x)
	}
	at := m.Empty("arange", eager.Int64, n.places.weight.Size(0))
	p := n.places.forward(r, at)
	h := m.Add(x, p)
	p.Drop()
	h = replace(h, m.Dropout(h, n.dropout, r.trains))
	h = r.through(n.encoder, h, func(i int) shared { return shared{layer: i} })
	h = replace(h, n.encoded.forward(r, h))
	eager.Drop(x, at)
	return h
}

func (n *whisper) decode(r *run, ids, states *eager.Tensor) *eager.Tensor {
	m := r.machine
	x := n.words.forward(r, ids)
	one := positionIDs(r, x.Size(1))
	each := m.Expand(one, x.Size(0), x.Size(1))
	at := m.Unary("repeat", each)
	eager.Drop(each, one)
	p := m.Index(n.positions, at)
	h := m.Add(x, p)
	h = replace(h, m.Dropout(h, n.dropout, r.trains))
	mask := causalMask(r, maskArgs{x: x, positions: at}, 0)
	h = r.through(n.decoder, h, func(i int) shared {
		return shared{mask: mask, layer: i, t5: &t5Call{states: states}}
	})
	h = replace(h, n.decoded.forward(r, h))
	eager.Drop(x, at, p, mask)
	return h
}

// forwardBefore is WhisperEncoderLayer and WhisperDecoderLayer: norms come before
// the parts.
func (l *bartLayer) forwardBefore(r *run, x *eager.Tensor, c *shared) *eager.Tensor {
	m := r.machine
	add := func(residual, y *eager.Tensor) *eager.Tensor {
		y = replace(y, m.Dropout(y, l.dropout, r.trains))
		return replace(y, m.Add(residual, y))
	}
	n := l.selfNorm.forward(r, x)
	y, weights := l.self.forward(r, n, n, c.mask)
	h := add(x, replace(n, y))
	if l.cross != nil {
		n = l.crossNorm.forward(r, h)
		y, w := l.cross.forward(r, n, c.t5.states, c.t5.mask)
		weights = replace(weights, w)
		h = replace(h, add(h, replace(n, y)))
	}
	f := l.final.forward(r, h)
	up := l.up.forward(r, f)
	f = rebind(f, activate(r, l.act, up), up)
	f = replace(f, m.Dropout(f, l.inner, r.trains))
	f = replace(f, l.down.forward(r, f))
	out := add(h, f)
	eager.Drop(h, weights)
	return out
}

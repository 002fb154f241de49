package plan

import (
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// work is the arithmetic of one forward pass, in floating-point operations of
// matrix products. It says what recomputation costs: the part of the forward
// pass that is done again.
type work struct {
	layers []float64 // one for each layer; of t5 the encoder's, then the decoder's
	head   float64
	passes float64 // of a training step without recomputation, in forward passes
}

// workOf counts the arithmetic of a job.
func workOf(j *model.Job) work {
	m := j.Model
	c := counter{model: m, batch: float64(j.Batch), seq: float64(j.Seq)}
	if m.ViT != nil {
		c.seq = float64(m.ViT.Tokens())
	}
	if m.Audio != nil {
		c.seq = float64(m.Audio.Positions)
	}
	w := work{passes: 3} // the backward pass makes two gradients of each product
	if j.LoRA.Rank > 0 {
		w.passes = 2 // frozen weights need no gradient
	}
	for i := range m.Layers {
		w.layers = append(w.layers, c.layer(i))
	}
	if m.Pair() {
		encoder := c.seq
		c.seq = float64(j.TargetSeq)
		for range m.DecoderLayers() {
			cross := 2*c.tokens()*c.projections() + c.scores(c.seq, encoder)
			w.layers = append(w.layers, c.layer(0)+cross)
		}
	}
	w.head = 2 * c.tokens() * float64(m.Hidden) * float64(max(m.Vocab, m.NumLabels))
	if m.ViT != nil {
		w.head = 2 * c.batch * float64(m.Hidden) * float64(m.NumLabels)
	}
	return w
}

// total is the arithmetic of a training step without recomputation.
func (w work) total() float64 {
	sum := w.head
	for _, l := range w.layers {
		sum += l
	}
	return w.passes * sum
}

// extra is the part of a step's arithmetic that recomputing layers adds.
func (w work) extra(layers ...int) float64 {
	var again float64
	for _, i := range layers {
		again += w.layers[i]
	}
	return again / w.total()
}

// extraAll is extra for all layers.
func (w work) extraAll() float64 {
	var again float64
	for _, l := range w.layers {
		again += l
	}
	return again / w.total()
}

// extraHead is the part that recomputing the head adds.
func (w work) extraHead() float64 { return w.head / w.total() }

type counter struct {
	model      *model.Model
	batch, seq float64
}

func (c counter) tokens() float64 { return c.batch * c.seq }

// layer is the arithmetic of one layer.
func (c counter) layer(i int) float64 {
	m := c.model
	n := 2 * c.tokens()
	var sum float64
	switch {
	case m.Linear != nil && i < len(m.LayerTypes) && m.LayerTypes[i] == model.LinearAttention:
		keys, values := float64(m.Linear.KeyHeads*m.Linear.KeyDim), float64(m.Linear.ValueHeads*m.Linear.ValueDim)
		sum = n * float64(m.Hidden) * (2*keys + 3*values + 2*float64(m.Linear.ValueHeads))
		// The state of each value head is read, changed and written once a token.
		sum += 3 * n * float64(m.Linear.ValueHeads*m.Linear.KeyDim*m.Linear.ValueDim)
	default:
		seen := c.seq
		if w := float64(m.Window(i)); w > 0 {
			seen = min(seen, w)
		}
		sum = n*c.projections() + c.scores(c.seq, seen)
	}
	return sum + n*c.mlp(i)
}

// projections are the weights that attention multiplies a token with.
func (c counter) projections() float64 {
	m := c.model
	h := float64(m.Hidden)
	if a := m.MLA; a != nil {
		heads := float64(m.Heads)
		q := h * heads * float64(a.QKHeadDim)
		if a.QRank > 0 {
			q = float64(a.QRank) * (h + heads*float64(a.QKHeadDim))
		}
		return q + h*float64(a.KVRank+a.RopeDim) + float64(a.KVRank)*heads*float64(a.NopeDim+a.VDim) + heads*float64(a.VDim)*h
	}
	d := float64(m.HeadDim)
	return 2*h*d*float64(m.Heads) + 2*h*d*float64(m.KVHeads)
}

// scores is attention itself: queries with keys, weights with values.
func (c counter) scores(queries, keys float64) float64 {
	m := c.model
	width := 2 * float64(m.HeadDim)
	if m.MLA != nil {
		width = float64(m.MLA.QKHeadDim + m.MLA.VDim)
	}
	all := 2 * c.batch * float64(m.Heads) * queries * keys * width
	if !m.Bidirectional && queries == keys {
		all /= 2 // the kernels leave out what a causal mask hides
	}
	return all
}

// mlp are the weights that an MLP or the experts multiply a token with.
func (c counter) mlp(i int) float64 {
	m := c.model
	h, mats := float64(m.Hidden), 2.0
	if m.GatedMLP {
		mats = 3
	}
	if e := m.MoE; m.Sparse(i) {
		return h*float64(e.Experts) + 3*h*float64(e.TopK*e.Intermediate+e.SharedIntermediate)
	}
	return mats * h * float64(m.Intermediate)
}

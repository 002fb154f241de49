package hf

import (
	"cmp"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// towers is CLIPModel and SiglipModel: a tower of text and one of images, or the
// latter alone with a classifier.
type towers struct {
	siglip      bool
	text        *textTower // nil without one
	image       *imageTower
	toText      *linear // clip: into the width that both meet in
	toImage     *linear
	scale, bias *eager.Tensor
	classifier  *linear
}

func newTowers(r *run) network {
	c := r.job.Model
	n := &towers{siglip: c.Family == "siglip"}
	top := &builder{run: r}
	if c.Head != model.HeadContrastive {
		n.image = top.imageTower("vision_model", c)
		if c.Head == model.HeadImage {
			n.classifier = top.imageClassifier(c.Hidden)
		}
		return n
	}
	n.text = top.textTower("text_model", c)
	n.image = top.imageTower("vision_model", c.Vision)
	if n.siglip {
		n.scale, n.bias = top.weight("logit_scale", 1), top.weight("logit_bias", 1)
	} else {
		n.toImage = top.headLinear("visual_projection", c.Vision.Hidden, c.Projection, false)
		n.toText = top.headLinear("text_projection", c.Hidden, c.Projection, false)
		n.scale = top.weight("logit_scale")
	}
	// The parameters of the module itself are listed before those of its parts.
	own := 1
	if n.siglip {
		own = 2
	}
	last := len(r.params) - own
	r.params = append(append([]Parameter{}, r.params[last:]...), r.params[:last]...)
	return n
}

func (n *towers) loss(r *run, in *batch) *eager.Tensor {
	if n.classifier != nil {
		return n.classified(r, in)
	}
	m := r.machine
	images, pooledImage := n.image.forward(r, in.pixels)
	pooledImage = n.project(r, n.toImage, pooledImage)
	texts, pooledText := n.text.forward(r, in)
	pooledText = n.project(r, n.toText, pooledText)
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	image, text := overLength(r, pooledImage), overLength(r, pooledText)
	turned := m.Transpose(image, 0, 1)
	logits := m.Matmul(text, turned)
	turned.Drop()
	s := m.Exp(n.scale)
	logits = rebind(logits, m.Mul(logits, s), s)
	if n.siglip {
		logits = replace(logits, m.Add(logits, n.bias))
	}
	loss := n.compare(r, logits)
	r.output(logits, image, text)
	eager.Drop(logits, text, image, texts, pooledText, images, pooledImage)
	return loss
}

// project brings a tower's output to the common width. It takes x over.
func (n *towers) project(r *run, l *linear, x *eager.Tensor) *eager.Tensor {
	if l == nil {
		return x
	}
	return replace(x, l.forward(r, x))
}

// overLength is x over its length.
func overLength(r *run, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	p := m.Pow(x)
	p = replace(p, m.Sum(p, -1, true))
	p = replace(p, m.Pow(p))
	y := m.Div(x, p)
	p.Drop()
	return y
}

// compare is the loss of the similarities [texts, images].
func (n *towers) compare(r *run, logits *eager.Tensor) *eager.Tensor {
	m := r.machine
	rows := logits.Size(0)
	if n.siglip {
		signs := m.Empty("eye", eager.Float32, rows, rows)
		p := m.Mul(signs, logits)
		p = replace(p, m.Activation("log_sigmoid", p))
		p = replace(p, m.Sum(p, -1, false))
		p = replace(p, m.Neg(p))
		y := m.Sum(p, 0, false)
		eager.Drop(p, signs)
		return y
	}
	at := m.Empty("arange", eager.Int64, rows)
	a := m.CrossEntropy(logits, at)
	turned := m.Transpose(logits, 0, 1)
	b := m.CrossEntropy(turned, at)
	sum := m.Add(a, b)
	eager.Drop(a, b, turned, at)
	return replace(sum, m.DivScalar(sum))
}

// classified is the loss of CLIPForImageClassification and Siglip's: the mean of
// the patches is classified.
func (n *towers) classified(r *run, in *batch) *eager.Tensor {
	m := r.machine
	states, pooled := n.image.forward(r, in.pixels)
	kind := m.Kind(ledger.Loss)
	defer m.Kind(kind)
	r.phase(ledger.LossPhase)
	from := states.Keep()
	if !n.siglip {
		from = replace(from, m.Narrow(states, 1, states.Size(1)-1))
	}
	mean := m.MeanOver(from, 1)
	from.Drop()
	logits := n.classifier.forward(r, mean)
	loss := classLoss(r, logits, in.labels)
	r.output(logits)
	eager.Drop(mean, logits, states, pooled)
	return loss
}

// towerLayer is CLIPEncoderLayer and SiglipEncoderLayer, which differ in the order
// of their parts alone.
func (b *builder) towerLayer(c *model.Model) layer {
	l := &llamaLayer{}
	if c.Family == "siglip" {
		l.input = b.layerNorm("layer_norm1", c.Hidden)
		l.attention = b.towerAttention("self_attn", c)
		l.middle = b.layerNorm("layer_norm2", c.Hidden)
		l.mlp = b.towerMLP("mlp", c)
		return l
	}
	l.attention = b.towerAttention("self_attn", c)
	l.input = b.layerNorm("layer_norm1", c.Hidden)
	l.mlp = b.towerMLP("mlp", c)
	l.middle = b.layerNorm("layer_norm2", c.Hidden)
	return l
}

func (b *builder) towerAttention(name string, c *model.Model) *llamaAttention {
	in := b.in(name)
	a := &llamaAttention{
		label: b.label(name), headDim: int64(c.HeadDim), dropout: c.AttentionDropout, late: c.Family == "clip",
		attend: func(r *run, a attention) (out, weights *eager.Tensor) {
			a.bidirectional = c.Bidirectional
			return attend(r, a)
		},
	}
	a.k = in.linear("k_proj", c.Hidden, c.Hidden, true)
	a.v = in.linear("v_proj", c.Hidden, c.Hidden, true)
	a.q = in.linear("q_proj", c.Hidden, c.Hidden, true)
	a.o = in.linear("out_proj", c.Hidden, c.Hidden, true)
	return a
}

func (b *builder) towerMLP(name string, c *model.Model) *plainMLP {
	in := b.in(name)
	return &plainMLP{up: in.linear("fc1", c.Hidden, c.Intermediate, true), down: in.linear("fc2", c.Intermediate, c.Hidden, true), act: c.Activation}
}

func (b *builder) towerLayers(c *model.Model) (out []layer) {
	for i := range c.Layers {
		out = append(out, b.in(fmt.Sprintf("encoder.layers.%d", i)).towerLayer(c))
	}
	return out
}

// textTower is CLIPTextModel and SiglipTextModel.
type textTower struct {
	words, positions *embedding
	ids              *eager.Tensor
	layers           []layer
	norm             *layerNorm
	head             *linear // siglip
	bidirectional    bool
}

func (b *builder) textTower(name string, c *model.Model) *textTower {
	in := b.in(name)
	t := &textTower{bidirectional: c.Bidirectional}
	t.words = in.embedding("embeddings.token_embedding", c.Vocab, c.Hidden)
	t.positions = in.embedding("embeddings.position_embedding", c.MaxPositions, c.Hidden)
	t.ids = in.buffer(eager.Int64, "embeddings.position_ids", 1, int64(c.MaxPositions))
	t.layers = in.towerLayers(c)
	t.norm = in.layerNorm("final_layer_norm", c.Hidden)
	if t.bidirectional {
		t.head = in.headLinear("head", c.Hidden, cmp.Or(c.Projection, c.Hidden), true)
	}
	return t
}

// forward returns the states and what they are pooled to.
func (t *textTower) forward(r *run, in *batch) (states, pooled *eager.Tensor) {
	m := r.machine
	at := m.Slice(t.ids, 1, in.ids.Size(1))
	w := t.words.forward(r, in.ids)
	p := t.positions.forward(r, at)
	x := m.Add(w, p)
	eager.Drop(at, w, p)
	args := maskArgs{x: x, attention: in.mask}
	var mask *eager.Tensor
	if t.bidirectional {
		mask = bidirectionalMask(r, args, 0)
	} else {
		mask = causalMask(r, args, 0)
	}
	h := r.layers(t.layers, x, func(i int) shared { return shared{mask: mask, layer: i} })
	states = t.norm.forward(r, h)
	if t.head != nil {
		last := m.Select(states, 1)
		pooled = replace(last, t.head.forward(r, last))
	} else {
		pooled = t.marked(r, in.ids, states)
	}
	eager.Drop(mask, x, h)
	return states, pooled
}

// marked is the state of the token that ends each text.
func (t *textTower) marked(r *run, ids, states *eager.Tensor) *eager.Tensor {
	m := r.machine
	rows := m.Empty("arange", eager.Int64, ids.Size(0))
	narrow := m.To(ids, eager.Int32)
	end := replace(narrow, m.Compare("eq", narrow))
	end = replace(end, m.To(end, eager.Int32))
	last := replace(end, m.Argmax(end))
	flat := m.View(states, -1, states.Size(2))
	y := m.Index(flat, last)
	eager.Drop(flat, last, rows)
	return y
}

// imageTower is CLIPVisionModel and SiglipVisionModel.
type imageTower struct {
	label        ledger.Name
	class        *eager.Tensor // clip
	weight, bias *eager.Tensor
	positions    *embedding
	ids          *eager.Tensor
	before       *layerNorm // clip
	layers       []layer
	after        *layerNorm
	head         *attentionPool // siglip
}

func (b *builder) imageTower(name string, c *model.Model) *imageTower {
	in, v := b.in(name), c.ViT
	t := &imageTower{label: in.label("embeddings")}
	patches, rows := in.in("embeddings.patch_embedding"), v.Patches()
	clip := c.Family == "clip"
	if clip {
		rows = v.Tokens()
		t.class = in.weight("embeddings.class_embedding", int64(c.Hidden))
	}
	t.weight = patches.weight("weight", int64(c.Hidden), int64(v.Channels), int64(v.PatchHeight), int64(v.PatchWidth))
	if !clip {
		t.bias = patches.weight("bias", int64(c.Hidden))
	}
	t.positions = in.embedding("embeddings.position_embedding", rows, c.Hidden)
	t.ids = in.buffer(eager.Int64, "embeddings.position_ids", 1, int64(rows))
	if clip {
		t.before = in.layerNorm("pre_layrnorm", c.Hidden)
	}
	t.layers = in.towerLayers(c)
	t.after = in.layerNorm("post_layernorm", c.Hidden)
	if !clip {
		t.head = in.attentionPool("head", c)
	}
	return t
}

// forward returns the states and what they are pooled to.
func (t *imageTower) forward(r *run, pixels *eager.Tensor) (states, pooled *eager.Tensor) {
	m := r.machine
	x := t.embed(r, pixels)
	if t.before != nil {
		x = replace(x, t.before.forward(r, x))
	}
	h := r.layers(t.layers, x, func(i int) shared { return shared{layer: i} })
	if t.head == nil {
		first := m.Select(h, 1)
		pooled = replace(first, t.after.forward(r, first))
		x.Drop()
		return h, pooled
	}
	states = t.after.forward(r, h)
	pooled = t.head.forward(r, states)
	eager.Drop(x, h)
	return states, pooled
}

func (t *imageTower) embed(r *run, pixels *eager.Tensor) *eager.Tensor {
	m := r.machine
	before := m.Enter(t.label)
	defer m.Enter(before)
	y := m.PatchConv(pixels, t.weight, t.bias)
	defer y.Drop()
	flat := m.View(y, y.Size(0), y.Size(1), -1)
	h := replace(flat, m.Transpose(flat, 1, 2))
	if r.inputGrad {
		m.RequireGrad(h)
	}
	if t.class != nil {
		class := m.Expand(t.class, h.Size(0), 1, -1)
		h = replace(h, m.Cat(1, class, h))
		class.Drop()
	}
	p := t.positions.forward(r, t.ids)
	return rebind(h, m.Add(h, p), p)
}

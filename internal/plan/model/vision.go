package model

import "encoding/json"

// Dino is what dinov2 adds to a vision transformer.
type Dino struct {
	SwiGLU    bool // a gated MLP
	MaskToken bool // a parameter that no classifier uses
}

func readDinov2(f *fields) {
	m := f.model
	m.Hidden = f.count(768, maxWidth, "hidden_size")
	m.Layers = f.count(12, maxLayers, "num_hidden_layers")
	m.Heads = f.count(12, maxWidth, "num_attention_heads")
	m.Intermediate = m.Hidden * f.count(4, maxWidth, "mlp_ratio")
	m.ResidualDropout = f.share(0, "hidden_dropout_prob")
	m.AttentionDropout = f.share(0, "attention_probs_dropout_prob")
	m.EmbeddingDropout = m.ResidualDropout
	m.QKVBias = f.flag(true, "qkv_bias")
	m.OutBias, m.MLPBias, m.Bidirectional = true, true, true
	f.activation("gelu", "hidden_act")
	m.Dino = &Dino{SwiGLU: f.flag(false, "use_swiglu_ffn"), MaskToken: f.flag(true, "use_mask_token")}
	if m.Dino.SwiGLU {
		m.Intermediate = (m.Intermediate*2/3 + 7) / 8 * 8
	}
	if f.share(0, "drop_path_rate") > 0 {
		f.fail("%sdrop_path_rate drops parts of layers by chance, which is not planned: set it to 0", f.at)
	}
	f.plainHeads()
	f.wholeHeads()
	f.uniform(FullAttention)
	f.labels()
	f.images(224, 14)
}

// images reads what a vision transformer is given.
func (f *fields) images(image, patch int) {
	v := &ViT{Channels: f.count(3, maxWidth, "num_channels")}
	v.ImageHeight, v.ImageWidth = f.pair(image, "image_size")
	v.PatchHeight, v.PatchWidth = f.pair(patch, "patch_size")
	f.model.ViT = v
	if f.err == nil && v.Patches() == 0 {
		f.fail("a %dx%d image holds no %dx%d patch: check image_size and patch_size", v.ImageHeight, v.ImageWidth, v.PatchHeight, v.PatchWidth)
	}
}

// tower is a part of a model of two towers, text and images.
type tower struct {
	config              string
	vocab, positions    int // of text
	hidden, heads, feed int
	patch               int // of images
	act                 string
}

// read reads a tower into a model of its own, or into the model itself.
func (t tower) read(f *fields, into *Model) {
	raw, _, st := f.find(t.config)
	inner := newFields(into, map[string]json.RawMessage{}, t.config+".")
	if st == given {
		if err := json.Unmarshal(raw, &inner.raw); err != nil {
			f.fail("%s is %s; it must be an object", t.config, show(raw))
			return
		}
	}
	into.Hidden = inner.count(t.hidden, maxWidth, "hidden_size")
	into.Layers = inner.count(12, maxLayers, "num_hidden_layers")
	into.Heads = inner.count(t.heads, maxWidth, "num_attention_heads")
	into.Intermediate = inner.count(t.feed, maxWidth, "intermediate_size")
	into.AttentionDropout = inner.share(0, "attention_dropout")
	into.QKVBias, into.OutBias, into.MLPBias = true, true, true
	inner.activation(t.act, "hidden_act")
	inner.plainHeads()
	inner.wholeHeads()
	inner.uniform(FullAttention)
	if t.patch > 0 {
		into.Bidirectional = true
		inner.images(224, t.patch)
	} else {
		into.Vocab = inner.count(t.vocab, maxVocab, "vocab_size")
		into.MaxPositions = inner.count(t.positions, maxPositions, "max_position_embeddings")
		into.Projection = inner.derived(into.Hidden, maxWidth, "hidden_size", "projection_size")
	}
	if inner.err != nil && f.err == nil {
		f.err = inner.err
	}
}

// towers reads both towers, or that of the images alone.
func (f *fields) towers(text, image tower) {
	m := f.model
	f.labels()
	f.used[text.config], f.used[image.config] = true, true
	if m.Head == HeadImage {
		image.read(f, m)
		return
	}
	text.read(f, m)
	m.Vision = &Model{Family: m.Family, ModelType: m.ModelType}
	image.read(f, m.Vision)
	m.Assumed = append(m.Assumed, m.Vision.Assumed...)
	m.Vision.Assumed = nil
}

func readCLIP(f *fields) {
	f.towers(
		tower{config: "text_config", vocab: 49408, positions: 77, hidden: 512, heads: 8, feed: 2048, act: "quick_gelu"},
		tower{config: "vision_config", hidden: 768, heads: 12, feed: 3072, patch: 32, act: "quick_gelu"})
	f.model.Projection = f.count(512, maxWidth, "projection_dim")
}

func readSiglip(f *fields) {
	f.towers(
		tower{config: "text_config", vocab: 32000, positions: 64, hidden: 768, heads: 12, feed: 3072, act: "gelu_pytorch_tanh"},
		tower{config: "vision_config", hidden: 768, heads: 12, feed: 3072, patch: 16, act: "gelu_pytorch_tanh"})
	m := f.model
	m.Bidirectional = true
	if f.err == nil && m.Vision != nil && m.Projection != m.Vision.Hidden {
		f.fail("text_config.projection_size is %d and vision_config.hidden_size %d: siglip compares the two, so they must agree", m.Projection, m.Vision.Hidden)
	}
}

package model

import (
	"encoding/json"
	"strconv"
	"strings"
)

// The families older than rotary positions: gpt2, bert, t5 and vit.

func readGPT2(f *fields) {
	m := f.model
	m.Vocab = f.count(50257, maxVocab, "vocab_size")
	m.Hidden = f.count(768, maxWidth, "n_embd", "hidden_size")
	m.Layers = f.count(12, maxLayers, "n_layer", "num_hidden_layers")
	m.Heads = f.count(12, maxWidth, "n_head", "num_attention_heads")
	m.MaxPositions = f.count(1024, maxPositions, "n_positions", "max_position_embeddings")
	m.Intermediate = f.derived(4*m.Hidden, maxWidth, "4 x n_embd", "n_inner")
	m.Tied = f.flag(true, "tie_word_embeddings")
	m.UseCache = f.flag(true, "use_cache")
	m.EmbeddingDropout = f.share(0.1, "embd_pdrop")
	m.ResidualDropout = f.share(0.1, "resid_pdrop")
	m.AttentionDropout = f.share(0.1, "attn_pdrop")
	m.QKVBias, m.OutBias, m.MLPBias = true, true, true
	f.activation("gelu_new", "activation_function")
	f.plainHeads()
	f.wholeHeads()
	f.uniform(FullAttention)
	f.labels()
}

func readBert(f *fields) { f.bertLike(30522) }

// bertLike reads bert and what is built like it.
func (f *fields) bertLike(vocab int) {
	m := f.model
	m.Vocab = f.count(vocab, maxVocab, "vocab_size")
	f.encoder()
	m.MaxPositions = f.count(512, maxPositions, "max_position_embeddings")
	m.TypeVocab = f.count(2, maxVocab, "type_vocab_size")
	m.Tied = f.flag(true, "tie_word_embeddings")
	m.ResidualDropout = f.share(0.1, "hidden_dropout_prob")
	m.AttentionDropout = f.share(0.1, "attention_probs_dropout_prob")
	m.EmbeddingDropout = m.ResidualDropout
	m.QKVBias = true
	f.wholeHeads()
}

func readViT(f *fields) {
	m := f.model
	f.encoder()
	m.ResidualDropout = f.share(0, "hidden_dropout_prob")
	m.AttentionDropout = f.share(0, "attention_probs_dropout_prob")
	m.EmbeddingDropout = m.ResidualDropout
	m.QKVBias = f.flag(true, "qkv_bias")
	f.images(224, 16)
	m.ViT.PoolerSize = m.Hidden
	if raw, name, st := f.find("pooler_output_size"); st == given && show(raw) != "0" {
		m.ViT.PoolerSize = f.whole(raw, name, 1, maxWidth)
	}
}

// encoder reads what bert and vit share: the defaults of the base size.
func (f *fields) encoder() {
	m := f.model
	m.Hidden = f.count(768, maxWidth, "hidden_size")
	m.Layers = f.count(12, maxLayers, "num_hidden_layers")
	m.Heads = f.count(12, maxWidth, "num_attention_heads")
	m.Intermediate = f.count(3072, maxWidth, "intermediate_size")
	m.OutBias, m.MLPBias, m.Bidirectional = true, true, true
	f.activation("gelu", "hidden_act")
	f.plainHeads()
	f.uniform(FullAttention)
	f.labels()
}

// plainHeads sets heads that are not grouped and have no field of their own.
func (f *fields) plainHeads() {
	f.model.KVHeads = f.model.Heads
	f.model.HeadDim = f.model.Hidden / f.model.Heads
	if f.err == nil && f.model.HeadDim == 0 {
		f.fail("%d heads are more than the hidden size %d", f.model.Heads, f.model.Hidden)
	}
}

func readT5(f *fields) {
	m := f.model
	m.Vocab = f.count(32128, maxVocab, "vocab_size")
	m.Hidden = f.count(512, maxWidth, "d_model", "hidden_size")
	m.HeadDim = f.count(64, maxWidth, "d_kv", "head_dim")
	m.Intermediate = f.count(2048, maxWidth, "d_ff")
	m.Layers = f.count(6, maxLayers, "num_layers", "num_hidden_layers")
	m.Heads = f.count(8, maxWidth, "num_heads", "num_attention_heads")
	m.KVHeads = m.Heads
	m.ResidualDropout = f.share(0.1, "dropout_rate")
	m.EmbeddingDropout, m.AttentionDropout = m.ResidualDropout, m.ResidualDropout
	m.UseCache = f.flag(true, "use_cache")
	m.T5 = &T5{
		DecoderLayers:       f.derived(m.Layers, maxLayers, "num_layers", "num_decoder_layers"),
		RelativeBuckets:     f.count(32, maxWidth, "relative_attention_num_buckets"),
		RelativeMaxDistance: f.count(128, maxPositions, "relative_attention_max_distance"),
	}
	f.feedForward()
	f.scaling()
	f.uniform(FullAttention)
	f.labels()
}

// feedForward reads t5's one field for two facts: "gated-gelu" is a gated MLP
// with the python gelu, "relu" a plain one.
func (f *fields) feedForward() {
	proj := f.named("relu", "feed_forward_proj")
	parts := strings.Split(proj, "-")
	if len(parts) > 2 || len(parts) == 2 && parts[0] != "gated" {
		f.fail("%sfeed_forward_proj is %q; it must be an activation or gated- and an activation", f.at, proj)
		return
	}
	act, gated := parts[len(parts)-1], parts[0] == "gated"
	if proj == "gated-gelu" {
		act = "gelu_new"
	}
	// Saved files repeat what follows from it, and the repetition counts.
	if text := f.word("dense_act_fn"); text != "" {
		act = text
	}
	if f.has("is_gated_act") {
		gated = f.flag(gated, "is_gated_act")
	}
	f.model.Activation, f.model.GatedMLP = act, gated
	f.known("feed_forward_proj", act)
}

// scaling reads t5's tie_word_embeddings, which since version 5 no longer says
// whether the head is tied (it always is) but whether its input is scaled.
func (f *fields) scaling() {
	f.model.Tied = true
	scale := true
	if f.has("tie_word_embeddings") {
		scale = f.flag(true, "tie_word_embeddings")
		if !scale {
			f.ignore("tie_word_embeddings", "false", "transformers 5 always ties the head of t5")
		}
	}
	if f.has("scale_decoder_outputs") {
		scale = f.flag(scale, "scale_decoder_outputs")
	}
	f.model.T5.ScaleDecoderOutputs = scale
}

// pair reads a size that is one number or two: height and width.
func (f *fields) pair(def int, name string) (height, width int) {
	raw, _, st := f.find(name)
	if st != given {
		f.assume(name, strconv.Itoa(def), st.why(f.preset()))
		return def, def
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		n := f.whole(raw, name, 1, maxWidth)
		return n, n
	}
	if len(list) != 2 {
		f.fail("%s is %s; it must be one number or a list of two", f.at+name, show(raw))
		return def, def
	}
	return f.whole(list[0], name, 1, maxWidth), f.whole(list[1], name, 1, maxWidth)
}

// labels reads how many classes a classifier has: id2label's entries, else
// num_labels, else two.
func (f *fields) labels() {
	m := f.model
	m.NumLabels = 2
	if m.Family == "bart" {
		m.NumLabels = 3
	}
	if raw, name, st := f.find("id2label"); st == given {
		var table map[string]json.RawMessage
		if err := json.Unmarshal(raw, &table); err != nil {
			f.fail("%s is %s; it must be an object", f.at+name, show(raw))
			return
		}
		m.NumLabels = len(table)
		f.used["num_labels"] = true
		return
	}
	raw, name, st := f.find("num_labels")
	switch {
	case st == given:
		m.NumLabels = f.whole(raw, name, 0, maxVocab)
	case m.Head == HeadImage, m.Head == HeadSequence, m.Head == HeadToken:
		f.assume(name, strconv.Itoa(m.NumLabels), st.why("transformers' default"))
	}
}

// scores settles what the heads have that score.
func (f *fields) scores() {
	m := f.model
	switch m.Head {
	case HeadReward:
		m.NumLabels = 1
	case HeadSequence, HeadToken, HeadQuestion:
	default:
		return
	}
	if m.Head == HeadQuestion && (m.Bidirectional || m.T5 != nil) && m.NumLabels != 2 {
		f.fail("the file has %d labels, and %s scores where an answer begins and where it ends: set num_labels to 2", m.NumLabels, m.Class)
	}
	if m.NumLabels == 0 {
		f.fail("num_labels is 0: %s needs labels to train with", m.Class)
	}
	m.ClassifierDropout = 0.1
	switch {
	case m.ModernBert != nil, m.Pair():
		m.ClassifierDropout = 0
	case m.Family == "distilbert" && m.Head == HeadQuestion:
		m.ClassifierDropout = f.share(0.1, "qa_dropout")
	case m.Family == "distilbert" && m.Head != HeadToken:
		m.ClassifierDropout = f.share(0.2, "seq_classif_dropout")
	case m.Bidirectional && m.ViT == nil:
		m.ClassifierDropout = m.ResidualDropout
	}
	if f.has("classifier_dropout") {
		m.ClassifierDropout = f.share(0, "classifier_dropout")
	}
}

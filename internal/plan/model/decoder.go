package model

import (
	"fmt"
	"strconv"
)

// shape is what nearly every decoder has, with the family's defaults.
type shape struct {
	vocab, hidden, intermediate, layers, heads, positions int
	tied                                                  bool
}

// decoder reads the fields that the decoders share and sets what is true of
// all of them.
func (f *fields) decoder(s shape) {
	m := f.model
	m.Vocab = f.count(s.vocab, maxVocab, "vocab_size")
	m.Hidden = f.count(s.hidden, maxWidth, "hidden_size")
	if s.intermediate > 0 {
		m.Intermediate = f.count(s.intermediate, maxWidth, "intermediate_size")
	}
	m.Layers = f.count(s.layers, maxLayers, "num_hidden_layers")
	m.Heads = f.count(s.heads, maxWidth, "num_attention_heads")
	m.MaxPositions = f.count(s.positions, maxPositions, "max_position_embeddings")
	m.Tied = f.flag(s.tied, "tie_word_embeddings")
	m.UseCache = f.flag(true, "use_cache")
	m.AttentionDropout = f.share(0, "attention_dropout")
	m.GatedMLP = true
	f.labels()
}

// activation reads the name of the activation.
func (f *fields) activation(def, name string) {
	f.model.Activation = f.named(def, name)
	f.known(name, f.model.Activation)
}

// headDimOr reads head_dim, hidden_size / heads where the file has none.
func (f *fields) headDimOr() {
	f.model.HeadDim = f.derived(max(1, f.model.Hidden/f.model.Heads), maxWidth, "hidden_size / num_attention_heads", "head_dim")
}

// kvOr reads num_key_value_heads where the default is one per query head.
func (f *fields) kvOr() {
	f.model.KVHeads = f.derived(f.model.Heads, maxWidth, "num_attention_heads", "num_key_value_heads")
}

// kv reads num_key_value_heads where the class has a default of its own; null
// is one per query head.
func (f *fields) kv(def int) {
	if _, name, st := f.find("num_key_value_heads"); st == null {
		f.model.KVHeads = f.model.Heads
		f.assume(name, strconv.Itoa(f.model.Heads), st.why("num_attention_heads"))
		return
	}
	f.model.KVHeads = f.count(def, maxWidth, "num_key_value_heads")
}

// attentionBias sets the biases of q, k, v and the output from one field.
func (f *fields) attentionBias(def bool) {
	f.model.QKVBias = f.flag(def, "attention_bias")
	f.model.OutBias = f.model.QKVBias
}

func readLlama(f *fields) {
	f.decoder(shape{vocab: 32000, hidden: 4096, intermediate: 11008, layers: 32, heads: 32, positions: 2048})
	f.kvOr()
	f.headDimOr()
	f.wholeHeads()
	f.attentionBias(false)
	f.model.MLPBias = f.flag(false, "mlp_bias")
	f.activation("silu", "hidden_act")
	f.uniform(FullAttention)
	f.rope(f.model.HeadDim)
}

func readQwen2(f *fields) {
	f.decoder(shape{vocab: 151936, hidden: 4096, intermediate: 22016, layers: 32, heads: 32, positions: 32768})
	f.kv(32)
	f.headDimOr()
	// The biases have no field: q, k and v always have them, the output never.
	f.model.QKVBias = true
	f.activation("silu", "hidden_act")
	f.qwenLayers(true)
	f.rope(f.model.HeadDim)
}

func readQwen3(f *fields) {
	f.decoder(shape{vocab: 151936, hidden: 4096, intermediate: 22016, layers: 32, heads: 32, positions: 32768})
	f.kv(32)
	f.model.HeadDim = f.count(128, maxWidth, "head_dim")
	f.attentionBias(false)
	f.activation("silu", "hidden_act")
	f.qwenLayers(true)
	f.rope(f.model.HeadDim)
}

func readQwen3MoE(f *fields) {
	f.decoder(shape{vocab: 151936, hidden: 2048, intermediate: 6144, layers: 24, heads: 32, positions: 32768})
	f.model.KVHeads = f.count(4, maxWidth, "num_key_value_heads")
	f.headDimOr()
	f.attentionBias(false)
	f.activation("silu", "hidden_act")
	f.qwenLayers(false)
	f.rope(f.model.HeadDim)
	f.model.MoE = &MoE{
		Experts:      f.number(128, 0, maxExperts, "num_experts", "num_local_experts"),
		TopK:         f.count(8, maxExperts, "num_experts_per_tok"),
		Intermediate: f.count(768, maxWidth, "moe_intermediate_size"),
		NormTopK:     f.flag(false, "norm_topk_prob"),
		RouterLogits: f.flag(false, "output_router_logits"),
	}
	f.model.MoE.Sparse = f.sparseLayers()
}

// sparseLayers reads which layers of qwen's models have experts.
func (f *fields) sparseLayers() []bool {
	step := f.count(1, maxLayers, "decoder_sparse_step")
	dense := f.indices("mlp_only_layers")
	sparse := make([]bool, f.model.Layers)
	for i := range sparse {
		sparse[i] = f.model.MoE.Experts > 0 && (i+1)%step == 0 && !dense[i]
	}
	return sparse
}

func readMistral(f *fields) {
	f.decoder(shape{vocab: 32000, hidden: 4096, intermediate: 14336, layers: 32, heads: 32, positions: 131072})
	f.kv(8)
	f.headDimOr()
	f.activation("silu", "hidden_act")
	window, _ := f.optional(4096, maxPositions, "sliding_window")
	f.windowed(window)
	f.rope(f.model.HeadDim)
}

func readMixtral(f *fields) {
	f.decoder(shape{vocab: 32000, hidden: 4096, intermediate: 14336, layers: 32, heads: 32, positions: 131072})
	f.kv(8)
	f.headDimOr()
	f.activation("silu", "hidden_act")
	window, _ := f.optional(0, maxPositions, "sliding_window")
	f.windowed(window)
	f.rope(f.model.HeadDim)
	f.model.MoE = &MoE{
		Experts:      f.count(8, maxExperts, "num_local_experts", "num_experts"),
		TopK:         f.count(2, maxExperts, "num_experts_per_tok"),
		Intermediate: f.model.Intermediate,
		NormTopK:     true,
		RouterLogits: f.flag(false, "output_router_logits"),
		JitterNoise:  f.share(0, "router_jitter_noise") > 0,
		Sparse:       all(f.model.Layers),
	}
}

// gemma reads what Gemma 2 and 3 have in common.
func (f *fields) gemma(vocab, positions int, finalSoftcap, attnSoftcap float64) {
	f.decoder(shape{vocab: vocab, hidden: 2304, intermediate: 9216, layers: 26, heads: 8, positions: positions, tied: true})
	f.model.KVHeads = f.count(4, maxWidth, "num_key_value_heads")
	f.model.HeadDim = f.count(256, maxWidth, "head_dim")
	f.wholeHeads()
	f.attentionBias(false)
	f.activation("gelu_pytorch_tanh", "hidden_activation")
	f.model.FinalSoftcap = f.cap(finalSoftcap, "final_logit_softcapping")
	f.model.AttnSoftcap = f.cap(attnSoftcap, "attn_logit_softcapping")
	f.model.Bidirectional = f.bidirectional()
	f.model.SlidingWindow, _ = f.optional(4096, maxPositions, "sliding_window")
}

func readGemma2(f *fields) {
	f.gemma(256000, 8192, 30, 50)
	f.layers(every(f.model.Layers, 2, SlidingAttention), "every second layer is full attention")
	f.rope(f.model.HeadDim)
}

func readGemma3(f *fields) {
	f.gemma(262208, 131072, 0, 0)
	if f.model.Bidirectional && f.model.SlidingWindow > 0 {
		// The window then reaches half as far to either side.
		f.model.SlidingWindow = f.model.SlidingWindow/2 + 1
	}
	pattern := 6
	if _, _, st := f.find("layer_types"); st != given {
		pattern = f.count(6, maxLayers, "sliding_window_pattern")
	} else {
		f.used["sliding_window_pattern"] = true
	}
	f.layers(every(f.model.Layers, pattern, SlidingAttention), fmt.Sprintf("every %dth layer is full attention", pattern))
	f.rope(f.model.HeadDim)
}

func readGptOss(f *fields) {
	f.decoder(shape{vocab: 201088, hidden: 2880, intermediate: 2880, layers: 36, heads: 64, positions: 131072})
	f.kv(8)
	if _, name, st := f.find("head_dim"); st == null {
		f.model.HeadDim = max(1, f.model.Hidden/f.model.Heads)
		f.assume(name, strconv.Itoa(f.model.HeadDim), st.why("hidden_size / num_attention_heads"))
	} else {
		f.model.HeadDim = f.count(64, maxWidth, "head_dim")
	}
	f.attentionBias(true)
	// The experts' activation is fixed in the code; the field is only checked.
	f.activation("silu", "hidden_act")
	f.model.MLPBias = true
	f.model.SlidingWindow, _ = f.optional(128, maxPositions, "sliding_window")
	f.layers(every(f.model.Layers, 2, SlidingAttention), "every second layer is full attention")
	f.rope(f.model.HeadDim)
	f.model.MoE = &MoE{
		Experts:      f.count(128, maxExperts, "num_local_experts", "num_experts"),
		TopK:         f.count(4, maxExperts, "num_experts_per_tok"),
		Intermediate: f.model.Intermediate,
		NormTopK:     true,
		RouterLogits: f.flag(false, "output_router_logits"),
		Sparse:       all(f.model.Layers),
	}
}

// bidirectional reads a flag for which null and missing are false.
func (f *fields) bidirectional() bool {
	if _, _, st := f.find("use_bidirectional_attention"); st != given {
		return false
	}
	return f.flag(false, "use_bidirectional_attention")
}

func all(n int) []bool {
	out := make([]bool, n)
	for i := range out {
		out[i] = true
	}
	return out
}

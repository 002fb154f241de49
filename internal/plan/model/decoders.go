package model

import (
	"encoding/json"
	"fmt"
)

// Decoders that differ from llama in a step or two.

func readGemma(f *fields) {
	f.decoder(shape{vocab: 256000, hidden: 3072, intermediate: 24576, layers: 28, heads: 16, positions: 8192, tied: true})
	f.model.KVHeads = f.count(16, maxWidth, "num_key_value_heads")
	f.model.HeadDim = f.count(256, maxWidth, "head_dim")
	f.attentionBias(false)
	f.activation("gelu_pytorch_tanh", "hidden_act")
	f.model.Bidirectional = f.bidirectional()
	f.uniform(FullAttention)
	f.rope(f.model.HeadDim)
}

func readPhi3(f *fields) {
	f.decoder(shape{vocab: 32064, hidden: 3072, intermediate: 8192, layers: 32, heads: 32, positions: 4096})
	f.kvOr()
	f.headDimOr()
	f.activation("silu", "hidden_act")
	f.model.ResidualDropout = f.share(0, "resid_pdrop")
	window, _ := f.optional(0, maxPositions, "sliding_window")
	f.windowed(window)
	f.rope(f.model.HeadDim)
}

func readGranite(f *fields) {
	f.decoder(shape{vocab: 32000, hidden: 4096, intermediate: 11008, layers: 32, heads: 32, positions: 2048})
	f.kvOr()
	f.headDimOr()
	f.attentionBias(false)
	f.model.MLPBias = f.flag(false, "mlp_bias")
	f.activation("silu", "hidden_act")
	f.uniform(FullAttention)
	f.rope(f.model.HeadDim)
}

func readOlmo2(f *fields) {
	f.decoder(shape{vocab: 50304, hidden: 4096, intermediate: 11008, layers: 32, heads: 32, positions: 2048})
	f.kvOr()
	f.headDimOr()
	f.attentionBias(false)
	f.activation("silu", "hidden_act")
	f.uniform(FullAttention)
	f.rope(f.model.HeadDim)
}

func readSmolLM3(f *fields) {
	f.decoder(shape{vocab: 128256, hidden: 2048, intermediate: 11008, layers: 36, heads: 16, positions: 32768, tied: true})
	f.kv(4)
	f.headDimOr()
	f.attentionBias(false)
	f.model.MLPBias = f.flag(false, "mlp_bias")
	f.activation("silu", "hidden_act")
	f.unrotated()
	window := 0
	if f.flag(false, "use_sliding_window") {
		window, _ = f.optional(0, maxPositions, "sliding_window")
	} else {
		f.used["sliding_window"] = true
	}
	f.model.SlidingWindow = window
	types := make([]LayerType, f.model.Layers)
	for i := range types {
		types[i] = FullAttention
		if window > 0 && f.model.NoRope[i] {
			types[i] = SlidingAttention
		}
	}
	f.layers(types, "layers without rotary positions slide if there is a window")
	f.rope(f.model.HeadDim)
}

// unrotated reads which layers have no rotary positions: no_rope_layers, in
// which a 1 is a layer that has them, or each nth.
func (f *fields) unrotated() {
	m := f.model
	m.NoRope = make([]bool, m.Layers)
	step := f.count(4, maxLayers, "no_rope_layer_interval")
	raw, name, st := f.find("no_rope_layers")
	var rotates []int
	if st == given {
		if err := json.Unmarshal(raw, &rotates); err != nil || len(rotates) != m.Layers {
			f.fail("%s is %s; it must be a list of %d numbers or null", f.at+name, show(raw), m.Layers)
			return
		}
	}
	for i := range m.NoRope {
		if st == given {
			m.NoRope[i] = rotates[i] == 0
		} else {
			m.NoRope[i] = (i+1)%step == 0
		}
	}
}

func readGlm4(f *fields) {
	f.decoder(shape{vocab: 151552, hidden: 4096, intermediate: 13696, layers: 40, heads: 32, positions: 131072})
	f.model.KVHeads = f.count(2, maxWidth, "num_key_value_heads")
	f.model.HeadDim = f.count(128, maxWidth, "head_dim")
	f.model.QKVBias = f.flag(true, "attention_bias")
	f.activation("silu", "hidden_act")
	f.uniform(FullAttention)
	f.rope(f.model.HeadDim)
}

func readCohere2(f *fields) {
	f.decoder(shape{vocab: 256000, hidden: 8192, intermediate: 22528, layers: 40, heads: 64, positions: 8192, tied: true})
	f.kvOr()
	f.model.HeadDim = max(1, f.model.Hidden/f.model.Heads)
	f.used["head_dim"] = true
	f.attentionBias(false)
	f.activation("silu", "hidden_act")
	f.model.SlidingWindow, _ = f.optional(4096, maxPositions, "sliding_window")
	pattern := 4
	if _, _, st := f.find("layer_types"); st != given {
		pattern = f.count(4, maxLayers, "sliding_window_pattern")
	} else {
		f.used["sliding_window_pattern"] = true
	}
	f.layers(every(f.model.Layers, pattern, SlidingAttention), fmt.Sprintf("every %dth layer is full attention", pattern))
	// Only the layers that slide have rotary positions.
	f.model.NoRope = make([]bool, f.model.Layers)
	for i, t := range f.model.LayerTypes {
		f.model.NoRope[i] = t == FullAttention
	}
	f.rope(f.model.HeadDim)
}

func readStarcoder2(f *fields) {
	f.decoder(shape{vocab: 49152, hidden: 3072, intermediate: 12288, layers: 30, heads: 24, positions: 4096, tied: true})
	f.model.KVHeads = f.count(2, maxWidth, "num_key_value_heads")
	f.headDimOr()
	f.model.QKVBias = f.flag(true, "use_bias")
	f.model.OutBias, f.model.MLPBias = f.model.QKVBias, f.model.QKVBias
	f.model.GatedMLP = false
	f.activation("gelu_pytorch_tanh", "hidden_act")
	f.model.ResidualDropout = f.share(0, "residual_dropout")
	f.model.EmbeddingDropout = f.share(0, "embedding_dropout")
	window, _ := f.optional(0, maxPositions, "sliding_window")
	f.windowed(window)
	f.rope(f.model.HeadDim)
}

func readGPTNeoX(f *fields) {
	f.decoder(shape{vocab: 50432, hidden: 6144, intermediate: 24576, layers: 44, heads: 64, positions: 2048})
	f.plainHeads()
	f.wholeHeads()
	f.attentionBias(true)
	f.model.GatedMLP, f.model.MLPBias = false, true
	f.activation("gelu", "hidden_act")
	f.model.ResidualDropout = f.share(0, "hidden_dropout")
	f.model.EmbeddingDropout = f.model.ResidualDropout
	f.model.ParallelResidual = f.flag(true, "use_parallel_residual")
	f.uniform(FullAttention)
	f.rope(f.model.HeadDim)
}

func readOPT(f *fields) {
	m := f.model
	m.Vocab = f.count(50272, maxVocab, "vocab_size")
	m.Hidden = f.count(768, maxWidth, "hidden_size")
	m.Layers = f.count(12, maxLayers, "num_hidden_layers")
	m.Heads = f.count(12, maxWidth, "num_attention_heads")
	m.Intermediate = f.count(3072, maxWidth, "ffn_dim")
	m.MaxPositions = f.count(2048, maxPositions, "max_position_embeddings")
	m.WordDim = f.derived(m.Hidden, maxWidth, "hidden_size", "word_embed_proj_dim")
	m.Tied = f.flag(true, "tie_word_embeddings")
	m.UseCache = f.flag(true, "use_cache")
	m.ResidualDropout = f.share(0.1, "dropout")
	m.AttentionDropout = f.share(0, "attention_dropout")
	m.QKVBias = f.flag(true, "enable_bias")
	m.OutBias, m.MLPBias = m.QKVBias, m.QKVBias
	m.PostNorm = !f.flag(true, "do_layer_norm_before")
	m.NoFinalNorm = m.PostNorm || f.flag(false, "_remove_final_layer_norm")
	f.activation("relu", "activation_function")
	f.plainHeads()
	f.wholeHeads()
	f.uniform(FullAttention)
	f.labels()
	if f.share(0, "layerdrop") > 0 {
		f.fail("%slayerdrop leaves out layers by chance, which is not planned: set it to 0", f.at)
	}
	if !f.flag(true, "layer_norm_elementwise_affine") {
		f.fail("%slayer_norm_elementwise_affine false is not planned: norms without weights; set it to true", f.at)
	}
}

func readQwen2MoE(f *fields) {
	f.decoder(shape{vocab: 151936, hidden: 2048, intermediate: 5632, layers: 24, heads: 16, positions: 32768})
	f.kv(16)
	f.headDimOr()
	f.model.QKVBias = f.flag(true, "qkv_bias")
	f.activation("silu", "hidden_act")
	f.alternating()
	f.rope(f.model.HeadDim)
	f.model.MoE = &MoE{
		Experts:            f.number(60, 0, maxExperts, "num_experts"),
		TopK:               f.count(4, maxExperts, "num_experts_per_tok"),
		Intermediate:       f.count(1408, maxWidth, "moe_intermediate_size"),
		SharedIntermediate: f.count(5632, maxWidth, "shared_expert_intermediate_size"),
		SharedExperts:      1,
		NormTopK:           f.flag(false, "norm_topk_prob"),
		RouterLogits:       f.flag(false, "output_router_logits"),
	}
	f.model.MoE.Sparse = f.sparseLayers()
}

// alternating reads the layers of qwen2_moe: with use_sliding_window every
// second one before max_window_layers slides.
func (f *fields) alternating() {
	m := f.model
	types := make([]LayerType, m.Layers)
	use := f.flag(false, "use_sliding_window")
	last := f.number(28, 0, maxLayers, "max_window_layers")
	if use {
		m.SlidingWindow, _ = f.optional(4096, maxPositions, "sliding_window")
	} else {
		f.used["sliding_window"] = true
	}
	for i := range types {
		types[i] = FullAttention
		if use && i%2 == 0 && i < last {
			types[i] = SlidingAttention
		}
	}
	f.layers(types, "every second layer slides if there is a window")
}

package model

import "fmt"

// qwen35Silent are fields of Qwen's files that change no tensor of the text
// model in transformers.
var qwen35Silent = []string{
	"mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mlp_only_layers", "attn_output_gate",
	"image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id", "output_gate_type",
}

// hybrid reads the layers of linear attention and the full ones between them.
func (f *fields) hybrid(s shape, kv int) {
	f.decoder(s)
	f.model.KVHeads = f.count(kv, maxWidth, "num_key_value_heads")
	f.model.HeadDim = f.count(256, maxWidth, "head_dim")
	f.attentionBias(false)
	f.activation("silu", "hidden_act")
	f.model.Linear = &Linear{
		KeyHeads:   f.count(16, maxWidth, "linear_num_key_heads"),
		ValueHeads: f.count(32, maxWidth, "linear_num_value_heads"),
		KeyDim:     f.count(128, maxWidth, "linear_key_head_dim"),
		ValueDim:   f.count(128, maxWidth, "linear_value_head_dim"),
		ConvKernel: f.count(4, maxWidth, "linear_conv_kernel_dim"),
	}
	if f.err == nil && f.model.Linear.ValueHeads%f.model.Linear.KeyHeads != 0 {
		f.fail("linear_num_value_heads %d is not a multiple of linear_num_key_heads %d", f.model.Linear.ValueHeads, f.model.Linear.KeyHeads)
	}
	interval := 4
	if _, _, st := f.find("layer_types"); st != given {
		interval = f.count(4, maxLayers, "full_attention_interval")
	} else {
		f.used["full_attention_interval"] = true
	}
	f.layers(every(f.model.Layers, interval, LinearAttention), fmt.Sprintf("every %dth layer is full attention", interval))
	f.rope(f.model.HeadDim)
	f.unbuilt("mtp_num_hidden_layers")
}

func readQwen35(f *fields) {
	f.hybrid(shape{vocab: 248320, hidden: 4096, intermediate: 12288, layers: 32, heads: 16, positions: 32768}, 4)
}

func readQwen35MoE(f *fields) {
	f.hybrid(shape{vocab: 248320, hidden: 2048, layers: 40, heads: 16, positions: 32768}, 2)
	f.model.MoE = &MoE{
		Experts:            f.count(256, maxExperts, "num_experts"),
		TopK:               f.count(8, maxExperts, "num_experts_per_tok"),
		Intermediate:       f.count(512, maxWidth, "moe_intermediate_size"),
		SharedIntermediate: f.count(512, maxWidth, "shared_expert_intermediate_size"),
		SharedExperts:      1,
		NormTopK:           true,
		RouterLogits:       f.flag(false, "output_router_logits"),
		Sparse:             all(f.model.Layers),
	}
}

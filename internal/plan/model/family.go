package model

import "slices"

// family is one implementation in transformers: the model types that lead to
// it, its classes, and how its configuration class reads a file.
type family struct {
	name string
	// types are the model_type values that are read directly, wrappers those
	// whose text_config is read.
	types    []string
	wrappers []string
	head     Head
	class    string // with the head
	base     string // without
	also     []string
	more     []Head // beside head
	read     func(*fields)
	// silent are fields that the family's configuration class has and that
	// change no tensor.
	silent []string
}

// allScores are the heads that most families have.
var allScores = []Head{HeadSequence, HeadToken, HeadQuestion}

func (fam *family) wrapped(modelType string) bool { return slices.Contains(fam.wrappers, modelType) }

// families is every family that can be planned. It is a function because the
// readers refer to it.
func families() []*family {
	return []*family{
		{name: "llama", types: []string{"llama"}, head: HeadCausal, class: "LlamaForCausalLM", base: "LlamaModel", read: readLlama, more: allScores},
		{name: "qwen2", types: []string{"qwen2"}, head: HeadCausal, class: "Qwen2ForCausalLM", base: "Qwen2Model", read: readQwen2, more: allScores},
		{name: "qwen3", types: []string{"qwen3"}, head: HeadCausal, class: "Qwen3ForCausalLM", base: "Qwen3Model", read: readQwen3, more: allScores},
		{
			name: "qwen3_moe", types: []string{"qwen3_moe"}, head: HeadCausal, class: "Qwen3MoeForCausalLM", base: "Qwen3MoeModel",
			read: readQwen3MoE, more: allScores, silent: []string{"router_aux_loss_coef", "max_window_layers"},
		},
		{
			name: "qwen3_5", types: []string{"qwen3_5_text"}, wrappers: []string{"qwen3_5"}, head: HeadCausal,
			class: "Qwen3_5ForCausalLM", base: "Qwen3_5TextModel", also: []string{"Qwen3_5ForConditionalGeneration"},
			read: readQwen35, more: []Head{HeadSequence}, silent: qwen35Silent,
		},
		{
			name: "qwen3_5_moe", types: []string{"qwen3_5_moe_text"}, wrappers: []string{"qwen3_5_moe"}, head: HeadCausal,
			class: "Qwen3_5MoeForCausalLM", base: "Qwen3_5MoeTextModel", also: []string{"Qwen3_5MoeForConditionalGeneration"},
			read: readQwen35MoE, silent: append([]string{"router_aux_loss_coef"}, qwen35Silent...),
		},
		{name: "mistral", types: []string{"mistral"}, head: HeadCausal, class: "MistralForCausalLM", base: "MistralModel", read: readMistral, more: allScores},
		{
			name: "mixtral", types: []string{"mixtral"}, head: HeadCausal, class: "MixtralForCausalLM", base: "MixtralModel",
			read: readMixtral, more: allScores, silent: []string{"router_aux_loss_coef"},
		},
		{
			name: "gemma2", types: []string{"gemma2"}, head: HeadCausal, class: "Gemma2ForCausalLM", base: "Gemma2Model",
			read: readGemma2, more: []Head{HeadSequence, HeadToken}, silent: []string{"query_pre_attn_scalar", "hidden_act", "cache_implementation"},
		},
		{
			name: "gemma3", types: []string{"gemma3_text"}, wrappers: []string{"gemma3"}, head: HeadCausal,
			class: "Gemma3ForCausalLM", base: "Gemma3TextModel", also: []string{"Gemma3ForConditionalGeneration"},
			read: readGemma3, more: []Head{HeadSequence}, silent: []string{
				"query_pre_attn_scalar", "hidden_act", "cache_implementation", "_sliding_window_pattern", "rope_local_base_freq",
				"mm_tokens_per_image", "boi_token_index", "eoi_token_index", "image_token_index",
			},
		},
		{
			name: "deepseek_v2", types: []string{"deepseek_v2"}, head: HeadCausal, class: "DeepseekV2ForCausalLM", base: "DeepseekV2Model",
			read: readDeepseekV2, more: []Head{HeadSequence}, silent: deepseekSilent,
		},
		{
			name: "deepseek_v3", types: []string{"deepseek_v3"}, head: HeadCausal, class: "DeepseekV3ForCausalLM", base: "DeepseekV3Model",
			read: readDeepseekV3, more: []Head{HeadSequence, HeadToken}, silent: append([]string{"topk_method"}, deepseekSilent...),
		},
		{
			name: "gpt_oss", types: []string{"gpt_oss"}, head: HeadCausal, class: "GptOssForCausalLM", base: "GptOssModel",
			read: readGptOss, more: []Head{HeadSequence, HeadToken}, silent: []string{"router_aux_loss_coef", "swiglu_limit", "initial_context_length", "experts_per_token"},
		},
		{
			name: "gemma", types: []string{"gemma"}, head: HeadCausal, class: "GemmaForCausalLM", base: "GemmaModel",
			read: readGemma, more: []Head{HeadSequence, HeadToken}, silent: []string{"hidden_activation"},
		},
		{
			name: "phi3", types: []string{"phi3"}, head: HeadCausal, class: "Phi3ForCausalLM", base: "Phi3Model",
			read: readPhi3, more: []Head{HeadSequence, HeadToken}, silent: []string{"embd_pdrop", "attention_bias"},
		},
		{
			name: "granite", types: []string{"granite"}, head: HeadCausal, class: "GraniteForCausalLM", base: "GraniteModel",
			read: readGranite, silent: []string{"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"},
		},
		{name: "olmo2", types: []string{"olmo2"}, head: HeadCausal, class: "Olmo2ForCausalLM", base: "Olmo2Model", read: readOlmo2, more: []Head{HeadSequence}},
		{
			name: "smollm3", types: []string{"smollm3"}, head: HeadCausal, class: "SmolLM3ForCausalLM", base: "SmolLM3Model",
			read: readSmolLM3, more: allScores, silent: []string{"max_window_layers"},
		},
		{name: "glm4", types: []string{"glm4"}, head: HeadCausal, class: "Glm4ForCausalLM", base: "Glm4Model", read: readGlm4, more: []Head{HeadSequence, HeadToken}},
		{
			name: "cohere2", types: []string{"cohere2"}, head: HeadCausal, class: "Cohere2ForCausalLM", base: "Cohere2Model",
			read: readCohere2, silent: []string{"logit_scale", "cache_implementation", "rotary_pct", "order_of_interleaved_layers", "position_embedding_type", "use_embedding_sharing", "use_gated_activation", "use_parallel_block", "use_parallel_embedding"},
		},
		{
			name: "starcoder2", types: []string{"starcoder2"}, head: HeadCausal, class: "Starcoder2ForCausalLM", base: "Starcoder2Model",
			read: readStarcoder2, more: []Head{HeadSequence, HeadToken}, silent: []string{"norm_epsilon", "norm_type", "mlp_type", "activation_function"},
		},
		{
			name: "gpt_neox", types: []string{"gpt_neox"}, head: HeadCausal, class: "GPTNeoXForCausalLM", base: "GPTNeoXModel",
			read: readGPTNeoX, more: allScores, silent: []string{"classifier_dropout", "rotary_emb_base"},
		},
		{
			name: "opt", types: []string{"opt"}, head: HeadCausal, class: "OPTForCausalLM", base: "OPTModel",
			read: readOPT, more: []Head{HeadSequence, HeadQuestion}, silent: []string{"init_std"},
		},
		{
			name: "qwen2_moe", types: []string{"qwen2_moe"}, head: HeadCausal, class: "Qwen2MoeForCausalLM", base: "Qwen2MoeModel",
			read: readQwen2MoE, more: allScores, silent: []string{"router_aux_loss_coef"},
		},
		{
			name: "gpt2", types: []string{"gpt2"}, head: HeadCausal, class: "GPT2LMHeadModel", base: "GPT2Model",
			read: readGPT2, more: allScores, silent: []string{
				"summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
				"scale_attn_weights", "scale_attn_by_inverse_layer_idx", "n_ctx",
			},
		},
		{
			name: "bert", types: []string{"bert"}, head: HeadMasked, class: "BertForMaskedLM", base: "BertModel",
			read: readBert, more: allScores, silent: []string{"use_cache", "classifier_dropout", "gradient_checkpointing"},
		},
		{
			name: "roberta", types: []string{"roberta"}, head: HeadMasked, class: "RobertaForMaskedLM", base: "RobertaModel",
			read: readRoberta, more: allScores, silent: []string{"use_cache", "gradient_checkpointing"},
		},
		{
			name: "xlm_roberta", types: []string{"xlm-roberta"}, head: HeadMasked, class: "XLMRobertaForMaskedLM", base: "XLMRobertaModel",
			read: readRoberta, more: allScores, silent: []string{"use_cache", "gradient_checkpointing", "output_past"},
		},
		{
			name: "distilbert", types: []string{"distilbert"}, head: HeadMasked, class: "DistilBertForMaskedLM", base: "DistilBertModel",
			read: readDistilBert, more: allScores, silent: []string{"sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_"},
		},
		{
			name: "modernbert", types: []string{"modernbert"}, head: HeadMasked, class: "ModernBertForMaskedLM", base: "ModernBertModel",
			read: readModernBert, more: allScores, silent: []string{
				"initializer_cutoff_factor", "norm_eps", "cls_token_id", "deterministic_flash_attn", "sparse_pred_ignore_index",
				"global_rope_theta", "local_rope_theta", "classifier_dropout", "reference_compile", "repad_logits_with_grad",
				"gradient_checkpointing", "position_embedding_type",
			},
		},
		{
			name: "bart", types: []string{"bart"}, head: HeadSeq2Seq, class: "BartForConditionalGeneration", base: "BartModel",
			read: readBart, more: []Head{HeadSequence, HeadQuestion}, silent: []string{
				"init_std", "classifier_dropout", "scale_embedding", "forced_eos_token_id", "forced_bos_token_id", "normalize_before",
				"normalize_embedding", "add_bias_logits", "add_final_layer_norm", "classif_dropout", "gradient_checkpointing",
				"static_position_embeddings", "extra_pos_embeddings", "force_bos_token_to_be_generated", "no_repeat_ngram_size", "num_beams", "early_stopping",
			},
		},
		{
			name: "whisper", types: []string{"whisper"}, head: HeadSeq2Seq, class: "WhisperForConditionalGeneration", base: "WhisperModel",
			read: readWhisper, silent: []string{
				"init_std", "scale_embedding", "suppress_tokens", "begin_suppress_tokens", "forced_decoder_ids", "use_weighted_layer_sum",
				"classifier_proj_size", "apply_spec_augment", "mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_feature_prob",
				"mask_feature_length", "mask_feature_min_masks", "median_filter_width", "max_length",
			},
		},
		{
			name: "t5", types: []string{"t5"}, head: HeadSeq2Seq, class: "T5ForConditionalGeneration", base: "T5Model",
			also: []string{"T5WithLMHeadModel"}, read: readT5, more: allScores,
			silent: []string{"n_positions", "classifier_dropout", "initializer_factor", "output_past"},
		},
		{
			name: "dinov2", types: []string{"dinov2"}, head: HeadImage, class: "Dinov2ForImageClassification", base: "Dinov2Model",
			read: readDinov2, silent: []string{
				"layerscale_value", "out_features", "out_indices", "_out_features", "_out_indices", "apply_layernorm", "reshape_hidden_states", "stage_names",
			},
		},
		{
			name: "clip", types: []string{"clip"}, head: HeadContrastive, class: "CLIPModel", base: "CLIPVisionModel", more: []Head{HeadImage},
			read: readCLIP, silent: []string{"logit_scale_init_value", "initializer_factor", "text_config_dict", "vision_config_dict"},
		},
		{
			name: "siglip", types: []string{"siglip"}, head: HeadContrastive, class: "SiglipModel", base: "SiglipVisionModel", more: []Head{HeadImage},
			read: readSiglip, silent: []string{"initializer_factor"},
		},
		{
			name: "vit", types: []string{"vit"}, head: HeadImage, class: "ViTForImageClassification", base: "ViTModel",
			read: readViT, silent: []string{"encoder_stride", "pooler_act"},
		},
	}
}

func familyOf(modelType string) (*family, bool) {
	for _, fam := range families() {
		if slices.Contains(fam.types, modelType) || fam.wrapped(modelType) {
			return fam, true
		}
	}
	return nil, false
}

func modelTypes() []string {
	var out []string
	for _, fam := range families() {
		out = append(append(out, fam.types...), fam.wrappers...)
	}
	return out
}

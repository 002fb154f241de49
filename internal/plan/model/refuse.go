package model

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
)

// activations are the names of transformers' table of activations, less those
// that have weights of their own.
var activations = []string{
	"gelu", "gelu_10", "gelu_fast", "gelu_new", "gelu_python", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate",
	"hardswish", "laplace", "leaky_relu", "linear", "mish", "quick_gelu", "relu", "relu2", "relu6", "sigmoid", "silu",
	"sqrtsoftplus", "swish", "tanh",
}

// known checks the name of an activation.
func (f *fields) known(field, name string) {
	if !slices.Contains(activations, name) {
		f.fail("%s %q is not an activation that can be planned; known are %s", f.at+field, name, strings.Join(activations, ", "))
	}
}

// matters are fields that change memory in ways that are not modelled, each
// with what to do. They may be there as long as they say nothing.
var matters = []struct{ field, what string }{
	{"per_layer_config", "layers of different shapes are not modelled: remove it"},
	{"pruned_heads", "pruned heads are not modelled: remove it"},
	{"output_hidden_states", "keeping every layer's output is not modelled: set it to false"},
	{"output_attentions", "keeping the attention weights is not modelled: set it to false"},
	{"add_cross_attention", "cross attention outside t5 is not modelled: set it to false"},
	{"reorder_and_upcast_attn", "the upcast attention of gpt2 is not modelled: set it to false"},
}

// bertMatters are such fields of bert and its kin; every other family's code leaves
// them unread.
var bertMatters = []struct{ field, what string }{
	{"is_decoder", "a bert that is a decoder is not modelled: set it to false"},
	{"chunk_size_feed_forward", "an MLP in chunks is not modelled: set it to 0"},
}

// foreign are the spellings of facts that only some families have. Where
// another family's file has them, the model_type is most likely wrong.
var foreign = []struct {
	field    string
	families []string
}{
	{"num_local_experts", []string{"mixtral", "gpt_oss", "qwen3_moe", "deepseek_v3"}},
	{"num_experts", []string{"mixtral", "gpt_oss", "qwen2_moe", "qwen3_moe", "qwen3_5_moe", "deepseek_v2"}},
	{"n_routed_experts", []string{"deepseek_v2", "deepseek_v3"}},
	{"moe_num_experts", nil},
	{"moe_topk", nil},
	{"moe_top_k", nil},
	{"top_k_experts", nil},
	{"n_shared_experts", []string{"deepseek_v2", "deepseek_v3"}},
	{"num_shared_experts", nil},
	{"shared_expert_intermediate_size", []string{"qwen2_moe", "qwen3_5_moe"}},
	{"mlp_layer_types", nil},
	{"moe_intermediate_size", []string{"qwen2_moe", "qwen3_moe", "qwen3_5_moe", "deepseek_v2", "deepseek_v3"}},
	{"kv_lora_rank", []string{"deepseek_v2", "deepseek_v3"}},
	{"linear_num_value_heads", []string{"qwen3_5", "qwen3_5_moe"}},
}

// refuse returns an error for a field that matters and is not understood.
func (f *fields) refuse(fam *family) error {
	for _, field := range matters {
		if raw, ok := f.raw[field.field]; ok {
			f.used[field.field] = true
			if !nothing(raw) {
				f.fail("%s is %s; %s", f.at+field.field, show(raw), field.what)
			}
		}
	}
	for _, field := range foreign {
		raw, ok := f.raw[field.field]
		if !ok || slices.Contains(field.families, fam.name) || nothing(raw) {
			continue
		}
		f.fail("%s is %s, which %s does not have: check model_type, or remove it", f.at+field.field, show(raw), f.model.ModelType)
	}
	if slices.Contains([]string{"bert", "roberta", "xlm_roberta", "distilbert"}, fam.name) {
		for _, field := range bertMatters {
			if raw, ok := f.raw[field.field]; ok && !nothing(raw) {
				f.fail("%s is %s; %s", f.at+field.field, show(raw), field.what)
			}
		}
	}
	return f.err
}

// nothing says whether a value is null, false, zero or empty.
func nothing(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "null", "false", "0", "0.0", "{}", "[]", `""`:
		return true
	}
	return false
}

// silent are fields of every file that change no tensor.
var silent = []string{
	"model_type", "architectures", "transformers_version", "_name_or_path", "name_or_path", "auto_map", "_commit_hash", "return_dict",
	"use_return_dict", "chunk_size_feed_forward", "is_encoder_decoder", "is_decoder", "id2label", "label2id", "num_labels", "problem_type",
	"initializer_range", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "bos_token_id", "eos_token_id", "pad_token_id",
	"unk_token_id", "sep_token_id", "decoder_start_token_id", "pretraining_tp", "rope_theta", "task_specific_params", "finetuning_task",
	"dtype", "torch_dtype", "tokenizer_class", "_attn_implementation_autoset", "torchscript", "use_cache", "attn_implementation",
	"original_max_position_embeddings", "_from_model_config", "license",
}

// ignored lists the fields that nothing read and that say something: transformers would set them on
// its configuration and no module would look at them.
func (f *fields) ignored(fam *family) {
	var names []string
	for name, raw := range f.raw {
		switch {
		case f.used[name], nothing(raw), slices.Contains(silent, name), slices.Contains(fam.silent, name):
		default:
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		f.ignore(name, show(f.raw[name]), "the "+f.model.Family+" code of transformers does not read it")
	}
}

package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Nearest is a model of a known family with the sizes of a config whose own
// family is not known.
type Nearest struct {
	Model *Model
	// Least has what the config leaves open at its smaller: an MLP without a gate,
	// a head that is the embedding.
	Least *Model
	Type  string // the model_type of both
	// Part is what of the model it is about, such as text_config; empty if it is all
	// of it.
	Part string
}

// sizes are the names under which configs have a size, those of transformers'
// older classes and of models with code of their own among them.
var sizes = struct{ hidden, layers, heads, kv, mlp, vocab, headDim, experts, topK, expertMLP []string }{
	hidden:    []string{"hidden_size", "d_model", "n_embd", "n_embed", "dim", "model_dim"},
	layers:    []string{"num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"},
	heads:     []string{"num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"},
	kv:        []string{"num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "multi_query_group_num"},
	mlp:       []string{"intermediate_size", "ffn_hidden_size", "intermediate_size_mlp", "n_inner", "ffn_dim", "encoder_ffn_dim", "d_ff", "hidden_dim"},
	vocab:     []string{"vocab_size", "padded_vocab_size", "n_vocab"},
	headDim:   []string{"head_dim", "d_kv", "kv_channels", "attention_head_dim"},
	experts:   []string{"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"},
	topK:      []string{"num_experts_per_tok", "moe_topk", "moe_top_k", "top_k_experts", "moe_k"},
	expertMLP: []string{"moe_intermediate_size", "expert_intermediate_size", "ffn_hidden_size", "intermediate_size"},
}

// strange are parts of fields' names that only models have whose activations are
// like those of no family: state spaces, recurrences, convolutions, stages.
var strange = []string{"mamba", "ssm", "state_size", "rwkv", "time_mix", "conv_dim", "conv_kernel", "num_mel_bins", "depths", "embed_dims", "lru_width", "linear_num"}

// inner are the objects that hold the language model of a larger one.
var inner = []string{"text_config", "llm_config", "language_config"}

// towers are fields of models that have more than the language model, whose sizes
// stand beside them.
var towers = []string{"vision_config", "audio_config", "visual", "vision_tower", "mm_vision_tower"}

// FindNearest returns the nearest family's model for a config; nil if none is
// near.
func FindNearest(config map[string]json.RawMessage) *Nearest {
	for _, name := range inner {
		var fields map[string]json.RawMessage
		if json.Unmarshal(config[name], &fields) != nil || len(fields) == 0 {
			continue
		}
		near := findNearest(fields)
		if near != nil {
			near.Part = name
		}
		return near
	}
	near := findNearest(config)
	for _, name := range towers {
		if raw, ok := config[name]; ok && near != nil && !nothing(raw) {
			near.Part = "the language model"
		}
	}
	return near
}

func findNearest(config map[string]json.RawMessage) *Nearest {
	for name, raw := range config {
		if !nothing(raw) && slices.ContainsFunc(strange, func(s string) bool { return strings.Contains(name, s) }) {
			return nil
		}
	}
	// The language model of a larger one may be of a known family.
	own := maps.Clone(config)
	delete(own, "architectures")
	if m := readAs(own); m != nil {
		return &Nearest{Model: m, Least: m, Type: m.ModelType}
	}
	most, least := likeness(config, false), likeness(config, true)
	near := &Nearest{Model: readAs(most), Least: readAs(least)}
	if near.Model == nil || near.Least == nil {
		return nil
	}
	near.Type = near.Model.ModelType
	return near
}

// readAs reads a config; nil if it is of no family, or not right.
func readAs(config map[string]json.RawMessage) *Model {
	m := &Model{}
	if len(config) == 0 || m.read(config, options{}) != nil {
		return nil
	}
	return m
}

// likeness is the config of the nearest family; nil if sizes are missing.
func likeness(config map[string]json.RawMessage, least bool) map[string]json.RawMessage {
	c := lookup(config)
	hidden, layers, heads, vocab := c.number(sizes.hidden), c.number(sizes.layers), c.number(sizes.heads), c.number(sizes.vocab)
	if hidden == 0 || layers == 0 || heads == 0 || heads > hidden {
		return nil
	}
	mlp := c.number(sizes.mlp)
	if mlp == 0 {
		mlp = 4 * hidden
	}
	out := map[string]any{"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": mlp, "vocab_size": vocab}
	for _, name := range []string{"dtype", "torch_dtype", "quantization_config"} {
		if raw, ok := config[name]; ok {
			out[name] = raw
		}
	}
	switch {
	case vocab == 0 && c.has("image_size") && c.has("patch_size"):
		delete(out, "vocab_size")
		out["model_type"] = "vit"
		for _, name := range []string{"image_size", "patch_size", "num_channels"} {
			if raw, ok := config[name]; ok {
				out[name] = raw
			}
		}
	case vocab == 0:
		return nil
	case c.word("is_encoder_decoder") == "true" || c.has("decoder_layers") || c.has("num_decoder_layers"):
		out = map[string]any{
			"model_type": "t5", "d_model": hidden, "num_layers": layers, "num_heads": heads, "d_kv": max(hidden/heads, 1), "d_ff": mlp, "vocab_size": vocab,
			"num_decoder_layers": max(c.number([]string{"num_decoder_layers", "decoder_layers"}), 1), "feed_forward_proj": "gated-gelu",
		}
		if least {
			out["feed_forward_proj"] = "relu"
		}
	case c.encoder():
		out["model_type"], out["max_position_embeddings"] = "bert", maxPositions
	default:
		c.decoder(out, least)
	}
	return encoded(out)
}

// encoded makes the fields of a file of values.
func encoded(values map[string]any) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	for name, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		fields[name] = text
	}
	return fields
}

// lookup is a config that is searched for sizes.
type lookup map[string]json.RawMessage

func (c lookup) has(name string) bool { raw, ok := c[name]; return ok && !nothing(raw) }

func (c lookup) word(name string) string { return strings.Trim(string(c[name]), `" `) }

// number is the first of some fields that is a whole number; 0 if none is.
func (c lookup) number(names []string) int {
	for _, name := range names {
		var n int
		if raw, ok := c[name]; ok && json.Unmarshal(raw, &n) == nil && n > 0 && n <= maxVocab {
			return n
		}
	}
	return 0
}

// encoder reports whether the model sees all tokens at once.
func (c lookup) encoder() bool {
	if c.has("type_vocab_size") {
		return true
	}
	class := string(c["architectures"])
	return strings.Contains(class, "MaskedLM") || strings.Contains(class, "ForPreTraining")
}

// headless reports whether the class may have no output for each token.
func (c lookup) headless() bool {
	class := string(c["architectures"])
	return !strings.Contains(class, "CausalLM") && !strings.Contains(class, "LMHead") && !strings.Contains(class, "ConditionalGeneration")
}

// decoder fills in what models have that predict the next token.
func (c lookup) decoder(out map[string]any, least bool) {
	out["model_type"], out["max_position_embeddings"] = "llama", maxPositions
	heads := out["num_attention_heads"].(int)
	kv := c.number(sizes.kv)
	switch {
	case kv == 0 && c.word("multi_query") == "true":
		kv = 1
	case kv == 0 || heads%kv != 0:
		kv = heads
	}
	out["num_key_value_heads"] = kv
	out["attention_bias"] = !least
	if d := c.number(sizes.headDim); d > 0 {
		out["head_dim"] = d
	}
	out["tie_word_embeddings"] = least
	if said := c.word("tie_word_embeddings"); said == "true" || said == "false" && !(least && c.headless()) {
		out["tie_word_embeddings"] = said == "true"
	}
	gated := strings.Contains(c.word("hidden_act")+c.word("activation_function"), "silu") || c.word("hidden_act") == "swish"
	if least && !gated { // two matrices, not three; or three, and the size is that of two
		out["intermediate_size"] = max(out["intermediate_size"].(int)/2, 1)
	}
	experts, expertMLP := c.number(sizes.experts), c.number(sizes.expertMLP)
	if experts > 1 && expertMLP > 0 {
		out["model_type"], out["num_experts"], out["moe_intermediate_size"] = "qwen3_moe", experts, expertMLP
		out["num_experts_per_tok"] = min(max(c.number(sizes.topK), 1)+c.number([]string{"n_shared_experts", "num_shared_experts"}), experts)
	}
	if c.has("kv_lora_rank") && experts > 1 { // DeepSeek's attention
		for name, raw := range c {
			if strings.HasSuffix(name, "_lora_rank") || strings.HasSuffix(name, "_head_dim") || slices.Contains(deepseekSizes, name) {
				out[name] = raw
			}
		}
		out["model_type"] = "deepseek_v3"
		delete(out, "num_experts")
		delete(out, "head_dim")
	}
}

// deepseekSizes are further fields of DeepSeek's that decide shapes.
var deepseekSizes = []string{"n_routed_experts", "n_shared_experts", "num_experts_per_tok", "moe_intermediate_size", "first_k_dense_replace", "n_group", "topk_group"}

// String names the family, and the part of the config that it stands for.
func (n *Nearest) String() string {
	if n.Part != "" {
		return fmt.Sprintf("%s, for %s", n.Type, n.Part)
	}
	return n.Type
}

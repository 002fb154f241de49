package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustRead(t *testing.T, text string, opts ...Option) *Model {
	t.Helper()
	m, err := Read(strings.NewReader(text), opts...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// TestRules has one case for every rule that the recorded files do not show.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name, text string
		ok         func(*Model) bool
	}{
		{
			"llama: head_dim and kv heads from heads", `{"model_type":"llama","hidden_size":512,"num_attention_heads":4,"head_dim":null,"num_key_value_heads":null}`,
			func(m *Model) bool { return m.HeadDim == 128 && m.KVHeads == 4 },
		},
		{
			"qwen3: null head_dim is 128", `{"model_type":"qwen3","hidden_size":512,"num_attention_heads":32,"head_dim":null}`,
			func(m *Model) bool { return m.HeadDim == 128 },
		},
		{
			"qwen3_moe: head_dim from heads", `{"model_type":"qwen3_moe"}`,
			func(m *Model) bool { return m.HeadDim == 64 },
		},
		{
			"qwen2: no window without use_sliding_window", `{"model_type":"qwen2","sliding_window":1024}`,
			func(m *Model) bool { return m.SlidingWindow == 0 && m.Window(31) == 0 },
		},
		{
			"qwen2: window from max_window_layers on", `{"model_type":"qwen2","sliding_window":1024,"use_sliding_window":true,"max_window_layers":30}`,
			func(m *Model) bool { return m.Window(29) == 0 && m.Window(30) == 1024 },
		},
		{
			"mistral: a window by default", `{"model_type":"mistral"}`,
			func(m *Model) bool { return m.Window(0) == 4096 },
		},
		{
			"mistral: null is no window", `{"model_type":"mistral","sliding_window":null}`,
			func(m *Model) bool { return m.Window(0) == 0 && m.LayerTypes[0] == FullAttention },
		},
		{
			"qwen3_moe: step and dense layers", `{"model_type":"qwen3_moe","num_hidden_layers":6,"decoder_sparse_step":2,"mlp_only_layers":[3]}`,
			func(m *Model) bool { return !m.Sparse(0) && m.Sparse(1) && !m.Sparse(3) && m.Sparse(5) },
		},
		{
			"deepseek_v3: first layers dense", `{"model_type":"deepseek_v3"}`,
			func(m *Model) bool { return !m.Sparse(2) && m.Sparse(3) && m.HeadDim == 64 && m.Rope.Dim == 64 },
		},
		{
			"experts under either name", `{"model_type":"mixtral","num_experts":4}`,
			func(m *Model) bool { return m.MoE.Experts == 4 },
		},
		{
			"gemma3: pattern", `{"model_type":"gemma3_text","num_hidden_layers":4,"sliding_window_pattern":2}`,
			func(m *Model) bool { return m.Window(0) == 4096 && m.Window(1) == 0 && m.Rope.Tables == 2 },
		},
		{
			"gemma3: both directions halve the window", `{"model_type":"gemma3_text","use_bidirectional_attention":true,"sliding_window":512}`,
			func(m *Model) bool { return m.SlidingWindow == 257 && m.Bidirectional },
		},
		{
			"gemma3: one kind of layer, one table", `{"model_type":"gemma3_text","num_hidden_layers":3}`,
			func(m *Model) bool { return m.Rope.Tables == 1 },
		},
		{
			"gemma2: caps off", `{"model_type":"gemma2","attn_logit_softcapping":null}`,
			func(m *Model) bool { return m.AttnSoftcap == 0 && m.FinalSoftcap == 30 },
		},
		{
			"gemma3 through text_config", `{"model_type":"gemma3","text_config":{"hidden_size":512,"num_attention_heads":4,"vocab_size":100},"tie_word_embeddings":false}`,
			func(m *Model) bool { return m.Hidden == 512 && m.Family == "gemma3" && !m.Tied },
		},
		{
			"qwen3_5: a text class looks at text_config", `{"model_type":"qwen3_5","text_config":{"tie_word_embeddings":true}}`,
			func(m *Model) bool { return m.Tied },
		},
		{
			"qwen3_5: a multimodal class does not", `{"model_type":"qwen3_5","architectures":["Qwen3_5ForConditionalGeneration"],"text_config":{"tie_word_embeddings":true}}`,
			func(m *Model) bool { return !m.Tied && m.Head == HeadCausal },
		},
		{
			"qwen3_5: interval and partial rotary", `{"model_type":"qwen3_5_text","num_hidden_layers":4,"full_attention_interval":2,"rope_parameters":{"rope_type":"default","partial_rotary_factor":0.5}}`,
			func(m *Model) bool {
				return m.LayerTypes[0] == LinearAttention && m.LayerTypes[1] == FullAttention && m.Rope.Dim == 128
			},
		},
		{
			"qwen3_5: old names of layers", `{"model_type":"qwen3_5_text","num_hidden_layers":2,"layer_types":["mamba","attention"]}`,
			func(m *Model) bool { return m.LayerTypes[0] == LinearAttention && m.LayerTypes[1] == FullAttention },
		},
		{
			"llama: the default kind turns whole heads", `{"model_type":"llama","partial_rotary_factor":0.5}`,
			func(m *Model) bool { return m.Rope.Dim == 128 },
		},
		{
			"old rope_scaling", `{"model_type":"llama","rope_theta":500000.0,"rope_scaling":{"factor":8.0,"rope_type":"llama3"}}`,
			func(m *Model) bool { return m.Rope.Type == "llama3" && m.Rope.Dim == 128 },
		},
		{
			"gpt2: inner width and tie", `{"model_type":"gpt2","n_embd":96,"n_head":3,"n_inner":null}`,
			func(m *Model) bool {
				return m.Intermediate == 384 && m.Tied && m.ResidualDropout == 0.1 && m.HeadDim == 32
			},
		},
		{
			"gpt2: common names", `{"model_type":"gpt2","hidden_size":96,"num_attention_heads":3,"num_hidden_layers":2,"max_position_embeddings":77}`,
			func(m *Model) bool { return m.Hidden == 96 && m.Layers == 2 && m.MaxPositions == 77 },
		},
		{
			"t5: always tied, false only stops the scaling", `{"model_type":"t5","tie_word_embeddings":false,"feed_forward_proj":"gated-gelu"}`,
			func(m *Model) bool {
				return m.Tied && !m.T5.ScaleDecoderOutputs && m.GatedMLP && m.Activation == "gelu_new" && m.T5.DecoderLayers == 6
			},
		},
		{
			"vit: two sizes", `{"model_type":"vit","image_size":[224,112],"patch_size":[16,16],"id2label":{"0":"a","1":"b","2":"c"}}`,
			func(m *Model) bool { return m.ViT.Tokens() == 14*7+1 && m.NumLabels == 3 && m.Vocab == 0 },
		},
		{"torch_dtype", `{"model_type":"llama","torch_dtype":"bfloat16"}`, func(m *Model) bool { return m.DType == "bfloat16" }},
		{"dtype wins", `{"model_type":"llama","torch_dtype":"bfloat16","dtype":"float16"}`, func(m *Model) bool { return m.DType == "float16" }},
		{
			"dtype of text_config wins", `{"model_type":"gemma3","dtype":"float32","text_config":{"dtype":"bfloat16"}}`,
			func(m *Model) bool { return m.DType == "bfloat16" },
		},
		{"floats that are whole", `{"model_type":"llama","hidden_size":4.096e3}`, func(m *Model) bool { return m.Hidden == 4096 }},
		{"a base model", `{"model_type":"bert","architectures":["BertModel"]}`, func(m *Model) bool { return m.Head == HeadNone && m.Class == "BertModel" }},
		{"quantised", `{"model_type":"llama","quantization_config":{"quant_method":"fp8"}}`, func(m *Model) bool { return m.Quantised == "fp8" }},
		{"quantised in an unknown way", `{"model_type":"llama","quantization_config":{"bits":4}}`, func(m *Model) bool { return m.Quantised == `{"bits":4}` }},
		{
			"quantised text", `{"model_type":"gemma3","text_config":{"quantization_config":{"quant_method":"awq"}}}`,
			func(m *Model) bool { return m.Quantised == "awq" },
		},
		{
			"fields that say nothing", `{"model_type":"llama","num_experts":0,"quantization_config":null,"pruned_heads":{}}`,
			func(m *Model) bool { return m.MoE == nil && m.Quantised == "" },
		},
	} {
		if m := mustRead(t, c.text); !c.ok(m) {
			t.Errorf("%s: %s gives %+v", c.name, c.text, m)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, "empty"},
		{`[1]`, "one JSON object"},
		{`hello`, "one JSON object"},
		{`{"model_type":`, "not JSON at byte"},
		{`{"hidden_size":1}`, "no model_type"},
		{`{"model_type":7}`, "model_type is 7; it must be a string"},
		{`{"model_type":"mamba"}`, `model_type "mamba" has no family here; ashlar plan on the command line gives a rough plan. Families are llama, qwen2`},
		{`{"model_type":"llama","hidden_size":-1}`, "hidden_size is -1; it must be a whole number from 1"},
		{`{"model_type":"llama","hidden_size":0}`, "hidden_size is 0"},
		{`{"model_type":"llama","hidden_size":1e300}`, "hidden_size is 1e300"},
		{`{"model_type":"llama","hidden_size":99999999999999999999999}`, "hidden_size is 99999999999999999999999"},
		{`{"model_type":"llama","hidden_size":"4096"}`, `hidden_size is "4096"; it must be a whole number`},
		{`{"model_type":"llama","hidden_size":12.5}`, "hidden_size is 12.5"},
		{`{"model_type":"llama","hidden_size":true}`, "hidden_size is true"},
		{`{"model_type":"llama","hidden_size":16777216,"intermediate_size":16777216,"num_hidden_layers":256,"num_attention_heads":1,"vocab_size":100000}`, "parameters: check the sizes"},
		{`{"model_type":"llama","attention_bias":1}`, "attention_bias is 1; it must be true or false"},
		{`{"model_type":"llama","attention_dropout":2}`, "attention_dropout is 2; a dropout must be from 0 to 1"},
		{`{"_class_name":"UNet2DConditionModel","_diffusers_version":"0.19"}`, "UNet2DConditionModel, a model of diffusers, has no family here"},
		{`{"peft_type":"LORA","base_model_name_or_path":"org/x","r":8}`, "give the config.json of org/x, and this file with trainer"},
		{`{"eos_token_id":2,"max_length":4096,"transformers_version":"5"}`, "generation_config.json"},
		{`{"tokenizer_class":"X"}`, "tokenizer_config.json"},
		{`{"model_type":"llama","num_key_value_heads":5}`, "num_attention_heads 32 is not a multiple of num_key_value_heads 5"},
		{`{"model_type":"qwen3","num_attention_heads":16}`, "num_key_value_heads 32 (not in the file; transformers' default for qwen3: set it)"},
		{`{"model_type":"llama","hidden_size":100,"num_attention_heads":3}`, "hidden size 100 is not a multiple of the 3 attention heads"},
		{`{"model_type":"llama","head_dim":65}`, "must be even"},
		{`{"model_type":"llama","hidden_act":"swooish"}`, `hidden_act "swooish" is not an activation`},
		{`{"model_type":"llama","num_local_experts":8}`, "num_local_experts is 8, which llama does not have"},
		{`{"model_type":"qwen3_moe","n_routed_experts":8}`, "n_routed_experts is 8, which qwen3_moe does not have"},
		{`{"model_type":"mixtral","moe_topk":[2,2]}`, "moe_topk is [2,2], which mixtral does not have"},
		{`{"model_type":"mixtral","num_experts":4,"num_local_experts":8}`, "two names of one thing"},
		{`{"model_type":"mixtral","num_experts_per_tok":9}`, "num_experts_per_tok 9 is more than the 8 experts"},
		{`{"model_type":"qwen2","num_hidden_layers":2,"layer_types":["full_attention"]}`, "layer_types has 1 entries but num_hidden_layers is 2"},
		{`{"model_type":"qwen2","num_hidden_layers":1,"layer_types":["chunked_attention"]}`, `layer_types has "chunked_attention" at layer 0`},
		{`{"model_type":"qwen2","num_hidden_layers":1,"layer_types":["sliding_attention"]}`, "there is no sliding_window"},
		{`{"model_type":"mistral","num_hidden_layers":1,"layer_types":["full_attention"]}`, "all layers of mistral are sliding_attention"},
		{`{"model_type":"qwen2","layer_types":3}`, "layer_types is 3; it must be a list"},
		{`{"model_type":"gemma3_text","sliding_window_pattern":0}`, "sliding_window_pattern is 0"},
		{`{"model_type":"gemma3","text_config":7}`, "text_config is 7; it must be an object"},
		{`{"model_type":"gemma3","text_config":{"model_type":"llama"}}`, `text_config.model_type is "llama"`},
		{`{"model_type":"gemma3","text_config":{"hidden_size":-3}}`, "text_config.hidden_size is -3"},
		{`{"model_type":"deepseek_v2","topk_method":"noaux_tc"}`, `topk_method "noaux_tc"`},
		{`{"model_type":"deepseek_v2","topk_method":"group_limited_greedy"}`, "n_group or topk_group is not set"},
		{`{"model_type":"deepseek_v3","n_group":7}`, "does not divide into n_group 7"},
		{`{"model_type":"deepseek_v3","head_dim":128}`, "head_dim is 128 but qk_rope_head_dim is 64"},
		{`{"model_type":"bert","is_decoder":true}`, "is_decoder is true"},
		{`{"model_type":"gpt2","add_cross_attention":true}`, "add_cross_attention is true"},
		{`{"model_type":"t5","feed_forward_proj":"a-b-c"}`, "feed_forward_proj is"},
		{`{"model_type":"vit","image_size":8}`, "holds no 16x16 patch"},
		{`{"model_type":"vit","image_size":[1,2,3]}`, "a list of two"},
		{`{"model_type":"vit","id2label":3}`, "id2label is 3; it must be an object"},
		{`{"model_type":"llama","dtype":"int8"}`, `dtype is "int8"; plans are for float32, bfloat16 and float16`},
		{`{"model_type":"llama","rope_scaling":{"rope_type":"spiral"}}`, `rope_type "spiral" is not known`},
		{`{"model_type":"qwen3_5_text","partial_rotary_factor":7}`, "partial_rotary_factor is 7"},
		{`{"model_type":"granite","architectures":["GraniteForSequenceClassification"]}`, "give head causal to plan"},
		{`{"model_type":"llama","architectures":"LlamaForCausalLM"}`, "architectures is"},
	} {
		_, err := Read(strings.NewReader(c.text))
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.text)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %q, want %q", c.text, err, c.want)
		case strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: more than one line: %q", c.text, err)
		}
	}
}

func TestHead(t *testing.T) {
	const odd = `{"model_type":"llama","architectures":["LlamaForSequenceClassification"]}`
	if m := mustRead(t, odd, WithHead("none")); m.Head != HeadNone || m.Class != "LlamaModel" {
		t.Errorf("head %s, class %s", m.Head, m.Class)
	}
	if m := mustRead(t, odd, WithHead("causal")); m.Head != HeadCausal || m.Class != "LlamaForCausalLM" {
		t.Errorf("head %s, class %s", m.Head, m.Class)
	}
	for _, c := range []struct {
		text, asked, class string
		head               Head
		labels             int
	}{
		{odd, "", "LlamaForSequenceClassification", HeadSequence, 2},
		{`{"model_type":"llama","id2label":{"0":"a","1":"b","2":"c"}}`, "seq-cls", "LlamaForSequenceClassification", HeadSequence, 3},
		{`{"model_type":"llama","num_labels":7}`, "reward-model", "LlamaForSequenceClassification", HeadReward, 1},
		{`{"model_type":"gpt_neox","architectures":["GPTNeoXForTokenClassification"],"num_labels":9}`, "", "GPTNeoXForTokenClassification", HeadToken, 9},
		{`{"model_type":"gemma3_text"}`, "sequence_classification", "Gemma3TextForSequenceClassification", HeadSequence, 2},
		{`{"model_type":"gemma3","architectures":["Gemma3ForSequenceClassification"]}`, "", "Gemma3TextForSequenceClassification", HeadSequence, 2},
		{`{"model_type":"bert"}`, "QA", "BertForQuestionAnswering", HeadQuestion, 2},
	} {
		if m := mustRead(t, c.text, WithHead(c.asked)); m.Head != c.head || m.Class != c.class || m.NumLabels != c.labels {
			t.Errorf("%s with head %q: head %s, class %s, %d labels", c.text, c.asked, m.Head, m.Class, m.NumLabels)
		}
	}
	if _, err := Read(strings.NewReader(`{"model_type":"bert","num_labels":3}`), WithHead("question")); err == nil || !strings.Contains(err.Error(), "set num_labels to 2") {
		t.Errorf("a question with three labels: %v", err)
	}
	for fam, head := range map[string]Head{"bert": HeadMasked, "t5": HeadSeq2Seq, "vit": HeadImage, "gpt2": HeadCausal} {
		if m := mustRead(t, `{"model_type":"`+fam+`"}`); m.Head != head {
			t.Errorf("%s: head %s", fam, m.Head)
		}
	}
	_, err := Read(strings.NewReader(odd), WithHead("image"))
	if err == nil || !strings.Contains(err.Error(), "llama has causal, sequence, token, question or reward") {
		t.Errorf("error %v", err)
	}
}

func TestAssumedAndIgnored(t *testing.T) {
	m := mustRead(t, `{"model_type":"deepseek_v3","num_nextn_predict_layers":1,"vocab_size":null,"my_field":"x","hidden_size":1024}`)
	find := func(list []Assumption, field string) *Assumption {
		for i := range list {
			if list[i].Field == field {
				return &list[i]
			}
		}
		return nil
	}
	if a := find(m.Assumed, "vocab_size"); a == nil || a.Value != "129280" || !strings.HasPrefix(a.Why, "null in the file") {
		t.Errorf("vocab_size: %v", a)
	}
	if a := find(m.Assumed, "kv_lora_rank"); a == nil || a.Value != "512" || !strings.HasPrefix(a.Why, "not in the file") {
		t.Errorf("kv_lora_rank: %v", a)
	}
	if a := find(m.Assumed, "hidden_size"); a != nil {
		t.Errorf("hidden_size is in the file but listed: %v", a)
	}
	for _, field := range []string{"num_nextn_predict_layers", "my_field"} {
		if a := find(m.Ignored, field); a == nil {
			t.Errorf("%s is not listed as ignored: %v", field, m.Ignored)
		}
	}
	beside := mustRead(t, `{"model_type":"qwen3_5","hidden_size":512}`)
	if beside.Hidden != 4096 || find(beside.Ignored, "hidden_size") == nil || find(beside.Ignored, "vision_config") == nil {
		t.Errorf("fields beside text_config: hidden %d, ignored %v", beside.Hidden, beside.Ignored)
	}
}

func TestRunnable(t *testing.T) {
	m := mustRead(t, `{"model_type":"deepseek_v2"}`)
	if err := m.Runnable(); err == nil || !strings.Contains(err.Error(), "num_experts_per_tok") {
		t.Errorf("error %v", err)
	}
	if err := mustRead(t, `{"model_type":"deepseek_v2","num_experts_per_tok":6}`).Runnable(); err != nil {
		t.Error(err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, []byte(`{"model_type":"gpt2"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, file} {
		if m, err := Open(path); err != nil || m.Family != "gpt2" {
			t.Errorf("%s: %v, %v", path, m, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "give a config.json") {
		t.Errorf("error %v", err)
	}
}

// FuzzRead feeds anything; a model that is read must be consistent.
func FuzzRead(f *testing.F) {
	for _, fam := range modelTypes() {
		f.Add([]byte(`{"model_type":"` + fam + `","num_hidden_layers":2,"layer_types":null,"text_config":{"num_hidden_layers":3}}`))
	}
	f.Add([]byte(`{"model_type":"vit","image_size":[3,4],"rope_scaling":{"type":"yarn"}}`))
	f.Add([]byte(`{"model_type":"gemma3_text","rope_parameters":{"full_attention":{"rope_type":"linear"},"sliding_attention":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(strings.NewReader(string(data)))
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		if m.Hidden < 1 || m.Heads < 1 || m.KVHeads < 1 || m.HeadDim < 1 || m.Layers < 1 || len(m.LayerTypes) != m.Layers {
			t.Errorf("%s gives %+v", data, m)
		}
		if m.Heads%m.KVHeads != 0 || m.MoE != nil && len(m.MoE.Sparse) != m.Layers || m.elements() > maxElements {
			t.Errorf("%s gives %+v", data, m)
		}
		for i := range m.Layers {
			if m.LayerTypes[i] == SlidingAttention && m.Window(i) < 1 {
				t.Errorf("%s: layer %d slides without a window", data, i)
			}
		}
	})
}

// A config with a tower beside the sizes of its language model is near in part.
func TestNearestHasATower(t *testing.T) {
	const sizes = `"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100`
	for text, part := range map[string]string{
		`{"model_type":"odd",` + sizes + `}`:                                 "",
		`{"model_type":"odd","vision_config":null,` + sizes + `}`:            "",
		`{"model_type":"odd","vision_config":{"depth":2},` + sizes + `}`:     "the language model",
		`{"model_type":"odd","text_config":{` + sizes + `},"visual":{}}`:     "text_config",
		`{"model_type":"odd","mm_vision_tower":"openai/clip",` + sizes + `}`: "the language model",
	} {
		var config map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		if near := FindNearest(config); near == nil || near.Part != part {
			t.Errorf("%s: %+v, want %q", text, near, part)
		}
	}
}

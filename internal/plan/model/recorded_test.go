package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
)

// record is a configuration as transformers 5.17 wrote it: what was given, and
// the whole of it after the class had settled everything.
type record struct {
	Family string          `json:"family"`
	Class  string          `json:"class"`
	Given  map[string]any  `json:"given"`
	Config json.RawMessage `json:"config"`
}

func records(t testing.TB, name string) []record {
	t.Helper()
	return jsonl.Must[record](t, "../../../testdata/plan/"+name)
}

// settled is how a field of transformers' settled configuration is found in a
// Model.
var settled = map[string]func(*Model) any{
	"hidden_size": func(m *Model) any { return m.Hidden }, "n_embd": func(m *Model) any { return m.Hidden }, "d_model": func(m *Model) any { return m.Hidden },
	"intermediate_size": func(m *Model) any { return m.Intermediate }, "d_ff": func(m *Model) any { return m.Intermediate },
	"num_hidden_layers": func(m *Model) any { return m.Layers }, "n_layer": func(m *Model) any { return m.Layers }, "num_layers": func(m *Model) any { return m.Layers },
	"num_attention_heads": func(m *Model) any { return m.Heads }, "n_head": func(m *Model) any { return m.Heads }, "num_heads": func(m *Model) any { return m.Heads },
	"num_key_value_heads": func(m *Model) any { return m.KVHeads },
	"head_dim":            func(m *Model) any { return m.HeadDim }, "d_kv": func(m *Model) any { return m.HeadDim },
	"vocab_size":              func(m *Model) any { return m.Vocab },
	"max_position_embeddings": func(m *Model) any { return m.MaxPositions }, "n_positions": func(m *Model) any { return m.MaxPositions },
	"type_vocab_size":     func(m *Model) any { return m.TypeVocab },
	"tie_word_embeddings": func(m *Model) any { return m.Tied },
	"attention_bias":      func(m *Model) any { return m.QKVBias && m.OutBias },
	"mlp_bias":            func(m *Model) any { return m.MLPBias },
	"qkv_bias":            func(m *Model) any { return m.QKVBias },
	"hidden_act":          func(m *Model) any { return m.Activation }, "hidden_activation": func(m *Model) any { return m.Activation },
	"activation_function": func(m *Model) any { return m.Activation }, "dense_act_fn": func(m *Model) any { return m.Activation },
	"is_gated_act": func(m *Model) any { return m.GatedMLP },
	"embd_pdrop":   func(m *Model) any { return m.EmbeddingDropout },
	"resid_pdrop":  func(m *Model) any { return m.ResidualDropout }, "hidden_dropout_prob": func(m *Model) any { return m.ResidualDropout },
	"dropout_rate": func(m *Model) any { return m.ResidualDropout },
	"attn_pdrop":   func(m *Model) any { return m.AttentionDropout }, "attention_dropout": func(m *Model) any { return m.AttentionDropout },
	"attention_probs_dropout_prob": func(m *Model) any { return m.AttentionDropout },
	"layer_types":                  func(m *Model) any { return m.LayerTypes },
	"sliding_window":               func(m *Model) any { return orNull(m.SlidingWindow) },
	"attn_logit_softcapping":       func(m *Model) any { return orNull(m.AttnSoftcap) },
	"final_logit_softcapping":      func(m *Model) any { return orNull(m.FinalSoftcap) },
	"num_experts":                  func(m *Model) any { return m.MoE.Experts }, "num_local_experts": func(m *Model) any { return m.MoE.Experts },
	"n_routed_experts":                func(m *Model) any { return m.MoE.Experts },
	"num_experts_per_tok":             func(m *Model) any { return orNull(m.MoE.TopK) },
	"moe_intermediate_size":           func(m *Model) any { return m.MoE.Intermediate },
	"shared_expert_intermediate_size": func(m *Model) any { return m.MoE.SharedIntermediate },
	"n_shared_experts":                func(m *Model) any { return m.MoE.SharedExperts },
	"n_group":                         func(m *Model) any { return orNull(m.MoE.Groups) },
	"topk_group":                      func(m *Model) any { return orNull(m.MoE.TopKGroups) },
	"q_lora_rank":                     func(m *Model) any { return orNull(m.MLA.QRank) },
	"kv_lora_rank":                    func(m *Model) any { return m.MLA.KVRank },
	"qk_nope_head_dim":                func(m *Model) any { return m.MLA.NopeDim },
	"qk_rope_head_dim":                func(m *Model) any { return m.MLA.RopeDim },
	"qk_head_dim":                     func(m *Model) any { return m.MLA.QKHeadDim },
	"v_head_dim":                      func(m *Model) any { return m.MLA.VDim },
	"linear_num_key_heads":            func(m *Model) any { return m.Linear.KeyHeads },
	"linear_num_value_heads":          func(m *Model) any { return m.Linear.ValueHeads },
	"linear_key_head_dim":             func(m *Model) any { return m.Linear.KeyDim },
	"linear_value_head_dim":           func(m *Model) any { return m.Linear.ValueDim },
	"linear_conv_kernel_dim":          func(m *Model) any { return m.Linear.ConvKernel },
	"partial_rotary_factor":           func(m *Model) any { return m.Rope.PartialFactor },
	"num_decoder_layers":              func(m *Model) any { return m.T5.DecoderLayers },
	"relative_attention_num_buckets":  func(m *Model) any { return m.T5.RelativeBuckets },
	"relative_attention_max_distance": func(m *Model) any { return m.T5.RelativeMaxDistance },
	"scale_decoder_outputs":           func(m *Model) any { return m.T5.ScaleDecoderOutputs },
	"image_size":                      func(m *Model) any { return m.ViT.ImageHeight },
	"patch_size":                      func(m *Model) any { return m.ViT.PatchWidth },
	"num_channels":                    func(m *Model) any { return m.ViT.Channels },
	"pooler_output_size":              func(m *Model) any { return m.ViT.PoolerSize },
}

func orNull[T int | float64](n T) any {
	if n == 0 {
		return nil
	}
	return n
}

// unlike are fields that a Model keeps otherwise than the file on purpose.
var unlike = map[string]bool{
	"mixtral/head_dim": true, // null in the settled file, a number here
}

// TestSettled compares every field of the settled configurations, 19 families'
// defaults and 9 configurations of each, with what is read.
func TestSettled(t *testing.T) {
	compared := 0
	for _, file := range []string{"defaults.jsonl.gz", "params.jsonl.gz"} {
		for i, r := range records(t, file) {
			name := fmt.Sprintf("%s/%d/%s", file, i, r.Family)
			m, err := Read(strings.NewReader(string(r.Config)))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var want map[string]any
			if err := json.Unmarshal(r.Config, &want); err != nil {
				t.Fatal(err)
			}
			if fam, _ := familyOf(r.Family); fam.wrapped(r.Family) {
				text, ok := want["text_config"].(map[string]any)
				if !ok {
					continue
				}
				want = text
			}
			for field, value := range want {
				get, ok := settled[field]
				if !ok || unlike[r.Family+"/"+field] {
					continue
				}
				compared++
				if got := asJSON(t, get(m)); !cmp.Equal(got, value) {
					t.Errorf("%s: %s is %v, transformers has %v", name, field, got, value)
				}
			}
		}
	}
	if compared < 2400 {
		t.Errorf("compared only %d fields", compared)
	}
}

func asJSON(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGiven reads only the fields that were given and must come to the model
// that the settled file is: the defaults and rules here are transformers'.
func TestGiven(t *testing.T) {
	for i, r := range records(t, "params.jsonl.gz") {
		name := fmt.Sprintf("%d/%s", i, r.Family)
		whole, err := Read(strings.NewReader(string(r.Config)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r.Given["model_type"] = r.Family
		data, err := json.Marshal(r.Given)
		if err != nil {
			t.Fatal(err)
		}
		few, err := Read(strings.NewReader(string(data)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// The recorded files lack objects, and with them the labels.
		ignore := cmpopts.IgnoreFields(Model{}, "Assumed", "Ignored", "LeavesOut", "NumLabels")
		if diff := cmp.Diff(whole, few, ignore); diff != "" {
			t.Errorf("%s: the settled file (-) and the given fields (+) differ:\n%s", name, diff)
		}
		if r.Family != "gemma3" && few.Class != r.Class {
			t.Errorf("%s: class %s, transformers builds %s", name, few.Class, r.Class)
		}
		if n, ok := r.Given["num_labels"]; ok && few.NumLabels != int(n.(float64)) {
			t.Errorf("%s: %d labels, given %v", name, few.NumLabels, n)
		}
	}
}

// TestMeasured reads the configurations of the measured runs, which have no
// objects and no architectures.
func TestMeasured(t *testing.T) {
	list := records(t, "measured.jsonl")
	if len(list) < 14 {
		t.Fatalf("%d cases", len(list))
	}
	for i, r := range list {
		m, err := Read(strings.NewReader(string(r.Config)))
		if err != nil {
			t.Errorf("case %d: %v", i, err)
			continue
		}
		if err := m.Runnable(); err != nil {
			t.Errorf("case %d: %v", i, err)
		}
		if m.DType == "" {
			t.Errorf("case %d: no dtype", i)
		}
	}
}

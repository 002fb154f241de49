package hf_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
)

// published are models with as many parameters as their checkpoints have.
var published = []struct {
	name, config, head string
	params             int64
}{
	{"google/gemma-2b", `{"model_type":"gemma","hidden_size":2048,"intermediate_size":16384,"num_hidden_layers":18,"num_attention_heads":8,"num_key_value_heads":1,"head_dim":256,"vocab_size":256000}`, "", 2_506_172_416},
	{"microsoft/Phi-3-mini-4k-instruct", `{"model_type":"phi3","hidden_size":3072,"intermediate_size":8192,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"vocab_size":32064,"sliding_window":2047}`, "", 3_821_079_552},
	{"microsoft/phi-4", `{"model_type":"phi3","hidden_size":5120,"intermediate_size":17920,"num_hidden_layers":40,"num_attention_heads":40,"num_key_value_heads":10,"vocab_size":100352,"max_position_embeddings":16384}`, "", 14_659_507_200},
	{"facebook/opt-125m", `{"model_type":"opt"}`, "", 125_239_296},
	{"facebook/opt-350m", `{"model_type":"opt","hidden_size":1024,"ffn_dim":4096,"num_hidden_layers":24,"num_attention_heads":16,"word_embed_proj_dim":512,"do_layer_norm_before":false}`, "", 331_196_416},
	{"EleutherAI/pythia-160m", `{"model_type":"gpt_neox","hidden_size":768,"intermediate_size":3072,"num_hidden_layers":12,"num_attention_heads":12,"vocab_size":50304,"rotary_pct":0.25}`, "", 162_322_944},
	{"bigcode/starcoder2-3b", `{"model_type":"starcoder2","hidden_size":3072,"intermediate_size":12288,"num_hidden_layers":30,"num_attention_heads":24,"num_key_value_heads":2,"vocab_size":49152,"sliding_window":4096}`, "", 3_030_371_328},
	{"HuggingFaceTB/SmolLM3-3B", `{"model_type":"smollm3"}`, "", 3_075_098_624},
	{"THUDM/GLM-4-9B-0414", `{"model_type":"glm4","hidden_size":4096,"intermediate_size":13696,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":2,"head_dim":128,"vocab_size":151552}`, "", 9_400_279_040},
	{"CohereLabs/c4ai-command-r7b-12-2024", `{"model_type":"cohere2","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":256000}`, "", 8_028_033_024},
	{"Qwen/Qwen1.5-MoE-A2.7B", `{"model_type":"qwen2_moe","hidden_size":2048,"intermediate_size":5632,"num_hidden_layers":24,"num_attention_heads":16,"num_key_value_heads":16,"moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"num_experts":60,"vocab_size":151936}`, "", 14_315_784_192},
	{"bert-base-uncased with two labels", `{"model_type":"bert"}`, "sequence", 109_483_778},
	{"roberta-base", `{"model_type":"roberta","max_position_embeddings":514,"type_vocab_size":1}`, "", 124_697_433},
	{"roberta-base with two labels", `{"model_type":"roberta","max_position_embeddings":514,"type_vocab_size":1}`, "sequence", 124_647_170},
	{"xlm-roberta-base", `{"model_type":"xlm-roberta","max_position_embeddings":514,"type_vocab_size":1,"vocab_size":250002}`, "", 278_295_186},
	{"distilbert-base-uncased", `{"model_type":"distilbert"}`, "", 66_985_530},
	{"distilbert-base-uncased with two labels", `{"model_type":"distilbert"}`, "sequence", 66_955_010},
	{"answerdotai/ModernBERT-base", `{"model_type":"modernbert"}`, "", 149_655_232},
	{"facebook/bart-base", `{"model_type":"bart","d_model":768,"encoder_layers":6,"decoder_layers":6,"encoder_attention_heads":12,"decoder_attention_heads":12,"encoder_ffn_dim":3072,"decoder_ffn_dim":3072}`, "", 139_420_416},
	{"facebook/bart-large", `{"model_type":"bart"}`, "", 406_291_456},
	{"openai/whisper-tiny", `{"model_type":"whisper"}`, "", 37_760_640},
	{"openai/clip-vit-base-patch32", `{"model_type":"clip"}`, "", 151_277_313},
	{"google/siglip-base-patch16-224", `{"model_type":"siglip"}`, "", 203_155_970},
}

func TestPublishedParameters(t *testing.T) {
	for _, p := range published {
		m, err := model.Read(strings.NewReader(p.config), model.WithHead(p.head))
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		r, err := hf.Run(context.Background(), &model.Job{Model: m, Mode: model.Train, Batch: 1, Seq: 8, TargetSeq: 8, Steps: 1, DType: model.BF16})
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		if r.Count() != p.params {
			t.Errorf("%s: %d parameters, the checkpoint has %d", p.name, r.Count(), p.params)
		}
	}
}

// Parameters have transformers' names and shapes, in its order.
func TestNamedParameters(t *testing.T) {
	type named struct {
		Case string               `json:"case"`
		Spec plancompare.Fields   `json:"spec"`
		Raw  [][2]json.RawMessage `json:"named"`
	}
	n := 0
	for _, c := range jsonl.Must[named](t, "../../../testdata/plan/measured-families.jsonl.gz") {
		if c.Raw == nil {
			continue
		}
		n++
		m, err := c.Spec.Model()
		if err != nil {
			t.Fatalf("%s: %v", c.Case, err)
		}
		r, err := hf.Run(context.Background(), &model.Job{Model: m, Mode: model.Train, Batch: 1, Seq: 8, TargetSeq: 8, Steps: 1, DType: model.BF16})
		if err != nil {
			t.Fatalf("%s: %v", c.Case, err)
		}
		var planned []string
		for _, p := range r.Parameters {
			if !p.Tied {
				planned = append(planned, fmt.Sprintf("%s %v", p.Name, p.Tensor.Shape()))
			}
		}
		for i, raw := range c.Raw {
			var name string
			var shape []int64
			if err := errors.Join(json.Unmarshal(raw[0], &name), json.Unmarshal(raw[1], &shape)); err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("%s %v", name, shape); i >= len(planned) || planned[i] != want {
				t.Errorf("%s: parameter %d is %s in transformers, %s planned", c.Case, i, want, planned[min(i, len(planned)-1)])
				break
			}
		}
		if len(planned) != len(c.Raw) {
			t.Errorf("%s: %d parameters, transformers has %d", c.Case, len(planned), len(c.Raw))
		}
	}
	if n < 50 {
		t.Errorf("%d models", n)
	}
}

// small are models of the families that no recording has, with every kind of
// layer and dropout.
var small = []string{
	`{"model_type":"gemma","head_dim":32,"num_key_value_heads":1`, `{"model_type":"phi3","resid_pdrop":0.1,"sliding_window":8`, `{"model_type":"granite"`,
	`{"model_type":"olmo2"`, `{"model_type":"smollm3","no_rope_layer_interval":2,"use_sliding_window":true,"sliding_window":8`, `{"model_type":"glm4","head_dim":32`,
	`{"model_type":"cohere2","sliding_window":8,"sliding_window_pattern":2`, `{"model_type":"starcoder2","residual_dropout":0.1,"embedding_dropout":0.1`,
	`{"model_type":"gpt_neox","hidden_dropout":0.1`, `{"model_type":"gpt_neox","use_parallel_residual":false`, `{"model_type":"opt","ffn_dim":96`,
	`{"model_type":"opt","ffn_dim":96,"word_embed_proj_dim":32,"do_layer_norm_before":false`,
	`{"model_type":"qwen2_moe","moe_intermediate_size":32,"shared_expert_intermediate_size":32,"num_experts":4,"num_experts_per_tok":2,"num_key_value_heads":4`,
	`{"model_type":"llama"`, `{"model_type":"qwen3","head_dim":32,"num_key_value_heads":2`, `{"model_type":"gpt2"`, `{"model_type":"bert"`, `{"model_type":"roberta"`, `{"model_type":"distilbert","hidden_dim":96`,
	`{"model_type":"modernbert","local_attention":8,"mlp_dropout":0.1,"attention_dropout":0.1,"pad_token_id":0`, `{"model_type":"modernbert","classifier_pooling":"mean"`,
	`{"model_type":"t5","d_kv":16,"d_ff":96`, `{"model_type":"bart","encoder_layers":2,"decoder_layers":3,"encoder_ffn_dim":96`, `{"model_type":"whisper","encoder_layers":2,"decoder_attention_heads":4,"max_source_positions":20`,
	`{"model_type":"dinov2","image_size":28`, `{"model_type":"dinov2","image_size":28,"use_swiglu_ffn":true`,
	`{"model_type":"clip","text_config":{"num_hidden_layers":2},"vision_config":{"num_hidden_layers":2}`,
	`{"model_type":"siglip","text_config":{"num_hidden_layers":2},"vision_config":{"num_hidden_layers":2}`,
}

// shape is what the small models share, in the words of their families.
const shape = `,"num_hidden_layers":3,"num_attention_heads":4,"hidden_size":64,"intermediate_size":96,"vocab_size":200,"num_labels":3}`

// Every family runs with each of its heads, and what a step allocates is gone
// after it.
func TestFamiliesLeaveNothing(t *testing.T) {
	ran := map[model.Head]int{}
	for _, text := range small {
		config := text + shape
		if strings.Contains(text, `encoder_layers`) {
			config = strings.Replace(config, `"num_hidden_layers":3,`, "", 1)
		}
		for _, head := range model.Heads() {
			config := config
			if head == string(model.HeadQuestion) { // which has two labels
				config = strings.Replace(config, `"num_labels":3`, `"num_labels":2`, 1)
			}
			m, err := model.Read(strings.NewReader(config), model.WithHead(head))
			if err != nil || m.Head == model.HeadNone {
				if err != nil && !strings.Contains(err.Error(), "head ") {
					t.Errorf("%s: %v", config, err)
				}
				continue
			}
			for i, j := range []model.Job{
				{DType: model.BF16},
				{DType: model.FP32, Autocast: true, Mask: model.RightMask, HoldOutput: true},
				{DType: model.BF16, Attention: model.Eager, Mask: model.LeftMask, Recompute: model.Recompute{Mode: "full"}},
				{DType: model.FP16, LoRA: model.LoRA{Rank: 4}, Recompute: model.Recompute{Mode: "full", Reentrant: true}},
			} {
				j.Model, j.Mode, j.Batch, j.Seq, j.TargetSeq, j.Steps, j.Optimizer = m, model.Train, 2, 16, 12, 3, model.AdamWFused
				if m.Images() != nil || m.Audio != nil {
					j.Mask = model.NoMask
				}
				if m.T5 != nil { // whose biases a reentrant checkpoint makes twice
					j.Recompute.Reentrant = false
				}
				leavesNothing(t, fmt.Sprintf("%s as %s, job %d", config, head, i), &j)
				ran[m.Head]++
			}
		}
	}
	for _, head := range model.Heads() {
		if ran[model.Head(head)] == 0 && head != string(model.HeadNone) {
			t.Errorf("no model has the head %s", head)
		}
	}
}

func leavesNothing(t *testing.T, what string, j *model.Job) {
	t.Helper()
	r, err := hf.Run(context.Background(), j)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, e := range r.Ledger.Tensors {
		if e.Death != ledger.Lives || e.Kind == ledger.Weight || e.Kind == ledger.Buffer || e.Kind == ledger.Optimizer || e.Kind == ledger.Workspace {
			continue
		}
		if j.HoldOutput && int(e.Birth) > r.Ledger.Phases[len(r.Ledger.Phases)-4].First {
			continue // the outputs of the last step
		}
		t.Errorf("%s: %d bytes of %s (%s in %q) are never freed", what, e.Bytes, e.Kind, r.Ledger.Text(e.Op), r.Ledger.Text(e.Module))
		return
	}
}

// What no plan divides is refused, not shown whole.
func TestNotDivided(t *testing.T) {
	for _, config := range []string{`{"model_type":"bart"}`, `{"model_type":"clip"}`, `{"model_type":"dinov2"}`} {
		m, err := model.Read(strings.NewReader(config))
		if err != nil {
			t.Fatal(err)
		}
		_, err = hf.Run(context.Background(), &model.Job{Model: m, Mode: model.Train, Batch: 1, Seq: 8, TargetSeq: 8, Shard: model.Shard{Tensor: 2}})
		if err == nil || !strings.Contains(err.Error(), "leave tp out") {
			t.Errorf("%s: %v", config, err)
		}
	}
}

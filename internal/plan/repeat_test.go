package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// Two steps and the second once more are three steps.
func TestRepeatIsTheThirdStep(t *testing.T) {
	short.Skip(t)
	names, err := plancompare.Names()
	if err != nil {
		t.Fatal(err)
	}
	compared, not := 0, 0
	for _, name := range names {
		c, err := plancompare.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		j, err := c.Job()
		if err != nil || j.Mode != model.Train {
			continue
		}
		three, err := hf.Run(t.Context(), j)
		if err != nil {
			continue // a family that the preset does not have yet
		}
		j.Steps = 2
		two, err := hf.Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if !two.Ledger.Repeat() {
			t.Logf("%s does not repeat", name)
			not++
			continue
		}
		compared++
		if diff := differ(three.Ledger, two.Ledger); diff != "" && repeats(j) {
			t.Errorf("%s: %s", name, diff)
		} else if diff != "" {
			t.Logf("%s: %s", name, diff)
		}
	}
	if compared < 20 {
		t.Errorf("only %d compared, %d do not repeat", compared, not)
	}
}

// Where a step leaves nothing but state, the first step makes the others.
func TestFirstStepMakesTheOthers(t *testing.T) {
	models := []string{
		`{"model_type":"llama","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":300}`,
		`{"model_type":"mixtral","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"num_local_experts":8,"num_experts_per_tok":2,"vocab_size":300}`,
		`{"model_type":"gpt2","n_embd":64,"n_layer":4,"n_head":4,"vocab_size":300,"n_positions":256}`,
		`{"model_type":"gemma3_text","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":300}`,
		`{"model_type":"deepseek_v3","hidden_size":64,"intermediate_size":96,"moe_intermediate_size":32,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":4,"n_routed_experts":8,"num_experts_per_tok":2,"n_group":2,"topk_group":1,"first_k_dense_replace":1,"q_lora_rank":24,"kv_lora_rank":24,"qk_rope_head_dim":16,"qk_nope_head_dim":16,"v_head_dim":16,"vocab_size":300}`,
		`{"model_type":"qwen3_5_text","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"linear_num_key_heads":4,"linear_num_value_heads":8,"linear_key_head_dim":16,"linear_value_head_dim":16,"vocab_size":300}`,
		`{"model_type":"t5","d_model":64,"d_kv":16,"d_ff":96,"num_layers":4,"num_decoder_layers":4,"num_heads":4,"vocab_size":300}`,
		`{"model_type":"bert","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":300}`,
		`{"model_type":"vit","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"image_size":32,"patch_size":8}`,
	}
	ways := [][]string{
		{},
		{"clip", "true"},
		{"master-weights", "true"},
		{"accumulate", "3"},
		{"autocast", "true"},
		{"recompute", "full"},
		{"recompute", "selective"},
		{"mask", "right"},
		{"loss", "chunked:16"},
		{"use-cache", "true"},
		{"lora", "4"},
		{"lora", "4", "quant", "nf4"},
		{"lora", "4", "quant", "int8"},
		{"attention", "eager"},
	}
	for _, optimizer := range optimizers {
		ways = append(ways, []string{"optimizer", string(optimizer)})
	}
	compared := 0
	for _, text := range models {
		m := readModel(t, text)
		for _, pairs := range ways {
			o := options(t, append([]string{"batch", "2", "dtype", "bf16"}, pairs...)...)
			if slices.Contains(pairs, "autocast") {
				o = o.with("dtype", "fp32")
			}
			if m.ViT == nil {
				o = o.with("seq", "48")
			}
			j, _, err := o.Job(m)
			if err != nil {
				continue // not for this family
			}
			if !leavesStateAlone(j) {
				t.Fatalf("%s %v: not taken from the first step", m.ModelType, pairs)
			}
			want, err := hf.Run(t.Context(), j)
			if err != nil {
				t.Fatalf("%s %v: %v", m.ModelType, pairs, err)
			}
			got, err := preset517(t.Context(), j)
			if err != nil {
				t.Fatalf("%s %v: %v", m.ModelType, pairs, err)
			}
			compared++
			if diff := differ(want.Ledger, got.ledger); diff != "" {
				t.Errorf("%s %v: %s", m.ModelType, pairs, diff)
			}
			j.Steps = 1
			if first, err := hf.Run(t.Context(), j); err != nil || !first.Ledger.RepeatFirst() {
				t.Errorf("%s %v: the first step is not repeated, %v", m.ModelType, pairs, err)
			}
		}
	}
	if compared < 200 {
		t.Errorf("only %d compared", compared)
	}
}

// differ says how two ledgers differ.
func differ(a, b *ledger.Ledger) string {
	switch {
	case !slices.Equal(a.Events, b.Events):
		i := 0
		for i < min(len(a.Events), len(b.Events)) && a.Events[i] == b.Events[i] {
			i++
		}
		return strings.Join([]string{"events differ in", a.PhaseAt(i).Name}, " ")
	case !slices.Equal(a.Phases, b.Phases):
		return "phases differ"
	}
	for i := range a.Tensors {
		x, y := a.Tensors[i], b.Tensors[i]
		if a.Text(x.Op) != b.Text(y.Op) || a.Text(x.Module) != b.Text(y.Module) {
			return "names differ"
		}
		x.Op, x.Module, y.Op, y.Module = 0, 0, 0, 0
		if x != y {
			return "tensors differ"
		}
	}
	return ""
}

package hf_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

func moeJob(t *testing.T, text string) *model.Job {
	t.Helper()
	c, err := model.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return &model.Job{
		Model: c, Mode: model.Train, Batch: 2, Seq: 256, DType: model.BF16,
		Attention: model.SDPA, Optimizer: model.AdamWFused,
	}
}

// PyTorch said "strides should be multiple of 16 bytes" to those that are
// refused here.
func TestExpertAlignment(t *testing.T) {
	for _, c := range []struct {
		name, sizes string
		dtype       model.DType
		refused     bool
	}{
		{"whole", `"hidden_size":896,"intermediate_size":1280`, model.BF16, false},
		{"width of an expert", `"hidden_size":896,"intermediate_size":1284`, model.BF16, true},
		{"the same in fp32", `"hidden_size":896,"intermediate_size":1284`, model.FP32, false},
		{"width of an expert in fp32", `"hidden_size":896,"intermediate_size":1282`, model.FP32, true},
		{"width of the model", `"hidden_size":900,"intermediate_size":1280`, model.BF16, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := moeJob(t, `{"model_type":"mixtral","num_hidden_layers":1,"num_attention_heads":4,"num_key_value_heads":2,`+
				`"head_dim":64,"vocab_size":1000,`+c.sizes+`}`)
			j.DType = c.dtype
			_, err := hf.Run(context.Background(), j)
			if refused := err != nil && strings.Contains(err.Error(), "multiple of 16 bytes"); refused != c.refused {
				t.Errorf("refused %t, want %t: %v", refused, c.refused, err)
			}
		})
	}
}

// gpt_oss has no scaled_dot_product_attention: asked for it or not, its plan is
// the one with eager attention.
func TestGptOssIsEager(t *testing.T) {
	const text = `{"model_type":"gpt_oss","num_hidden_layers":2,"hidden_size":256,"intermediate_size":128,
		"num_attention_heads":4,"num_key_value_heads":2,"num_local_experts":4,"num_experts_per_tok":2,"vocab_size":1000}`
	var plans []*hf.Result
	for _, a := range []model.Attention{model.Eager, model.SDPA, model.Flash} {
		j := moeJob(t, text)
		j.Attention = a
		r, err := hf.Run(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		if j.Attention != a {
			t.Errorf("the job's attention is %s now, it was %s", j.Attention, a)
		}
		plans = append(plans, r)
	}
	for _, p := range plans[1:] {
		if !slices.Equal(p.Ledger.Tensors, plans[0].Ledger.Tensors) {
			t.Error("another plan than with eager attention")
		}
	}
}

// A module's own parameters come before those of its parts, whatever was
// allocated first: optimizers go through them in this order.
func TestSinksComeFirst(t *testing.T) {
	r, err := hf.Run(context.Background(), moeJob(t, `{"model_type":"gpt_oss","num_hidden_layers":1,"hidden_size":256,
		"intermediate_size":128,"num_attention_heads":4,"num_key_value_heads":2,"num_local_experts":4,"vocab_size":1000}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range r.Parameters[:4] {
		names = append(names, strings.TrimPrefix(p.Name, "model."))
	}
	want := []string{"embed_tokens.weight", "layers.0.self_attn.sinks", "layers.0.self_attn.q_proj.weight", "layers.0.self_attn.q_proj.bias"}
	if !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

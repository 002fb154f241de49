package model_test

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

func ExampleRead() {
	m, err := model.Read(strings.NewReader(`{
		"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 32,
		"num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "decoder_sparse_step": 2, "vocab_size": null
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Class, m.Hidden, m.Heads, m.KVHeads, m.HeadDim)
	for i := range m.Layers {
		fmt.Println(i, m.LayerTypes[i], "experts:", m.Sparse(i))
	}
	for _, a := range m.Assumed[:2] {
		fmt.Printf("%s = %s (%s)\n", a.Field, a.Value, a.Why)
	}
	// Output:
	// Qwen3MoeForCausalLM 2048 32 4 128
	// 0 full_attention experts: false
	// 1 full_attention experts: true
	// 2 full_attention experts: false
	// 3 full_attention experts: true
	// architectures = Qwen3MoeForCausalLM (the file names none; the usual head of qwen3_moe)
	// vocab_size = 151936 (null in the file; transformers' default for qwen3_moe)
}

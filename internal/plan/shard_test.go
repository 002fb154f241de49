package plan

import (
	"strings"
	"testing"
)

// What cannot be divided among ranks is refused in a line that says what can.
func TestIndivisible(t *testing.T) {
	const experts = `{"model_type": "qwen3_moe", "hidden_size": 256, "intermediate_size": 640, "moe_intermediate_size": 100, "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 32, "num_experts": 8, "num_experts_per_tok": 2, "vocab_size": 3000, "dtype": "bfloat16"}`
	const linear = `{"model_type": "qwen3_5_text", "hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 32, "linear_value_head_dim": 32, "vocab_size": 3000, "dtype": "bfloat16"}`
	const bert = `{"model_type": "bert", "hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 3000, "dtype": "bfloat16"}`
	const t5 = `{"model_type": "t5", "d_model": 256, "d_ff": 640, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 8, "d_kv": 32, "vocab_size": 3000, "dtype": "bfloat16"}`
	for _, tt := range []struct {
		config string
		pairs  []string
		want   string
	}{
		{experts, []string{"shard", "tp:8"}, "shard tp:8: experts of width 100 cannot be divided among 8 ranks; write 4"},
		{linear, []string{"shard", "tp:4"}, "shard tp:4: 2 key and 4 value heads of linear attention cannot be divided among 4 ranks; write 2"},
		{bert, []string{"shard", "pp:2"}, "shard pp:2: pipelines are planned for models that predict the next token, not for bert"},
		{t5, []string{"shard", "cp:2", "target-seq", "33"}, "shard cp:2: a target of 33 tokens cannot be divided among 2 ranks; give a target-seq"},
		{experts, []string{"shard", "tp:4"}, ""},
		{linear, []string{"shard", "tp:2"}, ""},
		{bert, []string{"shard", "pp:1"}, ""},
	} {
		_, _, err := options(t, append([]string{"batch", "1", "seq", "64"}, tt.pairs...)...).Job(readModel(t, tt.config))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.pairs, err, tt.want)
		}
	}
}

// Ranks of context parallelism divide the target of an encoder-decoder too.
func TestTargetIsDivided(t *testing.T) {
	config := `{"model_type": "t5", "d_model": 256, "d_ff": 640, "num_layers": 1, "num_decoder_layers": 4, "num_heads": 8, "d_kv": 32, "vocab_size": 30000, "dtype": "bfloat16"}`
	ask := func(shard string) uint64 {
		return peak(t, t, config, "batch", "4", "seq", "64", "target-seq", "512", "shard", shard)
	}
	if one, two := ask("cp:1"), ask("cp:2"); float64(two) > 0.8*float64(one) {
		t.Errorf("two ranks take %d, one %d", two, one)
	}
}

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ashlar-mem/ashlar/settings"
)

// small are configs of several families, with the number of layers left open.
var small = []string{
	`{"model_type": "llama", "hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": %d, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 3000, "dtype": "bfloat16"}`,
	`{"model_type": "qwen3", "hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": %d, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 3000, "dtype": "float32"}`,
	`{"model_type": "mixtral", "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": %d, "num_attention_heads": 8, "num_key_value_heads": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 3000, "dtype": "bfloat16"}`,
	`{"model_type": "gpt2", "n_embd": 256, "n_layer": %d, "n_head": 8, "vocab_size": 3000, "dtype": "bfloat16"}`,
	`{"model_type": "gemma3_text", "hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": %d, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 3000, "sliding_window": 64, "dtype": "bfloat16"}`,
	`{"model_type": "deepseek_v3", "hidden_size": 256, "intermediate_size": 640, "moe_intermediate_size": 128, "num_hidden_layers": %d, "num_attention_heads": 8, "num_key_value_heads": 8, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "kv_lora_rank": 64, "q_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32, "vocab_size": 3000, "dtype": "bfloat16"}`,
	`{"model_type": "bert", "hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": %d, "num_attention_heads": 8, "vocab_size": 3000, "dtype": "bfloat16"}`,
	`{"model_type": "t5", "d_model": 256, "d_ff": 640, "num_layers": %d, "num_decoder_layers": 2, "num_heads": 8, "d_kv": 32, "vocab_size": 3000, "dtype": "bfloat16"}`,
}

// peak is the peak of requested bytes of a job.
func peak(t interface{ Fatalf(string, ...any) }, tb testing.TB, config string, pairs ...string) uint64 {
	q := Question{Model: model(tb, config), Options: options(tb, pairs...), Settings: settings.Default()}
	p, _, err := q.plan(tb.Context(), q.Options, 0)
	if err != nil {
		t.Fatalf("%s %v: %v", config, pairs, err)
	}
	return p.requested
}

// More batch, more sequence or more layers never take less. Sequences are whole
// eights: kernels want that and copy what is not, so that a token more may spare
// a copy.
func TestMoreNeverTakesLess(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		config := rapid.SampledFrom(small).Draw(r, "config")
		batch, seq, layers := rapid.IntRange(1, 4).Draw(r, "batch"), 8*rapid.IntRange(1, 25).Draw(r, "seq"), rapid.IntRange(1, 4).Draw(r, "layers")
		how := rapid.SampledFrom([][]string{
			{}, {"recompute", "full"}, {"generate", "3"}, {"optimizer", "adamw-foreach"}, {"accumulate", "2"}, {"attention", "eager"},
		}).Draw(r, "how")
		if m := model(t, fmt.Sprintf(config, layers)); m.Head != "causal" && len(how) > 0 && how[0] == "generate" {
			how = nil
		}
		ask := func(batch, seq, layers int) uint64 {
			return peak(r, t, fmt.Sprintf(config, layers), append([]string{"batch", fmt.Sprint(batch), "seq", fmt.Sprint(seq)}, how...)...)
		}
		least := ask(batch, seq, layers)
		for _, more := range [][3]int{{1, 0, 0}, {0, 8, 0}, {0, 64, 0}, {0, 0, 1}} {
			if got := ask(batch+more[0], seq+more[1], layers+more[2]); got < least {
				r.Fatalf("batch %d, seq %d, layers %d take %d; with %v more %d", batch, seq, layers, least, more, got)
			}
		}
	})
}

// More ranks of the same sharding never take more.
func TestMoreRanksNeverTakeMore(t *testing.T) {
	for _, tt := range []struct {
		config, shard string
		ranks         []int
	}{
		{small[0], "fsdp:%d", []int{1, 2, 4, 8}},
		{small[1], "fsdp:%d", []int{1, 2, 3, 8}},
		{small[2], "fsdp:%d", []int{1, 2, 4}},
		{small[0], "zero1:%d", []int{1, 2, 4, 8}},
		{small[0], "zero2:%d", []int{1, 2, 4, 8}},
		{small[0], "zero3:%d", []int{1, 2, 4, 8}},
		{small[0], "tp:%d", []int{1, 2, 4}},
		{small[1], "tp:%d", []int{1, 2, 4, 8}},
		{small[0], "tp:%[1]d,sp:%[1]d", []int{1, 2, 4}},
		{small[0], "pp:%d", []int{1, 2, 4}},
		{small[0], "cp:%d", []int{1, 2, 4}},
		{small[2], "ep:%d", []int{1, 2, 4}},
		{small[0], "fsdp:%d,tp:2", []int{1, 2, 4}},
	} {
		var peaks []uint64
		for _, n := range tt.ranks {
			peaks = append(peaks, peak(t, t, fmt.Sprintf(tt.config, 4), "batch", "2", "seq", "128", "shard", fmt.Sprintf(tt.shard, n)))
		}
		if !slices.IsSortedFunc(peaks, func(a, b uint64) int { return cmp.Compare(b, a) }) || peaks[len(peaks)-1] == peaks[0] {
			t.Errorf("%s over %v ranks takes %d", tt.shard, tt.ranks, peaks)
		}
	}
}

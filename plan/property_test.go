package plan

import (
	"fmt"
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

// More batch, more sequence or more layers never take less.
func TestMoreNeverTakesLess(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		config := rapid.SampledFrom(small).Draw(r, "config")
		batch, seq, layers := rapid.IntRange(1, 4).Draw(r, "batch"), rapid.IntRange(8, 200).Draw(r, "seq"), rapid.IntRange(1, 4).Draw(r, "layers")
		how := rapid.SampledFrom([][]string{
			{}, {"recompute", "full"}, {"generate", "3"}, {"optimizer", "adamw-foreach"}, {"accumulate", "2"}, {"attention", "eager"},
		}).Draw(r, "how")
		ask := func(batch, seq, layers int) uint64 {
			return peak(r, t, fmt.Sprintf(config, layers), append([]string{"batch", fmt.Sprint(batch), "seq", fmt.Sprint(seq)}, how...)...)
		}
		least := ask(batch, seq, layers)
		for _, more := range [][3]int{{1, 0, 0}, {0, 1, 0}, {0, 17, 0}, {0, 0, 1}} {
			if got := ask(batch+more[0], seq+more[1], layers+more[2]); got < least {
				r.Fatalf("batch %d, seq %d, layers %d take %d; with %v more %d", batch, seq, layers, least, more, got)
			}
		}
	})
}

// More ranks of the same sharding never take more.
func TestMoreRanksNeverTakeMore(t *testing.T) {
	for _, config := range small[:2] {
		for _, shard := range []string{"fsdp", "zero1", "zero2", "zero3", "tp"} {
			last := uint64(0)
			for _, n := range []int{1, 2, 4, 8} {
				if shard == "tp" && n > 4 {
					continue
				}
				got := peak(t, t, fmt.Sprintf(config, 3), "batch", "2", "seq", "128", "shard", fmt.Sprintf("%s:%d", shard, n))
				if last > 0 && got > last {
					t.Errorf("%s over %d ranks takes %d, over fewer %d", shard, n, got, last)
				}
				last = got
			}
		}
	}
}

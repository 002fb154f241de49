package plan

import (
	"context"
	"testing"

	"github.com/ashlar-mem/ashlar/settings"
)

// config8 is Llama-3.1-8B's shape.
const config8 = `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
 "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256, "tie_word_embeddings": false, "max_position_embeddings": 16384, "dtype": "bfloat16"}`

func question8(b *testing.B, pairs ...string) Question {
	b.Helper()
	return Question{Model: readModel(b, config8), Options: options(b, pairs...), Settings: settings.Default(), Capacity: Capacity{Card: gpuOf(b, "h100")}, Points: 66}
}

// BenchmarkAsk is a whole plan of 8 billion parameters, levers included.
func BenchmarkAsk(b *testing.B) {
	for name, pairs := range map[string][]string{
		"train":    {"batch", "2", "seq", "4096", "attention", "flash"},
		"full":     {"batch", "2", "seq", "4096", "attention", "flash", "recompute", "full"},
		"qlora":    {"batch", "1", "seq", "2048", "quant", "nf4-double", "lora", "16"},
		"generate": {"batch", "8", "seq", "4096", "generate", "64", "attention", "flash"},
	} {
		b.Run(name, func(b *testing.B) {
			q := question8(b, pairs...)
			for b.Loop() {
				if _, err := Ask(context.Background(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFindLargest is a search for the largest batch.
func BenchmarkFindLargest(b *testing.B) {
	q := question8(b, "seq", "2048", "attention", "flash", "recompute", "full")
	for b.Loop() {
		if _, err := FindLargest(context.Background(), q, "batch"); err != nil {
			b.Fatal(err)
		}
	}
}

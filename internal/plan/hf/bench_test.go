package hf_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// llama8 is Llama-3.1-8B's shape.
const llama8 = `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
 "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256, "tie_word_embeddings": false, "max_position_embeddings": 16384, "dtype": "bfloat16"}`

// BenchmarkRun8B is the symbolic run alone, of 8 billion parameters: two steps of
// training, of which a plan makes three, or 64 tokens.
func BenchmarkRun8B(b *testing.B) {
	m, err := model.Read(strings.NewReader(llama8))
	if err != nil {
		b.Fatal(err)
	}
	train := model.Job{
		Model: m, Mode: model.Train, Batch: 2, Seq: 4096, DType: model.BF16, Optimizer: model.AdamWFused, Steps: 2,
		Attention: model.SDPA, Recompute: model.Recompute{Mode: "none"}, Accumulate: 1,
	}
	full := train
	full.Recompute.Mode = "full"
	generate := train
	generate.Mode, generate.Batch, generate.Tokens = model.Generate, 8, 64
	for _, c := range []struct {
		name string
		job  *model.Job
	}{{"train", &train}, {"full", &full}, {"generate", &generate}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				r, err := hf.Run(context.Background(), c.job)
				if err != nil {
					b.Fatal(err)
				}
				events = len(r.Ledger.Events)
			}
			b.ReportMetric(float64(events), "events")
		})
	}
}

package hf

import (
	"context"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// A run that becomes too long ends with a line that says so, one that nobody
// waits for ends too, and somebody is told how far it is.
func TestWatch(t *testing.T) {
	m, err := model.Read(strings.NewReader(`{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
 "num_attention_heads": 4, "vocab_size": 100, "dtype": "bfloat16"}`))
	if err != nil {
		t.Fatal(err)
	}
	j := &model.Job{
		Model: m, Mode: model.Train, Steps: 3, Batch: 1, Seq: 4096, LossChunk: 1, DType: model.BF16,
		Attention: model.SDPA, Mask: model.NoMask, Optimizer: model.AdamWFused, Accumulate: 1, Recompute: model.Recompute{Mode: "none"},
	}
	told := 0
	if _, err := Run(t.Context(), j, Progress(func(n int) { told = max(told, n) })); err != nil || told < 100_000 {
		t.Errorf("%d events told, %v", told, err)
	}
	told = 0
	_, err = Run(t.Context(), j, most(100_000), Progress(func(n int) { told = max(told, n) }))
	if err == nil || !strings.Contains(err.Error(), "more than 100,000 allocations and frees") || told > 200_000 {
		t.Errorf("%d events told, %v", told, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Run(ctx, j, Progress(func(int) { cancel() }))
	if err != context.Canceled {
		t.Error(err)
	}
}

package hf_test

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// Odd shapes and all ways of attention either run or are refused with a reason,
// and what a step allocates is gone after it.
func TestAttentionJobs(t *testing.T) {
	ran := 0
	for seed := range int64(short.Times(600)) {
		rng := rand.New(rand.NewSource(seed))
		text, j := attentionJob(t, rng)
		r, err := hf.Run(context.Background(), j)
		if err != nil {
			if !strings.Contains(err.Error(), "attention cannot run this") {
				t.Errorf("seed %d, %s: %v", seed, text, err)
			}
			continue
		}
		ran++
		for _, e := range r.Ledger.Tensors {
			if e.Death != ledger.Lives {
				continue
			}
			switch e.Kind {
			case ledger.Weight, ledger.Buffer, ledger.Optimizer, ledger.Workspace:
			default:
				t.Fatalf("seed %d, %s, %+v: %d bytes of %s (%s in %q) are never freed", seed, text, *j,
					e.Bytes, e.Kind, r.Ledger.Text(e.Op), r.Ledger.Text(e.Module))
			}
		}
	}
	if ran < short.Times(600)/2 {
		t.Errorf("only %d jobs ran", ran)
	}
}

func oneOf[T any](rng *rand.Rand, of ...T) T { return of[rng.Intn(len(of))] }

// attentionJob makes up a small model and how it is trained.
func attentionJob(t *testing.T, rng *rand.Rand) (string, *model.Job) {
	t.Helper()
	family := oneOf(rng, "llama", "mistral", "qwen2", "qwen3")
	kv := oneOf(rng, 1, 2, 4)
	heads := kv * oneOf(rng, 1, 2, 4)
	width := oneOf(rng, 16, 20, 60, 64, 80, 96, 128, 256, 264, 320)
	more := ""
	switch {
	case family == "mistral":
		more = `,"sliding_window":` + oneOf(rng, "null", "16", "64", "4096")
	case family != "llama" && rng.Intn(3) == 0:
		more = `,"use_sliding_window":true,"sliding_window":32,"max_window_layers":1`
	}
	text := fmt.Sprintf(`{"model_type":%q,"hidden_size":%d,"intermediate_size":200,"num_hidden_layers":2,`+
		`"num_attention_heads":%d,"num_key_value_heads":%d,"head_dim":%d,"vocab_size":300,`+
		`"tie_word_embeddings":%v,"attention_dropout":%s%s}`,
		family, heads*width, heads, kv, width, rng.Intn(2) == 0, oneOf(rng, "0", "0.1"), more)
	m, err := model.Read(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return text, &model.Job{
		Model: m, Mode: model.Train,
		Batch: oneOf[int64](rng, 1, 2, 3), Seq: oneOf[int64](rng, 1, 2, 17, 64, 100, 129),
		DType: oneOf(rng, model.BF16, model.FP32, model.FP16), Autocast: rng.Intn(4) == 0,
		Optimizer: model.AdamWFused, Steps: 3, UseCache: rng.Intn(5) == 0,
		Attention:  oneOf(rng, model.SDPA, model.SDPA, model.SDPA, model.Eager, model.Math, model.Flash, model.Efficient, model.CuDNN),
		Mask:       oneOf(rng, model.NoMask, model.LeftMask, model.RightMask, model.OnesMask),
		Recompute:  model.Recompute{Mode: oneOf(rng, "none", "full", "selective")},
		Capability: oneOf(rng, 90, 80, 89, 75),
	}
}

package hf_test

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// smallModels are one of each family, with layers that can be divided.
var smallModels = []string{
	`{"model_type":"llama","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":300}`,
	`{"model_type":"qwen3","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":4,"head_dim":32,"vocab_size":300,"tie_word_embeddings":true}`,
	`{"model_type":"mixtral","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"num_local_experts":8,"num_experts_per_tok":2,"vocab_size":300}`,
	`{"model_type":"gpt2","n_embd":64,"n_layer":4,"n_head":4,"vocab_size":300,"n_positions":256}`,
	`{"model_type":"gemma3_text","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":300}`,
	`{"model_type":"deepseek_v3","hidden_size":64,"intermediate_size":96,"moe_intermediate_size":32,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":4,"n_routed_experts":8,"num_experts_per_tok":2,"n_group":2,"topk_group":1,"first_k_dense_replace":1,"q_lora_rank":24,"kv_lora_rank":24,"qk_rope_head_dim":16,"qk_nope_head_dim":16,"v_head_dim":16,"vocab_size":300}`,
	`{"model_type":"gpt_oss","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"num_local_experts":8,"num_experts_per_tok":2,"vocab_size":300}`,
	`{"model_type":"qwen3_5_text","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"linear_num_key_heads":4,"linear_num_value_heads":8,"linear_key_head_dim":16,"linear_value_head_dim":16,"vocab_size":300}`,
	`{"model_type":"t5","d_model":64,"d_kv":16,"d_ff":96,"num_layers":4,"num_decoder_layers":4,"num_heads":4,"vocab_size":300}`,
	`{"model_type":"bert","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":300}`,
	`{"model_type":"vit","hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,"num_attention_heads":4,"image_size":32,"patch_size":8}`,
}

func smallJob(t *testing.T, text string) *model.Job {
	t.Helper()
	m, err := model.Read(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	j := &model.Job{
		Model: m, Mode: model.Train, Batch: 2, Seq: 64, DType: model.BF16, Optimizer: model.AdamWFused, Steps: 3,
		Attention: model.SDPA, Mask: model.NoMask, Recompute: model.Recompute{Mode: "none"}, Capability: 90,
	}
	if m.Family == "gpt_oss" {
		j.Attention = model.Eager
	}
	if m.ViT != nil {
		j.Seq = 0
	}
	if m.T5 != nil {
		j.TargetSeq = 32
	}
	return j
}

// Options of training in any combination run, leave nothing behind from step to
// step, and come out the same every time.
func TestOptionsOfTraining(t *testing.T) {
	for seed := range int64(short.Times(120)) {
		rng := rand.New(rand.NewSource(seed))
		j := trainingJob(t, rng)
		name := fmt.Sprintf("seed %d, %s, %+v", seed, j.Model.ModelType, *j)
		r, err := hf.Run(context.Background(), j)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := hf.Run(context.Background(), j)
		if err != nil || !slices.Equal(again.Ledger.Events, r.Ledger.Events) || !slices.Equal(again.Ledger.Tensors, r.Ledger.Tensors) {
			t.Errorf("%s: two runs differ", name)
		}
		left := leftAfterSteps(r.Ledger)
		if n := len(left); n != 3 || left[1] != left[2] && j.ZeroGrad != model.ZeroBefore {
			t.Errorf("%s: bytes at the end of each step: %d", name, left)
		}
	}
}

// leftAfterSteps is what is live at the end of each step.
func leftAfterSteps(l *ledger.Ledger) []int64 {
	var out []int64
	var live int64
	next, step := 0, 0
	for i, e := range l.Events {
		for ; next < len(l.Phases) && l.Phases[next].First <= i; next++ {
			if s := l.Phases[next].Step; s != step {
				if step > 0 {
					out = append(out, live)
				}
				step = s
			}
		}
		if e >= 0 {
			live += l.Tensors[e].Bytes
		} else {
			live -= l.Tensors[^e].Bytes
		}
	}
	return append(out, live)
}

func trainingJob(t *testing.T, rng *rand.Rand) *model.Job {
	j := smallJob(t, oneOf(rng, smallModels...))
	j.DType = oneOf(rng, model.BF16, model.FP32)
	j.Autocast = j.DType == model.FP32 && rng.Intn(2) == 0
	j.Optimizer = oneOf(rng, model.AdamWFused, model.AdamWForeach, model.AdamW, model.AdamFused, model.AdamForeach, model.Adam,
		model.SGD, model.SGDMomentum, model.SGDFused, model.Adafactor)
	j.ZeroGrad = oneOf(rng, model.ZeroNone, model.ZeroKeep, model.ZeroBefore)
	j.Master = rng.Intn(5) == 0
	j.Clip = rng.Intn(3) == 0
	j.Accumulate = oneOf(rng, 1, 1, 2, 3)
	j.HoldOutput = rng.Intn(4) == 0
	j.Save = oneOf(rng, model.SaveNone, model.SaveTorch, model.SaveSync, model.SaveAsync)
	j.Recompute = oneOf(rng, model.Recompute{Mode: "none"}, model.Recompute{Mode: "full"}, model.Recompute{Mode: "full", Reentrant: true},
		model.Recompute{Mode: "selective"}, model.Recompute{Mode: "group", Groups: []int{3, 1}}, model.Recompute{Mode: "group", Groups: []int{-1, 2, -1}})
	if j.Model.T5 != nil {
		j.Recompute.Reentrant = false // a decoder would run the encoder's backward pass for each of its layers
	}
	if j.Model.Head == model.HeadCausal {
		j.LossChunk = oneOf[int64](rng, 0, 0, 50, 1000)
	}
	if rng.Intn(3) == 0 && j.Model.ViT == nil {
		j.LoRA = model.LoRA{Rank: 4, DType: oneOf(rng, "", model.FP32)}
	}
	j.Shard = oneOf(rng, model.Shard{}, model.Shard{DDP: 1}, model.Shard{DDP: 2, BucketView: true},
		model.Shard{FSDP: 1, ReshardAfterForward: true}, model.Shard{FSDP: 3, ReshardAfterForward: true}, model.Shard{FSDP: 2},
		model.Shard{Zero: 4, ZeroStage: 1}, model.Shard{Zero: 4, ZeroStage: 2}, model.Shard{Zero: 4, ZeroStage: 3},
		model.Shard{Tensor: 2}, model.Shard{Tensor: 2, Sequence: 2}, model.Shard{Context: 2})
	if j.Shard.Context > 1 && j.Model.ViT != nil {
		j.Shard = model.Shard{}
	}
	return j
}

// More ranks never need more memory on each, and the model stays the same.
func TestRanks(t *testing.T) {
	modes := map[string]func(n int) model.Shard{
		"fsdp":  func(n int) model.Shard { return model.Shard{FSDP: n, ReshardAfterForward: true} },
		"zero1": func(n int) model.Shard { return model.Shard{Zero: n, ZeroStage: 1} },
		"zero2": func(n int) model.Shard { return model.Shard{Zero: n, ZeroStage: 2} },
		"zero3": func(n int) model.Shard { return model.Shard{Zero: n, ZeroStage: 3} },
		"tp":    func(n int) model.Shard { return model.Shard{Tensor: n} },
		"tp,sp": func(n int) model.Shard { return model.Shard{Tensor: n, Sequence: n} },
		"cp":    func(n int) model.Shard { return model.Shard{Context: n} },
		"ep":    func(n int) model.Shard { return model.Shard{Expert: n} },
		"pp":    func(n int) model.Shard { return model.Shard{Pipeline: n} },
	}
	for _, text := range smallModels {
		alone, err := hf.Run(context.Background(), smallJob(t, text))
		if err != nil {
			t.Fatal(err)
		}
		for mode, shard := range modes {
			last := int64(-1)
			for _, n := range []int{2, 4} {
				j := smallJob(t, text)
				j.Shard = shard(n)
				if mode == "ep" && j.Model.MoE == nil || mode == "cp" && j.Model.ViT != nil ||
					mode == "tp,sp" && j.Model.ViT != nil || mode == "pp" && j.Model.Head != model.HeadCausal {
					continue
				}
				r, err := hf.Run(context.Background(), j)
				if err != nil {
					t.Errorf("%s %s:%d: %v", j.Model.ModelType, mode, n, err)
					continue
				}
				if r.Count() != alone.Count() {
					t.Errorf("%s %s:%d has %d parameters, not %d", j.Model.ModelType, mode, n, r.Count(), alone.Count())
				}
				got := peakOf(r.Ledger)
				if last >= 0 && got > last {
					t.Errorf("%s %s:%d needs %d bytes, half as many ranks %d", j.Model.ModelType, mode, n, got, last)
				}
				last = got
			}
		}
	}
}

func peakOf(l *ledger.Ledger) int64 {
	var live, most int64
	for i, e := range l.Events {
		if e >= 0 {
			live += l.Tensors[e].Bytes
		} else {
			live -= l.Tensors[^e].Bytes
		}
		if i >= l.Scored() {
			most = max(most, live)
		}
	}
	return most
}

// What cannot be is refused in one line.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		model  int
		change func(j *model.Job)
		want   string
	}{
		{0, func(j *model.Job) { j.Shard.Tensor = 3 }, "4 heads and an MLP of width 96 cannot be divided among 3 ranks"},
		{0, func(j *model.Job) { j.Shard.Context = 3 }, "64 tokens cannot be divided among 3 ranks of context parallelism"},
		{0, func(j *model.Job) { j.Shard.Expert = 2 }, "the experts of llama cannot be divided among 2 ranks"},
		{2, func(j *model.Job) { j.Shard.Expert = 3 }, "the experts of mixtral cannot be divided among 3 ranks"},
		{0, func(j *model.Job) { j.Shard.Pipeline = 5 }, "llama with 4 layers cannot be cut into 5 stages"},
		{9, func(j *model.Job) { j.Shard.Pipeline = 2 }, "bert with 4 layers cannot be cut into 2 stages"},
		{0, func(j *model.Job) { j.LoRA = model.LoRA{Rank: 2, Targets: []string{"q_proj", "nobody"}} }, "the model has no Linear named nobody; it has down_proj, gate_proj"},
	} {
		j := smallJob(t, smallModels[c.model])
		c.change(j)
		_, err := hf.Run(context.Background(), j)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want: %s", err, c.want)
		}
	}
}

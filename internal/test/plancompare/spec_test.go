package plancompare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// The recording scripts have defaults of their own: fused AdamW on bf16 weights,
// attention pinned to flash, gradients set to None.
func plainJob() model.Job {
	return model.Job{
		Mode: model.Train, Batch: 3, Seq: 1152, DType: model.BF16, Optimizer: model.AdamWFused, ZeroGrad: model.ZeroNone,
		Steps: 3, Accumulate: 1, Attention: model.Flash, Mask: model.NoMask, Recompute: model.Recompute{Mode: "none"},
		Save: model.SaveNone, Workspace: 32 << 20, Capability: 90,
	}
}

func TestJob(t *testing.T) {
	tests := []struct {
		name   string
		change func(*model.Job)
	}{
		{"llama", func(*model.Job) {}},
		{"llama_sdpa", func(j *model.Job) { j.Attention = model.SDPA }},
		{"llama_eager", func(j *model.Job) { j.Attention = model.Eager }},
		{"llama_cudnn", func(j *model.Job) { j.Attention = model.CuDNN }},
		{"llama_autocast_foreach", func(j *model.Job) { j.DType, j.Autocast, j.Optimizer = model.FP32, true, model.AdamWForeach }},
		{"llama_loop", func(j *model.Job) { j.Optimizer = model.AdamW }},
		{"llama_sgdm_fused", func(j *model.Job) { j.Optimizer = model.SGDFused }},
		{"llama_master", func(j *model.Job) { j.Master = true }},
		{"llama_every2", func(j *model.Job) { j.Recompute = model.Recompute{Mode: "group", Groups: []int{2, 2, 1}} }},
		{"llama_reentrant", func(j *model.Job) { j.Recompute = model.Recompute{Mode: "full", Reentrant: true} }},
		{"llama_selective", func(j *model.Job) { j.Recompute.Mode = "selective" }},
		{"llama_left_math", func(j *model.Job) { j.Attention, j.Mask = model.Math, model.LeftMask }},
		{"llama_accum", func(j *model.Job) { j.Accumulate = 2 }},
		{"llama_zero_before", func(j *model.Job) { j.ZeroGrad = model.ZeroBefore }},
		{"llama_clip", func(j *model.Job) { j.Clip = true }},
		{"llama_noclose", func(j *model.Job) { j.HoldOutput = true }},
		{"llama_cache", func(j *model.Job) { j.UseCache = true }},
		{"llama_lora_fp32", func(j *model.Job) { j.LoRA = model.LoRA{Rank: 16, DType: model.FP32} }},
		{"llama_save_async", func(j *model.Job) { j.Save = model.SaveAsync }},
		{"llama_ddp_view", func(j *model.Job) { j.Shard = model.Shard{DDP: 1, BucketView: true} }},
		{"llama_fsdp_mp", func(j *model.Job) {
			j.DType = model.FP32
			j.Shard = model.Shard{FSDP: 1, ReshardAfterForward: true, ParamDType: model.BF16, ReduceDType: model.FP32}
		}},
		{"llama_generate", func(j *model.Job) {
			j.Mode, j.Tokens, j.Attention, j.GenerateCall = model.Generate, 6, model.SDPA, true
		}},
		{"mistral_win_static", func(j *model.Job) {
			j.Mode, j.Tokens, j.Attention, j.StaticCache = model.Generate, 6, model.SDPA, 1280
		}},
		{"t5_fp32", func(j *model.Job) { j.TargetSeq, j.DType, j.Attention = 384, model.FP32, model.SDPA }},
		{"vit", func(j *model.Job) { j.Batch, j.Seq, j.Attention = 6, 0, model.SDPA }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run, err := Open(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := run.Job()
			if err != nil {
				t.Fatal(err)
			}
			want := plainJob()
			tt.change(&want)
			got.Model = nil
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Groups of layers change num_hidden_layers of the recorded config.
func TestJobOfGroupsHasAllLayers(t *testing.T) {
	run, err := Open("llama_every2")
	if err != nil {
		t.Fatal(err)
	}
	j, err := run.Job()
	if err != nil {
		t.Fatal(err)
	}
	if string(run.Config["num_hidden_layers"]) != "3" || j.Model.Layers != 5 {
		t.Errorf("recorded %s layers, the job has %d", run.Config["num_hidden_layers"], j.Model.Layers)
	}
}

func TestJobRefuses(t *testing.T) {
	run, err := Open("llama")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		want   string
		change func(*Spec)
	}{
		{`opt="lion"`, func(s *Spec) { s.Opt = "lion" }},
		{`ckpt="every:0"`, func(s *Spec) { s.Ckpt = "every:0" }},
		{`dtype="int8"`, func(s *Spec) { s.DType = "int8" }},
		{`mask="both"`, func(s *Spec) { s.Mask = "both" }},
	}
	for _, tt := range tests {
		c := run.Case
		tt.change(&c.Spec)
		if _, err := c.Job(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %s", err, tt.want)
		}
	}
}

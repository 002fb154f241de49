package plancompare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/plan/job"
)

// The recording scripts have defaults of their own: fused AdamW on bf16 weights,
// attention pinned to flash, gradients set to None.
func plainJob() job.Job {
	return job.Job{
		Mode: job.Train, Batch: 3, Seq: 1152, DType: job.BF16, Optimizer: job.AdamWFused, ZeroGrad: job.ZeroNone,
		Steps: 3, Accumulate: 1, Attention: job.Flash, Mask: job.NoMask, Recompute: job.Recompute{Mode: "none"},
		Save: job.SaveNone, Workspace: 32 << 20, Capability: 90,
	}
}

func TestJob(t *testing.T) {
	tests := []struct {
		name   string
		change func(*job.Job)
	}{
		{"llama", func(*job.Job) {}},
		{"llama_sdpa", func(j *job.Job) { j.Attention = job.SDPA }},
		{"llama_eager", func(j *job.Job) { j.Attention = job.Eager }},
		{"llama_cudnn", func(j *job.Job) { j.Attention = job.CuDNN }},
		{"llama_autocast_foreach", func(j *job.Job) { j.DType, j.Autocast, j.Optimizer = job.FP32, true, job.AdamWForeach }},
		{"llama_loop", func(j *job.Job) { j.Optimizer = job.AdamW }},
		{"llama_sgdm_fused", func(j *job.Job) { j.Optimizer = job.SGDFused }},
		{"llama_master", func(j *job.Job) { j.Master = true }},
		{"llama_every2", func(j *job.Job) { j.Recompute = job.Recompute{Mode: "group", Groups: []int{2, 2, 1}} }},
		{"llama_reentrant", func(j *job.Job) { j.Recompute = job.Recompute{Mode: "full", Reentrant: true} }},
		{"llama_selective", func(j *job.Job) { j.Recompute.Mode = "selective" }},
		{"llama_left_math", func(j *job.Job) { j.Attention, j.Mask = job.Math, job.LeftMask }},
		{"llama_accum", func(j *job.Job) { j.Accumulate = 2 }},
		{"llama_zero_before", func(j *job.Job) { j.ZeroGrad = job.ZeroBefore }},
		{"llama_clip", func(j *job.Job) { j.Clip = true }},
		{"llama_noclose", func(j *job.Job) { j.HoldOutput = true }},
		{"llama_cache", func(j *job.Job) { j.UseCache = true }},
		{"llama_lora_fp32", func(j *job.Job) { j.LoRA = job.LoRA{Rank: 16, DType: job.FP32} }},
		{"llama_save_async", func(j *job.Job) { j.Save = job.SaveAsync }},
		{"llama_ddp_view", func(j *job.Job) { j.Shard = job.Shard{DDP: 1, BucketView: true} }},
		{"llama_fsdp_mp", func(j *job.Job) {
			j.DType = job.FP32
			j.Shard = job.Shard{FSDP: 1, ReshardAfterForward: true, ParamDType: job.BF16, ReduceDType: job.FP32}
		}},
		{"llama_generate", func(j *job.Job) { j.Mode, j.Tokens, j.Attention, j.GenerateCall = job.Generate, 6, job.SDPA, true }},
		{"mistral_win_static", func(j *job.Job) {
			j.Mode, j.Tokens, j.Attention, j.StaticCache = job.Generate, 6, job.SDPA, 1280
		}},
		{"t5_fp32", func(j *job.Job) { j.TargetSeq, j.DType, j.Attention = 384, job.FP32, job.SDPA }},
		{"vit", func(j *job.Job) { j.Batch, j.Seq, j.Attention = 6, 0, job.SDPA }},
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

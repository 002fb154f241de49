package plancompare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// The recordings were made on an H200.
const (
	capability = 90
	workspace  = 32 << 20 // of cuBLAS, per thread and stream
)

// Job is the case as a job for the planner.
func (c *Case) Job() (*model.Job, error) {
	m, err := c.model()
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	s := &c.Spec
	j := &model.Job{
		Model: m, Mode: model.Train, Batch: s.B, Seq: s.S, TargetSeq: s.TS,
		Autocast: s.Autocast, Clip: s.Clip, Steps: 3, Accumulate: max(1, s.Accum),
		LossChunk: s.Chunk, HoldOutput: s.Hold, UseCache: s.Cache,
		LoRA:      model.LoRA{Rank: s.LoRA},
		Workspace: workspace, Capability: capability,
	}
	if m.ViT != nil {
		j.Seq = 0
	}
	if s.Gen > 0 {
		j.Mode, j.Tokens, j.StaticCache, j.GenerateCall = model.Generate, s.Gen, s.Static, s.HFGen
	}
	set := chooser{}
	j.DType = choose(&set, "dtype", s.DType, map[string]model.DType{"": model.BF16, "bf16": model.BF16, "fp16": model.FP16, "fp32": model.FP32})
	j.LoRA.DType = choose(&set, "lora_dtype", s.LoRADType, map[string]model.DType{"": "", "bf16": model.BF16, "fp16": model.FP16, "fp32": model.FP32})
	j.Optimizer = choose(&set, "opt", s.Opt, map[string]model.Optimizer{
		"": model.AdamWFused, "adamw_fused": model.AdamWFused, "adamw_foreach": model.AdamWForeach, "adamw_loop": model.AdamW,
		"adam_foreach": model.AdamForeach, "sgd": model.SGD, "sgdm": model.SGDMomentum, "sgdm_fused": model.SGDFused,
		"adafactor": model.Adafactor, "master": model.AdamWFused,
	})
	j.Master = s.Opt == "master"
	j.ZeroGrad = choose(&set, "zero", s.Zero, map[string]model.ZeroGrad{"": model.ZeroNone, "keep": model.ZeroKeep, "before": model.ZeroBefore})
	j.Mask = choose(&set, "mask", s.Mask, map[string]model.Mask{"": model.NoMask, "left": model.LeftMask, "right": model.RightMask, "ones": model.OnesMask})
	j.Save = choose(&set, "save", s.Save, map[string]model.Save{"": model.SaveNone, "sync": model.SaveSync, "async": model.SaveAsync})
	// The script pins flash unless it is told otherwise.
	j.Attention = choose(&set, "sdpa", s.SDPA, map[string]model.Attention{
		"": model.Flash, "flash": model.Flash, "default": model.SDPA, "math": model.Math, "efficient": model.Efficient, "cudnn": model.CuDNN,
	})
	if choose(&set, "attn", s.Attn, map[string]bool{"": false, "sdpa": false, "eager": true}) {
		j.Attention = model.Eager
	}
	j.Shard = choose(&set, "dist", s.Dist, map[string]model.Shard{
		"": {}, "ddp": {DDP: 1}, "ddp_view": {DDP: 1, BucketView: true},
		"fsdp":    {FSDP: 1, ReshardAfterForward: true},
		"fsdp_mp": {FSDP: 1, ReshardAfterForward: true, ParamDType: model.BF16, ReduceDType: model.FP32},
	})
	if s.World > 1 {
		j.Shard.DDP *= s.World
		j.Shard.FSDP *= s.World
	}
	every, grouped := strings.CutPrefix(s.Ckpt, "every:")
	if k, err := strconv.Atoi(every); grouped && err == nil && k > 0 {
		j.Recompute = model.Recompute{Mode: "group", Groups: groups(m.Layers, k)}
	} else {
		j.Recompute = choose(&set, "ckpt", s.Ckpt, map[string]model.Recompute{
			"": {Mode: "none"}, "full": {Mode: "full"}, "selective": {Mode: "selective"}, "reentrant": {Mode: "full", Reentrant: true},
		})
	}
	return j, set.err
}

// model is the config as it was before the run. Recompute by groups changes
// num_hidden_layers in the recorded one, so the given fields are put over it.
func (c *Case) model() (*model.Model, error) {
	fields := maps.Clone(c.Config)
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	for k, v := range c.Spec.M {
		if k == "fam" {
			k = "model_type"
		}
		fields[k] = v
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return model.Read(bytes.NewReader(data))
}

// groups cuts n layers into runs of k.
func groups(n, k int) []int {
	var out []int
	for ; n > 0; n -= k {
		out = append(out, min(n, k))
	}
	return out
}

// chooser keeps the first option whose value is not known.
type chooser struct{ err error }

func choose[T any](c *chooser, option, value string, from map[string]T) T {
	out, ok := from[value]
	if !ok && c.err == nil {
		c.err = fmt.Errorf("the spec has %s=%q, which is not known here", option, value)
	}
	return out
}

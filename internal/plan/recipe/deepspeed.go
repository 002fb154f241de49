package recipe

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/yaml"
)

// deepspeedRules are the keys of DeepSpeed's config with an effect on memory:
// https://www.deepspeed.ai/docs/config-json
var deepspeedRules = map[string]rule{
	"train_micro_batch_size_per_gpu": number("batch"),
	"gradient_accumulation_steps":    number("accumulate"),
	"train_batch_size": taken(func(r *Recipe, v yaml.Value) (string, error) {
		n, err := whole(v)
		r.globalSize = n
		return "sequences per step of all GPUs", err
	}),
	"gradient_clipping":       clip,
	"bf16.enabled":            mixed("bf16"),
	"bfloat16.enabled":        mixed("bf16"),
	"fp16.enabled":            mixed("fp16"),
	"zero_optimization.stage": taken(stage),
	"zero_optimization.offload_optimizer.device": offload("optimizer"),
	"zero_optimization.offload_param.device":     offload("params"),
	"zero_optimization.cpu_offload":              offload("optimizer"),
	"zero_optimization.reduce_bucket_size":       bucket,
	"zero_optimization.zero_hpz_partition_size":  unplanned("second copies of the weights within a node are not planned"),
	"zero_optimization.zero_quantized_weights":   unplanned("quantised communication is not planned"),
	"zero_optimization.zero_quantized_gradients": unplanned("quantised communication is not planned"),
	"optimizer.type": taken(func(r *Recipe, v yaml.Value) (string, error) {
		out, err := r.set("optimizer", deepspeedOptimizer(v.Text))
		return out.as, err
	}),
	"activation_checkpointing.cpu_checkpointing":              refuse("checkpoints on the host are not planned; set it to false to plan them on the GPU"),
	"activation_checkpointing.partition_activations":          unplanned("activations divided among ranks are not planned, so the plan is too high"),
	"activation_checkpointing.contiguous_memory_optimization": unplanned("copies into one buffer are not planned"),
	"torch_autocast.enabled":                                  unplanned("DeepSpeed's own autocast is not planned"),
	"compile":                                                 none,
	"tensor_parallel.autotp_size":                             divided("tp"),
	"sequence_parallel_size":                                  divided("cp"),
}

// deepspeedNoEffect begins keys that do not change what a step takes on the GPU.
var deepspeedNoEffect = []string{
	"scheduler", "optimizer.params", "steps_per_print", "wall_clock_breakdown", "fp16.", "bf16.", "bfloat16.", "dump_state", "prescale_gradients",
	"gradient_predivide_factor", "sparse_gradients", "communication_data_type", "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "flops_profiler",
	"tensorboard", "wandb", "csv_monitor", "comet", "monitor_config", "comms_logger", "aio", "elasticity", "autotuning", "checkpoint", "data_types", "dataloader_drop_last",
	"activation_checkpointing.", "seed", "memory_breakdown", "disable_allgather", "load_universal_checkpoint", "use_node_local_storage",
	"zero_optimization.offload_optimizer.", "zero_optimization.offload_param.", "zero_optimization.overlap_comm", "zero_optimization.contiguous_gradients",
	"zero_optimization.allgather_partitions", "zero_optimization.allgather_bucket_size", "zero_optimization.reduce_scatter", "zero_optimization.stage3_",
	"zero_optimization.sub_group_size", "zero_optimization.gather_16bit", "zero_optimization.max_live", "zero_optimization.max_reuse", "zero_optimization.round_robin_gradients", "zero_optimization.memory_efficient_linear",
	"zero_optimization.ignore_unused_parameters", "zero_optimization.load_from_fp32_weights", "zero_optimization.elastic_checkpoint", "zero_optimization.legacy_stage1",
}

func deepspeedRule(key string) rule {
	if do := deepspeedRules[key]; do != nil {
		return do
	}
	for _, p := range deepspeedNoEffect {
		if strings.HasPrefix(key, p) {
			return none
		}
	}
	return nil
}

// deepspeedOptimizer translates the names of optimizers where DeepSpeed means its
// own: Adam and AdamW are fused ones.
func deepspeedOptimizer(name string) string {
	switch strings.ToLower(name) {
	case "adam", "adamw":
		return "adamw-fused"
	}
	return name
}

func stage(r *Recipe, v yaml.Value) (string, error) {
	n, err := whole(v)
	if err != nil || n < 0 || n > 3 {
		return "", fmt.Errorf("write 0, 1, 2 or 3")
	}
	r.strategy, r.stage = "zero", int(n)
	if n == 0 {
		return "every rank has everything", nil
	}
	return fmt.Sprintf("--shard zero%d:N", n), nil
}

// divided refuses what --shard has a word for, unless it is about one rank.
func divided(word string) rule {
	return func(_ *Recipe, _ string, v yaml.Value) (outcome, error) {
		if n, err := whole(v); err == nil && n <= 1 {
			return outcome{noEffect: true}, nil
		}
		return outcome{}, about("shard", "leave it out, and write --shard %s:N to plan that", word)
	}
}

// offload is what lies on the host. Whoever keeps parameters there keeps the
// optimizer's state there too.
func offload(what string) rule {
	return func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		switch {
		case !given(v) || strings.EqualFold(v.Text, "none"):
			return outcome{noEffect: true}, nil
		case r.options["offload"].value == "params":
			return outcome{as: "--offload params"}, nil
		}
		delete(r.options, "offload")
		return r.set("offload", what)
	}
}

// zeroBucket is the bucket that ZeRO is planned with, in elements.
const zeroBucket = 500_000_000

func bucket(_ *Recipe, _ string, v yaml.Value) (outcome, error) {
	if n, err := whole(v); err != nil || n == zeroBucket {
		return outcome{noEffect: true}, err
	}
	return outcome{unplanned: "buckets are planned with DeepSpeed's default of 500,000,000 elements"}, nil
}

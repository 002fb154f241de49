package recipe

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/yaml"
)

// accelerateRules are the keys of accelerate's config with an effect on memory:
// https://huggingface.co/docs/accelerate/package_reference/cli
var accelerateRules = map[string]rule{
	"distributed_type":             taken(distributed),
	"num_processes":                taken(ranks),
	"mixed_precision":              taken(mixedPrecision),
	"use_cpu":                      refuse("a run on the CPU takes no GPU memory; write false"),
	"dynamo_backend":               compiled,
	"dynamo_config.dynamo_backend": compiled,
	"fp8_config":                   unplanned("FP8 products are not planned"),
	"gradient_accumulation_steps":  number("accumulate"),
	"deepspeed_config.zero_stage":  taken(stage),
	"deepspeed_config.gradient_accumulation_steps":  number("accumulate"),
	"deepspeed_config.gradient_clipping":            clip,
	"deepspeed_config.offload_optimizer_device":     offload("optimizer"),
	"deepspeed_config.offload_param_device":         offload("params"),
	"deepspeed_config.deepspeed_config_file":        none,
	"parallelism_config.parallelism_config_tp_size": divided("tp"),
	"parallelism_config.parallelism_config_cp_size": divided("cp"),
	"megatron_lm_config":                            refuse("Megatron-LM is not planned; write --shard tp:N,pp:N for the same division"),
}

var accelerateNoEffect = []string{
	"compute_environment", "debug", "downcast_bf16", "enable_cpu_affinity", "gpu_ids", "machine_rank", "main_", "num_machines", "rdzv_", "same_network", "tpu_",
	"use_", "dynamo_config.", "deepspeed_config.", "ipex_config", "mpirun_config", "num_cpu_threads_per_process", "command_", "parallelism_config.", "commands", "deepspeed_hostfile",
}

func accelerateRule(key string) rule {
	if do := accelerateRules[key]; do != nil {
		return do
	}
	if name, ok := strings.CutPrefix(key, "fsdp_config."); ok {
		return fsdpRule(name)
	}
	for _, p := range accelerateNoEffect {
		if strings.HasPrefix(key, p) {
			return none
		}
	}
	return nil
}

// distributed reads accelerate's way to spread a job.
func distributed(r *Recipe, v yaml.Value) (string, error) {
	switch kind := strings.ToUpper(v.Text); kind {
	case "NO":
		return "", nil
	case "MULTI_GPU":
		r.strategy = "ddp"
		return "--shard ddp:N", nil
	case "FSDP":
		r.strategy = "fsdp"
		return "--shard fsdp:N", nil
	case "DEEPSPEED":
		r.strategy, r.stage = "zero", max(r.stage, 0)
		return "DeepSpeed", nil
	}
	return "", about("shard", "it is not planned; NO, MULTI_GPU, FSDP and DEEPSPEED are")
}

// maxRanks is more than any cluster has.
const maxRanks = 1_000_000

// ranks reads how many GPUs a job has.
func ranks(r *Recipe, v yaml.Value) (string, error) {
	n, err := whole(v)
	if err != nil || n < 1 || n > maxRanks {
		return "", fmt.Errorf("write the number of GPUs")
	}
	r.ranks = int(n)
	return fmt.Sprintf("%d GPUs", n), nil
}

func mixedPrecision(r *Recipe, v yaml.Value) (string, error) {
	switch v.Text {
	case "no", "none", "false":
		return "", nil
	case "bf16", "fp16":
		r.mixed = v.Text
		return "mixed precision", nil
	}
	return "", about("dtype", "it is not planned; no, bf16 and fp16 are")
}

// compiled notes torch.compile.
func compiled(_ *Recipe, _ string, v yaml.Value) (outcome, error) {
	if !given(v) || strings.EqualFold(v.Text, "no") || strings.EqualFold(v.Text, "eager") {
		return outcome{noEffect: true}, nil
	}
	return outcome{unplanned: "torch.compile is not planned: the plan is of the eager run, which mostly takes more"}, nil
}

// fsdpRules are keys of fsdp_config, without the fsdp_ that accelerate puts before
// them.
var fsdpRules = map[string]rule{
	"sharding_strategy": taken(sharding),
	"reshard_after_forward": func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		if on, err := truth(v); err == nil {
			if on {
				return outcome{as: "--shard fsdp:N"}, nil
			}
			return outcome{}, about("shard", "weights that stay whole after the forward pass are not planned; write true, or --shard zero2:N for the nearest")
		}
		as, err := sharding(r, v)
		return outcome{as: as}, err
	},
	"offload_params":           offload("params"),
	"offload":                  offload("params"),
	"activation_checkpointing": on("recompute", "full"),
	"version":                  none, "backward_prefetch": none, "backward_prefetch_policy": none, "forward_prefetch": none, "limit_all_gathers": none, "use_orig_params": none,
	"sync_module_states": none, "cpu_ram_efficient_loading": none, "auto_wrap_policy": none, "transformer_layer_cls_to_wrap": none, "min_num_params": none,
	"state_dict_type": none, "final_state_dict_type": none, "xla": none, "xla_fsdp_v2": none, "xla_fsdp_grad_ckpt": none, "xla_fsdp_settings": none,
}

func fsdpRule(key string) rule { return fsdpRules[strings.TrimPrefix(key, "fsdp_")] }

// sharding reads FSDP's strategy.
func sharding(r *Recipe, v yaml.Value) (string, error) {
	switch strings.ToUpper(v.Text) {
	case "FULL_SHARD", "1":
		r.strategy = "fsdp"
		return "--shard fsdp:N", nil
	case "NO_SHARD", "3":
		r.strategy = "ddp"
		return "--shard ddp:N", nil
	}
	return "", about("shard", "it is not planned; write FULL_SHARD, or --shard zero2:N for what divides gradients and states only")
}

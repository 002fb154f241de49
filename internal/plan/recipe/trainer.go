package recipe

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/words"
	"github.com/ashlar-mem/ashlar/internal/yaml"
)

const (
	rewards      = "leave it out and give --head reward: a classifier trained on pairs, as TRL's RewardTrainer has it"
	onlySFT      = "only supervised training is planned, of one model; leave it out, or write sft, to plan that"
	otherKernels = "other kernels than torch's are not planned, so the plan may be too high"
	evaluated    = "evaluation between the steps is not planned"
)

// trainerRules are keys with an effect on memory, of transformers'
// TrainingArguments, TRL's SFTConfig and ModelConfig, PEFT's LoraConfig, axolotl
// and LLaMA-Factory:
// https://huggingface.co/docs/transformers/main_classes/trainer
// https://huggingface.co/docs/trl/sft_trainer
// https://huggingface.co/docs/peft/package_reference/lora
// https://docs.axolotl.ai/docs/config-reference.html
// https://github.com/hiyouga/LLaMA-Factory/tree/main/examples
var trainerRules = map[string]rule{
	"model_name_or_path": taken(named), "base_model": taken(named), "model_name": taken(named), "model_id": taken(named),

	"per_device_train_batch_size": number("batch"), "per_gpu_train_batch_size": number("batch"), "micro_batch_size": number("batch"),
	"train_batch_size":            number("batch"),
	"gradient_accumulation_steps": number("accumulate"),
	"max_seq_length":              number("seq"), "max_length": number("seq"), "sequence_len": number("seq"), "cutoff_len": number("seq"),
	"model_max_length": number("seq"), "block_size": number("seq"), "max_source_length": number("seq"), "max_target_length": number("target-seq"),

	"bf16": mixed("bf16"), "fp16": mixed("fp16"), "bfloat16": mixed("bf16"), "float16": mixed("fp16"), "mixed_precision": taken(mixedPrecision),
	"pure_bf16":   when(func(r *Recipe) (outcome, error) { r.pure = true; return r.set("dtype", "bf16") }),
	"float32":     on("dtype", "fp32"),
	"torch_dtype": loadedAs, "dtype": loadedAs,

	"optim": word("optimizer"), "optimizer": word("optimizer"),
	"adafactor":            on("optimizer", "adafactor"),
	"max_grad_norm":        clip,
	"optim_target_modules": refuse("an optimizer for some modules only is not planned; leave it out"),

	"gradient_checkpointing":        word("recompute"),
	"gradient_checkpointing_kwargs": checkpointKwargs,
	"disable_gradient_checkpointing": func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		off, err := truth(v)
		if err != nil {
			return outcome{}, err
		}
		return r.set("recompute", map[bool]string{true: "none", false: "full"}[off])
	},
	"activation_offloading": refuse("activations on the host are not planned; write false to plan them on the GPU"),

	"attn_implementation": word("attention"),
	"flash_attention":     on("attention", "flash_attention_2"), "flash_attention_2": on("attention", "flash_attention_2"), "sdp_attention": on("attention", "sdpa"),
	"xformers_attention": on("attention", "xformers"), "eager_attention": on("attention", "eager"), "flex_attention": on("attention", "flex_attention"),
	"flash_attn": func(r *Recipe, key string, v yaml.Value) (outcome, error) {
		switch v.Text {
		case "disabled":
			return r.set("attention", "eager")
		case "true", "True":
			return r.set("attention", "flash_attention_2")
		}
		return word("attention")(r, key, v)
	},

	"use_liger_kernel": liger, "use_liger": liger, "enable_liger_kernel": liger, "liger": liger, "liger_fused_linear_cross_entropy": liger,

	"use_peft": when(func(r *Recipe) (outcome, error) {
		r.adapters = "lora"
		r.peft = true
		return outcome{as: "PEFT's adapters"}, nil
	}),
	"adapter": taken(adapter), "finetuning_type": taken(adapter), "peft_type": taken(adapter),
	"lora_r": rank, "lora_rank": rank, "r": rank,
	"lora_target_modules": targets, "target_modules": targets, "lora_target": targets,
	"lora_target_linear": when(func(r *Recipe) (outcome, error) {
		r.options["lora-targets"] = chosen{value: "", by: r.source.File}
		return outcome{as: "every Linear but the head"}, nil
	}),
	"lora_dropout": func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		if !given(v) {
			return outcome{noEffect: true}, nil
		}
		return r.set("lora-dropout", "true")
	},
	"lora_modules_to_save": refuse("trained copies of whole modules are not planned; leave it out to plan the adapters alone"),
	"modules_to_save":      refuse("trained copies of whole modules are not planned; leave it out to plan the adapters alone"),
	"additional_target":    refuse("trained copies of whole modules are not planned; leave it out to plan the adapters alone"),
	"use_dora":             unplanned("DoRA's magnitudes and norms are not planned"), "peft_use_dora": unplanned("DoRA's magnitudes and norms are not planned"),
	"autocast_adapter_dtype": taken(func(r *Recipe, v yaml.Value) (string, error) {
		on, err := truth(v)
		r.fp32 = on
		return "the adapters' type", err
	}),
	"load_in_4bit": when(bits(4)), "load_in_8bit": when(bits(8)), "qlora": when(qlora),
	"quantization_bit": taken(func(r *Recipe, v yaml.Value) (string, error) {
		if v.Text != "4" && v.Text != "8" {
			return "", about("quant", "bitsandbytes has 4 and 8; write one of them")
		}
		out, err := bits(int(v.Text[0] - '0'))(r)
		return out.as, err
	}),
	"bnb_4bit_quant_type": taken(quantType), "quantization_type": taken(quantType),
	"bnb_4bit_use_double_quant": taken(doubled), "use_bnb_nested_quant": taken(doubled), "double_quantization": taken(doubled),
	"bnb_4bit_compute_dtype": none, "llm_int8_threshold": none, "bnb_4bit_quant_storage": none, "quant_method": none,
	"quantization_method": taken(func(_ *Recipe, v yaml.Value) (string, error) {
		if !slices.Contains([]string{"bnb", "bitsandbytes"}, strings.ToLower(v.Text)) {
			return "", about("quant", "it is not planned; bnb is")
		}
		return "", nil
	}),
	"quantization": word("quant"), "gptq": none,
	"use_unsloth": unplanned("Unsloth's kernels are not planned, so the plan may be too high"), "unsloth": unplanned("Unsloth's kernels are not planned, so the plan may be too high"),

	"fsdp": taken(fsdp), "fsdp_version": none, "fsdp_min_num_params": none, "fsdp_transformer_layer_cls_to_wrap": none,
	"deepspeed":     taken(func(r *Recipe, _ yaml.Value) (string, error) { r.strategy = "zero"; return "DeepSpeed", nil }),
	"num_processes": taken(ranks), "nproc_per_node": taken(ranks), "num_gpus": taken(ranks), "world_size": taken(ranks), "n_gpu": taken(ranks), "gpus": taken(ranks),
	"n_gpus_per_node": taken(ranks), "devices": taken(ranks),
	"tensor_parallel_size": divided("tp"), "context_parallel_size": divided("cp"),
	"sequence_parallel_degree": divided("cp"),
	"pipeline_parallel_size":   divided("pp"),
	"ddp_bucket_cap_mb":        unplanned("buckets are planned with DDP's default of 25 MiB"),

	"torch_compile": compiled, "torch_compile_backend": none, "torch_compile_mode": none, "compile": compiled,
	"eval_strategy": evaluation, "evaluation_strategy": evaluation, "per_device_eval_batch_size": evalBatch, "per_gpu_eval_batch_size": evalBatch, "do_eval": unplanned(evaluated), "eval_steps": none, "val_set_size": unplanned(evaluated), "val_size": unplanned(evaluated),
	"label_smoothing_factor": func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		if !given(v) {
			return outcome{noEffect: true}, nil
		}
		r.loop = true
		return r.set("label-smoothing", "true")
	},
	"group_by_length": when(grouped),
	"train_sampling_strategy": func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		if v.Text != "group_by_length" {
			return outcome{noEffect: true}, nil
		}
		return grouped(r)
	},
	"neftune_noise_alpha":  unplanned("the noise on embeddings is not planned"),
	"auto_find_batch_size": unplanned("the batch is planned as given; --max batch finds the largest"),
	"torch_empty_cache_steps": func(r *Recipe, key string, v yaml.Value) (outcome, error) {
		r.loop = true
		return number("empty-cache")(r, key, v)
	},
	"eval_accumulation_steps": number("eval-accumulation"),
	"use_cache":               on("use-cache", "true"),
	"stage": taken(func(_ *Recipe, v yaml.Value) (string, error) {
		if !slices.Contains([]string{"sft", "pt"}, v.Text) {
			if v.Text == "rm" {
				return "", errors.New(rewards)
			}
			return "", errors.New(onlySFT)
		}
		return "", nil
	}),
	"rl":              refuse(onlySFT),
	"num_generations": refuse(onlySFT), "ref_model": refuse(onlySFT), "reward_model": refuse(rewards),
	"mode":                 word("mode"),
	"expert_parallel_size": divided("ep"), "sequence_parallel_size": divided("cp"), "dp_shard_size": divided("fsdp"), "dp_replicate_size": divided("ddp"),
	"liger_rms_norm": unplanned(otherKernels), "liger_layer_norm": unplanned(otherKernels), "liger_rope": unplanned(otherKernels),
	"liger_glu_activation": unplanned(otherKernels), "liger_swiglu": unplanned(otherKernels), "use_kernels": unplanned(otherKernels),
	"cut_cross_entropy": unplanned("its loss is not planned, and takes less; --loss chunked:N is the nearest"), "tiled_mlp": unplanned("an MLP in tiles is not planned, and takes less"),
	"unfrozen_parameters": refuse("training some parameters only is not planned; leave it out to train all"),
	"fp8":                 unplanned("FP8 products are not planned"), "qat": unplanned("quantisation while training is not planned"),
	"lora_target_parameters": unplanned("adapters of parameters outside Linears are not planned"),
	"image_max_pixels":       unplanned("pictures are not planned"), "video_max_pixels": unplanned("pictures are not planned"),
	"max_new_tokens": number("generate"),
	"num_beams":      unplanned("beams are not planned; each takes as much cache as a sequence of the batch"),

	"zero_stage": taken(stage), "offload_optimizer": offload("optimizer"), "offload_param": offload("params"), "cpu_offload": offload("optimizer"),
}

// trainerRule returns the rule of a key in a file of a kind.
func trainerRule(kind, key string) rule {
	if name, ok := strings.CutPrefix(key, "fsdp_config."); ok {
		return fsdpRule(name)
	}
	if name, ok := strings.CutPrefix(key, "deepspeed."); ok {
		return deepspeedRule(name)
	}
	for _, p := range []string{"peft_config.", "quantization_config.", "model_kwargs."} {
		key = strings.TrimPrefix(key, p)
	}
	switch do := trainerRules[key]; {
	case key == "fsdp_config": // it is read key by key
		return nil
	case key == "bf16" && kind == "axolotl":
		return pure("bf16")
	case key == "fp16" && kind == "axolotl":
		return pure("fp16")
	case key == "train_batch_size" && kind != "transformers":
		return nil
	case do != nil:
		return do
	case noEffect(key):
		return none
	}
	return nil
}

// Keys lists the keys that may be given as flags, and whether they are switches.
func Keys() map[string]bool {
	out := map[string]bool{}
	for k := range trainerRules {
		out[k] = slices.Contains(switches, k)
	}
	for _, k := range plainKeys {
		out[k] = slices.Contains(switches, k)
	}
	return out
}

// switches are keys that stand as flags without a value.
var switches = strings.Fields(`bf16 fp16 pure_bf16 gradient_checkpointing use_liger_kernel use_liger liger use_peft load_in_4bit load_in_8bit torch_compile compile
	do_train do_eval do_predict packing overwrite_output_dir group_by_length tf32 push_to_hub flash_attention sdp_attention auto_find_batch_size use_dora use_rslora offload_optimizer offload_param cpu_offload qlora do_sample
	trust_remote_code bf16_full_eval fp16_full_eval activation_offloading adafactor use_unsloth`)

func named(r *Recipe, v yaml.Value) (string, error) {
	r.Model = v.Text
	return "the model", nil
}

// mixed is mixed precision. axolotl writes auto where the card decides.
func mixed(kind string) rule {
	return func(r *Recipe, _ string, v yaml.Value) (outcome, error) {
		if on, ok := words.Switch(v.Text); !ok || !on {
			if v.Text != "auto" && v.Text != "full" {
				return outcome{noEffect: true}, nil
			}
		}
		if r.mixed != "" && r.mixed != kind && !r.flags {
			return outcome{}, fmt.Errorf("bf16 and fp16 exclude each other; leave one out")
		}
		r.mixed = kind
		return outcome{as: "mixed precision"}, nil
	}
}

// pure is axolotl's bf16 and fp16, which also load the weights so.
func pure(kind string) rule {
	return func(r *Recipe, key string, v yaml.Value) (outcome, error) {
		out, err := mixed(kind)(r, key, v)
		if err == nil && !out.noEffect {
			_, err = r.set("dtype", kind)
		}
		return out, err
	}
}

func loadedAs(r *Recipe, _ string, v yaml.Value) (outcome, error) { return r.set("dtype", v.Text) }

func clip(r *Recipe, _ string, v yaml.Value) (outcome, error) {
	return r.set("clip", fmt.Sprint(given(v)))
}

// checkpointKwargs are use_reentrant and, of transformers 5.17, every_n_layers and
// offload.
func checkpointKwargs(r *Recipe, _ string, v yaml.Value) (outcome, error) {
	out := outcome{noEffect: true}
	for _, e := range v.Entries {
		switch e.Key {
		case "use_reentrant":
			if given(e.Value) {
				r.reentrant, out = true, outcome{as: "--recompute reentrant"}
			}
		case "every_n_layers":
			n, err := whole(e.Value)
			if err != nil || n < 1 {
				return outcome{}, fmt.Errorf("every_n_layers: write a whole number from 1 on")
			}
			if r.everyN = int(n); n > 1 {
				out = outcome{as: "--recompute groups:LIST"}
			}
		case "offload":
			if given(e.Value) {
				return outcome{}, fmt.Errorf("offload: activations on the host are not planned; write false to plan them on the GPU")
			}
		}
	}
	return out, nil
}

var liger = when(func(r *Recipe) (outcome, error) { return r.set("loss", "liger") })

func adapter(r *Recipe, v yaml.Value) (string, error) {
	switch strings.ToLower(v.Text) {
	case "lora":
		r.adapters, r.peft = "lora", true
		return "PEFT's adapters", nil
	case "full", "":
		r.adapters = "full"
		return "", nil
	case "qlora":
		r.adapters, r.peft = "lora", true
		out, err := bits(4)(r)
		return out.as, err
	}
	return "", fmt.Errorf("it is not planned; lora and full are")
}

// bits are bitsandbytes' quantised weights.
func bits(n int) func(*Recipe) (outcome, error) {
	return func(r *Recipe) (outcome, error) {
		r.bits = n
		return outcome{as: fmt.Sprintf("weights of %d bits", n)}, nil
	}
}

func qlora(r *Recipe) (outcome, error) {
	r.adapters, r.peft, r.bits, r.double = "lora", true, 4, true
	return outcome{as: "adapters on weights of 4 bits"}, nil
}

func quantType(r *Recipe, v yaml.Value) (string, error) {
	r.type4 = strings.ToLower(v.Text)
	if r.type4 != "nf4" && r.type4 != "fp4" {
		return "", fmt.Errorf("write nf4 or fp4")
	}
	return "the type of 4 bits", nil
}

func doubled(r *Recipe, v yaml.Value) (string, error) {
	on, err := truth(v)
	r.double, r.single = on, !on
	return "whether scales are quantised too", err
}

func rank(r *Recipe, key string, v yaml.Value) (outcome, error) {
	r.peft = true
	return number("lora")(r, key, v)
}

// targets are the modules with adapters.
func targets(r *Recipe, _ string, v yaml.Value) (outcome, error) {
	all := list(v)
	if len(all) == 1 && slices.Contains([]string{"all", "all-linear"}, all[0]) {
		r.options["lora-targets"] = chosen{value: "", by: r.source.File}
		return outcome{as: "every Linear but the head"}, nil
	}
	return r.set("lora-targets", strings.Join(all, ","))
}

// fsdp reads TrainingArguments' fsdp: words, a list of them, or a switch.
func fsdp(r *Recipe, v yaml.Value) (string, error) {
	all := list(v)
	if len(all) == 0 {
		return "", nil
	}
	as := "--shard fsdp:N"
	for _, w := range all {
		switch on, ok := words.Switch(w); {
		case ok && !on:
			return "", nil
		case ok:
			r.strategy = "fsdp"
		case w == "auto_wrap":
		case w == "offload":
			if _, err := r.set("offload", "params"); err != nil {
				return "", err
			}
		default:
			said, err := sharding(r, yaml.Value{Text: w})
			if err != nil {
				return "", err
			}
			as = said
		}
	}
	return as, nil
}

// evaluation is eval_strategy. How many sequences a batch of it has is another key.
func evaluation(r *Recipe, _ string, v yaml.Value) (outcome, error) {
	if v.Text == "no" || !given(v) {
		return outcome{noEffect: true}, nil
	}
	r.evaluates, r.loop = true, true
	return outcome{as: "an evaluation after each step"}, nil
}

func evalBatch(r *Recipe, _ string, v yaml.Value) (outcome, error) {
	n, err := whole(v)
	if err == nil && n < 1 {
		err = fmt.Errorf("write a whole number from 1 on")
	}
	r.evalBatch = n
	return outcome{as: "the batch of evaluations, if there are any"}, err
}

// grouped batches have sequences of about one length: --seq is the longest, and the
// others are padded.
func grouped(r *Recipe) (outcome, error) {
	if _, ok := r.options["mask"]; ok {
		return outcome{noEffect: true}, nil
	}
	return r.set("mask", "right")
}

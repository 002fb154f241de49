package recipe

import (
	"slices"
	"strings"
)

// plainKeys have no effect on the memory of a step, or one that the sizes of a
// batch already have.
var plainKeys = strings.Fields(`
	output_dir overwrite_output_dir do_train do_predict num_train_epochs num_epochs max_steps learning_rate weight_decay seed data_seed run_name report_to
	disable_tqdm remove_unused_columns label_names load_best_model_at_end greater_is_better ignore_data_skip group_by_length length_column_name
	resume_from_checkpoint tf32 bf16_full_eval fp16_full_eval fp16_opt_level half_precision_backend fp16_backend local_rank ddp_backend ddp_timeout
	ddp_find_unused_parameters ddp_broadcast_buffers past_index push_to_hub include_inputs_for_metrics include_for_metrics include_tokens_per_second
	include_num_input_tokens_seen jit_mode_eval use_ipex use_cpu no_cuda use_mps_device full_determinism skip_memory_metrics per_device_eval_batch_size
	prediction_loss_only split_batches accelerator_config batch_eval_metrics optim_args adam_beta1 adam_beta2 adam_epsilon lr_scheduler_type
	trust_remote_code model_revision use_fast_tokenizer cache_dir token use_auth_token preprocessing_num_workers overwrite_cache max_samples mask_history
	train_on_prompt packing neat_packing sample_packing eval_sample_packing pad_to_sequence_len padding_free completion_only_loss assistant_only_loss
	train_on_inputs sft_format strict is_llama_derived_model is_mistral_derived_model is_falcon_derived_model
	base_model_config model_type tokenizer_type plugins shuffle_merged_datasets default_system_message chat_template chat_template_path template dataset datasets
	test_datasets dataset_dir media_dir plot_loss print_param_status low_cpu_mem_usage hub_model_id special_tokens tokens added_tokens_overrides
	lora_alpha lora_bias lora_task_type task_type bias fan_in_fan_out inference_mode init_lora_weights loraplus_lr_ratio loraplus_lr_embedding use_rslora
	lora_fan_in_fan_out lora_model_dir adapter_name_or_path base_model_name_or_path peft_layers_to_transform lora_on_cpu
	lora_mlp_kernel lora_qkv_kernel lora_o_kernel group_by_modality_length early_stopping_patience evals_per_epoch saves_per_epoch debug xformers_optimize
	logging_dir log_level log_level_replica log_on_each_node num_proc strategy stopping_strategy eos_token pad_token eval_on_start
	eval_accumulation_steps eval_delay eval_do_concat_batches warmup_ratio warmup_steps cosine_min_lr_ratio rope_theta rope_scaling
	temperature top_p top_k min_p do_sample repetition_penalty presence_penalty frequency_penalty
	enable_thinking ddp_static_graph flash_attn_rms_norm flash_attn_cross_entropy project tags rank_zero_only trackio_space_id parallelism_config
`)

// plainPrefixes begin keys without an effect.
var plainPrefixes = strings.Fields(`hub_ logging_ dataloader_ save_ wandb_ mlflow_ comet_ lr_ warmup_ adam_ dataset_ metric_ tokenizer_ push_to_hub_ swanlab_ ray_
	preprocess_ streaming tokenized_ chat_template_ accelerator_config. special_tokens. lr_scheduler_kwargs generation_ predict_`)

// noEffect reports whether a key is known not to change the memory of a step.
func noEffect(key string) bool {
	if slices.Contains(plainKeys, key) {
		return true
	}
	return slices.ContainsFunc(plainPrefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

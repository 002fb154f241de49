package recipe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/yaml"
)

// llama is a model whose config names bfloat16.
func llama(t *testing.T) *model.Model {
	t.Helper()
	m, err := model.Read(strings.NewReader(`{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512, "intermediate_size": 1536,
		"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 36000, "dtype": "bfloat16"}`))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func never(string) bool { return false }

// flagCases are flags of other tools, and the options they come to; in brackets
// what is not planned and what is refused.
const flagCases = `
per_device_train_batch_size 4 => --batch 4
per_gpu_train_batch_size 4 => --batch 4
micro_batch_size 4 => --batch 4
gradient_accumulation_steps 8 => --accumulate 8
max_seq_length 2048 => --seq 2048
max_length 2048 => --seq 2048
sequence_len 2048 => --seq 2048
cutoff_len 2048 => --seq 2048
model_max_length 2048 => --seq 2048
bf16 true => --dtype bf16 --autocast
fp16 true => --dtype bf16 --autocast
bf16 false =>
pure_bf16 true => --dtype bf16
mixed_precision bf16 => --dtype bf16 --autocast
mixed_precision no =>
torch_dtype bfloat16 => --dtype bf16
torch_dtype float32 => --dtype fp32
torch_dtype auto =>
optim adamw_torch => --optimizer adamw-foreach
optim adamw_torch_fused => --optimizer adamw-fused
optim sgd => --optimizer sgd
optim adafactor => --optimizer adafactor
adafactor true => --optimizer adafactor
max_grad_norm 1.0 => --clip
max_grad_norm 0 =>
gradient_checkpointing true => --recompute full
gradient_checkpointing True => --recompute full
gradient_checkpointing false => --recompute none
disable_gradient_checkpointing false => --recompute full
attn_implementation flash_attention_2 => --attention flash
attn_implementation sdpa => --attention sdpa
attn_implementation eager => --attention eager
flash_attention true => --attention flash
sdp_attention true => --attention sdpa
flash_attn fa2 => --attention flash
flash_attn auto =>
flash_attn disabled => --attention eager
use_liger_kernel true => --loss chunked:1024
enable_liger_kernel true => --loss chunked:1024
liger true => --loss chunked:1024
lora_r 16 => --lora 16 --lora-targets q_proj,v_proj
lora_rank 8 => --lora 8 --lora-targets q_proj,v_proj
use_peft true => --lora 8 --lora-targets q_proj,v_proj
num_gpus 8 => --shard ddp:8
nproc_per_node 2 => --shard ddp:2
world_size 4 => --shard ddp:4
num_processes 1 =>
learning_rate 2e-5 =>
num_train_epochs 3 =>
warmup_ratio 0.03 =>
lr_scheduler_type cosine =>
weight_decay 0.1 =>
logging_steps 10 =>
save_strategy epoch =>
report_to wandb =>
output_dir out =>
seed 42 =>
tf32 true =>
packing true =>
dataloader_num_workers 4 =>
lora_alpha 32 =>
group_by_length true => --mask right
temperature 0.7 =>
top_p 0.9 =>
max_new_tokens 64 => --generate 64
torch_compile true => [torch.compile is not planned]
compile true => [torch.compile is not planned]
eval_strategy steps => --loop trainer-5.17 --eval-batch 8
eval_strategy no =>
do_eval true => [evaluation between the steps]
label_smoothing_factor 0.1 => --loop trainer-5.17 --label-smoothing
label_smoothing_factor 0.0 =>
neftune_noise_alpha 5 => [noise on embeddings]
lora_dropout 0.05 =>
lora_dropout 0 =>
use_dora true => [DoRA]
torch_empty_cache_steps 10 => --loop trainer-5.17 --empty-cache 10
eval_accumulation_steps 4 =>
ddp_bucket_cap_mb 50 => [25 MiB]
use_unsloth true => [Unsloth]
num_beams 4 => [beams]
load_in_4bit true => --quant nf4
load_in_8bit true => --quant int8
quantization_bit 4 => --quant nf4
quantization_bit 3 => {4 and 8}
qlora true => --quant nf4-double --lora 8 --lora-targets q_proj,v_proj
adapter qlora => --quant nf4 --lora 8 --lora-targets q_proj,v_proj
optim paged_adamw_8bit => --optimizer paged-adamw-8bit
optim adamw_bnb_8bit => --optimizer adamw-8bit
offload_optimizer true => --offload optimizer
quantization gguf => {write nf4}
adapter prefix => {lora and full}
finetuning_type freeze => {lora and full}
finetuning_type full =>
modules_to_save embed_tokens => {leave it out}
optim galore_adamw => {adamw-fused}
optim_target_modules attn => {leave it out}
activation_offloading true => {write false}
zero_stage 3 => {give --num-gpus N}
zero_stage 0 =>
zero_stage 4 => {write 0, 1, 2 or 3}
fsdp full_shard => {give --num-gpus N}
fsdp shard_grad_op => {FULL_SHARD}
fsdp offload => --offload params
stage dpo => {write sft}
stage sft =>
num_generations 8 => {write sft}
tensor_parallel_size 2 => {--shard tp:N}
context_parallel_size 2 => {--shard cp:N}
pipeline_parallel_size 2 => {--shard pp:N}
tensor_parallel_size 1 =>
cut_cross_entropy true => [--loss chunked:N is the nearest]
liger_rms_norm true => [other kernels]
unfrozen_parameters lm_head => {leave it out}
num_gpus none => {number of GPUs}
per_device_train_batch_size four => {whole number}
gradient_checkpointing unsloth => {write full}
attn_implementation flex_attention => {write flash}
mixed_precision fp8 => {no, bf16 and fp16}
`

func TestFlags(t *testing.T) {
	n := 0
	for line := range strings.Lines(strings.TrimSpace(flagCases)) {
		n++
		flag, want, _ := strings.Cut(strings.TrimSpace(line), "=>")
		key, value, _ := strings.Cut(strings.TrimSpace(flag), " ")
		want = strings.TrimSpace(want)
		r := New(never)
		err := r.Flag(key, value)
		var o plan.Options
		if err == nil {
			o, err = r.Options(llama(t), o)
		}
		switch {
		case strings.HasPrefix(want, "{"):
			if err == nil || !strings.Contains(err.Error(), strings.Trim(want, "{}")) {
				t.Errorf("%s: %v, want %s", flag, err, want)
			}
		case err != nil:
			t.Errorf("%s: %v", flag, err)
		case strings.HasPrefix(want, "["):
			if got := strings.Join(r.NotModelled(), "; "); !strings.Contains(got, strings.Trim(want, "[]")) || o.String() != "" {
				t.Errorf("%s: %q, %q, want %s", flag, got, o, want)
			}
		case o.String() != want:
			t.Errorf("%s is %q, want %q", flag, o, want)
		}
		if _, known := Keys()[key]; !known && !noEffect(key) {
			t.Errorf("%s is no flag", key)
		}
	}
	if n < 100 {
		t.Errorf("only %d cases", n)
	}
	if err := New(never).Flag("frobnicate", "1"); err == nil {
		t.Error("an unknown key is taken")
	}
}

// TestKeysOfTrainer: every field of transformers' TrainingArguments and of TRL's
// SFTConfig and ModelConfig is known.
func TestKeysOfTrainer(t *testing.T) {
	names, err := os.ReadFile("testdata/trainer-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields(string(names)) {
		if key != "fsdp_config" && trainerRule("transformers", key) == nil { // that one is read key by key
			t.Errorf("%s is not known", key)
		}
	}
}

// file is a configuration, and what it comes to.
type file struct {
	name, text string
	options    string
	unknown    string // keys
	unplanned  string // a part of what is said
	refused    string // a part of the error
}

var trainerFiles = []file{
	{
		name: "args.json", text: `{"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "bf16": true, "gradient_checkpointing": true, "max_seq_length": 1024,
			"optim": "adamw_torch", "max_grad_norm": 0.0, "learning_rate": 1e-5, "frobnicate": [1, 2]}`,
		options: "--batch 4 --seq 1024 --dtype bf16 --autocast --optimizer adamw-foreach --accumulate 2 --recompute full --mask ones --loop trainer-5.17", unknown: "frobnicate",
	},
	{
		name: "to_dict.json", text: `{"output_dir": "x", "_n_gpu": 1, "fsdp": [], "fsdp_config": {"min_num_params": 0, "xla": false}, "deepspeed": null, "accelerator_config": {"split_batches": false},
			"per_device_train_batch_size": 2, "gradient_checkpointing": false, "torch_compile": false, "label_smoothing_factor": 0.0, "neftune_noise_alpha": null, "eval_strategy": "no",
			"optim": "adamw_torch_fused", "max_grad_norm": 1.0, "lr_scheduler_kwargs": {}, "fp16": false, "bf16": false, "ddp_bucket_cap_mb": null, "mp_parameters": "", "use_liger_kernel": false}`,
		options: "--batch 2 --optimizer adamw-fused --clip --recompute none --mask ones --loop trainer-5.17",
	},
	{
		name: "reentrant.json", text: `{"gradient_checkpointing": true, "gradient_checkpointing_kwargs": {"use_reentrant": true}}`,
		options: "--batch 8 --clip --recompute reentrant --mask ones --loop trainer-5.17",
	},
	{
		name: "every-third.json", text: `{"gradient_checkpointing_kwargs": {"every_n_layers": 3, "use_reentrant": false}, "gradient_checkpointing": true}`,
		options: "--batch 8 --clip --recompute groups:1,-2,1 --mask ones --loop trainer-5.17",
	},
	{name: "no-checkpoints.json", text: `{"gradient_checkpointing_kwargs": {"use_reentrant": true}}`, options: "--batch 8 --clip --mask ones --loop trainer-5.17"},
	{name: "host.json", text: `{"gradient_checkpointing_kwargs": {"offload": true}}`, refused: "write false to plan them on the GPU"},
	{name: "empty-defaults.yaml", text: "output_dir: x\n", options: "--batch 8 --clip --mask ones --loop trainer-5.17"},
	{
		name: "trl.yaml", text: "model_name_or_path: org/x\ndtype: bfloat16\nattn_implementation: flash_attention_2\nuse_peft: true\nlora_r: 32\nlora_target_modules:\n- q_proj\n- k_proj\n" +
			"lora_dropout: 0.1\nmax_length: 2048\nper_device_train_batch_size: 2\npacking: true\n",
		options: "--batch 2 --seq 2048 --dtype bf16 --clip --attention flash --mask ones --lora 32 --lora-targets q_proj,k_proj --lora-dropout --loop trainer-5.17",
	},
	{
		name: "axolotl.yml", text: "base_model: org/x\nsequence_len: 4096\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\noptimizer: adamw_torch_fused\nbf16: auto\nadapter: lora\n" +
			"lora_r: 16\nlora_target_linear: true\ngradient_checkpointing: true\nflash_attention: true\nsample_packing: true\ndatasets:\n  - path: a\n    type: alpaca\nwandb_project:\nspecial_tokens:\n  pad_token: <pad>\n",
		options: "--batch 1 --seq 4096 --dtype bf16 --autocast --optimizer adamw-fused --clip --accumulate 4 --recompute full --attention flash --mask ones --lora 16 --loop trainer-5.17",
	},
	{
		name: "llamafactory.yaml", text: "model_name_or_path: org/x\nstage: sft\ndo_train: true\nfinetuning_type: full\ndeepspeed: ds_z3.json\ncutoff_len: 2048\nper_device_train_batch_size: 1\n" +
			"gradient_accumulation_steps: 2\nbf16: true\nddp_timeout: 180000000\ntemplate: llama3\n",
		refused: "ds_z3.json",
	},
	{
		name: "llamafactory-lora.yaml", text: "model_name_or_path: org/x\nstage: sft\nfinetuning_type: lora\nlora_rank: 8\nlora_target: all\ncutoff_len: 2048\nper_device_train_batch_size: 1\nbf16: true\nflash_attn: auto\n",
		options: "--batch 1 --seq 2048 --dtype bf16 --autocast --clip --recompute full --mask ones --lora 8 --loop trainer-5.17",
	},
	{
		name: "llamafactory-full.yaml", text: "stage: sft\nfinetuning_type: full\ncutoff_len: 2048\nbf16: true\ndisable_gradient_checkpointing: true\n",
		options: "--batch 8 --seq 2048 --dtype fp32 --autocast --clip --recompute none --mask ones --loop trainer-5.17",
	},
	{name: "llamafactory-default.yaml", text: "cutoff_len: 512\n", options: "--batch 8 --seq 512 --clip --recompute full --mask ones --lora 8 --loop trainer-5.17"},
	{name: "llamafactory-pure.yaml", text: "finetuning_type: full\nbf16: true\npure_bf16: true\n", options: "--batch 8 --dtype bf16 --clip --recompute full --mask ones --loop trainer-5.17"},
	{name: "dpo.yaml", text: "stage: dpo\nfinetuning_type: full\n", refused: "dpo.yaml:1: stage: dpo: only supervised training is planned"},
	{name: "rl.yml", text: "base_model: x\nrl: dpo\n", refused: "only supervised training"},
	{
		name: "qlora.yml", text: "base_model: x\nadapter: qlora\nload_in_4bit: true\nmicro_batch_size: 2\nbf16: auto\noptimizer: paged_adamw_8bit\nlora_r: 32\nlora_target_linear: true\n",
		options: "--batch 2 --quant nf4-double --autocast --optimizer paged-adamw-8bit --clip --mask ones --lora 32 --loop trainer-5.17",
	},
	{
		name: "trl-qlora.json", text: `{"use_peft": true, "load_in_4bit": true, "use_bnb_nested_quant": true, "bf16": true, "lora_target_modules": "all-linear"}`,
		options: "--batch 8 --quant nf4-double --autocast --clip --mask ones --lora 8 --loop trainer-5.17",
	},
	{
		name: "factory-qlora.yaml", text: "stage: sft\nfinetuning_type: lora\nquantization_bit: 4\nquantization_method: bnb\ndouble_quantization: false\nbf16: true\n",
		options: "--batch 8 --quant nf4 --autocast --clip --recompute full --mask ones --lora 8 --loop trainer-5.17",
	},
	{name: "hqq.yaml", text: "finetuning_type: lora\nquantization_bit: 4\nquantization_method: hqq\n", refused: "it is not planned; bnb is"},
	{name: "nested.json", text: `{"quantization_config": {"load_in_8bit": true, "frob": 1}}`, options: "--batch 8 --quant int8 --clip --mask ones --loop trainer-5.17", unknown: "quantization_config.frob"},
	{name: "both.json", text: `{"bf16": true, "fp16": true}`, refused: "exclude each other"},
	{
		name: "inline.json", text: `{"bf16": true, "num_gpus": 4, "deepspeed": {"zero_optimization": {"stage": 2, "reduce_bucket_size": 2e8}, "new_key": {"deep": 1}}}`,
		options: "--batch 8 --dtype bf16 --clip --mask ones --shard zero2:4 --loop trainer-5.17", unknown: "deepspeed.new_key.deep", unplanned: "500,000,000 elements",
	},
	{
		name: "fsdp.yaml", text: "fsdp: full_shard auto_wrap\nfsdp_config:\n  fsdp_transformer_layer_cls_to_wrap: X\n  activation_checkpointing: true\nnum_gpus: 8\nbf16: true\n",
		options: "--batch 8 --dtype fp32 --clip --recompute full --mask ones --shard fsdp-mixed:8 --loop trainer-5.17",
	},
	{
		name: "peft.json", text: `{"peft_type": "LORA", "r": 4, "target_modules": ["q_proj"], "lora_alpha": 8, "autocast_adapter_dtype": false}`,
		options: "--batch 8 --clip --mask ones --lora 4 --lora-targets q_proj --lora-dtype bf16 --loop trainer-5.17",
	},
	{name: "accelerate.yaml", text: "compute_environment: LOCAL_MACHINE\n", refused: "give it with --accelerate"},
	{name: "ds.json", text: `{"zero_optimization": {}}`, refused: "give it with --deepspeed"},
	{name: "config.json", text: `{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}`, refused: "give it without a flag"},
	{name: "twice.yaml", text: "a: 1\na: 2\n", refused: "line 2: "},
	{name: "broken.json", text: "{\n\"a\": \n}", refused: "line 3: not JSON"},
	{name: "list.yaml", text: "- a\n", refused: "it has no keys"},
}

var accelerateFiles = []file{
	{name: "ddp.yaml", text: "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 4\nmixed_precision: bf16\nmachine_rank: 0\n", options: "--dtype bf16 --autocast --shard ddp:4"},
	{name: "one.yaml", text: "distributed_type: 'NO'\nnum_processes: 1\nmixed_precision: 'no'\nuse_cpu: false\n", options: ""},
	{
		name: "fsdp.yaml", text: "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n  fsdp_activation_checkpointing: true\n  fsdp_offload_params: false\nnum_processes: 8\nmixed_precision: bf16\n",
		options: "--dtype fp32 --recompute full --shard fsdp-mixed:8",
	},
	{name: "fsdp1.yaml", text: "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_new: 1\nnum_processes: 8\n", options: "--shard fsdp:8", unknown: "fsdp_config.fsdp_new"},
	{name: "grad-op.yaml", text: "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n", refused: "grad-op.yaml:3: "},
	{name: "offload.yaml", text: "distributed_type: FSDP\nfsdp_config:\n  fsdp_offload_params: true\nnum_processes: 8\n", options: "--shard fsdp:8 --offload params"},
	{name: "zero.yaml", text: "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n  zero3_init_flag: true\n  gradient_clipping: 1.0\nnum_processes: 16\nmixed_precision: bf16\n", options: "--dtype bf16 --clip --shard zero3:16"},
	{name: "tpu.yaml", text: "distributed_type: TPU\n", refused: "NO, MULTI_GPU, FSDP and DEEPSPEED are"},
	{name: "dynamo.yaml", text: "distributed_type: 'NO'\ndynamo_config:\n  dynamo_backend: INDUCTOR\n", unplanned: "torch.compile"},
}

var deepspeedFiles = []file{
	{name: "z2.json", text: `{"zero_optimization": {"stage": 2, "overlap_comm": true}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0}`, refused: "give --num-gpus N"},
	{name: "z0.json", text: `{"bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 2}`, options: "--batch 2 --dtype bf16 --master-weights"},
	{name: "auto.json", text: `{"train_micro_batch_size_per_gpu": "auto", "fp16": {"enabled": "auto"}, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}`, options: "--optimizer adamw-fused"},
	{name: "offload.json", text: `{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": true}}}`, refused: "give --num-gpus N"},
	{name: "nooffload.json", text: `{"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "none"}}, "train_batch_size": 6, "gradient_accumulation_steps": 3}`, options: "--batch 2 --accumulate 3"},
	{name: "uneven.json", text: `{"train_batch_size": 7, "gradient_accumulation_steps": 3}`, refused: "cannot be divided by 3"},
	{name: "lamb.json", text: `{"optimizer": {"type": "Lamb"}}`, refused: "adamw-fused is the nearest"},
}

func TestFiles(t *testing.T) {
	for _, kind := range []struct {
		files []file
		read  func(*Recipe, string) error
	}{{trainerFiles, (*Recipe).Trainer}, {accelerateFiles, (*Recipe).Accelerate}, {deepspeedFiles, (*Recipe).DeepSpeed}} {
		for _, f := range kind.files {
			r := New(never)
			err := kind.read(r, write(t, f.name, f.text))
			var o plan.Options
			if err == nil {
				o, err = r.Options(llama(t), o)
			}
			if f.refused != "" {
				if err == nil || !strings.Contains(err.Error(), f.refused) {
					t.Errorf("%s: %v, want %q", f.name, err, f.refused)
				}
				continue
			}
			if err != nil || o.String() != f.options {
				t.Errorf("%s: %q, %v; want %q", f.name, o, err, f.options)
				continue
			}
			if got := strings.Join(r.Sources[0].Unknown, ","); got != f.unknown {
				t.Errorf("%s: unknown %q, want %q", f.name, got, f.unknown)
			}
			if got := strings.Join(r.NotModelled(), "; "); !strings.Contains(got, f.unplanned) || f.unplanned == "" && f.unknown == "" && got != "" {
				t.Errorf("%s: not modelled %q, want %q", f.name, got, f.unplanned)
			}
		}
	}
}

// TestOverride: flags override files, options that were given override both, and
// files that disagree are refused.
func TestOverride(t *testing.T) {
	args := write(t, "args.json", `{"per_device_train_batch_size": 4, "bf16": true, "num_gpus": 2}`)
	kept := func(name string) bool { return name == "dtype" || name == "clip" }
	r := New(kept)
	if err := r.Trainer(args); err != nil {
		t.Fatal(err)
	}
	if err := r.Flag("per_device_train_batch_size", "2"); err != nil {
		t.Fatal(err)
	}
	var given plan.Options
	if err := given.Set("dtype", "fp32"); err != nil {
		t.Fatal(err)
	}
	o, err := r.Options(llama(t), given)
	if got := o.String(); err != nil || got != "--batch 2 --dtype fp32 --autocast --mask ones --shard ddp:2 --loop trainer-5.17" {
		t.Errorf("%q, %v", got, err)
	}
	for _, said := range r.Assumed() {
		if strings.HasPrefix(said, "--dtype") || strings.HasPrefix(said, "--clip") {
			t.Errorf("assumed although it was given: %s", said)
		}
	}
	r = New(never)
	if err := r.DeepSpeed(write(t, "ds.json", `{"train_micro_batch_size_per_gpu": 8}`)); err != nil {
		t.Fatal(err)
	}
	if err := r.Trainer(args); err == nil || !strings.Contains(err.Error(), "let both files say the same") {
		t.Error(err)
	}
}

// TestOverrideRefusal: what a file asks for and is not planned may be overridden.
func TestOverrideRefusal(t *testing.T) {
	for text, option := range map[string]string{
		`{"optim": "adamw_torch_4bit"}`: "optimizer", `{"tensor_parallel_size": 4}`: "shard", `{"fsdp": "shard_grad_op"}`: "shard", `{"deepspeed": {"zero_optimization": {"stage": 3}}}`: "shard",
		`{"gradient_checkpointing": "unsloth"}`: "recompute", `{"attn_implementation": "flex_attention"}`: "attention", `{"quantization_method": "hqq"}`: "quant",
	} {
		for _, overridden := range []bool{false, true} {
			r := New(func(name string) bool { return overridden && name == option })
			err := r.Trainer(write(t, "args.json", text))
			if err == nil {
				_, err = r.Options(llama(t), plan.Options{})
			}
			if (err == nil) != overridden {
				t.Errorf("%s with --%s %v: %v", text, option, overridden, err)
			}
		}
	}
}

// TestGeneration: what is about training is left out of a generation.
func TestGeneration(t *testing.T) {
	r := New(never)
	if err := r.Trainer(write(t, "args.json", `{"bf16": true, "optim": "adamw_torch", "gradient_checkpointing": true}`)); err != nil {
		t.Fatal(err)
	}
	var o plan.Options
	if err := o.Set("generate", "16"); err != nil {
		t.Fatal(err)
	}
	o, err := r.Options(llama(t), o)
	if got := o.String(); err != nil || got != "--batch 8 --dtype bf16 --generate 16" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestKeysWithoutEnd: a file is refused before what is told of its keys, each with those around it, takes the memory.
func TestKeysWithoutEnd(t *testing.T) {
	long := strings.Repeat("k", 2000) + ":\n"
	many := "a:\n"
	for i := range 2 * maxKeys {
		if i < 5000 {
			long += fmt.Sprintf("  a%d: 1\n", i)
		}
		many += fmt.Sprintf("  a%d: 1\n", i)
	}
	for name, text := range map[string]string{"long": long, "many": many} {
		v, err := yaml.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r := Recipe{source: &plan.Source{File: name}}
		if err := r.apply(v, "", func(string) rule { return nil }); err == nil || !strings.Contains(err.Error(), "this is no configuration") || len(r.source.Unknown) > maxKeys {
			t.Errorf("%s: %v, %d keys", name, err, len(r.source.Unknown))
		}
	}
	list := yaml.Value{Kind: yaml.List, Items: make([]yaml.Value, 1e6)}
	if got := show(yaml.Value{Kind: yaml.List, Items: []yaml.Value{list, list}}); len(got) > 2*maxShown {
		t.Errorf("%d bytes are shown", len(got))
	}
}

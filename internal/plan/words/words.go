package words

import "strings"

// Plain writes a word as plan's options do: in small letters, joined by dashes.
func Plain(word string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), "_", "-")
}

// Meaning is what another tool's word stands for.
type Meaning struct {
	Value string // of the option, as plan spells it
	Note  string // what is worth knowing about the choice; often empty
}

// Of returns what a value of an option means, if it is another tool's word for
// one that plan has.
func Of(option, value string) (Meaning, bool) {
	if option == "shard" {
		return shard(value)
	}
	table := values[tableOf(option)]
	value = strings.TrimSpace(value)
	if m, ok := table[value]; ok { // AdamW is not adamw
		return m, true
	}
	if p := Plain(value); option == "attention" && strings.HasPrefix(p, "kernels-community/") && strings.Contains(p, "flash") {
		return Meaning{Value: "flash", Note: flashPackage}, true
	}
	m, ok := table[Plain(value)]
	return m, ok
}

// Refusal says why a value cannot be planned, and what to do instead; "" if the
// value is not known at all.
func Refusal(option, value string) string {
	value = Plain(value)
	for _, r := range refused[tableOf(option)] {
		for _, w := range r.words {
			if stem, ok := strings.CutSuffix(w, "*"); w == value || ok && strings.HasPrefix(value, stem) {
				return r.say
			}
		}
	}
	return ""
}

// tableOf returns the option whose words another one shares.
func tableOf(option string) string {
	if option == "lora-dtype" {
		return "dtype"
	}
	return option
}

// Switch reads a switch as Python, YAML and JSON write it.
func Switch(value string) (on, ok bool) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "true", "yes", "on", "1", "t", "y":
		return true, true
	case "false", "no", "off", "0", "f", "n", "none", "null":
		return false, true
	}
	return false, false
}

const flashPackage = "the flash-attn package's kernel is planned as torch's flash kernel"

// values are other tools' words by option.
var values = map[string]map[string]Meaning{
	"dtype": {
		"float32": {Value: "fp32"}, "torch.float32": {Value: "fp32"}, "torch.float": {Value: "fp32"}, "float": {Value: "fp32"}, "f32": {Value: "fp32"}, "32": {Value: "fp32"},
		"full": {Value: "fp32"}, "32-true": {Value: "fp32"},
		"bfloat16": {Value: "bf16"}, "torch.bfloat16": {Value: "bf16"}, "bf16-true": {Value: "bf16"},
		"float16": {Value: "fp16"}, "torch.float16": {Value: "fp16"}, "torch.half": {Value: "fp16"}, "half": {Value: "fp16"}, "f16": {Value: "fp16"}, "16": {Value: "fp16"},
		"16-true": {Value: "fp16"},
		"auto":    {},
	},
	"optimizer": {
		// torch.optim.AdamW on CUDA works on lists of tensors unless told otherwise.
		"AdamW": {Value: "adamw-foreach"}, "torch.optim.adamw": {Value: "adamw-foreach"}, "adamw-torch": {Value: "adamw-foreach"},
		"Adam": {Value: "adam-foreach"}, "torch.optim.adam": {Value: "adam-foreach"},
		"adamw-torch-fused": {Value: "adamw-fused"}, "fusedadam": {Value: "adamw-fused"}, "fused-adam": {Value: "adamw-fused"}, "fusedadamw": {Value: "adamw-fused"},
		"adamw-apex-fused": {Value: "adamw-fused", Note: "apex's fused AdamW is planned as torch's"},
		"adamw-hf":         {Value: "adamw"},
		"adamw-bnb-8bit":   {Value: "adamw-8bit"}, "adamw8bit": {Value: "adamw-8bit"}, "adam8bit": {Value: "adamw-8bit"}, "adam-8bit": {Value: "adamw-8bit"},
		"pagedadamw8bit": {Value: "paged-adamw-8bit"}, "paged-adamw": {Value: "paged-adamw-32bit"}, "pagedadamw": {Value: "paged-adamw-32bit"},
		"lion": {Value: "lion-32bit"}, "lion8bit": {Value: "lion-8bit"}, "paged-lion": {Value: "paged-lion-32bit"}, "rmsprop-bnb-32bit": {Value: "rmsprop-bnb"},
		"torch.optim.sgd": {Value: "sgd"}, "momentum": {Value: "sgd-momentum"},
	},
	"quant": {
		"4bit": {Value: "nf4"}, "4-bit": {Value: "nf4"}, "bnb-4bit": {Value: "nf4"}, "int4": {Value: "nf4"}, "load-in-4bit": {Value: "nf4"}, "qlora": {Value: "nf4-double"},
		"8bit": {Value: "int8"}, "8-bit": {Value: "int8"}, "bnb-8bit": {Value: "int8"}, "load-in-8bit": {Value: "int8"}, "llm.int8": {Value: "int8"},
		"awq-marlin": {Value: "awq"}, "gptq-marlin": {Value: "gptq"}, "float8": {Value: "fp8"}, "fp8-e4m3": {Value: "fp8"}, "finegrained-fp8": {Value: "fp8"}, "false": {Value: "none"}, "no": {Value: "none"},
	},
	"offload": {
		"cpu": {Value: "optimizer"}, "offload-optimizer": {Value: "optimizer"}, "true": {Value: "optimizer"}, "param": {Value: "params"}, "parameters": {Value: "params"}, "offload-param": {Value: "params"},
		"all": {Value: "params"}, "none": {}, "no": {}, "false": {},
	},
	"attention": {
		"flash-attention-2": {Value: "flash", Note: flashPackage}, "flash-attention-3": {Value: "flash", Note: flashPackage}, "flash-attention": {Value: "flash", Note: flashPackage},
		"flash-attn": {Value: "flash", Note: flashPackage}, "flash-attn-2": {Value: "flash", Note: flashPackage}, "fa2": {Value: "flash", Note: flashPackage}, "fa3": {Value: "flash", Note: flashPackage},
		"flash2": {Value: "flash", Note: flashPackage}, "auto": {},
		"xformers":      {Value: "efficient", Note: "xformers' kernel is planned as torch's memory-efficient kernel"},
		"mem-efficient": {Value: "efficient"}, "memory-efficient": {Value: "efficient"}, "efficient-attention": {Value: "efficient"}, "cudnn-attention": {Value: "cudnn"},
		"scaled-dot-product-attention": {Value: "sdpa"}, "manual": {Value: "eager"},
	},
	"recompute": {
		"true": {Value: "full"}, "yes": {Value: "full"}, "on": {Value: "full"}, "gradient-checkpointing": {Value: "full"}, "all": {Value: "full"}, "uniform": {Value: "full"},
		"false": {Value: "none"}, "no": {Value: "none"}, "off": {Value: "none"},
	},
	"loss": {
		"liger": {Value: "chunked:1024", Note: LigerNote}, "cross-entropy": {Value: "plain"}, "none": {Value: "plain"},
	},
	"zero-grad": {"set-to-none": {Value: "none"}, "true": {Value: "none"}, "zeros": {Value: "keep"}},
	"mode":      {"training": {Value: "train"}, "finetune": {Value: "train"}, "sft": {Value: "train"}, "inference": {Value: "generate"}, "generation": {Value: "generate"}},
	"save":      {"true": {Value: "torch"}, "false": {Value: "none"}, "no": {Value: "none"}, "steps": {Value: "torch"}, "epoch": {Value: "torch"}},
	"loop":      {"trainer": {Value: "trainer-5.17"}, "hf-trainer": {Value: "trainer-5.17"}, "own": {Value: "plain"}, "none": {Value: "plain"}},
	"mask":      {"padding": {Value: "right"}, "false": {Value: "none"}},
}

// LigerNote says what --loss chunked leaves out of Liger's kernels.
const LigerNote = "Liger's fused loss is planned in chunks of 1,024 tokens; its fused norms, MLPs and rotations are not planned, so the plan may be too high"

// refusal is what is said about some words. One that ends in * stands for all
// that begin with it.
type refusal struct {
	words []string
	say   string
}

var refused = map[string][]refusal{
	"dtype": {
		{[]string{"int8", "8bit", "8-bit", "int4", "4bit", "4-bit", "nf4*", "fp4*", "fp8*", "float8*", "mxfp4", "nvfp4", "awq", "gptq", "bnb*", "w8a8", "w4a16"}, "quantised weights are --quant, and --dtype is what they are computed in; write for instance --quant nf4 --dtype bf16"},
		{[]string{"tf32"}, "tf32 is how fp32 is multiplied, its tensors are as large; write fp32"},
		{[]string{"float64", "fp64", "double", "64"}, "it is not planned; write fp32, which has half its bytes"},
		{[]string{"16-mixed", "bf16-mixed", "mixed"}, "mixed precision is --autocast, over weights of --dtype fp32; write --autocast"},
	},
	"optimizer": {
		{[]string{"adamw-torch-8bit", "adamw-torch-4bit", "adamw-4bit", "ademamix-8bit", "paged-ademamix*"}, "it is not planned; bitsandbytes' adamw-8bit is the nearest: two states of a byte a parameter"},
		{[]string{"muon", "signsgd", "sgd8bit"}, "it is not planned; it keeps one moment, as sgd-momentum-fused does: write that"},
		{[]string{"galore*", "apollo*", "lomo", "adalomo", "grokadamw", "schedule-free*", "stable-adamw", "ademamix", "sophia*", "came", "shampoo", "soap", "prodigy", "dadaptation*", "adamw-anyprecision", "lamb", "adamax", "nadam", "radam"}, "it is not planned; adamw-fused is the nearest: two moments a parameter"},
		{[]string{"rmsprop", "adagrad"}, "it is not planned; sgd-momentum-fused is the nearest: one state a parameter"},
		{[]string{"cpuadam", "deepspeedcpuadam", "cpu-adam"}, "states on the host are --offload optimizer; write that, with --shard zero2:N"},
	},
	"attention": {
		{[]string{"flex*"}, "FlexAttention is compiled, which is not planned; flash keeps as little: write flash"},
		{[]string{"paged*", "sage*", "vllm*"}, "it is not planned; flash is the nearest: write flash or sdpa"},
	},
	"recompute": {
		{[]string{"unsloth", "offload*", "cpu"}, "checkpoints on the host are not planned; full keeps them on the GPU: write full"},
		{[]string{"block", "partial"}, "say which layers: every:K for runs of K layers, or groups:LIST"},
	},
	"quant": {
		{[]string{"gguf", "q4*", "q5*", "q8*"}, "llama.cpp's formats are not planned; nf4 has about as many bits: write nf4"},
		{[]string{"hqq*", "quanto*", "torchao*", "int4wo", "eetq", "aqlm", "nvfp4", "bitsandbytes", "bnb"}, "it is not planned; nf4 and int8 are bitsandbytes' 4 and 8 bits: write one of them"},
		{[]string{"compressed-tensors"}, "how it is quantised stands in the config's quantization_config; leave it out"},
	},
	"loss": {
		{[]string{"chunked"}, "say how many tokens at a time, such as chunked:1024"},
	},
	"cache": {
		{[]string{"static"}, "say how long it is, such as static:4096"},
		{[]string{"offloaded*", "quantized*", "quantised*", "hybrid", "sliding*", "paged*"}, "it is not planned; dynamic keeps every token's keys and values on the GPU: write dynamic"},
	},
	"shard": {
		{[]string{"zero3-offload*", "zero2-offload*", "zero-offload*", "zero-infinity*", "fsdp-offload*", "offload*"}, "offloading is an option of its own; write zero3:N, for instance zero3:8, and --offload optimizer or --offload params"},
		{[]string{"megatron*", "3d", "hsdp*", "hybrid-shard*"}, "combine the ways yourself, such as tp:2,pp:4, or write fsdp:N for the ranks that divide the weights"},
		{[]string{"shard-grad-op*"}, "weights that stay whole between the passes are not planned for FSDP; the nearest is zero2:N"},
		{[]string{"auto", "balanced", "device-map"}, "layers on several GPUs one after the other are pp:N; write pp:2"},
	},
	"save": {
		{[]string{"best"}, "say how: torch, sync or async"},
	},
}

// shardWords are other tools' words for ways to spread a job.
var shardWords = map[string]string{
	"fsdp1": "fsdp", "fsdp2": "fsdp", "full-shard": "fsdp", "fully-shard": "fsdp", "zero-3": "zero3", "zero-2": "zero2", "zero-1": "zero1",
	"stage3": "zero3", "stage2": "zero2", "stage1": "zero1", "deepspeed-zero3": "zero3", "deepspeed-zero2": "zero2", "deepspeed-zero1": "zero1",
	"ds-zero3": "zero3", "ds-zero2": "zero2", "multi-gpu": "ddp", "tensor-parallel": "tp", "pipeline-parallel": "pp", "sequence-parallel": "sp",
	"context-parallel": "cp", "expert-parallel": "ep", "no-shard": "ddp",
}

// shard translates each part of a --shard.
func shard(value string) (Meaning, bool) {
	parts := strings.Split(Plain(value), ",")
	for i, p := range parts {
		word, number, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(p), "=", ":"), ":")
		if ours, ok := shardWords[word]; ok {
			word = ours
		}
		parts[i] = word
		if number != "" {
			parts[i] += ":" + strings.TrimSpace(number)
		}
	}
	m := Meaning{Value: strings.Join(parts, ",")}
	return m, m.Value != value
}

package plan

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// userLines says changed options and settings as whoever trains would write
// them: arguments of transformers' Trainer and of PEFT, a launcher's command, the
// allocator's variable. What has no such line, such as selective recomputation, is
// left out.
func userLines(mode model.Mode, options []string, conf string) []string {
	var arguments, rest []string
	for i := 0; i < len(options); i += 2 {
		name, value := options[i], options[i+1]
		if name == "batch" && mode == model.Generate {
			continue // of one's own loop
		}
		if f := lineOf[name]; f != nil {
			argument, others := f(value)
			if argument != "" {
				arguments = append(arguments, argument)
			}
			rest = append(rest, others...)
		}
	}
	var out []string
	if len(arguments) > 0 {
		out = append(out, strings.Join(arguments, ", "))
	}
	out = append(out, rest...)
	if conf != "" {
		out = append(out, "PYTORCH_CUDA_ALLOC_CONF="+conf)
	}
	return out
}

// lineOf returns an argument of TrainingArguments, and other lines, for the value
// of an option; an empty value takes the option back.
var lineOf = map[string]func(value string) (argument string, others []string){
	"batch":      argument("per_device_train_batch_size=%s"),
	"accumulate": argument("gradient_accumulation_steps=%s"),
	"recompute": func(value string) (string, []string) {
		switch value {
		case "full":
			return "gradient_checkpointing=True", nil
		case "reentrant":
			return `gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": True}`, nil
		}
		return "", nil
	},
	"loss": argument("use_liger_kernel=True"),
	"autocast": func(value string) (string, []string) {
		return map[bool]string{true: "bf16=True", false: "bf16=False"}[value != ""], nil
	},
	"optimizer": func(value string) (string, []string) {
		switch model.Optimizer(value) {
		case model.AdamWFused:
			return `optim="adamw_torch_fused"`, nil
		case model.AdamW8bit:
			return `optim="adamw_bnb_8bit"`, nil
		case model.PagedAdamW8bit, model.PagedAdamW32bit, model.Lion8bit, model.Lion32bit, model.PagedLion8bit, model.PagedLion32bit:
			return fmt.Sprintf(`optim="%s"`, strings.ReplaceAll(value, "-", "_")), nil
		case model.AdamFused:
			return "", []string{"torch.optim.Adam(..., fused=True)"}
		case model.SGDFused:
			return "", []string{"torch.optim.SGD(..., momentum=0.9, fused=True)"}
		}
		return "", nil
	},
	"dtype": func(value string) (string, []string) {
		return "", []string{fmt.Sprintf(`from_pretrained(..., dtype="%s")`, longDType[value])}
	},
	"attention": func(value string) (string, []string) {
		return "", []string{fmt.Sprintf(`from_pretrained(..., attn_implementation="%s")`, orDefault(value, "sdpa"))}
	},
	"quant": func(value string) (string, []string) {
		return "", quantLines[value]
	},
	"offload": func(value string) (string, []string) {
		if value == offloadParams {
			return "", []string{`"offload_param": {"device": "cpu"}`, `"offload_optimizer": {"device": "cpu"}`}
		}
		return "", []string{`"offload_optimizer": {"device": "cpu"}`}
	},
	"zero-grad":   other("optimizer.zero_grad(set_to_none=True)"),
	"hold-output": other("del outputs"),
	"use-cache":   other("model.config.use_cache = False"),
	"cache":       other(`generate(..., cache_implementation="static")`),
	"lora": func(value string) (string, []string) {
		return "", []string{fmt.Sprintf(`LoraConfig(r=%s, target_modules="all-linear")`, value)}
	},
	"lora-dtype": func(value string) (string, []string) {
		if value == string(model.FP32) {
			return "", nil
		}
		return "", []string{"get_peft_model(..., autocast_adapter_dtype=False)"}
	},
	"shard": shardLines,
}

// quantLines are for what bitsandbytes quantises as it loads.
var quantLines = map[string][]string{
	"nf4":        {`BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")`},
	"nf4-double": {`BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)`},
	"int8":       {"BitsAndBytesConfig(load_in_8bit=True)"},
}

func argument(format string) func(string) (string, []string) {
	return func(value string) (string, []string) {
		if strings.Contains(format, "%") {
			return fmt.Sprintf(format, value), nil
		}
		return format, nil
	}
}

func other(line string) func(string) (string, []string) {
	return func(string) (string, []string) { return "", []string{line} }
}

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

var longDType = map[string]string{"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}

// shardLines are for the ways to spread a job that Trainer has.
func shardLines(value string) (string, []string) {
	word, n, _ := numbered(value)
	switch word {
	case "ddp":
		return "", []string{fmt.Sprintf("torchrun --nproc-per-node %d", n)}
	case "ddp-view":
		return "", []string{"DistributedDataParallelKwargs(gradient_as_bucket_view=True)"}
	case "fsdp", "fsdp-mixed":
		return `fsdp="full_shard auto_wrap"`, []string{fmt.Sprintf("accelerate launch --use_fsdp --num_processes %d", n)}
	case "zero1", "zero2", "zero3":
		return "", []string{fmt.Sprintf(`"zero_optimization": {"stage": %s}`, word[4:]), fmt.Sprintf("deepspeed --num_gpus %d", n)}
	case "tp":
		return "", []string{`from_pretrained(..., tp_plan="auto")`, fmt.Sprintf("torchrun --nproc-per-node %d", n)}
	}
	return "", nil
}

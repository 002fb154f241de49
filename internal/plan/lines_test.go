package plan

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// TestUserLines: what every lever sets, as a user would write it.
func TestUserLines(t *testing.T) {
	for _, tt := range []struct{ options, conf, want string }{
		{"recompute full", "", "gradient_checkpointing=True"},
		{"recompute selective", "", ""},
		{"loss chunked:1024", "", "use_liger_kernel=True"},
		{"batch 4 accumulate 2", "", "per_device_train_batch_size=4, gradient_accumulation_steps=2"},
		{"optimizer adamw-fused", "", `optim="adamw_torch_fused"`},
		{"optimizer adam-fused", "", "torch.optim.Adam(..., fused=True)"},
		{"optimizer sgd-momentum-fused", "", "torch.optim.SGD(..., momentum=0.9, fused=True)"},
		{"lora 16", "", `LoraConfig(r=16, target_modules="all-linear")`},
		{"lora 16 lora-dtype bf16", "", `LoraConfig(r=16, target_modules="all-linear") | get_peft_model(..., autocast_adapter_dtype=False)`},
		{"optimizer adamw-8bit", "", `optim="adamw_bnb_8bit"`},
		{"optimizer paged-adamw-8bit", "", `optim="paged_adamw_8bit"`},
		{"quant nf4-double lora 16", "", `BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True) | LoraConfig(r=16, target_modules="all-linear")`},
		{"quant int8", "", "BitsAndBytesConfig(load_in_8bit=True)"},
		{"offload optimizer", "", `"offload_optimizer": {"device": "cpu"}`},
		{"offload params", "", `"offload_param": {"device": "cpu"} | "offload_optimizer": {"device": "cpu"}`},
		{"autocast true", "", "bf16=True"},
		{"dtype bf16 autocast -", "", `bf16=False | from_pretrained(..., dtype="bfloat16")`},
		{"attention -", "", `from_pretrained(..., attn_implementation="sdpa")`},
		{"zero-grad -", "", "optimizer.zero_grad(set_to_none=True)"},
		{"hold-output -", "", "del outputs"},
		{"use-cache -", "", "model.config.use_cache = False"},
		{"cache static:64", "", `generate(..., cache_implementation="static")`},
		{"shard ddp:2", "", "torchrun --nproc-per-node 2"},
		{"shard ddp-view:2", "", "DistributedDataParallelKwargs(gradient_as_bucket_view=True)"},
		{"shard fsdp:8", "", `fsdp="full_shard auto_wrap" | accelerate launch --use_fsdp --num_processes 8`},
		{"shard zero3:8", "", `"zero_optimization": {"stage": 3} | deepspeed --num_gpus 8`},
		{"shard tp:2", "", `from_pretrained(..., tp_plan="auto") | torchrun --nproc-per-node 2`},
		{"", "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
		{"recompute full loss chunked:1024", "expandable_segments:True", "gradient_checkpointing=True, use_liger_kernel=True | PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
	} {
		options := strings.Fields(tt.options)
		for i := range options {
			if options[i] == "-" {
				options[i] = ""
			}
		}
		if got := strings.Join(userLines(model.Train, options, tt.conf), " | "); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.options, tt.conf, got, tt.want)
		}
	}
	if got := userLines(model.Generate, []string{"batch", "1"}, ""); got != nil {
		t.Errorf("a generation has no batch of Trainer's: %q", got)
	}
}

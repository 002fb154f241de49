package words_test

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan"
)

// accepted are other tools' words for values of plan's options.
const accepted = `
dtype float32 fp32
dtype torch.float32 fp32
dtype float fp32
dtype FP32 fp32
dtype bfloat16 bf16
dtype torch.bfloat16 bf16
dtype BF16 bf16
dtype bf16-true bf16
dtype float16 fp16
dtype torch.float16 fp16
dtype half fp16
dtype fp16 fp16
dtype auto -
lora-dtype float32 fp32
lora-dtype bfloat16 bf16
optimizer adamw adamw
optimizer adamw_torch adamw-foreach
optimizer adamw-torch adamw-foreach
optimizer AdamW adamw-foreach
optimizer torch.optim.AdamW adamw-foreach
optimizer adamw_torch_fused adamw-fused
optimizer ADAMW_TORCH_FUSED adamw-fused
optimizer FusedAdam adamw-fused
optimizer adamw_fused adamw-fused
optimizer adamw_hf adamw
optimizer Adam adam-foreach
optimizer SGD sgd
optimizer sgd_momentum sgd-momentum
optimizer Adafactor adafactor
optimizer adamw_bnb_8bit adamw-8bit
optimizer adamw_8bit adamw-8bit
optimizer adamw8bit adamw-8bit
optimizer paged_adamw_8bit paged-adamw-8bit
optimizer PagedAdamW8bit paged-adamw-8bit
optimizer paged_adamw_32bit paged-adamw-32bit
optimizer lion lion-32bit
optimizer lion_8bit lion-8bit
quant load_in_4bit nf4
quant bnb_4bit nf4
quant NF4 nf4
quant nf4_double nf4-double
quant 8bit int8
quant awq_marlin awq
offload cpu optimizer
offload offload_param params
offload none -
attention flash_attention_2 flash
attention flash_attention_3 flash
attention flash-attn flash
attention fa2 flash
attention SDPA sdpa
attention Eager eager
attention xformers efficient
attention mem_efficient efficient
attention kernels-community/flash-attn flash
recompute true full
recompute True full
recompute false none
loss liger chunked:1024
mode inference generate
mode training train
shard zero-3:8 zero3:8
shard ZeRO3:8 zero3:8
shard zero_2:4 zero2:4
shard fsdp2:8 fsdp:8
shard full_shard:8 fsdp:8
shard tp=2,pp=2 tp:2,pp:2
shard tensor_parallel:2 tp:2
clip True true
clip yes true
clip off -
mask Right right
zero-grad set_to_none none
save epoch torch
`

func TestAccepted(t *testing.T) {
	for line := range strings.Lines(strings.TrimSpace(accepted)) {
		f := strings.Fields(line)
		want := strings.TrimSuffix(f[2], "-")
		var o plan.Options
		if err := o.Set(f[0], f[1]); err != nil || o.Get(f[0]) != want {
			t.Errorf("--%s %s is %q, want %q; %v", f[0], f[1], o.Get(f[0]), want, err)
		}
	}
}

// refused are words for what is not planned, and a part of what is said.
const refused = `
dtype int8: --quant nf4
dtype nf4: --quant nf4
dtype int4: --quant nf4
dtype fp8: --quant nf4
dtype float8_e4m3fn: --quant nf4
dtype mxfp4: --quant nf4
quant gguf: write nf4
quant hqq: nf4 and int8
optimizer adamw_torch_8bit: adamw-8bit
dtype tf32: write fp32
dtype float64: write fp32
dtype bf16-mixed: write --autocast
dtype banana: write fp32, bf16 or fp16
optimizer muon: sgd-momentum-fused
optimizer galore_adamw: adamw-fused
optimizer schedule_free_adamw: adamw-fused
optimizer rmsprop: sgd-momentum-fused
optimizer DeepSpeedCPUAdam: --offload optimizer
optimizer banana: write adamw-fused
attention flex_attention: write flash
attention paged_attention: flash or sdpa
recompute unsloth: write full
recompute block: every:K
loss chunked: chunked:1024
cache static: static:4096
cache offloaded_static: write dynamic
shard zero3: zero3:N
shard zero3-offload: --offload params
shard hybrid_shard:8: fsdp:N
shard auto: pp:2
clip perhaps: true or false
batch 0: from 1
`

func TestRefused(t *testing.T) {
	for line := range strings.Lines(strings.TrimSpace(refused)) {
		question, want, _ := strings.Cut(strings.TrimSpace(line), ": ")
		option, value, _ := strings.Cut(question, " ")
		var o plan.Options
		err := o.Set(option, value)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `"`+value+`"`) {
			t.Errorf("--%s %s: %v, want %q", option, value, err, want)
		}
	}
}

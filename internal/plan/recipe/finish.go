package recipe

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// The defaults of TrainingArguments' per_device_train_batch_size and
// per_device_eval_batch_size.
const (
	defaultBatch = "8"
	defaultEval  = 8
)

// Options adds what the recipe says about a model to options that were given;
// those stay as they are.
func (r *Recipe) Options(m *model.Model, o plan.Options) (plan.Options, error) {
	if len(r.Sources) == 0 {
		return o, nil
	}
	mode := model.Train
	if o.Get("mode") == string(model.Generate) || o.Has("generate") || r.options["generate"].value != "" {
		mode = model.Generate
	}
	r.generates = mode == model.Generate
	for _, f := range []func(m *model.Model) error{r.quantised, r.factory, r.adapted, r.precision, r.checkpoints, r.spread, r.defaults} {
		if err := f(m); err != nil {
			return o, err
		}
	}
	for _, c := range plan.Catalogue() {
		x, ok := r.options[c.Name]
		if !ok || r.kept(c.Name) || x.value == "" || c.Mode() != "" && c.Mode() != mode {
			continue
		}
		if x.word == "" {
			x.word = x.value
		}
		if err := o.Set(c.Name, x.word); err != nil {
			return o, fmt.Errorf("%s: %s %w", x.by, c.Name, err)
		}
	}
	return o, nil
}

// Assumed lists what the recipe decided where nobody did. It is known after
// [Recipe.Options].
func (r *Recipe) Assumed() []string {
	var out []string
	for _, n := range r.notes {
		if !r.kept(n.option) {
			out = append(out, n.text)
		}
	}
	return out
}

// NotModelled lists what the files ask for and a plan leaves out.
func (r *Recipe) NotModelled() []string {
	var out []string
	for _, s := range r.Sources {
		for _, x := range s.NotPlanned {
			out = append(out, s.File+": "+x)
		}
		if len(s.Unknown) > 0 {
			out = append(out, s.File+": keys that are not known: "+strings.Join(s.Unknown, ", "))
		}
	}
	return out
}

// choose sets an option that no file set.
func (r *Recipe) choose(name, value, why string) {
	if _, ok := r.options[name]; ok {
		return
	}
	r.options[name] = chosen{value: value, by: why}
	r.say(name, "--%s%s: %s", name, switchText(value), why)
}

func (r *Recipe) say(option, format string, args ...any) {
	r.notes = append(r.notes, note{option, fmt.Sprintf(format, args...)})
}

// quantised makes a --quant of what was said about bitsandbytes. axolotl and
// LLaMA-Factory quantise the scales too unless told otherwise. Everything else is
// in fp32 then, as prepare_model_for_kbit_training makes it.
func (r *Recipe) quantised(*model.Model) error {
	switch r.bits {
	case 4:
		name := "nf4"
		if r.type4 != "" {
			name = r.type4
		}
		if r.double || !r.single && (r.kind == "axolotl" || r.kind == "llama-factory") {
			name += "-double"
		}
		r.choose("quant", name, "bitsandbytes' 4 bits")
	case 8:
		r.choose("quant", "int8", "bitsandbytes' 8 bits")
	}
	if r.bits > 0 && r.mixed != "" {
		delete(r.options, "dtype")
	}
	return nil
}

// factory are LLaMA-Factory's defaults.
func (r *Recipe) factory(*model.Model) error {
	if r.kind != "llama-factory" {
		return nil
	}
	if r.adapters == "" {
		r.adapters, r.peft = "lora", true
		r.choose("lora", "8", "LLaMA-Factory's default")
	}
	if r.adapters == "lora" {
		if _, ok := r.options["lora-targets"]; !ok {
			r.options["lora-targets"] = chosen{by: "LLaMA-Factory's default"}
		}
	}
	r.choose("recompute", "full", "LLaMA-Factory's default, unless disable_gradient_checkpointing is given")
	if r.adapters == "full" && r.mixed != "" && !(r.strategy == "zero" && r.stage >= 0) {
		r.choose("dtype", "fp32", "LLaMA-Factory casts what it trains to fp32, unless pure_bf16 is given")
	}
	return nil
}

// adapted completes what was said about adapters.
func (r *Recipe) adapted(m *model.Model) error {
	defer func() {
		if _, ok := r.options["lora"]; !ok {
			delete(r.options, "lora-dropout")
		}
	}()
	if r.adapters == "full" {
		for _, name := range []string{"lora", "lora-targets"} {
			delete(r.options, name)
		}
		return nil
	}
	if !r.peft {
		return nil
	}
	if _, ok := r.options["lora"]; !ok {
		if r.adapters != "lora" {
			return nil
		}
		r.choose("lora", "8", "PEFT's default rank")
	}
	if _, ok := r.options["lora-targets"]; !ok && adaptedModules[m.Family] != "" {
		r.choose("lora-targets", adaptedModules[m.Family], "PEFT's default for "+m.ModelType)
	}
	if !r.fp32 {
		if ours := r.options["dtype"].value; ours != "" {
			r.choose("lora-dtype", ours, "the type of the weights, with autocast_adapter_dtype false")
		} else if ours := dtypes[m.DType]; ours != "" {
			r.choose("lora-dtype", ours, "the type of the weights, with autocast_adapter_dtype false")
		}
	}
	return nil
}

// adaptedModules are those that PEFT adapts by default, by family.
var adaptedModules = map[string]string{
	"llama": queryValue, "mistral": queryValue, "mixtral": queryValue, "qwen2": queryValue, "qwen3": queryValue,
	"gemma": queryValue, "gemma2": queryValue, "gemma3": queryValue, "gpt2": "c_attn", "bert": "query,value", "t5": "q,v",
}

const queryValue = "q_proj,v_proj"

// precision decides between mixed precision and weights of a small type.
func (r *Recipe) precision(m *model.Model) error {
	if r.mixed == "" || r.pure {
		return nil
	}
	if r.strategy == "zero" && r.stage >= 0 {
		r.choose("dtype", r.mixed, "DeepSpeed casts the model")
		if r.stage == 0 {
			r.choose("master-weights", "true", "DeepSpeed keeps fp32 copies of the weights")
		}
		return nil
	}
	if r.strategy == "fsdp" && r.mixed == "bf16" && r.options["lora"].value == "" {
		r.choose("dtype", "fp32", "accelerate keeps the weights in fp32 under FSDP's mixed precision")
		return nil
	}
	if _, ok := r.options["autocast"]; !ok {
		r.options["autocast"] = chosen{value: "true", by: "mixed precision"}
	}
	if r.mixed == "fp16" {
		r.say("autocast", "--autocast: fp16 is planned as bf16, whose tensors are as large; the GradScaler's few scalars are left out")
	}
	if ours := dtypes[m.DType]; ours != "" && r.options["dtype"].value == "" && r.bits == 0 {
		r.choose("dtype", ours, "the config's dtype, which from_pretrained of transformers 5 loads; transformers 4 loads fp32")
	}
	return nil
}

// checkpoints makes use of gradient_checkpointing_kwargs where layers are recomputed.
func (r *Recipe) checkpoints(m *model.Model) error {
	was := r.options["recompute"]
	switch {
	case was.value != "full":
		return nil
	case r.everyN > 1 && r.reentrant:
		return fmt.Errorf("%s: gradient_checkpointing_kwargs: use_reentrant with every_n_layers is not planned; leave one of them out", was.by)
	case r.everyN > 1:
		// Layers 0, N, 2N ... are recomputed, each by itself.
		var runs []string
		for i := 0; i < m.Layers; i += r.everyN {
			runs = append(runs, "1")
			if rest := min(r.everyN, m.Layers-i) - 1; rest > 0 {
				runs = append(runs, fmt.Sprint(-rest))
			}
		}
		r.options["recompute"] = chosen{value: "groups:" + strings.Join(runs, ","), by: was.by}
	case r.reentrant:
		r.options["recompute"] = chosen{value: "reentrant", by: was.by}
	}
	return nil
}

// dtypes are those of configs.
var dtypes = map[string]string{"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}

// spread makes a --shard of the strategy and the number of GPUs.
func (r *Recipe) spread(*model.Model) error {
	what := map[string]string{"ddp": "DDP", "fsdp": "FSDP", "zero": fmt.Sprintf("ZeRO stage %d", r.stage)}[r.strategy]
	if r.strategy != "" && r.ranks == 0 && !(r.strategy == "zero" && r.stage <= 0) {
		if r.kept("shard") {
			return r.share()
		}
		return fmt.Errorf("%s divides a job among GPUs, and nobody said how many; give --num-gpus N", what)
	}
	if r.ranks <= 1 && r.strategy != "fsdp" && !(r.strategy == "zero" && r.stage > 0) {
		return r.share()
	}
	word := r.strategy
	switch {
	case r.strategy == "" || r.strategy == "zero" && r.stage <= 0:
		word = "ddp"
	case r.strategy == "zero":
		word = fmt.Sprintf("zero%d", r.stage)
	case r.strategy == "fsdp" && r.mixed == "bf16" && r.options["lora"].value == "":
		word = "fsdp-mixed"
	}
	if what == "" || r.stage == 0 {
		what = "DDP"
	}
	r.choose("shard", fmt.Sprintf("%s:%d", word, r.ranks), fmt.Sprintf("%s over %d GPUs", what, r.ranks))
	return r.share()
}

// share divides DeepSpeed's train_batch_size among the GPUs.
func (r *Recipe) share() error {
	if _, ok := r.options["batch"]; ok || r.globalSize == 0 || r.kept("batch") {
		return nil
	}
	parts := int64(max(r.ranks, 1))
	if a := r.options["accumulate"].value; a != "" {
		var n int64
		fmt.Sscan(a, &n)
		parts *= max(n, 1)
	}
	if r.globalSize%parts != 0 {
		return fmt.Errorf("train_batch_size %d cannot be divided by %d, the GPUs times the accumulation; give --num-gpus N or --batch B", r.globalSize, parts)
	}
	r.choose("batch", fmt.Sprint(r.globalSize/parts), fmt.Sprintf("train_batch_size %d over %d", r.globalSize, parts))
	return nil
}

// defaults are what transformers' Trainer does where its arguments are silent.
func (r *Recipe) defaults(m *model.Model) error {
	if r.trainer || r.loop {
		r.choose("loop", hf.TrainerPreset, "transformers 5.17's Trainer over accelerate 1.15")
	}
	if !r.evaluates {
		delete(r.options, "eval-accumulation")
	} else {
		r.choose("eval-batch", fmt.Sprint(cmp.Or(r.evalBatch, defaultEval)), "per_device_eval_batch_size; the loss alone is kept, as without compute_metrics, with which --eval-keep N batches of logits stay on the GPU")
	}
	if !r.trainer {
		return nil
	}
	if m.ViT == nil && !r.generates {
		r.choose("mask", "ones", "a data collator passes attention_mask; --mask right is a batch with padding")
	}
	r.choose("clip", "true", "Trainer's default, max_grad_norm 1.0")
	if r.batch {
		r.choose("batch", defaultBatch, "Trainer's default")
	}
	return nil
}

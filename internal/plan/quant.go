package plan

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// noQuant is the --quant of weights that are dequantised as they are loaded.
const noQuant = "none"

// The values of --offload.
const (
	offloadOptimizer = "optimizer"
	offloadParams    = "params"
)

// Beside is memory of a run that the allocator does not see.
type Beside struct {
	What string `json:"what"`
	// Where is managed, which the driver moves between GPU and host, or host.
	Where string `json:"where"`
	Bytes uint64 `json:"bytes"`
}

func beside(list []hf.Beside) []Beside {
	out := []Beside{}
	for _, b := range list {
		out = append(out, Beside{b.What, b.Where, uint64(b.Bytes)})
	}
	return out
}

// restsOn names the sources of a plan that were read and not measured.
func restsOn(j *model.Job) []string {
	out := []string{}
	if q := j.Quant; q != nil {
		out = append(out, fmt.Sprintf("%s weights: the source of %s", q, q.Sources()))
		if j.LoRA.Rank > 0 {
			out = append(out, "adapters on quantised weights: the source of PEFT 0.20")
		}
	}
	if j.Mode == model.Train && j.Optimizer.BitsAndBytes() {
		out = append(out, fmt.Sprintf("%s: the source of %s", j.Optimizer, model.BitsAndBytes))
	}
	if j.Offload.Optimizer {
		out = append(out, offloadSource(j))
	}
	return out
}

func offloadSource(j *model.Job) string {
	if j.Shard.FSDP > 0 {
		return "offloading: the source of torch's FSDP"
	}
	return "offloading: the source of DeepSpeed 0.19"
}

// quantised finds how the weights are quantised: as --quant says, else as the
// config does.
func (r *request) quantised() error {
	j, m, name := r.job, r.model, r.options.Get("quant")
	r.defaults["quant"] = noQuant
	if m.Quant != nil {
		r.defaults["quant"] = m.Quant.String()
	}
	switch {
	case name == noQuant && m.Quantised != "":
		r.assumed = append(r.assumed, fmt.Sprintf("quantization_config (%s) is left out: planned as dequantised %s weights", m.Quantised, j.DType))
		return nil
	case name == noQuant:
		return nil
	case name == "" && m.Quantised != "" && m.Quant == nil:
		return problem.New("the config has a quantization_config (%s) that cannot be planned: give {quant} none to plan the dequantised model", m.Quantised)
	case name == "" && m.Quant == nil:
		return nil
	case m.Quant != nil && name != "" && name != m.Quant.String():
		return problem.New("{quant} %s: the config's weights are quantised already (%s); leave it out, or give {quant} none to plan them dequantised", name, m.Quant)
	}
	q := model.NewQuant(name)
	if m.Quant != nil {
		c := *m.Quant
		q = &c
	}
	if err := r.quantises(q); err != nil {
		return err
	}
	q.Source = j.DType
	if d := model.TypeOf(m.DType); j.DType == model.FP32 && d != "" {
		q.Source = d
	}
	j.Quant = q
	if name != "" && (q.Method == model.NF4 || q.Method == model.FP4) && m.Quant == nil {
		q.Compute = q.Source
		if j.Autocast {
			q.Compute = model.BF16
		}
		r.assumed = append(r.assumed, fmt.Sprintf("bnb_4bit_compute_dtype = %s: transformers' default is float32, which is slower and takes more", q.Compute))
	}
	if q.Method == model.AWQ && j.DType == model.BF16 {
		j.DType, q.Source = model.FP16, model.FP16
		r.assumed = append(r.assumed, "fp16: transformers does not run AWQ in bf16")
	}
	if m.MoE != nil && q.Stacked(1, 1, 32, 32) == nil {
		r.assumed = append(r.assumed, fmt.Sprintf("the experts stay in %s: bitsandbytes takes Linears alone, and transformers stacks the weights of experts", j.DType))
	}
	return nil
}

// quantises refuses what transformers does.
func (r *request) quantises(q *model.Quant) error {
	j, m := r.job, r.model
	if q.Method == model.MXFP4 && m.Family != "gpt_oss" {
		return problem.New("{quant} mxfp4 is for the experts of gpt_oss, not for %s: choose another, nf4 for instance", m.ModelType)
	}
	if j.Mode == model.Generate {
		return nil
	}
	switch q.Method {
	case model.FP8, model.MXFP4, model.Compressed:
		return problem.New("%s weights cannot be trained, nor adapters on them: give {quant} none to plan the dequantised model", q)
	}
	if !r.options.Has("lora") {
		return problem.New("quantised weights (%s) are frozen: give {lora} 16 to train adapters on them, or {quant} none to train the dequantised model", q)
	}
	return nil
}

// adapters are in fp32 on quantised weights unless somebody says otherwise.
func (r *request) adapters() error {
	l := &r.job.LoRA
	if r.job.Quant != nil && l.Rank > 0 && l.DType == "" {
		l.DType = model.FP32
		r.assume("lora-dtype", "fp32", "PEFT makes adapters so on quantised weights")
	}
	if o := r.job.Optimizer; o.EightBit() && l.Rank == 0 {
		r.assumed = append(r.assumed, "states of embeddings have 32 bits, as transformers' Trainer asks bitsandbytes for")
	}
	return nil
}

// offload reads what is kept on the host, and refuses to spread quantised weights
// in ways that are not known.
func (r *request) offload() error {
	j := r.job
	s := &j.Shard
	if q := j.Quant; q != nil {
		divided := s.Tensor > 1 || s.Expert > 1
		if s.FSDP > 0 || s.ZeroStage == 3 || divided && q.Method != model.FP8 && q.Method != model.MXFP4 {
			return problem.New("{shard} %s with %s weights is not planned: ddp:N, zero1:N, zero2:N and pp:N are, tp:N and ep:N with fp8 and mxfp4; or give {quant} none", r.options.Get("shard"), q)
		}
		if divided && q.Files != nil {
			q.Files = nil
			r.assumed = append(r.assumed, "what is quantised follows the config, not the weights' files, which hold whole weights")
		}
	}
	what := r.options.Get("offload")
	if what == "" {
		return nil
	}
	divides := s.FSDP > 0 || s.ZeroStage == 3
	switch {
	case what == offloadParams && !divides:
		return problem.New("{offload} params is for ranks that divide the weights: give {shard} zero3:N or fsdp:N (N may be 1), or {offload} optimizer")
	case what == offloadOptimizer && s.FSDP > 0:
		return problem.New("{offload} optimizer with FSDP: its CPUOffloadPolicy takes the weights along; write {offload} params")
	case what == offloadOptimizer && s.Zero == 0:
		return problem.New("{offload} optimizer is DeepSpeed's: give {shard} zero1:N, zero2:N or zero3:N (N may be 1)")
	}
	if j.Optimizer.BitsAndBytes() {
		return problem.New("{offload} with {optimizer} %s: bitsandbytes' optimizers run on the GPU; choose adamw-fused", j.Optimizer)
	}
	j.Offload = model.Offload{Optimizer: true, Parameters: what == offloadParams}
	if j.Offload.Parameters && !r.options.Has("build") {
		s.BuildSharded = true // on the host
	}
	if !slices.Contains([]model.Optimizer{model.AdamWFused, model.AdamFused, model.AdamW, model.Adam}, j.Optimizer) && s.Zero > 0 {
		return problem.New("{offload} with {optimizer} %s: DeepSpeed has a CPU form of Adam alone; choose adamw-fused", j.Optimizer)
	}
	return nil
}

// quantLevers are 8-bit states and quantised weights.
func quantLevers(j *model.Job, m *model.Model) []lever {
	var out []lever
	adam := slices.Contains([]model.Optimizer{model.AdamWFused, model.AdamWForeach, model.AdamW, model.AdamFused, model.AdamForeach, model.Adam}, j.Optimizer)
	if adam && j.LoRA.Rank == 0 && !j.Master {
		out = append(out, lever{name: "AdamW with 8-bit states", cost: "needs bitsandbytes; not measured", options: []string{"optimizer", string(model.AdamW8bit)}})
	}
	if j.Quant == nil && j.DType != model.FP32 && m.Head == model.HeadCausal && !j.Master {
		options := []string{"quant", "nf4-double"}
		if j.LoRA.Rank == 0 {
			options = append(options, "lora", "16")
		}
		out = append(out, lever{name: "LoRA on NF4 weights", cost: "other numerics, slower; needs bitsandbytes; not measured", options: options})
	}
	return out
}

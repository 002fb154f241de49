package hf

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/plan/eager"
	"github.com/ashlar-mem/ashlar/plan/job"
	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// Preset names what the package models.
const Preset = "hf-5.17"

// Result is a planned run.
type Result struct {
	Ledger      *ledger.Ledger
	Parameters  []Parameter
	NotModelled []string
	Assumed     []string
}

// Count is the number of parameters, tied ones once.
func (r *Result) Count() int64 {
	var n int64
	for _, p := range r.Parameters {
		if !p.Tied {
			n += p.Elements()
		}
	}
	return n
}

// run is a job on its way.
type run struct {
	ctx context.Context
	m   *eager.Machine
	job *job.Job
	net network

	step     int // of training, from 1 on
	dtype    eager.DType
	trains   bool
	params   []Parameter
	linears  []*linear
	outputs  []*eager.Tensor // what of the model's output is held
	trained  []*eager.Tensor // the parameters of the optimizer
	adapters []Parameter     // of LoRA
	buffers  []*eager.Tensor // that modules registered
	// inputGrad: embeddings are made to require a gradient.
	inputGrad bool
	ddp       *ddp
	fsdp      *fsdp
	notes     []string // what is not modelled
	// collecting: the routers' logits go to routers.
	collecting bool
	routers    []*eager.Tensor
	picked     picked
}

// Run plans a job.
func Run(ctx context.Context, j *job.Job) (*Result, error) {
	device := eager.H200
	r := &run{ctx: ctx, m: eager.New(device), job: j, dtype: dtypeOf(j.DType), trains: j.Mode != job.Generate}
	build, ok := families[j.Model.Family]
	if !ok {
		return nil, fmt.Errorf("preset %s does not know the family %s", Preset, j.Model.Family)
	}
	r.m.Ledger.Begin("build", 0)
	r.net = build(r)
	if err := r.train(); err != nil {
		return nil, err
	}
	return &Result{Ledger: r.m.Ledger, Parameters: r.params}, nil
}

// families are the constructors of the networks.
var families = map[string]func(*run) network{
	"llama": newLlama, "mistral": newLlama, "qwen2": newLlama, "qwen3": newLlama,
	"mixtral": newLlama, "qwen3_moe": newLlama,
	"deepseek_v2": newLlama, "deepseek_v3": newLlama, "gpt_oss": newGptOss,
	"gpt2": newGPT2, "bert": newBert, "vit": newViT,
}

func dtypeOf(d job.DType) eager.DType {
	switch d {
	case job.FP32:
		return eager.Float32
	case job.FP16:
		return eager.Float16
	}
	return eager.BFloat16
}

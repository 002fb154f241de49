package hf

import (
	"context"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// Preset names what the package models.
const Preset = "hf-5.17"

// Result is a planned run, that of one rank where there are several.
type Result struct {
	Ledger      *ledger.Ledger
	Parameters  []Parameter // of the whole model
	NotModelled []string
	Assumed     []string
	Beside      []Beside // memory that the allocator does not see
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

// run is a job while it is planned.
type run struct {
	ctx     context.Context
	machine *eager.Machine
	job     *model.Job
	net     network

	step     int // of training, from 1 on
	dtype    eager.DType
	trains   bool
	params   []Parameter
	linears  []*linear
	outputs  []*eager.Tensor // outputs of the model that are held
	trained  []*eager.Tensor // the parameters of the optimizer
	adapters []Parameter     // of LoRA
	buffers  []*eager.Tensor // that modules registered
	tables   []*eager.Tensor // weights of embeddings
	beside   []Beside
	// inputGrad: embeddings are made to require a gradient.
	inputGrad bool
	stage     *stage // of a pipeline, nil without one
	ddp       *ddp
	zero      *zero
	fsdp      *fsdp
	notes     []string // what is not modelled
	assumed   []string // what replaced what was asked for
	// collecting: the routers' logits go to routers.
	collecting bool
	routers    []*eager.Tensor
	picked     picked
	failed     error // the first reason why the job cannot run
	// decodes: generate() has the prompt behind it.
	decodes bool
}

// note adds to what is not modelled, once.
func (r *run) note(what string) {
	if !slices.Contains(r.notes, what) {
		r.notes = append(r.notes, what)
	}
}

// fail notes that PyTorch would refuse the job. The plan goes on to its end,
// where the error is returned.
func (r *run) fail(err error) {
	if r.failed == nil {
		r.failed = err
	}
}

// Run plans a job.
func Run(ctx context.Context, j *model.Job, options ...Option) (out *Result, err error) {
	defer func() {
		if err == nil {
			err = stopped(recover())
		}
	}()
	var w watch
	for _, o := range options {
		o(&w)
	}
	build, ok := families[j.Model.Family]
	if !ok {
		return nil, fmt.Errorf("preset %s does not know the family %s", Preset, j.Model.Family)
	}
	if j.Model.Head == model.HeadNone {
		return nil, problem.New("%s alone has no head to train or to generate with: give {head} %s", j.Model.Class, j.Model.UsualHead())
	}
	j, instead := dequantises(j)
	jobs, stages, assumed, err := parts(j)
	if err != nil {
		return nil, err
	}
	assumed = append(instead, assumed...)
	var most *run
	for i, part := range jobs {
		r := newRun(ctx, part)
		r.stage = stages[i]
		r.machine.Ledger.Watch = w.watcher(ctx)
		r.machine.Ledger.Begin(ledger.Build, 0)
		r.machine.OnHost(r.builtOnHost())
		r.net = build(r)
		work := r.train
		if !r.trains {
			work = r.generate
		}
		if err := work(); err != nil {
			return nil, err
		}
		if r.failed != nil {
			return nil, r.failed
		}
		r.machine.Ledger.Watch = nil
		if most == nil || r.machine.Ledger.Peak() > most.machine.Ledger.Peak() {
			most = r
		}
	}
	params := most.params
	if sh := j.Shard; sh.Tensor > 1 || sh.Pipeline > 1 || sh.Expert > 1 {
		whole := *j
		whole.Shard = model.Shard{}
		r := newRun(ctx, &whole)
		build(r)
		params = r.params
	}
	return &Result{Ledger: most.machine.Ledger, Parameters: params, NotModelled: most.notes, Assumed: append(assumed, most.assumed...), Beside: most.beside}, nil
}

func newRun(ctx context.Context, j *model.Job) *run {
	device := eager.H200
	if j.Workspace > 0 {
		device.BlasWorkspace = j.Workspace
	}
	if j.Capability > 0 {
		device.Capability = j.Capability
	}
	return &run{ctx: ctx, machine: eager.New(device), job: j, dtype: dtypeOf(j.DType), trains: j.Mode != model.Generate}
}

// families are the constructors of the networks.
var families = map[string]func(*run) network{
	"llama": newLlama, "mistral": newLlama, "qwen2": newLlama, "qwen3": newLlama,
	"mixtral": newLlama, "qwen3_moe": newLlama,
	"deepseek_v2": newLlama, "deepseek_v3": newLlama, "gpt_oss": newGptOss,
	"gpt2": newGPT2, "bert": newBert, "roberta": newBert, "xlm_roberta": newBert,
	"distilbert": newDistilBert, "modernbert": newModernBert, "vit": newViT, "dinov2": newDinov2, "clip": newTowers, "siglip": newTowers, "t5": newT5, "bart": newBart, "whisper": newWhisper,
	"gemma": newVariant, "phi3": newVariant, "granite": newVariant, "olmo2": newVariant, "smollm3": newVariant,
	"glm4": newVariant, "cohere2": newVariant, "starcoder2": newVariant, "gpt_neox": newVariant, "opt": newOPT,
	"qwen2_moe": newLlama,
	"gemma2":    newGemma, "gemma3": newGemma, "qwen3_5": newQwen35, "qwen3_5_moe": newQwen35,
}

func dtypeOf(d model.DType) eager.DType {
	switch d {
	case model.FP32:
		return eager.Float32
	case model.FP16:
		return eager.Float16
	}
	return eager.BFloat16
}

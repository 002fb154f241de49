package plan

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/checkpoint"
	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// rough is a model without a family while it is planned.
type rough struct {
	question   Question
	checkpoint *checkpoint.Checkpoint
	job        *model.Job
	near       *model.Nearest // nil if there is none
	weights    []hf.Weight
	least      []hf.Weight // the smaller of two guesses; nil if nothing is guessed
	parts      []RoughPart

	assumed, notModelled []string
	ofPasses             []string // what was assumed about the passes alone
}

// mostTensors is how many tensors a rough plan has at most: each takes some 2 KB with its gradient and state.
const mostTensors = 1 << 16

func newRough(ctx context.Context, q Question) (*rough, error) {
	c := *q.Checkpoint
	if q.Settings == (settings.Settings{}) {
		q.Settings = settings.Default()
	}
	if err := q.Capacity.Fraction(&q.Settings); err != nil {
		return nil, err
	}
	r := &rough{question: q, checkpoint: &c, assumed: append([]string{}, q.Assumed...), notModelled: append([]string{}, q.NotModelled...)}
	if !c.Pipeline && c.Parts[0].Config != nil {
		r.near = model.FindNearest(c.Parts[0].Config)
	}
	if q.Weights != nil {
		if c.Pipeline {
			return nil, problem.New("{weights} with a pipeline of diffusers: its components' files are read from their folders; leave it out")
		}
		c.Parts = slices.Clone(c.Parts)
		c.Parts[0].Tensors = q.Weights.tensors
	}
	tensors := 0
	for i := range c.Parts {
		tensors += len(c.Parts[i].Tensors)
	}
	if tensors > mostTensors {
		return nil, problem.New("%s has %d tensors: of a model that no family here describes at most %d are planned; %s measures it", c.Class, tensors, mostTensors, Exactly)
	}
	own, err := r.read()
	if err != nil {
		return nil, err
	}
	if r.denoises() && r.job.Mode == model.Train {
		r.assumed = append(r.assumed, "the denoiser is trained and the other components are frozen, as in diffusers' training scripts; --mode generate freezes all")
	}
	for i := range c.Parts {
		if err := r.add(ctx, &c.Parts[i], own); err != nil {
			return nil, err
		}
	}
	return r, r.frozen()
}

// StandIn is a model that options are checked against for a checkpoint that no
// family describes.
func StandIn(c *checkpoint.Checkpoint) *model.Model {
	return &model.Model{ModelType: c.Class, Class: c.Class, Head: model.HeadCausal, DType: model.DTypeOf(c.Parts[0].Config)}
}

// read makes the job. It reports whether tensors stay in the types of their
// files.
func (r *rough) read() (own bool, err error) {
	o := r.question.Options
	for _, word := range []string{"tp", "sp", "pp", "cp", "ep"} {
		if o.ranks(word) > 1 {
			return false, problem.New("{shard} %s: how %s would be divided is not known, as it has no family here: leave %s out; ddp, fsdp and zero are planned", o.Get("shard"), r.checkpoint.Class, word)
		}
	}
	files, why := r.fileType()
	if !o.Has("dtype") && !o.Has("autocast") && files != "" {
		o, own = o.with("dtype", string(files)), true
		r.assumed = append(r.assumed, fmt.Sprintf("--dtype %s: %s", files, why))
		if r.checkpoint.Pipeline || r.checkpoint.Parts[0].Denoiser {
			r.assumed = append(r.assumed, "diffusers loads weights as fp32 unless torch_dtype says otherwise: give --dtype fp32 to plan that")
		}
	}
	request := newRequest(o, StandIn(r.checkpoint))
	for _, f := range []func() error{request.mode, request.types, request.quantised, request.optimizer, request.lora, request.adapters, request.shard, request.offload} {
		if err := f(); err != nil {
			return false, err
		}
	}
	r.job, r.question.Options = request.job, o
	r.question.Capacity.equip(r.job)
	for _, text := range request.assumed {
		if strings.HasPrefix(text, "--attention ") || strings.HasPrefix(text, "--generate ") {
			r.ofPasses = append(r.ofPasses, text)
		} else {
			r.assumed = append(r.assumed, text)
		}
	}
	return own, nil
}

// fileType is the type of most of the weights, with the reason; empty if none is
// known.
func (r *rough) fileType() (d model.DType, why string) {
	var all []safetensors.Tensor
	for i := range r.checkpoint.Parts {
		p := &r.checkpoint.Parts[i]
		all = append(all, p.Tensors...)
		if name, _ := indexType(p); p.Bytes > 0 && d == "" {
			d, why = fileTypes[name], "the config's dtype, else the usual one: an index has none"
		}
	}
	if len(all) == 0 {
		return d, why
	}
	return NewWeights(all).dtype, "the type of most of the weights' files; each tensor stays in its own"
}

// add takes a part's weights: from headers, from the total of an index, or from
// the shapes of the nearest family.
func (r *rough) add(ctx context.Context, p *checkpoint.Part, own bool) error {
	part := RoughPart{Name: p.Name, Class: p.Class, Trained: r.job.Mode == model.Train && (p.Denoiser || !r.denoises())}
	var weights []hf.Weight
	switch {
	case len(p.Tensors) > 0:
		part.Source = "headers"
		weights = roles(p.Name, p.Tensors)
	case p.Bytes > 0:
		part.Source = "index"
		name, size := indexType(p)
		weights = []hf.Weight{{Tensor: safetensors.New(prefixed(p.Name, "weights"), name, int64(p.Bytes/size))}}
		said := fmt.Sprintf("weights of %s: %s in all, from the index; their shapes are not known", p.Class, units.Size(p.Bytes))
		if p.Damaged != nil {
			said += ": " + p.Damaged.Error()
		}
		r.assumed = append(r.assumed, said)
		if p.Quantised() {
			weights[0].Role = hf.Kept
		}
	case r.near != nil:
		part.Source = "config"
		var err error
		if weights, err = r.shapesOf(ctx, r.near.Model); err != nil {
			return err
		}
		if r.least, err = r.shapesOf(ctx, r.near.Least); err != nil {
			return err
		}
		r.assumed = append(r.assumed, fmt.Sprintf("weights of %s: about those of %s with its sizes; --weights FOLDER takes them from the headers of its safetensors files", p.Class, r.near))
		if p.Quantised() && r.job.Quant == nil {
			r.assumed = append(r.assumed, fmt.Sprintf("quantization_config is left out: planned as dequantised %s weights", r.job.DType))
		}
		if r.near.Part != "" {
			r.notModelled = append(r.notModelled, fmt.Sprintf("weights outside of %s: they come on top", r.near.Part))
		}
	case r.checkpoint.Pipeline:
		return fmt.Errorf("the weights of %s are not there, and its config.json does not say their size: download %s/*.safetensors, or plan the other components by themselves", p.Name, p.Name)
	default:
		return problem.New("%s has no family here, and the size of its weights is not known: give {weights} and a folder with its safetensors files, whose headers suffice; or run %s", p.Class, Exactly)
	}
	for i := range weights {
		w := &weights[i]
		w.Own, w.Frozen = own, !part.Trained
		part.Bytes += r.bytes(w)
		if w.Role != hf.Kept {
			part.Parameters += int64(w.Elements())
		}
	}
	r.weights, r.parts = append(r.weights, weights...), append(r.parts, part)
	return nil
}

// denoises reports whether the checkpoint is a pipeline around a denoiser.
func (r *rough) denoises() bool {
	return r.checkpoint.Pipeline && slices.ContainsFunc(r.checkpoint.Parts, func(p checkpoint.Part) bool { return p.Denoiser })
}

// bytes is what a weight takes once it is loaded.
func (r *rough) bytes(w *hf.Weight) uint64 {
	module, isWeight := strings.CutSuffix(w.Name, ".weight")
	switch q := r.job.Quant; {
	case w.Role == hf.Linear && isWeight && q.Converts(module):
		var n uint64
		for _, t := range q.Tensors(w.Shape[1], w.Shape[0]) {
			n += t.Bytes
		}
		return n
	case w.Own || w.Role == hf.Kept:
		return w.Bytes
	case r.job.DType == model.FP32:
		return 4 * w.Elements()
	}
	return 2 * w.Elements()
}

// indexType is the type of weights whose total alone is known, with the bytes of
// an element.
func indexType(p *checkpoint.Part) (name string, size uint64) {
	switch model.TypeOf(model.DTypeOf(p.Config)) {
	case model.FP32:
		return "F32", 4
	case model.FP16:
		return "F16", 2
	}
	return "BF16", 2
}

func prefixed(part, name string) string {
	switch {
	case part != "":
		return part + "." + name
	case !strings.Contains(name, "."):
		return "model." + name
	}
	return name
}

// shapesOf are the weights of a model of a known family.
func (r *rough) shapesOf(ctx context.Context, m *model.Model) ([]hf.Weight, error) {
	var o Options
	o = o.with("batch", "1").with("dtype", string(r.job.DType))
	if m.ViT == nil {
		o = o.with("seq", "8")
	}
	if m.Quant != nil || m.Quantised != "" {
		o = o.with("quant", noQuant)
	}
	j, _, err := o.Job(m)
	if err != nil {
		return nil, err
	}
	run, err := preset517(ctx, j)
	if err != nil {
		return nil, err
	}
	var tensors []safetensors.Tensor
	for _, p := range run.weights {
		if !p.Tied {
			tensors = append(tensors, safetensors.New(p.Name, map[model.DType]string{model.FP32: "F32", model.FP16: "F16", model.BF16: "BF16"}[r.job.DType], p.Tensor.Shape()...))
		}
	}
	return roles("", tensors), nil
}

var (
	// bufferName is what modules keep and do not train.
	bufferName = regexp.MustCompile(`(^|\.)(running_mean|running_var|num_batches_tracked|position_ids|inv_freq|masked_bias)$`)
	// tableName and headName are the weights of embeddings and of heads.
	tableName = regexp.MustCompile(`(^|\.)([^.]*embed[^.]*|wte|wpe|shared)\.weight$`)
	headName  = regexp.MustCompile(`(^|\.)(lm_head|embed_out|classifier|score|output)\.weight$`)
)

// roles tells by their names what the tensors of a checkpoint are.
func roles(part string, tensors []safetensors.Tensor) []hf.Weight {
	packed := findPacked(tensors)
	out := make([]hf.Weight, 0, len(tensors))
	for _, t := range tensors {
		w := hf.Weight{Tensor: t}
		switch {
		case packed.has(t.Name) || bufferName.MatchString(t.Name) || fileTypes[t.DType] == "":
			w.Role = hf.Kept
		case len(t.Shape) != 2 || headName.MatchString(t.Name):
		case tableName.MatchString(t.Name):
			w.Role = hf.Table
		case strings.HasSuffix(t.Name, ".weight"):
			w.Role = hf.Linear
		}
		w.Name = prefixed(part, t.Name)
		out = append(out, w)
	}
	return out
}

// frozen says what quantised files mean for training.
func (r *rough) frozen() error {
	packed := false
	linear := false
	for i := range r.weights {
		w := &r.weights[i]
		packed = packed || w.Role == hf.Kept && !bufferName.MatchString(w.Name) && w.Elements() > 1<<16
		linear = linear || w.Role == hf.Linear && !w.Frozen
	}
	j := r.job
	switch {
	case packed && j.Quant != nil:
		return problem.New("{quant} %s: the files are quantised already; leave it out", j.Quant)
	case j.Mode != model.Train || !packed && (linear || j.LoRA.Rank == 0):
		return nil
	case j.LoRA.Rank == 0:
		return problem.New("the files' weights are quantised, and quantised weights are frozen: give {lora} 16 to train adapters on them, or {mode} generate")
	}
	r.notModelled = append(r.notModelled, "adapters: the files do not say which Linears they would be put on; their weights, gradients and state come on top")
	j.LoRA = model.LoRA{}
	for i := range r.weights {
		r.weights[i].Frozen = true
	}
	return nil
}

package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// Job makes the job that the options describe for a model, with what was
// assumed where they are silent. The error says in one line what is wrong and
// what to do.
func (o Options) Job(m *model.Model) (j *model.Job, assumed []string, err error) {
	r := newRequest(o, m)
	if err := r.read(); err != nil {
		return nil, nil, err
	}
	for _, c := range catalogue {
		if note := o.notes[c.Name]; note != "" && o.Has(c.Name) {
			r.assume(c.Name, o.Get(c.Name), note)
		}
	}
	return r.job, r.assumed, nil
}

// Defaults returns the value that each option has if it is not set, as far as it
// has one and the options that are set are right.
func (o Options) Defaults(m *model.Model) map[string]string {
	r := newRequest(o, m)
	_ = r.read() // who asks for the plan is told
	return r.defaults
}

// request turns options into a job.
type request struct {
	options Options
	model   *model.Model
	job     *model.Job
	assumed []string

	defaults map[string]string // by option
}

func newRequest(o Options, m *model.Model) *request {
	return &request{options: o, model: m, job: &model.Job{Model: m, Steps: 3}, defaults: map[string]string{}}
}

func (r *request) read() error {
	for _, f := range []func() error{r.mode, r.sizes, r.types, r.quantised, r.optimizer, r.layers, r.lora, r.adapters, r.loss, r.loop, r.shard, r.spread, r.offload} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// assume notes a value that nobody gave.
func (r *request) assume(name, value, why string) {
	r.defaults[name] = value
	r.assumed = append(r.assumed, fmt.Sprintf("--%s %s: %s", name, value, why))
}

// pick returns an option, or what is assumed for it.
func (r *request) pick(name, otherwise, why string) string {
	r.defaults[name] = otherwise
	if v := r.options.Get(name); v != "" {
		return v
	}
	if why != "" {
		r.assume(name, otherwise, why)
	}
	return otherwise
}

// only refuses options of another mode.
func (r *request) only(mode model.Mode, names ...string) error {
	if r.job.Mode == mode {
		return nil
	}
	for _, n := range names {
		if r.options.Has(n) {
			return problem.New("%s is for {mode} %s: leave it out", problem.Name(n), mode)
		}
	}
	return nil
}

func (r *request) mode() error {
	j, m := r.job, r.model
	j.Mode = model.Mode(r.options.Get("mode"))
	if j.Mode == "" {
		j.Mode = model.Train
		if r.options.Has("generate") {
			j.Mode = model.Generate
		}
	}
	if j.Mode == model.Train && r.options.Has("generate") {
		return problem.New("{generate} with {mode} train: leave one of them out")
	}
	for _, mode := range []model.Mode{model.Train, model.Generate} {
		if err := r.only(mode, ofMode[mode]...); err != nil {
			return err
		}
	}
	if j.Mode == model.Train {
		return nil
	}
	if m.Head != model.HeadCausal && m.Head != model.HeadSeq2Seq {
		return problem.New("%s has no head that predicts tokens one by one, so it cannot be planned for {mode} generate: use {mode} train", m.ModelType)
	}
	j.Tokens, _ = strconv.ParseInt(r.pick("generate", "64", "nobody said how many tokens"), 10, 64)
	j.GenerateCall = r.options.Has("generate-call")
	word, n, _ := numbered(r.pick("cache", "dynamic", ""))
	if word == "static" {
		j.StaticCache = n
	}
	switch {
	case j.StaticCache > 0 && m.T5 != nil:
		return problem.New("{cache} static is planned for models without an encoder: leave it out for t5")
	case j.StaticCache > 0 && j.GenerateCall:
		return problem.New("{cache} static with {generate-call}: generate() compiles the model then, which is not planned; leave one of them out")
	}
	return nil
}

func (r *request) sizes() error {
	j, m := r.job, r.model
	if !r.options.Has("batch") {
		return problem.New("{batch} is missing: say how many sequences one step takes, for instance {batch} 8")
	}
	j.Batch = r.options.count("batch", 0)
	if m.ViT != nil {
		if r.options.Has("seq") || r.options.Has("target-seq") {
			return problem.New("%s takes no {seq}: its pictures make sequences of %d; leave it out", m.ModelType, m.ViT.Tokens())
		}
	} else if m.Audio != nil {
		if r.options.Has("seq") {
			return problem.New("%s takes no {seq}: its sound makes sequences of %d; leave it out", m.ModelType, m.Audio.Positions)
		}
	} else if !r.options.Has("seq") {
		usual := 4096
		if n := m.Longest(); n > 0 {
			usual = min(usual, n)
		}
		return problem.New("{seq} is missing: say how many tokens a sequence has, for instance {seq} %d", usual)
	}
	j.Seq = r.options.count("seq", 0)
	if float64(j.Batch)*float64(max(j.Seq, 1)) > maxCount {
		return problem.New("{batch} %d times {seq} %d is more than %d tokens: give less", j.Batch, j.Seq, int64(maxCount))
	}
	switch {
	case m.Pair() && j.Mode == model.Generate:
	case m.Pair() && m.Head.Scores(): // the decoder reads the same tokens
		j.TargetSeq = j.Seq
	case m.Audio != nil:
		j.TargetSeq, _ = strconv.ParseInt(r.pick("target-seq", fmt.Sprint(m.MaxPositions), "as long as it may be"), 10, 64)
	case m.Pair():
		j.TargetSeq, _ = strconv.ParseInt(r.pick("target-seq", fmt.Sprint(j.Seq), "as long as --seq"), 10, 64)
	case r.options.Has("target-seq"):
		return problem.New("{target-seq} is for encoder-decoders such as t5, not for %s: leave it out", m.ModelType)
	}
	if n, asked := int64(m.Longest()), max(j.Seq+j.Tokens, j.TargetSeq); n > 0 && asked > n {
		which := "{seq}"
		if m.Audio != nil {
			which = "{target-seq}"
		}
		return problem.New("%s has a table for %d positions, and %d are asked for: give a smaller "+which, m.ModelType, n, asked)
	}
	if j.StaticCache > 0 && j.StaticCache < j.Seq+j.Tokens {
		return problem.New("{cache} static:%d is too short for %d tokens of prompt and %d more: write static:%d or longer", j.StaticCache, j.Seq, j.Tokens, j.Seq+j.Tokens)
	}
	return m.Runnable()
}

func (r *request) types() error {
	j, m := r.job, r.model
	j.Autocast = r.options.Has("autocast")
	own := model.TypeOf(m.DType)
	why := "the config's dtype"
	switch {
	case j.Autocast && own != model.FP32:
		own, why = model.FP32, "--autocast is for fp32 weights"
	case own == "":
		own = model.FP32
		why = "the config names none, and from_config takes torch's default; from_pretrained may load another type, that of the checkpoint"
	}
	j.DType = model.DType(r.pick("dtype", string(own), why))
	j.Attention = model.Attention(r.pick("attention", string(model.SDPA), "transformers' default, with the kernel that torch 2.11 picks"))
	if j.Attention == model.Flash && j.DType == model.FP32 && !j.Autocast {
		return problem.New("{attention} flash with fp32: the kernel takes bf16 and fp16 only; use {dtype} bf16, {autocast} or {attention} sdpa")
	}
	j.Mask = model.Mask(r.pick("mask", string(model.NoMask), ""))
	if j.Mask != model.NoMask && m.ViT != nil {
		return problem.New("{mask} is for sequences with padding, which %s has not: leave it out", m.ModelType)
	}
	return nil
}

func (r *request) optimizer() error {
	j := r.job
	if j.Mode != model.Train {
		return nil
	}
	j.Optimizer = model.Optimizer(r.pick("optimizer", string(model.AdamWFused), "what transformers' Trainer takes with torch 2.8 and later"))
	j.Master = r.options.Has("master-weights")
	if j.Master && j.DType == model.FP32 {
		return problem.New("{master-weights} with fp32 weights would keep them twice: leave it out, or use {dtype} bf16")
	}
	j.ZeroGrad = model.ZeroGrad(r.pick("zero-grad", string(model.ZeroNone), ""))
	j.Clip = r.options.Has("clip")
	j.Accumulate, _ = strconv.Atoi(r.pick("accumulate", "1", ""))
	if most := maxParts + r.stages(); j.Accumulate > most { // a pipeline has as many parts under way as stages
		r.assumed = append(r.assumed, fmt.Sprintf("--accumulate %d: the parts of a step after the first %d are like those, and were not run", j.Accumulate, most))
		j.Accumulate = most
	}
	j.Save = model.Save(r.pick("save", string(model.SaveNone), ""))
	j.HoldOutput, j.UseCache = r.options.Has("hold-output"), r.options.Has("use-cache")
	if j.UseCache && r.model.Head != model.HeadCausal {
		return problem.New("{use-cache} is for models that predict the next token, not for %s: leave it out", r.model.ModelType)
	}
	return nil
}

// maxParts is how many parts of an accumulated step are run: from the second on
// one is like the other, but for what the allocator makes of the first ones.
const maxParts = 4

// layers are those that are recomputed.
func (r *request) layers() error {
	j, m := r.job, r.model
	text := r.pick("recompute", "none", "")
	word, k, _ := numbered(text)
	n := m.Layers + m.DecoderLayers()
	switch word {
	case "every", "sqrt":
		if word == "sqrt" {
			k = int64(math.Round(math.Sqrt(float64(n))))
		}
		if m.Pair() {
			return problem.New("{recompute} %s is for models with one stack of layers, and %s has two: use full", word, m.Family)
		}
		if k > int64(n) {
			return problem.New("{recompute} every:%d: the model has %d layers; give at most that", k, n)
		}
		j.Recompute = model.Recompute{Mode: "group", Groups: groupsOf(n, int(k))}
	case "groups":
		groups, _ := parseGroups(strings.TrimPrefix(text, "groups:"))
		if m.Pair() {
			return problem.New("{recompute} groups is for models with one stack of layers, and %s has two: use full", m.Family)
		}
		if got := layersOf(groups); got != n {
			return problem.New("{recompute} groups names %d layers, and the model has %d: their lengths must add up to that", got, n)
		}
		j.Recompute = model.Recompute{Mode: "group", Groups: groups}
	case "reentrant":
		if m.T5 != nil {
			return problem.New("{recompute} reentrant is for models with one stack of layers, and t5 has two: use full")
		}
		j.Recompute = model.Recompute{Mode: "full", Reentrant: true}
	case Best:
		return problem.New("{recompute} best is a search of its own: leave it out here, or choose none, full, selective, sqrt or every:K")
	default:
		j.Recompute = model.Recompute{Mode: word}
	}
	if j.UseCache && j.Recompute.Mode == "group" {
		return cacheInGroups(text)
	}
	return nil
}

// cacheInGroups: transformers drops the cache only where its own gradient
// checkpointing is on; groups of layers are checkpointed by the program.
func cacheInGroups(how string) error {
	return problem.New("{use-cache} with {recompute} %s: layers that run again would add to the cache twice; leave one of them out", how)
}

// groupsOf cuts n layers into runs of k.
func groupsOf(n, k int) []int {
	var out []int
	for ; n > 0; n -= k {
		out = append(out, min(n, k))
	}
	return out
}

func (r *request) lora() error {
	l := &r.job.LoRA
	l.Rank = int(r.options.count("lora", 0))
	for _, n := range []string{"lora-targets", "lora-dtype", "lora-as", "lora-dropout"} {
		if l.Rank == 0 && r.options.Has(n) {
			return problem.New("%s needs {lora} R", problem.Name(n))
		}
	}
	for t := range strings.SplitSeq(r.options.Get("lora-targets"), ",") {
		if t = strings.TrimSpace(t); t != "" {
			l.Targets = append(l.Targets, t)
		}
	}
	l.DType = model.DType(r.options.Get("lora-dtype"))
	if l.Rank == 0 {
		return nil
	}
	l.PEFT = r.pick("lora-as", adaptersPEFT, "") == adaptersPEFT
	l.Dropout = r.options.Has("lora-dropout")
	if l.Dropout && !l.PEFT {
		return problem.New("{lora-dropout} is for PEFT's adapters: leave it out, or give {lora-as} peft")
	}
	switch {
	case l.DType != "" || r.job.Quant != nil:
		r.defaults["lora-dtype"] = string(model.FP32)
	case l.PEFT:
		l.DType = model.FP32
		r.assume("lora-dtype", string(model.FP32), "PEFT makes adapters in fp32 unless autocast_adapter_dtype is false")
	default:
		r.assume("lora-dtype", string(r.job.DType), "the type of the weights")
	}
	if len(l.Targets) == 0 {
		r.assumed = append(r.assumed, "--lora-targets: every Linear but the head; PEFT takes q_proj and v_proj of most models unless target_modules says otherwise")
	}
	return nil
}

// loop reads what Trainer does beside what its arguments say.
func (r *request) loop() error {
	j := r.job
	j.Trainer = r.pick("loop", loopPlain, "") == hf.TrainerPreset
	j.Smoothing = r.options.Has("label-smoothing")
	j.Evaluation = model.Evaluation{Batch: r.options.count("eval-batch", 0), Kept: int(r.options.count("eval-keep", 0)), Moved: int(r.options.count("eval-accumulation", 0))}
	j.EmptyCache = int(r.options.count("empty-cache", 0))
	if !j.Trainer {
		for _, n := range []string{"label-smoothing", "eval-batch", "eval-keep", "eval-accumulation", "empty-cache"} {
			if r.options.Has(n) {
				return problem.New("%s is for {loop} %s: leave it out, or give that", problem.Name(n), hf.TrainerPreset)
			}
		}
		return nil
	}
	switch {
	case r.stages() > 1:
		return problem.New("{loop} %s with a pipeline: Trainer has none; give {loop} plain", hf.TrainerPreset)
	case j.Evaluation.Kept > 0 && j.Evaluation.Batch == 0:
		return problem.New("{eval-keep} needs {eval-batch} B")
	case j.Evaluation.Moved > 0 && j.Evaluation.Batch == 0:
		return problem.New("{eval-accumulation} needs {eval-batch} B")
	case j.HoldOutput:
		return problem.New("{hold-output} is a habit of other loops than Trainer's: leave it out")
	case j.Smoothing && j.LossChunk > 0:
		return problem.New("{label-smoothing} needs all logits, which {loss} chunked does not make: leave one of them out")
	}
	return nil
}

func (r *request) loss() error {
	word, n, _ := numbered(r.pick("loss", "plain", ""))
	if word != "chunked" {
		return nil
	}
	if r.model.Head != model.HeadCausal {
		return problem.New("{loss} chunked is for models that predict the next token, not for %s: leave it out", r.model.ModelType)
	}
	r.job.LossChunk = n
	return nil
}

package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/settings"
)

// Lever is a change with its saving and its cost. The saving was found by planning
// the changed job.
type Lever struct {
	Name  string `json:"name"`
	Flags string `json:"flags"`
	// Lines are the same for a program that trains: arguments of transformers'
	// Trainer, of PEFT and of launchers, and the allocator's variable.
	Lines []string `json:"lines"`
	// Saving is what the peak of Of falls by: allocated, or reserved for a
	// setting of the allocator, which does not change what is allocated.
	Saving         uint64 `json:"saving_bytes"`
	Of             string `json:"of"`
	SavingReserved int64  `json:"saving_reserved_bytes"` // below 0 if it grows
	Cost           string `json:"cost"`
	Fits           *bool  `json:"fits"` // with this lever and no other; nil if nothing was named to fit into
}

// lever is a Lever before it is planned.
type lever struct {
	name, cost string
	options    []string // names and values
	conf       string   // settings of the allocator, instead of options
}

// levers lists what could be changed, the cheapest first: what costs nothing,
// what costs some arithmetic, what changes the training, what takes more GPUs.
func (p *planned) levers() []lever {
	if p.job.Mode == model.Generate {
		return p.servingLevers()
	}
	out := append(p.freeLevers(), p.computeLevers()...)
	return append(out, p.otherLevers()...)
}

const free = "no slowdown"

// freeLevers cost nothing.
func (p *planned) freeLevers() []lever {
	j := p.job
	var out []lever
	add := func(when bool, name, cost string, options ...string) {
		if when {
			out = append(out, lever{name: name, cost: cost, options: options})
		}
	}
	for from, to := range fusedOf {
		add(j.Optimizer == from, "fused optimizer", free, "optimizer", string(to))
	}
	add(j.ZeroGrad == model.ZeroKeep, "set gradients to None", free, "zero-grad", "")
	add(j.ZeroGrad == model.ZeroBefore, "set gradients to None after the step, not before the next", free, "zero-grad", "")
	add(j.HoldOutput, "drop the model's output", free, "hold-output", "")
	add(j.UseCache, "no cache while training", free, "use-cache", "")
	add(j.Shard.DDP > 0 && !j.Shard.BucketView, "gradients as views of DDP's buckets", free, "shard", fmt.Sprintf("ddp-view:%d", j.Shard.DDP))
	add(j.Attention == model.Eager || j.Attention == model.Math, "fused attention", "faster", "attention", "")
	if !p.question.Settings.ExpandableSegments {
		out = append(out, lever{name: "expandable segments", cost: free, conf: expandable(p.question.Conf)})
	}
	return out
}

// fusedOf are the optimizers that have a fused form.
var fusedOf = map[model.Optimizer]model.Optimizer{
	model.AdamWForeach: model.AdamWFused, model.AdamW: model.AdamWFused,
	model.AdamForeach: model.AdamFused, model.Adam: model.AdamFused, model.SGDMomentum: model.SGDFused,
}

func expandable(conf string) string {
	if conf == "" {
		return "expandable_segments:True"
	}
	return conf + ",expandable_segments:True"
}

// computeLevers cost arithmetic.
func (p *planned) computeLevers() []lever {
	j, m := p.job, p.question.Model
	w := workOf(j)
	var out []lever
	if m.Head == model.HeadCausal && j.LossChunk == 0 && j.Batch*j.Seq > lossChunk {
		out = append(out, lever{
			name: "chunk the loss", cost: computeText(w.extraHead()), options: []string{"loss", fmt.Sprintf("chunked:%d", lossChunk)},
		})
	}
	mode := j.Recompute.Mode
	if mode == "none" {
		out = append(out, lever{
			name: "selective recompute", cost: "no matrix product is repeated, only norms, activations and rotations", options: []string{"recompute", "selective"},
		})
	}
	if mode != "full" {
		out = append(out, lever{name: "full recompute", cost: computeText(w.extraAll() - w.extraOf(j)), options: []string{"recompute", "full"}})
	}
	if j.Batch%2 == 0 {
		out = append(out, lever{
			name: "half the batch, twice the accumulation", cost: "the same arithmetic in smaller pieces",
			options: []string{"batch", fmt.Sprint(j.Batch / 2), "accumulate", fmt.Sprint(2 * max(j.Accumulate, 1))},
		})
	}
	return out
}

// lossChunk is how many tokens' losses are computed at a time where that is
// proposed: enough to keep a GPU busy, few beside a batch that needs it.
const lossChunk = 1024

// extraOf is the arithmetic that a job repeats as it is.
func (w work) extraOf(j *model.Job) float64 {
	switch j.Recompute.Mode {
	case "full":
		return w.extraAll()
	case "group":
		at, extra := 0, 0.0
		for _, n := range j.Recompute.Groups {
			for i := at; i < at+n; i++ {
				extra += w.extra(i)
			}
			at += max(n, -n)
		}
		return extra
	}
	return 0
}

// computeText says what repeated arithmetic costs.
func computeText(extra float64) string {
	if extra < 0.005 {
		return "less than +1 % compute"
	}
	return fmt.Sprintf("about +%.0f %% compute", 100*extra)
}

// otherLevers change what is trained, or where.
func (p *planned) otherLevers() []lever {
	j := p.job
	var out []lever
	add := func(when bool, name, cost string, options ...string) {
		if when {
			out = append(out, lever{name: name, cost: cost, options: options})
		}
	}
	add(j.DType == model.FP32 && !j.Autocast, "autocast", "matrix products in bf16: other rounding, faster", "autocast", "true")
	bf16 := []string{"dtype", "bf16"}
	if j.Autocast {
		bf16 = append(bf16, "autocast", "")
	}
	add(j.DType == model.FP32, "bf16 weights", "other numerics: weights and optimizer state in bf16", bf16...)
	add(j.Optimizer != model.SGD && j.Optimizer != model.SGDMomentum && j.Optimizer != model.SGDFused && j.LoRA.Rank == 0,
		"SGD with momentum", "another optimizer", "optimizer", string(model.SGDFused))
	add(j.LoRA.Rank == 0 && p.question.Model.Head == model.HeadCausal && !j.Master, "LoRA of rank 16", "trains adapters, not the weights", adapterLever(j)...)
	if p.wantsRanks() { // what was not measured is proposed where nothing else may be enough
		out = append(out, quantLevers(j, p.question.Model)...)
	}
	add(p.wantsRanks(), "FSDP over 8 GPUs", "8 GPUs, and their communication", "shard", "fsdp:8")
	return out
}

// adapterLever are the options of LoRA. Without autocast adapters in fp32 would keep a
// copy in fp32 of each Linear's input.
func adapterLever(j *model.Job) []string {
	out := []string{"lora", "16"}
	if j.DType != model.FP32 && !j.Autocast {
		out = append(out, "lora-dtype", string(j.DType))
	}
	return out
}

// wantsRanks reports whether to propose more GPUs: not for a job that is already
// spread over ranks, or that fits.
func (p *planned) wantsRanks() bool {
	return p.job.Shard == (model.Shard{}) && (!p.question.Capacity.given() || p.reserved > p.available())
}

// servingLevers are those of a served model.
func (p *planned) servingLevers() []lever {
	j := p.job
	var out []lever
	if !p.question.Settings.ExpandableSegments {
		out = append(out, lever{name: "expandable segments", cost: free, conf: expandable(p.question.Conf)})
	}
	if phase := p.binding().Name; j.StaticCache == 0 && phase == ledger.Decode {
		out = append(out, lever{name: "static cache", cost: free, options: []string{"cache", fmt.Sprintf("static:%d", j.Seq+j.Tokens)}})
	}
	if j.Attention == model.Eager || j.Attention == model.Math {
		out = append(out, lever{name: "fused attention", cost: "faster", options: []string{"attention", ""}})
	}
	if j.DType == model.FP32 {
		out = append(out, lever{name: "bf16 weights", cost: "other numerics", options: []string{"dtype", "bf16"}})
	}
	if j.Batch > 1 {
		out = append(out, lever{name: "half the batch", cost: "half as many requests at a time", options: []string{"batch", fmt.Sprint(j.Batch / 2)}})
	}
	if m := p.question.Model; p.wantsRanks() && m.Heads%2 == 0 && m.KVHeads%2 == 0 {
		out = append(out, lever{name: "tensor parallelism over 2 GPUs", cost: "2 GPUs, and their communication", options: []string{"shard", "tp:2"}})
	}
	return out
}

// pull plans the job with a lever pulled. It returns nil if that job cannot be
// planned or saves nothing.
func (p *planned) pull(ctx context.Context, l *lever) (*Lever, error) {
	changed, err := p.changed(ctx, l.options, l.conf)
	if changed == nil || err != nil {
		return nil, err
	}
	return p.compare(ctx, l, changed)
}

// changed plans the job with other options, other allocator settings or both. It
// returns nil if that job cannot be planned.
func (p *planned) changed(ctx context.Context, options []string, conf string) (*planned, error) {
	out := *p
	var err error
	if len(options) > 0 {
		var next *planned
		if next, err = p.variants.plan(ctx, p.question, p.question.Options.with(options...)); err == nil {
			out = *next
		}
	}
	if err == nil && conf != "" {
		out, err = out.under(ctx, conf)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, nil
	}
	return &out, nil
}

// compare returns what a lever saves; nil if that is next to nothing.
func (p *planned) compare(ctx context.Context, l *lever, changed *planned) (*Lever, error) {
	out := &Lever{Name: l.name, Cost: l.cost, Of: "allocated", Flags: flags(l.options)}
	if len(l.options) == 0 {
		out.Of = "reserved"
	}
	if out.Lines = userLines(p.job.Mode, l.options, l.conf); out.Lines == nil {
		out.Lines = []string{}
	}
	if l.conf != "" {
		out.Flags = strings.TrimSpace(out.Flags + " --settings " + l.conf)
	}
	return p.prove(ctx, out, &changed.Played)
}

// prove completes a lever by what the changed run saves; nil if that is next to
// nothing.
func (p *Played) prove(ctx context.Context, out *Lever, changed *Played) (*Lever, error) {
	before, after := p.allocated, changed.allocated
	if out.Of == "reserved" {
		before, after = p.reserved, changed.reserved
	}
	if after+before/worthwhile >= before {
		return nil, nil
	}
	out.Saving = before - after
	out.SavingReserved = int64(p.reserved) - int64(changed.reserved)
	if p.Capacity.given() {
		ok, err := changed.passes(ctx)
		if err != nil {
			return nil, err
		}
		out.Fits = &ok
	}
	return out, nil
}

// under is the same ledger under other settings of the allocator.
func (p *planned) under(ctx context.Context, conf string) (planned, error) {
	out := *p
	changed, err := p.Played.under(ctx, conf)
	if err != nil {
		return out, err
	}
	out.Played = *changed
	q := *p.question
	q.Settings, q.Conf = out.Settings, conf
	out.question = &q
	return out, nil
}

func (p *Played) under(ctx context.Context, conf string) (*Played, error) {
	s, err := settings.Parse(conf)
	if err != nil {
		return nil, err
	}
	s.PerProcessMemoryFraction = 1 // Capacity.Limit has it
	out := *p
	out.Settings, out.Conf = s, conf
	out.figures, err = measure(ctx, p.Ledger, p.program, s, 0)
	return &out, err
}

// TrySetting returns what a setting of the allocator saves beside those that
// there are; nil if that is next to nothing.
func (p *Played) TrySetting(ctx context.Context, name, setting string) (*Lever, error) {
	conf := setting
	if p.Conf != "" {
		conf = p.Conf + "," + setting
	}
	changed, err := p.under(ctx, conf)
	if err != nil {
		return nil, err
	}
	return p.prove(ctx, &Lever{Name: name, Flags: "--settings " + conf, Lines: userLines("", nil, conf), Of: "reserved", Cost: free}, changed)
}

// TryEmptyCache returns what calls of empty_cache before some events save; nil if
// that is next to nothing.
func (p *Played) TryEmptyCache(ctx context.Context, name string, events []int) (*Lever, error) {
	changed := *p
	changed.program = p.program.EmptyCacheAt(slices.Compact(slices.Sorted(slices.Values(append(events, p.program.EmptyCaches()...)))))
	var err error
	if changed.figures, err = measure(ctx, p.Ledger, changed.program, p.Settings, 0); err != nil {
		return nil, err
	}
	return p.prove(ctx, &Lever{Name: name, Lines: []string{"torch.cuda.empty_cache()"}, Of: "reserved", Cost: "the driver gives and takes memory in every step"}, &changed)
}

// flags writes options as the command line takes them. One that is taken back
// is named by its negation, where it has one.
func flags(options []string) string {
	text := ""
	for i := 0; i < len(options); i += 2 {
		name, value := options[i], options[i+1]
		if text != "" {
			text += " "
		}
		switch {
		case value == "true":
			text += "--" + name
		case value == "" && defaults[name] != "":
			text += "--" + name + " " + defaults[name]
		case value == "":
			text += "--" + name + "=false"
		default:
			text += "--" + name + " " + value
		}
	}
	return text
}

// defaults are the values that an option has when it is not given.
var defaults = map[string]string{"zero-grad": string(model.ZeroNone), "attention": string(model.SDPA), "cache": "dynamic"}

// worthwhile is the part of the peak that a lever must save at least to be
// named: less is the noise of rounding.
const worthwhile = 1000

// named are the levers that save something.
func named(found []*Lever) []Lever {
	out := []Lever{}
	for _, l := range found {
		if l != nil {
			out = append(out, *l)
		}
	}
	return out
}

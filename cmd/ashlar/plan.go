package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/words"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/spelling"
	"github.com/ashlar-mem/ashlar/trace"
)

// planOptions are the flags of plan.
type planOptions struct {
	run     plan.Options
	gpu     string
	limit   boundFlag
	conf    string
	head    string
	weights string
	max     string
	sweep   []string
	out     string
	trace   string
	against string
	curve   int
	json    bool
	full    bool

	compareWith string
	device      *deviceFlag

	trainer, accelerate, deepspeed string
	foreign                        []foreignValue // other tools' flags, in their order
	given                          func(flag string) bool

	server serveOptions
}

func newPlan(std stdio) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan CONFIG --batch B --seq S [--gpu NAME]",
		Short: "Predict the memory of a run from a model's config.json",
		Long: `Plan runs a model symbolically, op by op, as PyTorch and transformers run it: it
builds the model, then trains three steps or generates some tokens. Every
allocation and free goes through the allocator engine. The peaks are those of the
third step, when the optimizer state exists, or of the whole generation.

It says whether the run fits, the peaks of allocated, reserved and device memory,
what the peak is made of, and what would save memory, each planned. --max finds
the largest batch or sequence that fits, --sweep plans many, --recompute best
chooses the layers to recompute, --against compares the plan with a recording,
--trace writes the planned run as a snapshot for view, explain and whatif.
--serve vllm says what a server has left for its KV cache, and for how many
tokens and requests that is enough.

CONFIG is a config.json as on the Hugging Face hub, a folder that holds one or
safetensors files, the name of a model in the local Hugging Face cache
(meta-llama/Llama-3.1-8B), or - for standard input. --gpu takes a card (h200,
h100, a100-80, l40s, 4090, ...), its size as it is sold (80GB), or what the driver
reports (79.2GiB).

The words of transformers, PEFT, accelerate and DeepSpeed are understood, with _
or -: --bf16, --optim adamw_torch_fused, --per-device-train-batch-size 4,
--gradient-checkpointing ... So are their files: --trainer takes TrainingArguments
as JSON or YAML, and files of axolotl and LLaMA-Factory. What is given as a flag
overrides a file.

What no family describes gets a rough plan: weights, gradients and optimizer state
from the headers of its safetensors files (in its folder, or --weights), and
activations of the nearest family or none. A pipeline of diffusers, a folder with
a model_index.json, is planned component by component.

Exit status: 0 it fits, or no --gpu or --limit was given; 1 it does not fit, or
nothing in a --sweep does; 2 the config or a flag is wrong; 3 a rough plan cannot
tell.`,
		Example: "  ashlar plan config.json --batch 8 --seq 4096 --gpu h100\n" +
			"  ashlar plan config.json --seq 4096 --gpu h100 --max batch\n" +
			"  ashlar plan config.json --batch 1 --seq 8192 --gpu 24GB --recompute best\n" +
			"  ashlar plan config.json --sweep batch=1,2,4,8 --sweep seq=2048,4096 --gpu a100-80 -o sweep.svg\n" +
			"  ashlar plan config.json --batch 8 --seq 4096 --compare a100-80,h100,l40s\n" +
			"  ashlar plan --trainer axolotl.yml --gpu 24GB\n" +
			"  ashlar plan config.json --batch 8 --seq 512 --generate 64 --trace planned.pickle\n" +
			"  ashlar plan config.json --serve vllm --max-model-len 32768 --gpu h100",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && o.trainer == "":
				return errors.New("plan needs a CONFIG: a model's config.json")
			case len(args) <= 1:
				return nil
			}
			for _, a := range args {
				if _, ok := words.Switch(a); ok {
					return fmt.Errorf("plan takes one CONFIG, and %q is no CONFIG: write a switch as --bf16 or --bf16=%s", a, a)
				}
			}
			return errors.New("plan takes one CONFIG; several values of a flag stand with commas, such as --target-modules q_proj,v_proj")
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ReplaceAll(name, "_", "-")
		if ours, ok := flagAliases[name]; ok {
			name = ours
		}
		return pflag.NormalizedName(name)
	})
	flags.StringVar(&o.gpu, "gpu", "", "the card, by `NAME` or by its memory such as 80GB")
	flags.Var(&o.limit, "limit", "cap on reserved memory, as for whatif")
	for _, c := range plan.Catalogue() {
		f := flags.VarPF(&planFlag{&o.run, c}, c.Name, "", strings.ReplaceAll(c.Usage, "\n", " "))
		if c.Value == "" {
			f.NoOptDefVal = "true"
		}
	}
	flags.StringVar(&o.trainer, "trainer", "", "`FILE` of TrainingArguments (JSON or YAML), axolotl or LLaMA-Factory")
	flags.StringVar(&o.accelerate, "accelerate", "", "`FILE` that accelerate config wrote")
	flags.StringVar(&o.deepspeed, "deepspeed", "", "`FILE` of DeepSpeed's configuration")
	flags.StringVar(&o.conf, "settings", "", "settings of the allocator, as in PYTORCH_CUDA_ALLOC_`CONF`")
	flags.StringVar(&o.head, "head", "", "the model's head, a `NAME`: "+strings.Join(model.Heads(), ", ")+"; by default from the config's architectures")
	flags.StringVar(&o.weights, "weights", "", "safetensors `FILE`, or a folder of them: their names and shapes are compared with the config, and their type becomes the --dtype")
	flags.StringVar(&o.compareWith, "compare", "", "plan the run on several cards, `CARDS` with commas, side by side")
	flags.StringVar(&o.max, "max", "", "find the largest that fits, `OF`: batch or seq")
	flags.StringArrayVar(&o.sweep, "sweep", nil, "plan each of some values, `OPTION=A,B,C`; may be given several times")
	flags.StringVarP(&o.out, "output", "o", "", "with --sweep: draw the plans into an SVG `FILE`")
	flags.StringVar(&o.trace, "trace", "", "write the planned run as a snapshot, a `FILE` ending in .pickle")
	flags.StringVar(&o.against, "against", "", "compare with a recorded `SNAPSHOT` of the run")
	flags.IntVar(&o.curve, "curve", 0, "with --json: the memory curve of the step, and of --against, in `N` points")
	flags.BoolVar(&o.full, "full", false, "print the reasons of the ranges, the memory of the step over time and what became of files' keys too")
	o.server.add(flags)
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	o.device = addDeviceFlag(cmd)
	flags.Lookup("device").Usage = "with --against: device of a snapshot with several"
	o.addForeign(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.given = cmd.Flags().Changed
		if err := o.check(cmd.Flags().Changed); err != nil {
			return err
		}
		if err := o.server.check(cmd.Flags().Changed); err != nil {
			return err
		}
		quietPipe()
		// Most plans are done before much could be collected; a long generation
		// is not.
		defer debug.SetGCPercent(debug.SetGCPercent(planGC))
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(planMemory))
		file := ""
		if len(args) > 0 {
			file = args[0]
		}
		if o.server.engine != "" {
			return o.serveModel(cmd.Context(), std, file)
		}
		return o.plan(cmd.Context(), std, file)
	}
	return cmd
}

// planGC lets the heap grow, as a plan makes some ten MB of ledgers; planMemory
// is from where on it is collected all the same.
const (
	planGC     = 400
	planMemory = 192 << 20
)

// planFlag is a flag that sets an option of the run.
type planFlag struct {
	to     *plan.Options
	option plan.Option
}

func (f *planFlag) Set(s string) error {
	if err := f.to.Set(f.option.Name, s); err != nil {
		return errors.New(err.Error() + spelling.DidYouMean(s, f.complete()))
	}
	return nil
}

// complete lists the words of the option; a number stands behind those that end
// in a colon.
func (f *planFlag) complete() []string {
	words := f.option.Words()
	for _, w := range f.option.Numbered() {
		words = append(words, w+":")
	}
	return words
}

func (f *planFlag) Type() string {
	if f.option.Value == "" {
		return "bool"
	}
	return f.option.Value
}

func (f *planFlag) String() string {
	if f.to == nil {
		return ""
	}
	return f.to.Get(f.option.Name)
}

// IsBoolFlag lets a switch stand without a value.
func (f *planFlag) IsBoolFlag() bool { return f.option.Value == "" }

// check looks at flags that exclude or need each other.
func (o *planOptions) check(given func(flag string) bool) error {
	searches := 0
	best := o.run.Get("recompute") == plan.Best
	for _, search := range []bool{o.max != "", len(o.sweep) > 0, best} {
		if search {
			searches++
		}
	}
	switch {
	case o.compareWith != "" && (searches > 0 || o.trace != "" || o.against != "" || given("gpu")):
		return errors.New("--compare plans one run on several cards: leave --gpu, --max, --sweep, --recompute best, --trace and --against out")
	case given("compare") && strings.TrimSpace(o.compareWith) == "":
		return errors.New("--compare is empty: name cards, such as a100-80,h100,l40s")
	case searches > 1:
		return errors.New("--max, --sweep and --recompute best are searches of their own: give one of them")
	case len(o.sweep) > 0 && (o.trace != "" || o.against != ""):
		return errors.New("--trace and --against are about one run: leave --sweep out")
	case o.out != "" && len(o.sweep) == 0:
		return errors.New("-o draws a --sweep: give one")
	case given("gpu") && strings.TrimSpace(o.gpu) == "":
		return errors.New("--gpu is empty: name a card such as h100, or its memory such as 80GB")
	case (o.max == "batch" || o.max == "seq") && o.run.Has(o.max):
		return fmt.Errorf("--%s with --max %s: that is what is searched for; leave one of them out", o.max, o.max)
	case given("device") && o.against == "":
		return errors.New("--device chooses in the snapshot of --against: give one")
	case given("curve") && (o.curve < 1 || o.curve > maxCurve):
		return fmt.Errorf("--curve is %d: it must be from 1 to %s", o.curve, count(maxCurve))
	case o.curve > 0 && !o.json:
		return errors.New("--curve is for --json: give it too")
	}
	return nil
}

func (o *planOptions) plan(ctx context.Context, std stdio, file string) error {
	q, r, file, err := o.question(ctx, std, file)
	if err != nil {
		return err
	}
	if q.Checkpoint != nil {
		return o.planRough(ctx, std, file, q, r)
	}
	p := startProgress(std, 0, "jobs planned")
	defer p.stop()
	var planned atomic.Int64
	q.Progress = func() { p.say(int(planned.Add(1)), "jobs planned") }
	q.Events = func(n int) {
		if planned.Load() == 0 { // a long first job
			p.say(n, "events of the run planned")
		}
	}
	switch {
	case len(o.sweep) > 0:
		return o.runSweep(ctx, std, file, q)
	case o.compareWith != "":
		return o.runCompare(ctx, std, file, q, r)
	}
	out := plan.Document{File: input.Name(file), Sources: r.Sources}
	if out.Max, out.Recompute, err = plan.Settle(ctx, &q, o.max); err != nil {
		return failed(ctx, err)
	}
	q.Points = o.curve
	if !o.json {
		q.Points = std.style().ChartColumns()
	}
	if out.Answer, err = plan.Ask(ctx, q); err != nil {
		return failed(ctx, err)
	}
	out.Options = q.Options.String()
	if o.against != "" {
		out.Against, err = against(ctx, std, o.against, o.device, o.curve, func(r *run.Run, points int) (*plan.Against, error) {
			return plan.Compare(ctx, q, r, points)
		})
		if err != nil {
			return err
		}
	}
	if o.trace != "" {
		err := writeTrace(ctx, o.trace, func() (*trace.Trace, error) { return plan.Trace(ctx, q) })
		if err != nil {
			return err
		}
		out.Trace = o.trace
	}
	p.stop()
	err = printAnswer(std, o.json, out, func(w io.Writer) error { return o.text(w, std, q, &out) })
	if err != nil {
		return err
	}
	if out.Fits != nil && !*out.Fits {
		return status(exitBad)
	}
	return nil
}

// text writes the answer for people.
func (o *planOptions) text(w io.Writer, std stdio, q plan.Question, a *plan.Document) error {
	style := std.style()
	head := text.PlanHead{Name: a.File, Options: a.Options, Capacity: q.Capacity, Full: o.full}
	if a.Max != nil {
		if err := text.PlanLargest(w, head, a.Max, style); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if err := text.Plan(w, head, a.Answer, style); err != nil {
		return err
	}
	if err := text.PlanSources(w, a.Sources, o.full, style); err != nil {
		return err
	}
	if a.Recompute != nil {
		if err := text.PlanRecompute(w, a.Recompute, style); err != nil {
			return err
		}
	}
	if a.Against != nil {
		if err := text.PlanAgainst(w, o.against, a.Against, style); err != nil {
			return err
		}
	}
	return traceText(w, a.Trace, a.Fits)
}

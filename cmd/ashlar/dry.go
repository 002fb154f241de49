package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/dry"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/view"
	"github.com/ashlar-mem/ashlar/trace"
)

// dryOptions are the flags of dry.
type dryOptions struct {
	gpu     string
	limit   boundFlag
	conf    string
	trace   string
	against string
	curve   int
	json    bool
	full    bool
	device  *deviceFlag

	// Of a script that is run.
	script []string // after --; nil if a ledger is read
	ledger string
	steps  int
	world  int
	data   string
	noSave bool
	max    string
	vary   string
	given  func(flag string) bool
}

func newDry(std stdio) *cobra.Command {
	var o dryOptions
	cmd := &cobra.Command{
		Use:   "dry {LEDGER | -- python SCRIPT ARGS...}",
		Short: "Predict the memory of any script from a dry run",
		Long: `Dry runs a training script on fake tensors: shapes, strides and autograd are
real, bytes are not, and no GPU memory is used. What every op would allocate, with
what its CUDA kernel takes beside its outputs, goes through the allocator engine.

It says whether the run fits, the peaks of allocated and reserved memory, what the
peak is made of, which lines of the script hold it, and which settings of the
allocator would save memory, each replayed. --against compares the dry run with a
recording and names the first op that differs, --trace writes it as a snapshot for
view, explain and whatif.

LEDGER is the file that a dry run has written, or - for standard input. After --
stands the command that starts the script, with the Python that has torch: dry
runs it, shows its output on stderr, and answers when it has done --steps steps of
an optimizer (a script without one: when as many forward passes bring no new
peak), when it ends, or after Ctrl-C. The script does what it does
otherwise, too: it reads its data and writes its files. torch.save and safetensors
of tensors of the GPU, which have no bytes, are left out; --no-save leaves out all.

--max batch=--batch-size runs the script for several values of an argument, or of
an environment variable (--max batch=BATCH_SIZE), and finds the largest that fits.
Between two dry runs it interpolates; the value that it names was run.

The card is that of --gpu, else the one that the dry run was made for; --gpu takes
what plan's takes. The settings are those of --settings, else the script's own.

Exit status: 0 it fits; 1 it does not fit; 2 the ledger, the script or a flag is
wrong. The exit status of the script is in the answer.`,
		Example: "  ashlar dry -- python train.py --batch-size 8\n" +
			"  ashlar dry --gpu h100 --ledger run.dry.gz -- python train.py\n" +
			"  ashlar dry run.dry.gz --gpu 24GB --settings expandable_segments:True\n" +
			"  ashlar dry run.dry.gz --against recorded.pickle\n" +
			"  ashlar dry --gpu 24GB --max batch=--batch-size -- python train.py\n" +
			"  ashlar dry --world 8 -- python train_fsdp.py",
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				if n > 0 {
					return errors.New("dry takes a LEDGER or, after --, a script: leave one of them out")
				}
				if len(args) == 0 {
					return errors.New("dry needs a command after --, such as -- python train.py")
				}
				o.script = args
				return nil
			}
			switch {
			case len(args) == 0:
				return errors.New("dry needs a LEDGER, or a script after --")
			case len(args) > 1 || strings.HasSuffix(args[0], ".py"):
				return errors.New("dry takes one LEDGER; to run a script write -- before its command: ashlar dry -- python train.py")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.gpu, "gpu", "", "the card, by `NAME` or by its memory such as 80GB")
	flags.Var(&o.limit, "limit", "cap on reserved memory, as for whatif")
	flags.StringVar(&o.conf, "settings", "", "settings of the allocator, as in PYTORCH_CUDA_ALLOC_`CONF`")
	flags.StringVar(&o.trace, "trace", "", "write the run as a snapshot, a `FILE` ending in .pickle")
	flags.StringVar(&o.against, "against", "", "compare with a recorded `SNAPSHOT` of the run")
	flags.StringVar(&o.ledger, "ledger", "", "with a script: keep the ledger in this `FILE`")
	flags.IntVar(&o.steps, "steps", 8, "with a script: end after `N` steps of an optimizer, or N forward passes without a new peak; 0 runs it to its end")
	flags.IntVar(&o.world, "world", 1, "with a script: it is one of `N` processes, as under DDP, FSDP or tensor parallelism; none of the others runs")
	flags.StringVar(&o.data, "data", "real", "with a script: `real|fake`; fake loads the first batch of each DataLoader and copies it for the others")
	flags.BoolVar(&o.noSave, "no-save", false, "with a script: leave out every torch.save and safetensors' save_file")
	flags.StringVar(&o.max, "max", "", "with a script: find the largest that fits, `NAME=ARGUMENT` such as batch=--batch-size")
	flags.StringVar(&o.vary, "vary", "", "with --max NAME: how a value is given to the script, a `TEXT` such as '--batch-size {}' or 'BATCH={}'")
	flags.IntVar(&o.curve, "curve", 0, "with --json: the memory curve of the run, and of --against, in `N` points")
	flags.BoolVar(&o.full, "full", false, "print the reasons of the ranges, the memory over time and all lines too")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	o.device = addDeviceFlag(cmd)
	flags.Lookup("device").Usage = "with --against: device of a snapshot with several"
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.given = cmd.Flags().Changed
		if err := o.check(); err != nil {
			return err
		}
		quietPipe()
		defer debug.SetGCPercent(debug.SetGCPercent(planGC))
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(planMemory))
		if o.script != nil {
			return o.runScript(cmd.Context(), std)
		}
		return o.readLedger(cmd.Context(), std, args[0])
	}
	return cmd
}

// check looks at flags that exclude or need each other.
func (o *dryOptions) check() error {
	if o.script == nil {
		for _, name := range []string{"ledger", "steps", "world", "data", "no-save", "max", "vary"} {
			if o.given(name) {
				return fmt.Errorf("--%s is for a script that is run: give the script after --, or leave --%s out", name, name)
			}
		}
	}
	switch {
	case o.given("gpu") && strings.TrimSpace(o.gpu) == "":
		return errors.New("--gpu is empty: name a card such as h100, or its memory such as 80GB")
	case o.given("device") && o.against == "":
		return errors.New("--device chooses in the snapshot of --against: give one")
	case o.given("curve") && (o.curve < 1 || o.curve > maxCurve):
		return fmt.Errorf("--curve is %d: it must be from 1 to %s", o.curve, count(maxCurve))
	case o.curve > 0 && !o.json:
		return errors.New("--curve is for --json: give it too")
	case o.vary != "" && o.max == "":
		return errors.New("--vary says how a value is given; --max says what for: give --max batch too")
	case o.given("max") && o.max == "":
		return errors.New("--max is empty: name what is varied, such as batch=--batch-size")
	case o.steps < 0:
		return fmt.Errorf("--steps is %d: give how many steps to run, or 0 for all", o.steps)
	case o.world < 1 || o.world > maxWorld:
		return fmt.Errorf("--world is %d: give how many processes there are, from 1 to %s", o.world, count(maxWorld))
	case o.data != "real" && o.data != "fake":
		return fmt.Errorf("--data is %q: it is real, or fake for copies of each loader's first batch", o.data)
	case o.given("ledger") && o.ledger == "":
		return errors.New("--ledger is empty: name a file such as run.dry.gz")
	}
	return nil
}

// readLedger answers about a ledger.
func (o *dryOptions) readLedger(ctx context.Context, std stdio, file string) error {
	r, err := o.open(ctx, std, file)
	if err != nil {
		return err
	}
	q, err := o.question(std, r)
	if err != nil {
		return err
	}
	return o.answer(ctx, std, q, &dry.Document{File: input.Name(file)})
}

// open reads a ledger.
func (o *dryOptions) open(ctx context.Context, std stdio, file string) (*dry.Recording, error) {
	if file == "-" {
		r, err := dry.Read(ctx, std.in)
		if err != nil {
			return nil, failed(ctx, fmt.Errorf("stdin: %w", err))
		}
		return r, nil
	}
	if err := errors.Join(std.agent.mayRead(file), input.Check(file)); err != nil {
		return nil, failure{err}
	}
	r, err := input.Unblocked(ctx, func() (*dry.Recording, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return dry.Read(ctx, f)
	})
	if err != nil {
		return nil, failed(ctx, fmt.Errorf("%s: %w", file, err))
	}
	return r, nil
}

// question is what is asked about a recording. Without --gpu and --settings it is
// about the card and the settings that the script has.
func (o *dryOptions) question(std stdio, r *dry.Recording) (dry.Question, error) {
	q := dry.Question{Recording: r, Conf: o.conf, Points: o.curve}
	if !o.json {
		q.Points = std.style().ChartColumns()
	}
	if q.Conf == "" {
		q.Conf = r.Settings
	}
	var err error
	if q.Capacity, err = capacity(o.gpu, o.limit); err != nil {
		return q, err
	}
	if q.Capacity.Card == nil {
		q.Capacity.Card = r.Card()
	}
	q.Settings, err = allocatorSettings(q.Conf)
	return q, err
}

// answer answers a question and writes what was asked for.
func (o *dryOptions) answer(ctx context.Context, std stdio, q dry.Question, out *dry.Document) (err error) {
	var p *dry.Played
	if p, out.Answer, err = dry.Ask(ctx, q); err != nil {
		return failed(ctx, fmt.Errorf("%s: %w", out.File, err))
	}
	if cut := q.Recording.Cut; cut != "" {
		std.errorf("warning: %s: %s; the answer is about what is there", out.File, cut)
	}
	if o.trace != "" {
		err := writeTrace(ctx, o.trace, func() (*trace.Trace, error) { return p.Trace(ctx) })
		if err != nil {
			return err
		}
		out.Trace = o.trace
	}
	if o.against != "" {
		out.Against, err = against(ctx, std, o.against, o.device, o.curve, func(r *run.Run, points int) (*plan.Against, error) {
			return p.Compare(ctx, r, points)
		})
		if err != nil {
			return err
		}
	}
	err = printAnswer(std, o.json, out, func(w io.Writer) error { return o.text(w, std, q, out) })
	if err != nil {
		return err
	}
	if out.Fits != nil && !*out.Fits {
		return status(exitBad)
	}
	return nil
}

// text writes the answer for people.
func (o *dryOptions) text(w io.Writer, std stdio, q dry.Question, a *dry.Document) error {
	style := std.style()
	if err := text.Dry(w, text.DryHead{Capacity: q.Capacity, Full: o.full}, a, style); err != nil {
		return err
	}
	if a.Against != nil {
		if err := text.PlanAgainst(w, o.against, a.Against, style); err != nil {
			return err
		}
	}
	return traceText(w, a.Trace, a.Fits)
}

// answerLedger answers the page as ashlar dry --json does.
func answerLedger(ctx context.Context, from io.Reader, asked view.DryQuestion) (any, error) {
	r, err := dry.Read(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", asked.Name, err)
	}
	o := dryOptions{gpu: asked.GPU, conf: asked.Settings, curve: asked.Curve, json: true}
	if asked.Limit != "" {
		if err := o.limit.Set(asked.Limit); err != nil {
			return nil, fmt.Errorf("limit is %q: %w", asked.Limit, err)
		}
	}
	q, err := o.question(stdio{}, r)
	if err != nil {
		return nil, err
	}
	out := &dry.Document{File: asked.Name}
	if _, out.Answer, err = dry.Ask(ctx, q); err != nil {
		return nil, fmt.Errorf("%s: %w", asked.Name, err)
	}
	return out, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	hostrun "github.com/ashlar-mem/ashlar/internal/hostmem/run"
	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// hostOptions are the flags that run and bench share.
type hostOptions struct {
	variants string
	repeat   int
	settle   time.Duration
	out      string
	json     bool
	inside   bool
	goal     wordFlag
}

func (o *hostOptions) add(cmd *cobra.Command, settle time.Duration) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.variants, "variants", "", "variants to run, a `LIST` with commas; by default all of "+strings.Join(variant.Names(), ", "))
	flags.IntVar(&o.repeat, "repeat", 3, "runs of each variant, `N`; one run shows no spread, so it gives no advice")
	flags.DurationVar(&o.settle, "settle", settle, "how long to leave it alone, and measure it, after the load")
	o.goal = wordFlag{string(hostrun.GoalBoth), []string{string(hostrun.GoalMemory), string(hostrun.GoalSpeed), string(hostrun.GoalBoth)}}
	flags.Var(&o.goal, "goal", "what is recommended: least memory, least CPU time (speed), or the least product of both")
	flags.BoolVar(&o.inside, "inside", false, "ask malloc, by a second preload, how much of its memory the program holds; mimalloc does not tell")
}

func (o *hostOptions) check(cmd *cobra.Command) error {
	switch {
	case hostSystem() != nil:
		return hostSystem()
	case o.repeat < 1 || o.repeat > maxRepeat:
		return fmt.Errorf("--repeat is %d: it must be from 1 to %d", o.repeat, maxRepeat)
	case o.settle < 0:
		return fmt.Errorf("--settle is %v: give a time such as 15s", o.settle)
	case cmd.Flags().Changed("variants") && strings.TrimSpace(o.variants) == "":
		return fmt.Errorf("--variants: give names, with commas: there are %s", strings.Join(variant.Names(), ", "))
	case (o.out != "" || cmd.Flags().Changed("output")) && filepath.Ext(o.out) != ".svg":
		return fmt.Errorf("-o %s: the plot is an SVG; let the name end in .svg", o.out)
	}
	return nil
}

const maxRepeat = 100

// hostSystem fails where processes cannot be measured.
func hostSystem() error {
	if runtime.GOOS != "linux" {
		return failure{errors.New("host needs Linux: it measures through /proc")}
	}
	return nil
}

// hostRunOptions are the flags of run.
type hostRunOptions struct {
	hostOptions
	ready       string
	readyWithin time.Duration
	load        string
	duration    time.Duration
}

func newHostRun(std stdio) *cobra.Command {
	var o hostRunOptions
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND...",
		Short: "Run a command under each malloc and compare what it holds",
		Long: `Run starts the command several times under each malloc, tuned or as shipped,
interleaved, and measures all its processes: memory, CPU time, faults. It verifies
every run by looking up in memory which malloc the largest process uses.

A command that ends is measured to its end: its final memory is the median over
the last tenth of its time. With --ready, --load or --for the command is a
service: once ready it is driven, then left alone for --settle, then ended with SIGTERM,
after 10 s SIGKILL. Signals go to its process group, then to descendants that have
left the group, and to nothing else. A service that goes to the background is
measured there. After Ctrl-C it has 2 s to end, after a second Ctrl-C none; a run
that was already measured counts. --load is a shell command; the load is over when
it ends, or after --for. Only the command gets the malloc, not the load.

Run recommends the variant with the least memory times CPU time, if it beats
glibc, by more than the spread of the runs, both in that and in final memory;
otherwise it recommends glibc itself. With --goal memory or --goal speed only final
memory or only CPU time counts.

The command's input is empty, and its output is not shown. With --ready TEXT the
output is watched for the text, and Python does not buffer it (PYTHONUNBUFFERED).

Exit status: 0 answered; 1 the command failed in every run, under every malloc;
2 it cannot be run, a preload had no effect, a flag is wrong, or it was
interrupted, after printing what was known. The exit status of the command is in
the result.`,
		Example: "  ashlar host run -- python3 job.py\n" +
			"  ashlar host run --ready http://127.0.0.1:8000/health --load 'wrk -d 20s http://127.0.0.1:8000/' -- python3 server.py\n" +
			"  ashlar host run --ready 'startup complete' --for 60s --settle 30s --variants jemalloc-bg,glibc-trim -o rss.svg -- ./service",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("run needs a COMMAND, after --")
			}
			return nil
		},
	}
	o.add(cmd, 15*time.Second)
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&o.ready, "ready", "", "how to see that it is ready: a URL that answers with a status below 500, or a text that it prints, `URL|TEXT`")
	flags.DurationVar(&o.readyWithin, "ready-within", hostrun.DefaultReadyWithin, "how long it may take to be ready")
	flags.StringVar(&o.load, "load", "", "a shell `CMD` that drives it when it is ready")
	flags.DurationVar(&o.duration, "for", 0, "how long it runs once ready, or at most how long the load")
	flags.StringVarP(&o.out, "output", "o", "", "draw the runs into an SVG `FILE`")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec, err := o.spec(cmd, args)
		if err != nil {
			return err
		}
		quietPipe()
		spec.Kill = untilHurried(cmd.Context())
		return o.run(cmd.Context(), std, spec)
	}
	return cmd
}

func (o *hostRunOptions) spec(cmd *cobra.Command, args []string) (hostrun.Spec, error) {
	s := hostrun.Spec{Command: args, Environ: os.Environ(), Load: o.load, For: o.duration, ReadyWithin: o.readyWithin}
	if err := o.check(cmd); err != nil {
		return s, err
	}
	if cmd.Flags().Changed("load") && strings.TrimSpace(o.load) == "" {
		return s, errors.New("--load: give a shell command that drives the service")
	}
	if o.duration < 0 || o.readyWithin <= 0 {
		return s, errors.New("--for and --ready-within are times such as 30s")
	}
	if cmd.Flags().Changed("ready") {
		ready, err := hostrun.ParseReady(o.ready)
		if err != nil {
			return s, fmt.Errorf("--ready: %w", err)
		}
		s.Ready = ready
	}
	if s.Service() {
		s.Settle = o.settle
	} else if cmd.Flags().Changed("settle") {
		return s, errors.New("--settle is for a service: give --ready, --load or --for too")
	}
	return s, nil
}

func (o *hostRunOptions) run(ctx context.Context, std stdio, spec hostrun.Spec) error {
	h, err := o.prepare(ctx, std, false)
	if err != nil {
		return err
	}
	defer h.close()
	c, err := h.compare(ctx, spec, "runs")
	if err != nil {
		return err
	}
	title := strings.Join(strings.Fields(strings.Join(spec.Command, " ")), " ")
	if o.out != "" {
		// Also after an interrupt: what is known is drawn.
		err := writeFile(context.WithoutCancel(ctx), o.out, func(w io.Writer) error { return text.HostSVG(w, title, c) })
		if err != nil {
			return err
		}
	}
	err = printAnswer(std, o.json, c, func(w io.Writer) error {
		if err := text.Host(w, title, c, std.style()); err != nil || o.out == "" {
			return err
		}
		_, err := fmt.Fprintf(w, "\n%s: all of them as a plot\n", o.out)
		return err
	})
	if err != nil {
		return err
	}
	return hostStatus(std, c)
}

// interrupted tells the user so.
func (s stdio) interrupted() error {
	s.errorf("interrupted: what was running has been ended")
	return status(exitInput)
}

// hostStatus is how the command ends after its answer.
func hostStatus(std stdio, c *hostrun.Comparison) error {
	switch {
	case c.Interrupted:
		return std.interrupted()
	case c.Failed():
		std.errorf("%s could not be measured under any variant: %s", c.Command[0], *c.Results[0].Error)
		return status(exitInput)
	case c.CommandFailed() != nil:
		std.errorf("%s failed under every malloc, with %s: no advice follows from such runs", c.Command[0], c.CommandFailed())
		return status(exitBad)
	case c.NoEffect() != nil:
		r := c.NoEffect()
		std.errorf("%s: %s", r.Variant, *r.Error)
		return status(exitInput)
	}
	return nil
}

// hostRunner is variants that are ready to run.
type hostRunner struct {
	std     stdio
	repeat  int
	scratch string
	ready   []variant.Ready
	missing []variant.Missing
	inside  string // the library; empty: not asked for
	goal    hostrun.Goal
}

// prepare finds the variants and what they need. There is a folder for what has
// to be built, if anything has.
func (o *hostOptions) prepare(ctx context.Context, std stdio, folder bool) (*hostRunner, error) {
	chosen, err := variant.Choose(o.variants)
	if err != nil {
		return nil, fmt.Errorf("--variants: %w", err)
	}
	h := &hostRunner{std: std, repeat: o.repeat, goal: hostrun.Goal(o.goal.value)}
	if folder || o.inside || slices.ContainsFunc(chosen, func(v variant.Variant) bool { return v.Trim }) {
		if h.scratch, err = os.MkdirTemp("", "ashlar-host-"); err != nil {
			return nil, failure{err}
		}
	}
	h.ready, h.missing = variant.Search(ctx, chosen, h.scratch)
	if o.inside {
		if h.inside, err = variant.BuildInside(ctx, h.scratch); err != nil {
			h.close()
			return nil, failure{fmt.Errorf("--inside needs %w", err)}
		}
	}
	return h, nil
}

func (h *hostRunner) close() {
	if h.scratch != "" {
		os.RemoveAll(h.scratch)
	}
}

// compare runs one command under all variants.
func (h *hostRunner) compare(ctx context.Context, spec hostrun.Spec, what string) (*hostrun.Comparison, error) {
	if d := spec.AtLeast(); d > 0 {
		what += fmt.Sprintf(", each %v or more", d)
	}
	spec.Inside, spec.Goal = h.inside, h.goal
	p := startProgress(h.std, len(h.ready)*h.repeat, what)
	defer p.stop()
	c, err := hostrun.Compare(ctx, spec, h.ready, h.repeat, func(done int, _ string) { p.update(done, len(h.ready)*h.repeat) })
	if err != nil {
		return nil, failure{err}
	}
	if h.missing != nil {
		c.Missing = h.missing
	}
	return c, nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	hostrun "github.com/ashlar-mem/ashlar/internal/hostmem/run"
	"github.com/ashlar-mem/ashlar/internal/hostmem/workload"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// hostBenchOptions are the flags of bench.
type hostBenchOptions struct {
	hostOptions
	python string
}

func newHostBench(std stdio) *cobra.Command {
	var o hostBenchOptions
	cmd := &cobra.Command{
		Use:   "bench [WORKLOAD...]",
		Short: "Compare the mallocs of this machine on small workloads",
		Long: `Bench runs small programs under each malloc, as run does with a command of
yours, and compares what they hold and how long they take. Without a name it runs
all of them:

` + workloadHelp() + `
The first six are in Python and show memory; the others are in C, show speed, and
are left out where there is no C compiler. To decide about a program of your own,
run it: ashlar host run.

Exit status: 0 answered; 2 nothing could be run, a preload had no effect, a flag
is wrong, or it was interrupted, after printing what was known.`,
		Example: "  ashlar host bench\n" +
			"  ashlar host bench burst threads\n" +
			"  ashlar host bench lesson --variants jemalloc,tcmalloc,mimalloc --repeat 5 --json",
		ValidArgs: workload.Names(),
	}
	o.add(cmd, 4*time.Second)
	flags := cmd.Flags()
	flags.StringVar(&o.python, "python", "python3", "the interpreter, a `FILE` or a name on the PATH")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(cmd); err != nil {
			return err
		}
		chosen, err := workload.Choose(args)
		if err != nil {
			return err
		}
		quietPipe()
		return o.run(cmd.Context(), untilHurried(cmd.Context()), std, chosen)
	}
	return cmd
}

func workloadHelp() string {
	var b strings.Builder
	all, _ := workload.Choose(nil) // all of them are there
	for _, w := range all {
		const columns = 80 // of a usual terminal
		b.WriteString(text.Wrap(fmt.Sprintf("  %-11s ", w.Name), w.What, columns))
	}
	return b.String()
}

func (o *hostBenchOptions) run(ctx context.Context, again <-chan struct{}, std stdio, chosen []workload.Workload) error {
	h, err := o.prepare(ctx, std, true)
	if err != nil {
		return err
	}
	defer h.close()
	bench := workload.Bench{Scratch: h.scratch, Python: o.python, Settle: o.settle}
	a := workload.NewDocument()
	var last error
	for i, w := range chosen {
		spec, err := bench.Spec(ctx, w)
		if err != nil {
			a.Skip(w, err)
			std.errorf("%s is left out: %v", w.Name, err)
			continue
		}
		spec.Kill = again
		c, err := h.compare(ctx, spec, "runs of "+w.Name)
		if err != nil {
			return err
		}
		a.Add(w, c)
		if !o.json {
			if err := o.text(std, i, w, c); err != nil {
				return err
			}
		}
		if err := hostStatus(std, c); err != nil {
			last = err
		}
		if ctx.Err() != nil {
			if !c.Interrupted && i+1 < len(chosen) {
				last = std.interrupted()
			}
			break
		}
	}
	if o.json {
		if err := printAnswer(std, true, a, nil); err != nil {
			return err
		}
	}
	if len(a.Workloads) == 0 {
		return failure{fmt.Errorf("no workload could be run")}
	}
	return last
}

func (o *hostBenchOptions) text(std stdio, i int, w workload.Workload, c *hostrun.Comparison) error {
	return printAnswer(std, false, nil, func(out io.Writer) error {
		if i > 0 {
			fmt.Fprintln(out)
		}
		return text.Host(out, w.Name+": "+w.What, c, std.style())
	})
}

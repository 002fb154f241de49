package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/hostmem/costs"
	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// hostCostsOptions are the flags of costs.
type hostCostsOptions struct {
	variants string
	threads  string
	each     time.Duration
	json     bool
}

func newHostCosts(std stdio) *cobra.Command {
	var o hostCostsOptions
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "Measure what a malloc of each size costs, in bytes and in time",
		Long: `Costs compiles a small C program and runs it under each malloc of this machine. It
shows what a request of some size really takes, with rounding, headers and
tables; the size classes; how long a malloc and a free take, by size and by the
number of threads that do it at once; and how much memory malloc keeps for a thread
that has worked and is idle.

It takes some seconds for each malloc and needs Linux and a C compiler. Other work
on the machine shows in the times.

Exit status: 0 answered; 2 nothing could be measured, or a flag is wrong.`,
		Example: "  ashlar host costs\n  ashlar host costs --variants jemalloc,mimalloc --threads 1,8 --json",
		Args:    cobra.NoArgs,
	}
	o.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), std) }
	return cmd
}

func (o *hostCostsOptions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.variants, "variants", "jemalloc,tcmalloc,mimalloc", "variants to measure beside glibc, a `LIST` with commas")
	flags.StringVar(&o.threads, "threads", "", "numbers of threads, a `LIST` with commas; by default 1 and as many as there are cores")
	flags.DurationVar(&o.each, "each", 20*time.Millisecond, "how long each size is timed with each number of threads")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
}

// maxTimed is how many threads the program can have.
const maxTimed = 64

func (o *hostCostsOptions) check() (costs.Options, error) {
	how := costs.Options{Each: o.each}
	if err := hostSystem(); err != nil {
		return how, err
	}
	if o.each < time.Millisecond || o.each > 10*time.Second {
		return how, fmt.Errorf("--each is %v: it must be from 1ms to 10s", o.each)
	}
	if o.threads == "" {
		how.Threads = []int{1}
		if n := min(runtime.NumCPU(), maxTimed); n > 1 {
			how.Threads = append(how.Threads, n)
		}
		return how, nil
	}
	for word := range strings.SplitSeq(o.threads, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > maxTimed {
			return how, fmt.Errorf("--threads %s: write numbers from 1 to %d with commas between", o.threads, maxTimed)
		}
		how.Threads = append(how.Threads, n)
	}
	return how, nil
}

func (o *hostCostsOptions) run(ctx context.Context, std stdio) error {
	how, err := o.check()
	if err != nil {
		return err
	}
	quietPipe()
	chosen, err := variant.Choose(o.variants)
	if err != nil {
		return fmt.Errorf("--variants: %w", err)
	}
	scratch, err := os.MkdirTemp("", "ashlar-host-")
	if err != nil {
		return failure{err}
	}
	defer os.RemoveAll(scratch)
	ready, missing := variant.Search(ctx, chosen, scratch)
	p := startProgress(std, len(ready), "mallocs measured")
	defer p.stop()
	d, err := costs.Measure(ctx, scratch, ready, how, func(done int) { p.update(done, len(ready)) })
	if err != nil {
		return failed(ctx, err)
	}
	if missing != nil {
		d.Missing = missing
	}
	if err := printAnswer(std, o.json, d, func(w io.Writer) error { return text.HostCosts(w, d, std.style()) }); err != nil {
		return err
	}
	if d.Mallocs[0].Error != nil {
		return failure{errors.New("glibc could not be measured: " + *d.Mallocs[0].Error)}
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// tuneOptions are the flags of tune.
type tuneOptions struct {
	bounds  whatifOptions // limit and device memory
	goal    wordFlag
	budget  time.Duration
	json    bool
	device  *deviceFlag
	pytorch versionFlag
}

func newTune(std stdio) *cobra.Command {
	var o tuneOptions
	cmd := &cobra.Command{
		Use:   "tune FILE",
		Short: "Find the allocator settings that serve a recorded run best",
		Long: `Tune searches the settings of PyTorch's allocator (expandable_segments,
max_split_size_mb, roundup_power2_divisions, garbage_collection_threshold,
max_non_split_rounding_mb, large_segment_size_mb) by replaying the calls of a
snapshot under each of them, on all cores. It prints the line to export, what
that gains, and what it gains in the worst of several variations of the run:
steps left out, in another order, sizes changed by 3 %.

Goals:
  reserved  the least reserved memory; the default without a limit
  limit     the smallest limit under which the run passes; the default under a
            limit
  calls     the fewest driver calls after the second step

No setting is recommended that reserves more than the recorded ones do (needs
more, with the goal limit), that keeps the driver busy for longer after the
second step by more than 1 % of the recorded time, or that a simpler one comes
within 2 % of. The answer is the same every time unless --budget cuts the search
off, which is then said.

Only keys are recommended that the PyTorch that wrote the file knows. What would
be better with a later one is shown under "After an upgrade".

If the recording ends with an out-of-memory error, a setting is proven only up
to there.

FILE is a memory snapshot of PyTorch with events, as pickle, JSON or a page of
PyTorch's memory viewer, compressed with gzip, zstd or not; or - for standard
input.

Exit status: 0 answered, even if nothing beats the current settings; 2 the file
or a flag is wrong, or the command was interrupted, after printing what was
known.`,
		Example: "  ashlar tune snapshot.pickle\n  ashlar tune snapshot.pickle --goal limit\n  ashlar tune snapshot.pickle --limit 40GiB --json",
		Args:    oneFile,
	}
	flags := cmd.Flags()
	flags.Var(&o.bounds.limit, "limit", "cap on reserved memory, or none; by default that of the recording")
	flags.Var(&o.bounds.memory, "device-memory", "device memory for the allocator, or none for unlimited; by default as the recording shows")
	for _, g := range tune.Goals {
		o.goal.words = append(o.goal.words, string(g))
	}
	flags.Var(&o.goal, "goal", "what counts: reserved, limit or calls; by default limit under a limit, else reserved")
	flags.DurationVar(&o.budget, "budget", time.Minute, "cut the search off after this time")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	o.device = addDeviceFlag(cmd)
	addVersionFlag(cmd, &o.pytorch)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.budget <= 0 {
			return fmt.Errorf("--budget is %v: give a time such as 10s", o.budget)
		}
		quietPipe()
		return o.run(cmd.Context(), std, args[0])
	}
	return cmd
}

func (o *tuneOptions) run(ctx context.Context, std stdio, file string) error {
	defer saveMemory()()
	f, err := readSnapshot(ctx, std, file)
	if err != nil {
		return err
	}
	o.pytorch.apply(f)
	loaded, err := tune.Load(ctx, f, o.device.choice())
	if err != nil {
		return failed(ctx, err)
	}
	p := startProgress(std, 0, "settings evaluated")
	defer p.stop()
	a, err := loaded.Ask(ctx, tune.Question{
		Goal: tune.Goal(o.goal.value), Limit: o.bounds.limit.bytes, DeviceMemory: o.bounds.memory.bytes, Budget: o.budget,
		Progress: func(n int) { p.update(n, 0) },
	})
	p.stop()
	if a == nil {
		return failed(ctx, err)
	}
	return printTune(std, o.json, loaded, a)
}

// printTune prints what a search found, also if it was interrupted.
func printTune(std stdio, asJSON bool, f *tune.File, a *tune.Document) error {
	err := printAnswer(std, asJSON, a, func(w io.Writer) error {
		return text.Tune(w, text.WhatIfHead{Subject: f.Subject, Events: f.Events}, a.Answer, std.style())
	})
	if err != nil {
		return err
	}
	if a.Interrupted {
		std.errorf("interrupted: %s settings were evaluated", count(a.Evaluated))
		return status(exitInput)
	}
	return nil
}

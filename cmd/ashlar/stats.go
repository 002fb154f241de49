package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

func newStats(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats FILE",
		Short: "Show the facts of a snapshot, a dump or an OOM message",
		Long: `Stats shows what a file says about GPU memory: how much was reserved,
allocated and requested, at the end and at its peak, and when that was; segments
by pool, stream and kind; fragmentation, explained; settings; failed requests;
who holds the memory at the end; what empty_cache() would give back; allocations,
frees, bytes and the hit rate of the cache, by step and stream; what each statistic
means and whether it is a problem; and what is not in the file.

FILE is a memory snapshot of PyTorch as pickle, JSON or a page of PyTorch's memory
viewer; a dump of memory_stats() as JSON or as Python prints it, or the table of memory_summary(); or a log or
message of an out-of-memory error; each may be compressed with gzip or zstd; or -
for standard input. Stats detects which one it is.

Peaks by block size come from a replay of the events, which is checked against
the file event by event.

Exit status: 0 answered, 2 the file cannot be read.`,
		Example: "  ashlar stats snapshot.pickle\n  ashlar stats --json snapshot.pickle.gz\n  python train.py 2>&1 | tee log; ashlar stats log",
		Args:    oneFile,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	device := addDeviceFlag(cmd)
	var version versionFlag
	addVersionFlag(cmd, &version)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		quietPipe()
		in, err := readInput(cmd.Context(), std, args[0])
		if err != nil {
			return err
		}
		version.apply(in.Snapshot)
		d, err := collectStats(cmd.Context(), std, in, stats.Options{Device: device.choice()})
		if err != nil {
			return err
		}
		return printAnswer(std, asJSON, d, func(w io.Writer) error { return text.Stats(w, d, std.style()) })
	}
	return cmd
}

// oneFile checks the arguments of a command that reads one file.
func oneFile(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return errors.New(cmd.Name() + " needs a FILE")
	case 1:
		return nil
	}
	return errors.New(cmd.Name() + " takes one FILE")
}

// collectStats collects the facts of an input.
func collectStats(ctx context.Context, std stdio, in *input.Input, o stats.Options) (*stats.Document, error) {
	defer saveMemory()()
	p := startProgress(std, 0, "events replayed")
	defer p.stop()
	o.Progress = p.update
	d, err := stats.NewDocument(ctx, in, o)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return d, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/run"
)

// diffOptions are the flags of diff.
type diffOptions struct {
	json, full bool
	at         []string
	device     *deviceFlag
}

func newDiff(std stdio) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff A [B...]",
		Short: "Show what changed between two snapshots, or which rank is odd",
		Long: `Diff compares the memory of two snapshots, or of one at two moments: peaks,
reserved memory and fragmentation side by side, and bytes by call stack: what
grew, shrank, is new or is gone, the largest difference first. Stacks are matched
across shifted lines, other install paths and addresses, so two versions of a
program can be compared.

A MOMENT is peak (of allocated bytes), start (before the first event), end, step:N
(the end of that step), or the number of an event. With two files, one --at is for
both, two are for A and B; the default is the peak of each, or the end if one has
no events.

A directory, three or more files, or one file with several devices are ranks:
diff shows a table of them, which one is odd and how, and the first call at which
one does not allocate or free what the others do.

FILE is a snapshot as pickle or JSON, compressed with gzip, zstd or not, or - for
standard input.

Exit status: 0 answered, whatever the difference; 2 the files or flags are wrong.`,
		Example: "  ashlar diff before.pickle after.pickle\n" +
			"  ashlar diff run.pickle --at step:3 --at step:10\n" +
			"  ashlar diff run.pickle --at peak --at end --json\n" +
			"  ashlar diff snapshots/",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("diff needs two FILEs, one FILE with --at twice, or a directory")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.Flags().BoolVar(&o.full, "full", false, "list all stacks and ranks, unchanged ones included")
	cmd.Flags().StringArrayVar(&o.at, "at", nil, "`moment`: peak, start, end, step:N or the number of an event; may be given twice")
	o.device = addDeviceFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		quietPipe()
		return runDiff(cmd.Context(), std, args, &o)
	}
	return cmd
}

func runDiff(ctx context.Context, std stdio, args []string, o *diffOptions) error {
	defer saveMemory()()
	moments, err := parseMoments(o.at)
	if err != nil {
		return err
	}
	if err := onceStdin(args); err != nil {
		return err
	}
	files, directory, err := input.Expand(args)
	switch {
	case err != nil:
		return failure{err}
	case directory || len(args) > 2:
		if len(moments) > 0 {
			return errors.New("--at needs one FILE or two: ranks are compared by their peaks")
		}
		return diffRanks(ctx, std, args, files, directory, o)
	case len(args) == 2:
		return diffPair(ctx, std, args, moments, o)
	}
	switch len(moments) {
	case 0:
		return diffDevices(ctx, std, args[0], o)
	case 1:
		return errors.New("one FILE needs --at twice, for instance --at peak --at end")
	}
	sides, err := sidesOf(ctx, std, diff.NewTable(), args[0], moments, o)
	if err != nil {
		return err
	}
	return writeDiff(std, sides.table.Compare(sides.all[0], sides.all[1]), o)
}

func parseMoments(texts []string) ([]diff.At, error) {
	var out []diff.At
	for _, s := range texts {
		at, err := diff.ParseAt(s)
		if err != nil {
			return nil, fmt.Errorf("--at: %w", err)
		}
		out = append(out, at)
	}
	if len(out) > 2 {
		return nil, errors.New("--at is given more than twice: two moments can be compared")
	}
	return out, nil
}

// onceStdin checks that - is there only once.
func onceStdin(args []string) error {
	n := 0
	for _, a := range args {
		if a == "-" {
			n++
		}
	}
	if n > 1 {
		return errors.New("standard input (-) can be read only once")
	}
	return nil
}

// diffPair compares two files.
func diffPair(ctx context.Context, std stdio, args []string, moments []diff.At, o *diffOptions) error {
	table := diff.NewTable()
	var pair [2]*takenSides
	for i, arg := range args {
		var at []diff.At
		if len(moments) > 0 {
			at = []diff.At{moments[min(i, len(moments)-1)]}
		}
		var err error
		if pair[i], err = sidesOf(ctx, std, table, arg, at, o); err != nil {
			return err
		}
	}
	return writeDiff(std, table.CompareFirst(pair[0].all, pair[1].all), o)
}

// takenSides are the sides of one trace.
type takenSides struct {
	table *diff.Table
	all   []*diff.Side
}

// sidesOf reads a file and looks at it at the given moments; without any at the
// peak, if it has events, and at the end.
func sidesOf(ctx context.Context, std stdio, table *diff.Table, arg string, at []diff.At, o *diffOptions) (*takenSides, error) {
	in, err := readDiffInput(ctx, std, arg)
	if err != nil {
		return nil, err
	}
	t, why, err := input.Pick(in.Snapshot, o.device.choice())
	if err != nil {
		return nil, failed(ctx, err)
	}
	if len(at) == 0 {
		at = diff.Moments(t)
	}
	p := startProgress(std, 0, "events of "+in.Name+" replayed")
	defer p.stop()
	r := run.New(t, nil)
	r.Progress = p.update
	sides, err := table.Sides(ctx, diff.Source{File: in.Name, Run: r, Reason: why, Contradictions: in.Snapshot.Contradictions}, at)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return &takenSides{table, sides}, nil
}

// readDiffInput reads a file that must be a snapshot.
func readDiffInput(ctx context.Context, std stdio, arg string) (*input.Input, error) {
	in, err := readInput(ctx, std, arg)
	if err != nil {
		return nil, err
	}
	if in.Kind != input.Snapshot {
		return nil, failure{fmt.Errorf("%s has no blocks to compare: it is %s; ashlar stats shows it", in.Name, in.Kind.Words())}
	}
	return in, nil
}

func writeDiff(std stdio, d *diff.Diff, o *diffOptions) error {
	return printAnswer(std, o.json, diff.NewPairDocument(d, o.full), func(w io.Writer) error {
		return text.Diff(w, d, text.DiffOptions{Full: o.full, Style: std.style()})
	})
}

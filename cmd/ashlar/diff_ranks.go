package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// rankReader collects ranks from files, one after the other.
type rankReader struct {
	std     stdio
	title   string
	table   *diff.Table
	device  *deviceFlag
	names   map[string]string // of files, for the table
	ranks   []*diff.Rank
	skipped []diff.Skipped
}

func newRankReader(std stdio, args, files []string, o *diffOptions) *rankReader {
	return &rankReader{
		std: std, title: strings.Join(args, " "), table: diff.NewTable(), device: o.device,
		names: diff.FileNames(files),
	}
}

// diffRanks compares files that hold a rank or more each. Files of a directory
// that are no snapshots are left out; a file that was named should be one.
func diffRanks(ctx context.Context, std stdio, args, files []string, directory bool, o *diffOptions) error {
	r := newRankReader(std, args, files, o)
	for _, f := range files {
		err := r.file(ctx, f)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.skipped = append(r.skipped, diff.Skipped{File: f, Error: oneLine(err)})
			std.errorf("%s; left out", oneLine(err))
		}
	}
	if err := r.write(o); err != nil {
		return err
	}
	if len(r.skipped) > 0 && !directory {
		return status(exitInput)
	}
	return nil
}

// diffDevices compares the devices of one file.
func diffDevices(ctx context.Context, std stdio, arg string, o *diffOptions) error {
	in, err := readDiffInput(ctx, std, arg)
	if err != nil {
		return err
	}
	r := newRankReader(std, []string{arg}, []string{arg}, o)
	if len(input.Devices(in.Snapshot)) < 2 || o.device.choice().Given() {
		return fmt.Errorf("%s is one side only: name a second FILE, or two moments, for instance --at peak --at end", in.Name)
	}
	if err := r.snapshot(ctx, arg, in.Snapshot); err != nil {
		return err
	}
	return r.write(o)
}

// file reads one file and keeps the summaries of its devices.
func (r *rankReader) file(ctx context.Context, arg string) error {
	in, err := readDiffInput(ctx, r.std, arg)
	if err != nil {
		return err
	}
	return r.snapshot(ctx, arg, in.Snapshot)
}

func (r *rankReader) snapshot(ctx context.Context, arg string, f *snapshot.File) error {
	traces := input.Devices(f)
	if d := r.device.choice(); d.Given() || len(traces) == 0 {
		t, _, err := input.Pick(f, d)
		if err != nil {
			return failed(ctx, err)
		}
		traces = []*trace.Trace{t}
	}
	for _, t := range traces {
		name := diff.RankName(r.names[arg], t, len(traces))
		p := startProgress(r.std, 0, "events of "+name+" replayed")
		loaded := run.New(t, nil)
		loaded.Progress = p.update
		rank, err := r.table.Rank(ctx, diff.Source{File: f.Name, Run: loaded, Contradictions: f.Contradictions}, name)
		p.stop()
		if err != nil {
			return failure{err}
		}
		r.ranks = append(r.ranks, rank)
	}
	return nil
}

func (r *rankReader) write(o *diffOptions) error {
	switch len(r.ranks) {
	case 0:
		return failure{errors.New("none of the files can be compared; give a memory snapshot of each rank")}
	case 1:
		return failure{fmt.Errorf("%s is the only rank: there is nothing to compare it with; give a snapshot of each rank", r.ranks[0].Name)}
	}
	ranks := r.table.Ranks(r.ranks)
	return printAnswer(r.std, o.json, diff.NewRanksDocument(ranks, r.skipped), func(w io.Writer) error {
		return text.Ranks(w, r.title, ranks, text.DiffOptions{Full: o.full, Style: r.std.style()})
	})
}

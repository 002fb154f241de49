package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// expandDirectories puts the files of a directory in its place. directory tells
// whether there was one.
func expandDirectories(args []string) (files []string, directory bool, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if arg == "-" || err != nil || !info.IsDir() {
			files = append(files, arg) // what is wrong with it shows when it is read
			continue
		}
		directory = true
		inside, err := filesIn(arg)
		if err != nil {
			return nil, true, err
		}
		files = append(files, inside...)
	}
	return files, directory, nil
}

// filesIn lists the files of a directory, numbers in their names in order.
func filesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, openProblem(dir, err)
	}
	var out []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // a link may lead to a file
		if strings.HasPrefix(e.Name(), ".") || err == nil && !info.Mode().IsRegular() {
			continue
		}
		out = append(out, path)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: there are no files in it; name a directory with a snapshot of each rank", dir)
	}
	slices.SortFunc(out, compareNatural)
	return out, nil
}

// compareNatural orders names so that rank2 comes before rank10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingDigits(a), leadingDigits(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return int(a[0]) - int(b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		p, q := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		switch {
		case len(p) != len(q):
			return len(p) - len(q)
		case p != q:
			return strings.Compare(p, q)
		}
		a, b = a[len(x):], b[len(y):]
	}
	return len(a) - len(b)
}

func leadingDigits(s string) string {
	n := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if n < 0 {
		n = len(s)
	}
	return s[:n]
}

// rankReader collects ranks from files, one after the other.
type rankReader struct {
	std     stdio
	title   string
	table   *diff.Table
	device  *deviceFlag
	names   map[string]string // of files, for the table
	ranks   []*diff.Rank
	skipped []skippedFile
}

// skippedFile is a file that could not be read.
type skippedFile struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

func newRankReader(std stdio, args, files []string, o *diffOptions) *rankReader {
	return &rankReader{
		std: std, title: strings.Join(args, " "), table: diff.NewTable(), device: o.device,
		names: diff.FileNames(files), skipped: []skippedFile{},
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
			r.skipped = append(r.skipped, skippedFile{f, firstLine(err.Error())})
			std.errorf("%s; left out", firstLine(err.Error()))
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
	if len(withContent(in.snapshot)) < 2 || o.device.host || o.device.number >= 0 {
		return fmt.Errorf("%s is one side only: name a second FILE, or two moments, for instance --at peak --at end", in.name)
	}
	if err := r.snapshot(ctx, arg, in.snapshot); err != nil {
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
	return r.snapshot(ctx, arg, in.snapshot)
}

func (r *rankReader) snapshot(ctx context.Context, arg string, f *snapshot.File) error {
	traces := withContent(f)
	if r.device.host || r.device.number >= 0 || len(traces) == 0 {
		t, _, err := stats.Pick(f, r.device.number, r.device.host)
		if err != nil {
			return failure{err}
		}
		traces = []*trace.Trace{t}
	}
	for _, t := range traces {
		name := diff.RankName(r.names[arg], t, len(traces))
		p := startProgress(r.std, 0, "events of "+name+" replayed")
		rank, err := r.table.Rank(ctx, diff.Source{File: f.Name, Trace: t}, name, diff.Options{Progress: p.at})
		p.stop()
		if err != nil {
			return failure{err}
		}
		r.ranks = append(r.ranks, rank)
	}
	return nil
}

// withContent lists the devices that a process used.
func withContent(f *snapshot.File) []*trace.Trace {
	var out []*trace.Trace
	for _, t := range f.Traces {
		if t.Events.Len() > 0 || len(t.Segments) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// ranksDocument is the JSON form of the comparison of ranks.
type ranksDocument struct {
	Kind string `json:"kind"`
	*diff.Ranks
	Skipped []skippedFile `json:"skipped"`
}

func (r *rankReader) write(o *diffOptions) error {
	switch len(r.ranks) {
	case 0:
		return failure{errors.New("none of the files can be compared; give a memory snapshot of each rank")}
	case 1:
		return failure{fmt.Errorf("%s is the only rank: there is nothing to compare it with; give a snapshot of each rank", r.ranks[0].Name)}
	}
	ranks := r.table.Ranks(r.ranks)
	out := bufio.NewWriter(r.std.out)
	var err error
	if o.json {
		err = writeJSON(out, ranksDocument{"ranks", ranks, r.skipped})
	} else {
		err = text.Ranks(out, r.title, ranks, text.DiffOptions{Full: o.full, Style: r.std.style()})
	}
	return written(errors.Join(err, out.Flush()))
}

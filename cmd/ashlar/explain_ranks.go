package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// rankExplainer explains several files, one after the other: only one run is in
// memory at a time.
type rankExplainer struct {
	*explainOptions
	std     stdio
	set     *explain.RankSet
	added   int
	skipped []diff.Skipped
	// shown is the explanation that follows the table: of the first failure, or,
	// if times do not tell, of the first file that failed.
	shown string
}

// runRanks explains files that were named, or found in a directory or by a
// pattern; those may have others among them.
func (o *explainOptions) runRanks(ctx context.Context, std stdio, args, files []string, found bool) error {
	if o.message != "" || o.stats != "" {
		return errors.New("--message and --stats need one FILE: they are about one failure")
	}
	r := &rankExplainer{explainOptions: o, std: std, set: explain.NewRankSet(files)}
	for _, file := range files {
		err := r.add(ctx, file)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.skipped = append(r.skipped, diff.Skipped{File: file, Error: oneLine(err)})
		}
	}
	if r.added == 0 {
		return failure{fmt.Errorf("none of the files can be explained; the first one: %s", r.skipped[0].Error)}
	}
	v := r.set.Verdict()
	if err := r.print(strings.Join(args, " "), v); err != nil {
		return err
	}
	if len(r.skipped) > 0 && !found {
		return status(exitInput)
	}
	return nil
}

// add explains one file.
func (r *rankExplainer) add(ctx context.Context, file string) error {
	c, err := r.begin(ctx, r.std)
	if err != nil {
		return err
	}
	in, err := readInput(ctx, r.std, file)
	if err != nil {
		return err
	}
	r.pytorch.apply(in.Snapshot)
	if err := addFile(ctx, r.std, c, in); err != nil {
		return failed(ctx, err)
	}
	report, err := explained(ctx, r.std, c)
	if err != nil {
		return failed(ctx, err)
	}
	document, err := answer.JSON(explain.NewDocument(c, report, true))
	if err != nil {
		return err
	}
	if err := r.set.Add(ctx, file, c, report, document); err != nil {
		return failed(ctx, err)
	}
	r.added++
	if report.Trigger == explain.None || r.shown != "" && r.set.FailedFirst() != r.added-1 {
		return nil
	}
	var out bytes.Buffer
	err = text.Explain(&out, text.ExplainHead{Name: c.Name, About: strings.Join(c.About, "; ")}, report, r.textOptions(), r.std.style())
	r.shown = out.String()
	return err
}

func (r *rankExplainer) textOptions() text.ExplainOptions {
	return text.ExplainOptions{Full: r.full, Frames: r.frames.value == "all"}
}

func (r *rankExplainer) print(title string, v *explain.Ranks) error {
	return printAnswer(r.std, r.json, explain.NewRanksDocument(v, r.skipped), func(w io.Writer) error {
		if err := text.ExplainRanks(w, title, v, r.skipped, r.textOptions(), r.std.style()); err != nil || r.shown == "" {
			return err
		}
		which := "The first failure"
		if v.First == nil {
			which = "The first of the files that failed"
		}
		gap := " "
		if line, _, _ := strings.Cut(r.shown, "\n"); len(which)+2+len(line) > r.std.style().TextColumns() {
			gap = "\n"
		}
		_, err := fmt.Fprintf(w, "\n%s:%s%s", which, gap, r.shown)
		return err
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/recipe"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// runSweep plans many jobs.
func (o *planOptions) runSweep(ctx context.Context, std stdio, file string, q plan.Question) error {
	var axes []plan.Axis
	for _, text := range o.sweep {
		a, err := plan.ParseAxis(text)
		if err != nil {
			return fmt.Errorf("--sweep %w", err)
		}
		axes = append(axes, a)
	}
	if o.out != "" && filepath.Ext(o.out) != ".svg" {
		return fmt.Errorf("-o %s: a sweep is drawn as SVG; let the name end in .svg", o.out)
	}
	cells, err := plan.Sweep(ctx, q, axes)
	if err != nil {
		return failed(ctx, err)
	}
	head := text.PlanHead{Name: input.Name(file), Options: q.Options.String(), Capacity: q.Capacity}
	if o.out != "" {
		if err := writeFile(ctx, o.out, func(w io.Writer) error { return text.PlanSVG(w, head, axes, cells) }); err != nil {
			return err
		}
	}
	doc := &plan.SweepDocument{File: head.Name, Options: head.Options, Axes: axes, Sweep: cells}
	err = printAnswer(std, o.json, doc, func(w io.Writer) error {
		if err := text.PlanSweep(w, head, axes, cells, std.style()); err != nil || o.out == "" {
			return err
		}
		_, err := fmt.Fprintf(w, "\n%s: the same as a plot\n", o.out)
		return err
	})
	if err == nil && !doc.Fits() {
		return status(exitBad)
	}
	return err
}

// maxCompared bounds a comparison of cards.
const maxCompared = 32

// runCompare plans one job on several cards.
func (o *planOptions) runCompare(ctx context.Context, std stdio, file string, q plan.Question, r *recipe.Recipe) error {
	on, err := o.compared()
	if err != nil {
		return err
	}
	found, err := plan.CompareCards(ctx, q, on)
	if err != nil {
		return failed(ctx, err)
	}
	doc := &plan.CompareDocument{File: input.Name(file), Options: q.Options.String(), Model: q.Model.Class, LeavesOut: append([]string{}, q.Model.LeavesOut...), Cards: found, Sources: r.Sources}
	err = printAnswer(std, o.json, doc, func(w io.Writer) error {
		head := text.PlanHead{Name: doc.File, Options: doc.Options, Full: o.full}
		if err := text.PlanCards(w, head, doc, std.style()); err != nil {
			return err
		}
		return text.PlanSources(w, r.Sources, o.full, std.style())
	})
	if err == nil && !doc.Fits() {
		return status(exitBad)
	}
	return err
}

// compared reads the cards of --compare.
func (o *planOptions) compared() ([]cards.Card, error) {
	var on []cards.Card
	for name := range strings.SplitSeq(o.compareWith, ",") {
		c, err := cards.Parse(name)
		if err != nil {
			return nil, failure{fmt.Errorf("--compare: %w", err)}
		}
		if slices.ContainsFunc(on, func(x cards.Card) bool { return x.Name == c.Name }) {
			return nil, fmt.Errorf("--compare: %s is given twice: leave one out", c.Name)
		}
		on = append(on, c)
	}
	if len(on) > maxCompared {
		return nil, fmt.Errorf("--compare names %d cards: give at most %d", len(on), maxCompared)
	}
	return on, nil
}

// writeFile writes a file that appears when it is complete.
func writeFile(ctx context.Context, name string, write func(io.Writer) error) error {
	dst, err := createOutput(ctx, name)
	if err != nil {
		return err
	}
	defer dst.abort()
	if err := write(dst); err != nil {
		return dst.failed(err)
	}
	return dst.commit()
}

// writeTrace writes a run that was not made as a snapshot.
func writeTrace(ctx context.Context, file string, make func() (*trace.Trace, error)) error {
	name, _ := withoutCompression(file)
	if ext := filepath.Ext(name); ext != ".pickle" && ext != ".pkl" {
		return fmt.Errorf("--trace %s: a snapshot is a pickle: let the name end in .pickle or .pkl, with .gz or .zst on top if you like", file)
	}
	t, err := make()
	if err != nil {
		return failed(ctx, err)
	}
	return writeFile(ctx, file, func(w io.Writer) error {
		return snapshot.WritePickle(w, &snapshot.File{Name: file, Traces: []*trace.Trace{t}})
	})
}

// traceText says where the run was written to, if it was.
func traceText(w io.Writer, file string, fits *bool) error {
	if file == "" {
		return nil
	}
	what := "the planned run as a snapshot; ashlar view opens it"
	if fits != nil && !*fits {
		what = "the planned run as a snapshot, up to the request that fails; ashlar explain and view open it"
	}
	_, err := fmt.Fprintf(w, "\n%s: %s\n", file, what)
	return err
}

// against holds a run that was not made against a recording.
func against(ctx context.Context, std stdio, file string, d *deviceFlag, curve int, compare func(*run.Run, int) (*plan.Against, error)) (*plan.Against, error) {
	f, t, why, err := readReplayable(ctx, std, file, d)
	if err != nil {
		return nil, err
	}
	points := std.style().ChartColumns()
	if curve > 0 {
		points = curve
	}
	a, err := compare(run.New(t, nil), points)
	if err != nil {
		return nil, failed(ctx, fmt.Errorf("--against %s: %w", file, err))
	}
	a.Contradictions = answer.Contradictions(f)
	if why != "" {
		a.Notes = append(a.Notes, why)
	}
	return a, nil
}

// readWeights reads the headers of safetensors files into the question.
func (o *planOptions) readWeights(ctx context.Context, std stdio, q *plan.Question) error {
	if err := std.agent.mayReadModel(o.weights); err != nil {
		return err
	}
	tensors, err := input.Unblocked(ctx, func() ([]safetensors.Tensor, error) { return safetensors.Open(o.weights) })
	if err != nil {
		return err
	}
	if len(tensors) == 0 {
		return errors.New("--weights " + o.weights + ": it holds no tensors")
	}
	q.Weights = plan.NewWeights(tensors)
	return nil
}

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/recipe"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// planRough plans a model that no family describes.
func (o *planOptions) planRough(ctx context.Context, std stdio, file string, q plan.Question, r *recipe.Recipe) error {
	for _, f := range []struct {
		flag  string
		given bool
	}{
		{"--max", o.max != ""},
		{"--sweep", len(o.sweep) > 0},
		{"--recompute best", o.run.Get("recompute") == plan.Best},
		{"--trace", o.trace != ""},
		{"--against", o.against != ""},
		{"--curve", o.curve > 0},
	} {
		if f.given {
			return failure{fmt.Errorf("%s has no family here, so its plan is rough, and %s needs one of every step: leave it out, or run %s",
				q.Checkpoint.Class, f.flag, plan.Exactly)}
		}
	}
	if o.head != "" {
		q.NotModelled = append(q.NotModelled, "--head "+o.head+": a rough plan takes the weights as they are")
	}
	doc := &plan.RoughDocument{File: input.Name(file), Sources: r.Sources}
	var err error
	if o.compareWith != "" {
		on, parsed := o.compared()
		if parsed != nil {
			return parsed
		}
		doc.Rough, doc.Cards, err = plan.CompareRough(ctx, q, on)
	} else {
		doc.Rough, err = plan.AskRough(ctx, q)
	}
	if err != nil {
		return failed(ctx, err)
	}
	doc.Options = q.Options.String()
	err = printAnswer(std, o.json, doc, func(w io.Writer) error {
		head := text.PlanHead{Name: doc.File, Options: doc.Options, Capacity: q.Capacity, Full: o.full}
		if err := text.PlanRough(w, head, doc, std.style()); err != nil {
			return err
		}
		return text.PlanSources(w, doc.Sources, o.full, std.style())
	})
	switch {
	case err != nil:
		return err
	case doc.Verdict() == plan.RoughNo:
		return status(exitBad)
	case doc.Verdict() == plan.RoughOpen:
		return status(exitOpen)
	}
	return nil
}

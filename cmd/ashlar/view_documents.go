package main

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/view"
)

// documents makes what the commands print with --json, by their own code.
type documents struct{}

func inputOf(in *view.Input) *input.Input {
	return &input.Input{Name: in.Name, Kind: input.Snapshot, Snapshot: in.File, Bytes: in.Bytes, Writer: in.Writer}
}

// Stats is what ashlar stats --json prints.
func (documents) Stats(ctx context.Context, in *view.Input, d view.Device, seen *replay.Observed) ([]byte, error) {
	s, err := stats.NewDocument(ctx, inputOf(in), stats.Options{Device: input.Device(d), Observed: seen})
	if err != nil {
		return nil, err
	}
	return answer.JSON(s)
}

// Explain is what ashlar explain --json prints.
func (documents) Explain(ctx context.Context, in *view.Input, d view.Device) ([]byte, error) {
	if d.Host {
		return nil, fmt.Errorf("%s: host memory has another allocator, which is not explained", in.Name)
	}
	c := explain.NewCase(d.Number)
	if err := c.AddFile(ctx, inputOf(in)); err != nil {
		return nil, err
	}
	r, err := c.Explain(ctx)
	if err != nil {
		return nil, err
	}
	return answer.JSON(explain.NewDocument(c, r, true))
}

// WhatIf is what ashlar whatif --json prints.
func (documents) WhatIf(in *view.Input, d view.Device, a *whatif.Answer) ([]byte, error) {
	s, err := viewSubject(in, d)
	if err != nil {
		return nil, err
	}
	return answer.JSON(whatif.NewDocument(s, a))
}

// Tune is what ashlar tune --json prints.
func (documents) Tune(in *view.Input, d view.Device, a *tune.Answer) ([]byte, error) {
	s, err := viewSubject(in, d)
	if err != nil {
		return nil, err
	}
	return answer.JSON(tune.NewDocument(s, a))
}

// viewSubject names what an answer is about, as the command would choose it.
func viewSubject(in *view.Input, d view.Device) (answer.Subject, error) {
	t, why, err := input.Pick(in.File, input.Device(d))
	if err != nil {
		return answer.Subject{}, err
	}
	return answer.NewSubject(in.File, t, why), nil
}

// Pair is what ashlar diff A B --json prints.
func (documents) Pair(d *diff.Diff) ([]byte, error) {
	return answer.JSON(diff.NewPairDocument(d, false))
}

// Ranks is what ashlar diff A B C --json prints.
func (documents) Ranks(r *diff.Ranks) ([]byte, error) {
	return answer.JSON(diff.NewRanksDocument(r, nil))
}

// Plan is what ashlar plan --json prints.
func (documents) Plan(p *view.Planned) ([]byte, error) {
	return answer.JSON(&plan.Document{
		File: p.File, Options: p.Options, Answer: p.Answer, Max: p.Max, Recompute: p.Recompute, Against: p.Against,
	})
}

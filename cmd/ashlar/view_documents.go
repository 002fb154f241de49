package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/view"
)

// documents makes what the commands print with --json, by their own code.
type documents struct{}

// silent has nobody to show progress to.
var silent = stdio{out: io.Discard, err: io.Discard}

// Stats is what ashlar stats --json prints.
func (documents) Stats(ctx context.Context, in *view.Input, d view.Device, seen *verify.Verified) ([]byte, error) {
	s, err := collectStats(ctx, silent, &input{
		name: in.Name, kind: kindSnapshot, snapshot: in.File, bytes: in.Bytes, writer: in.Writer, seen: seen,
	}, &deviceFlag{number: d.Number, host: d.Host})
	if err != nil {
		return nil, err
	}
	return jsonBytes(s)
}

// Explain is what ashlar explain --json prints.
func (documents) Explain(ctx context.Context, in *view.Input, d view.Device) ([]byte, error) {
	if d.Host {
		return nil, fmt.Errorf("%s: host memory has another allocator, which is not explained", in.Name)
	}
	e := &explained{device: d.Number, name: in.Name, kind: kindSnapshot}
	if err := e.snapshot(ctx, in.File); err != nil {
		return nil, err
	}
	r, err := e.report(ctx, silent)
	if err != nil {
		return nil, err
	}
	return jsonBytes(e.answer(r, true))
}

// WhatIf is what ashlar whatif --json prints.
func (documents) WhatIf(in *view.Input, d view.Device, a *whatif.Answer) ([]byte, error) {
	s, err := viewSubject(in, d)
	if err != nil {
		return nil, err
	}
	return jsonBytes(whatifAnswer{subject: s, Answer: a})
}

// Tune is what ashlar tune --json prints.
func (documents) Tune(in *view.Input, d view.Device, a *tune.Answer) ([]byte, error) {
	s, err := viewSubject(in, d)
	if err != nil {
		return nil, err
	}
	return jsonBytes(tuneAnswer{subject: s, Answer: a})
}

// viewSubject names what an answer is about, as the command would choose it.
func viewSubject(in *view.Input, d view.Device) (subject, error) {
	t, why, err := stats.Pick(in.File, d.Number, d.Host)
	if err != nil {
		return subject{}, err
	}
	return newSubject(in.File, t, why), nil
}

// Pair is what ashlar diff A B --json prints.
func (documents) Pair(d *diff.Diff) ([]byte, error) { return jsonBytes(newPairDocument(d, false)) }

// Ranks is what ashlar diff A B C --json prints.
func (documents) Ranks(r *diff.Ranks) ([]byte, error) {
	return jsonBytes(ranksDocument{"ranks", r, []skippedFile{}})
}

// Plan is what ashlar plan --json prints.
func (documents) Plan(p *view.Planned) ([]byte, error) {
	return jsonBytes(planAnswer{
		File: p.File, Options: p.Options, Answer: p.Answer, Max: p.Max, Recompute: p.Recompute, Against: p.Against,
	})
}

func jsonBytes(v any) ([]byte, error) {
	var out bytes.Buffer
	err := writeJSON(&out, v)
	return out.Bytes(), err
}

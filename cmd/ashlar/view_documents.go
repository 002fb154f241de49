package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/replay"
	"github.com/ashlar-mem/ashlar/view"
	"github.com/ashlar-mem/ashlar/whatif"
)

// documents makes what the commands print with --json, by their own code.
type documents struct{}

// silent has nobody to show progress to.
var silent = stdio{out: io.Discard, err: io.Discard}

// Stats is what ashlar stats --json prints.
func (documents) Stats(ctx context.Context, in *view.Input, d view.Device, seen *replay.Observed) ([]byte, error) {
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
func (documents) WhatIf(ctx context.Context, in *view.Input, d view.Device, question view.WhatIf) ([]byte, error) {
	o := whatifOptions{confs: question.Set, onOOM: whatif.OnOOMDie, device: &deviceFlag{number: d.Number, host: d.Host}}
	for _, b := range []struct {
		name, text string
		to         *boundFlag
	}{{"limit", question.Limit, &o.limit}, {"device_memory", question.DeviceMemory, &o.memory}} {
		if b.text == "" {
			continue
		}
		if err := b.to.Set(b.text); err != nil {
			return nil, &view.QuestionError{Err: fmt.Errorf("%s: %w", b.name, err)}
		}
	}
	if question.OnOOM != "" {
		o.onOOM = question.OnOOM
	}
	q, err := o.question()
	if err != nil {
		return nil, &view.QuestionError{Err: err}
	}
	a, _, _, err := o.ask(ctx, silent, in.File, q)
	var refused *whatif.SettingError
	switch {
	case errors.As(err, &refused):
		return nil, &view.QuestionError{Err: err}
	case err != nil:
		return nil, err
	case a.Interrupted:
		return nil, context.Cause(ctx)
	}
	return jsonBytes(a)
}

func jsonBytes(v any) ([]byte, error) {
	var out bytes.Buffer
	err := writeJSON(&out, v)
	return out.Bytes(), err
}

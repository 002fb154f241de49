package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/present/export"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// TestEventsInterrupted: a list that is interrupted ends as a document, which says so.
func TestEventsInterrupted(t *testing.T) {
	in, err := input.Open(t.Context(), "../../testdata/snapshots/gpt2_fixed-default.pickle.gz", input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, why, err := input.Pick(in.Snapshot, input.Device{Number: -1})
	if err != nil {
		t.Fatal(err)
	}
	line, start := run.New(tr, nil).Outline(), timeline.NewClock(tr).First
	f, err := (&filterFlags{}).parse()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.bind(tr, start); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var b bytes.Buffer
	out := bufio.NewWriter(&b)
	_, err = printEvents(ctx, out, line.Cursor(), f, export.NewEvents(out, line, start, in.Snapshot, why), 0)
	var doc struct {
		Interrupted bool             `json:"interrupted"`
		Events      []map[string]any `json:"events"`
	}
	if !errors.Is(err, context.Canceled) || json.Unmarshal(b.Bytes(), &doc) != nil || !doc.Interrupted {
		t.Errorf("%v: %.300s", err, b.Bytes())
	}
}

package html

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/policies"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/run"
)

// MaxBytes is what a report takes at most: mail and ticket systems refuse more.
const MaxBytes = 5_000_000

// Input is what a report is made from. What is not known is nil or empty.
type Input struct {
	Name    string // of the file
	Version string // of the program

	Run   *run.Run        // nil if there is no snapshot
	Facts *stats.Snapshot // of the run

	Explain   *explain.Report
	NoVerdict string // why Explain is nil, in a sentence

	WhatIf   *whatif.Answer
	NoWhatIf string // why WhatIf is nil, in a sentence

	Policies *policies.Answer // of ReportedPolicies

	// Text is what a file without a trace says, as ashlar stats prints it.
	Text string
}

// detail is how much of everything a report has.
type detail struct {
	file     string // the path of what is reported on; only its name is shown
	text     int    // characters of a name or a sentence
	frames   int    // of a call stack
	holders  int    // call stacks, lines and modules
	pinned   int    // segments
	findings int    // and parts of each
	fixes    int
	results  int // settings of a what-if
	notes    int
	hits     int // blocks of the map with a tooltip
	lines    int // of Text
}

// details are tried until the report is small enough. With ordinary names the
// first one is; the last one cannot be too large.
var details = []detail{
	{text: 400, frames: 40, holders: 40, pinned: 20, findings: 12, fixes: 20, results: 60, notes: 40, hits: 300, lines: 800},
	{text: 160, frames: 16, holders: 30, pinned: 12, findings: 8, fixes: 16, results: 60, notes: 30, hits: 100, lines: 400},
	{text: 80, frames: 6, holders: 15, pinned: 6, findings: 4, fixes: 10, results: 60, notes: 20, hits: 0, lines: 100},
}

// Write writes the report.
func Write(ctx context.Context, w io.Writer, in Input) error {
	if in.Explain == nil && in.Facts == nil && in.Text == "" {
		return errors.New("there is nothing to report on")
	}
	s, err := newSubject(ctx, in)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, d := range details {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		out.Reset()
		if err := render(&out, newPage(s, d)); err != nil {
			return fmt.Errorf("making the report: %w", err)
		}
		if out.Len() < MaxBytes {
			_, err := w.Write(out.Bytes())
			return err
		}
	}
	return fmt.Errorf("the report would take %d bytes, more than %d", out.Len(), MaxBytes)
}

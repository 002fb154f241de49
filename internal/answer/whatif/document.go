package whatif

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/run"
)

// Document is what ashlar whatif --json prints.
type Document struct {
	answer.Subject
	*Answer
}

// NewDocument says what an answer is about.
func NewDocument(s answer.Subject, a *Answer) *Document { return &Document{s, a} }

// Check checks the engine against a run. Its error names the file.
func Check(ctx context.Context, file string, r *run.Run) (*run.Checked, error) {
	c, err := r.Check(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("%s: the events cannot be replayed: %w", file, err)
	}
	return c, nil
}

package whatif

import (
	"context"
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/trace"
)

// Document is what ashlar whatif --json prints.
type Document struct {
	answer.Subject
	*Answer
}

// NewDocument says what an answer is about.
func NewDocument(s answer.Subject, a *Answer) *Document { return &Document{s, a} }

// CheckedProgram reads the calls of a trace and checks the engine against it.
// Its error names the file.
func CheckedProgram(ctx context.Context, file string, t *trace.Trace) (*replay.Program, error) {
	p, err := replay.CheckProgram(ctx, t)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("%s: the events cannot be replayed: %w", file, err)
	}
	return p, nil
}

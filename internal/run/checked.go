package run

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/replay"
)

// Checked is a run whose calls were checked by a replay of the trace, with what
// answers from a replay need.
type Checked struct {
	*Run
	Program *replay.Program
	History // as recorded
}

// Check returns the run with its program. The error says why the trace cannot be
// replayed, or is the context's.
func (r *Run) Check(ctx context.Context) (*Checked, error) {
	p, err := r.Program(ctx)
	if err != nil {
		return nil, err
	}
	h, err := r.History(ctx)
	if err != nil {
		return nil, err
	}
	return &Checked{Run: r, Program: p, History: *h}, nil
}

package run

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/trace"
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

// OnlyReplays is for a run that from now on is only replayed, with its steps: the
// addresses and sizes of its events, most of a large trace, become garbage. Who asks
// for them afterwards panics, so nobody else may have the trace. The error is the
// context's.
func (c *Checked) OnlyReplays(ctx context.Context) error {
	if _, err := c.Steps(ctx); err != nil {
		return err
	}
	e := &c.Trace.Events
	e.Addr, e.Size = trace.Column[uint64]{}, trace.Column[uint64]{}
	return nil
}

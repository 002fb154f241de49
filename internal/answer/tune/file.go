package tune

import (
	"context"
	"fmt"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

// File is a snapshot that settings can be tried on.
type File struct {
	Subject answer.Subject
	Events  int
	Run     *run.Checked
}

// Question is what is asked about a file. Of Limit and DeviceMemory nil is what
// the recording shows, and 0 is none.
type Question struct {
	Goal         Goal
	Limit        *uint64
	DeviceMemory *uint64
	Budget       time.Duration
	Evaluate     Evaluator
	Progress     func(evaluated int)
}

// Load checks that a device of a snapshot can be replayed. The snapshot is good for
// nothing else afterwards: see [run.Checked.OnlyReplays].
func Load(ctx context.Context, f *snapshot.File, d input.Device) (*File, error) {
	t, why, err := input.Replayable(f, d)
	if err != nil {
		return nil, err
	}
	loaded := run.New(t, recorder.Read(f.Extra))
	loaded.NoSizes = true
	checked, err := whatif.Check(ctx, f.Name, loaded)
	if err != nil {
		return nil, err
	}
	if err := checked.OnlyReplays(ctx); err != nil {
		return nil, err
	}
	return &File{answer.NewSubject(f, t, why), t.Events.Len(), checked}, nil
}

// Ask searches for the settings that serve the file best. When the context ends,
// the document has what is known so far; it is nil with an error if nothing is.
func (f *File) Ask(ctx context.Context, q Question) (*Document, error) {
	limit, memory := whatif.Bounds(f.Run, q.Limit, q.DeviceMemory)
	r, err := Search(ctx, f.Run, Options{
		Goal: q.Goal, Limit: limit.Value(), DeviceMemory: memory.Value(), Budget: q.Budget, Evaluate: q.Evaluate, Progress: q.Progress,
	})
	if r == nil {
		return nil, fmt.Errorf("%s: %w", f.Subject.File, err)
	}
	a := NewAnswer(f.Run, r, limit, memory)
	a.Interrupted = ctx.Err() != nil
	return NewDocument(f.Subject, a), nil
}

// Measure finds the figures of settings, written as in PYTORCH_CUDA_ALLOC_CONF, in
// their order. memory is as in a Question.
func (f *File) Measure(ctx context.Context, memory *uint64, texts []string) ([]*Choice, error) {
	_, device := whatif.Bounds(f.Run, nil, memory)
	lower, _ := f.Run.Program.PeakLive()
	var out []*Choice
	for _, text := range texts {
		s, err := settings.Parse(text)
		if err != nil {
			return nil, err
		}
		c, err := Measure(ctx, f.Run, s, device.Value(), lower)
		if err != nil {
			return nil, err
		}
		out = append(out, NewChoice(f.Run, c))
	}
	return out, nil
}

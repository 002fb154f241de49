package export

import (
	"context"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Options say how to export.
type Options struct {
	// MinSlice is the least requested size of an allocation that Perfetto
	// shows as a slice; 0 stands for DefaultMinSlice.
	MinSlice uint64
	// Progress is told now and then how many events are done.
	Progress func(done, total int64)
}

// DefaultMinSlice is the size from which on allocations become slices.
const DefaultMinSlice = 1 << 20

// walk goes through the events of a trace.
func walk(ctx context.Context, line *timeline.Timeline, p *progress, each func(c *timeline.Cursor) error) error {
	for c := line.Cursor(); c.Next(); {
		if c.Index%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			p.show()
		}
		p.done++
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

// progress counts events over all traces.
type progress struct {
	done, total int64
	tell        func(done, total int64)
}

func newProgress(traces []*trace.Trace, o Options) *progress {
	p := &progress{tell: o.Progress}
	for _, t := range traces {
		p.total += int64(t.Events.Len())
	}
	return p
}

func (p *progress) show() {
	if p.tell != nil {
		p.tell(p.done, p.total)
	}
}

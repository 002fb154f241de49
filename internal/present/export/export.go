package export

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Options say how to export.
type Options struct {
	// MinSlice is the least requested size of an allocation that Perfetto
	// shows as a slice; 0 stands for DefaultMinSlice.
	MinSlice uint64
	// Progress is called now and then with the number of events done.
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

// clean makes a text that every reader takes: snapshots may hold bytes that are
// no UTF-8.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// capped cuts a text to at most n bytes.
func capped(s string, n int) string {
	s = clean(s)
	if len(s) <= n {
		return s
	}
	const dots = "…"
	n -= len(dots)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + dots
}

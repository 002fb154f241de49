package explain_test

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/generate"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// million returns a recorded serving job repeated to a million events, which
// then makes a request that fails for fragmentation.
func million(b *testing.B) *trace.Trace {
	b.Helper()
	recorded, err := snapshot.Open(b.Context(), "../../../testdata/snapshots/serve_generate-tight-default.pickle.gz", snapshot.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := generate.Write(b.Context(), &file, recorded.Traces[0], generate.Options{Events: 1_000_000}); err != nil {
		b.Fatal(err)
	}
	made, err := snapshot.Read(b.Context(), "made", &file, snapshot.Options{})
	if err != nil {
		b.Fatal(err)
	}
	p := verify.ReadProgram(made.Traces[0])
	o, err := p.Run(b.Context(), replay.Conditions{Settings: p.Settings})
	if err != nil {
		b.Fatal(err)
	}
	limit := o.Reserved.Bytes
	tr, err := scenario.Run(scenario.Config{Limit: limit}, func(s *scenario.Scenario) {
		stacks := map[trace.StackID][]string{}
		for i := range p.Len() {
			c := p.Call(i)
			name := strconv.Itoa(c.Tensor)
			switch c.Kind {
			case replay.CallAlloc:
				id := p.Trace.Events.Stack.At(c.Event)
				if stacks[id] == nil {
					for _, f := range timeline.Frames(p.Trace, id) {
						stacks[id] = append(stacks[id], fmt.Sprintf("%s:%d %s", f.Filename, f.Line, f.Name))
					}
				}
				s.Alloc(name, c.Size, c.Stream, stacks[id]...)
			case replay.CallFree:
				s.Free(name)
			}
		}
		// The flush leaves what is in split segments; a segment of two pages
		// more than the rest cannot be had.
		s.EmptyCache()
		s.Alloc("request", limit-uint64(s.Stats().ReservedBytes.All.Current)+4*mib, 0, "serve.py:1 last")
	})
	if err != nil {
		b.Fatal(err)
	}
	return tr
}

// BenchmarkExplain explains a million events. The check replays the recording
// under its own settings, which every answer begins with.
func BenchmarkExplain(b *testing.B) {
	tr := million(b)
	var checked time.Duration
	for b.Loop() {
		begin := time.Now()
		c, err := run.New(tr, nil).Check(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		checked += time.Since(begin)
		r, err := explain.FromSnapshot(b.Context(), explain.Input{Run: c})
		if err != nil {
			b.Fatal(err)
		}
		if r.Trigger != explain.Fragmentation || !r.SelfCheck.Complete {
			b.Fatal(r.Trigger, r.Summary)
		}
	}
	b.ReportMetric(float64(tr.Events.Len()), "events")
	b.ReportMetric(checked.Seconds()/float64(b.N), "s-of-it-for-the-check")
}

package view

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay/generate"
	"github.com/ashlar-mem/ashlar/trace"
)

// million is a run of a million events, made from a recorded one.
func million(b *testing.B, name string) *Server {
	b.Helper()
	recorded, err := input.Open(b.Context(), testdata(name), input.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := generate.Write(b.Context(), &file, recorded.Snapshot.Traces[0], generate.Options{Events: 1_000_000}); err != nil {
		b.Fatal(err)
	}
	in, err := input.Read(b.Context(), "made", &file, input.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.listener.Close() })
	s.ctx = b.Context()
	runs, err := s.newRuns(b.Context(), in)
	if err != nil {
		b.Fatal(err)
	}
	s.runs.replace(0, false, runs)
	return s
}

// BenchmarkMillion measures answers about a run of a million events, as they
// leave the server.
func BenchmarkMillion(b *testing.B) {
	for _, name := range []string{"snapshots/serve_generate-default", "snapshots/gpt2_varlen-default", "snapshots/unet_multires-default", "variety/expand_serve"} {
		b.Run(filepath.Base(name), func(b *testing.B) {
			s := million(b, name)
			rng := rand.New(rand.NewPCG(1, 1))
			for _, x := range []struct {
				what string
				path func() string
			}{
				{"timeline", func() string { return "timeline?width=1600&height=800" }},
				{"timeline-by-time", func() string { return "timeline?width=1600&height=800&x=time" }},
				{"zoom", func() string {
					width := 1_000_000 >> rng.IntN(14)
					from := rng.IntN(1_000_001 - width)
					return fmt.Sprintf("timeline?width=1600&height=800&from=%d&to=%d", from, from+width)
				}},
				{"zoom-filtered", func() string {
					return fmt.Sprintf("timeline?width=1600&height=800&from=%d&stack=forward&min=1MiB&color=category", rng.IntN(900_000))
				}},
				{"curve", func() string { return "curve?n=1600" }},
				{"segments", func() string { return fmt.Sprintf("segments?event=%d", rng.IntN(1_000_000)) }},
				{"stacks", func() string { return fmt.Sprintf("stacks?event=%d", rng.IntN(1_000_000)) }},
				{"stacks-area", func() string { return "stacks?area=1&user=1" }},
				{"stacks-up", func() string { return fmt.Sprintf("stacks?event=%d&view=up", rng.IntN(1_000_000)) }},
				{"stacks-sandwich", func() string { return fmt.Sprintf("stacks?event=%d&view=sandwich", rng.IntN(1_000_000)) }},
				{"stacks-search", func() string { return fmt.Sprintf("stacks?event=%d&user=1&q=forward", rng.IntN(1_000_000)) }},
				{"stacks-change", func() string {
					after := rng.IntN(800_000)
					return fmt.Sprintf("stacks?after=%d&until=%d&view=up", after, after+1+rng.IntN(199_000))
				}},
				{"events-folded", func() string { return fmt.Sprintf("events?count=200&fold=1&min_size=%d", rng.IntN(1_000_000)) }},
				{"export-csv", func() string { return "export?format=csv" }},
				{"export-parquet", func() string { return "export?format=parquet" }},
				{"events", func() string { return fmt.Sprintf("events?count=200&from=%d", rng.IntN(900_000)) }},
				{"events-filtered", func() string { return fmt.Sprintf("events?count=200&stack=forward&min_size=%d", rng.IntN(1_000_000)) }},
				{"between", func() string { return "between?after=-1" }},
				{"between-part", func() string {
					after := rng.IntN(800_000)
					return fmt.Sprintf("between?after=%d&until=%d", after, after+1+rng.IntN(199_000))
				}},
				{"matches", func() string { return fmt.Sprintf("matches?min=%d&event=%d", rng.IntN(1_000_000), rng.IntN(1_000_000)) }},
				{"timeline-only", func() string { return "timeline?width=1600&height=800&stack=forward&only=1" }},
				{"alloc", func() string { return fmt.Sprintf("alloc?id=%d", rng.IntN(250_000)) }},
			} {
				b.Run(x.what, func(b *testing.B) {
					size := 0
					for b.Loop() {
						w := httptest.NewRecorder()
						r := httptest.NewRequest("GET", "/"+s.token+"/api/"+x.path()+"&run=1", nil)
						r.Host = s.hosts[0]
						if s.ServeHTTP(w, r); w.Code != 200 {
							b.Fatal(w.Code, w.Body)
						}
						size += w.Body.Len()
					}
					b.ReportMetric(float64(size)/float64(b.N)/1024, "KiB/answer")
				})
			}
		})
	}
}

// BenchmarkChurn draws the worst that there is: many blocks alive, and any of
// them may go next, so that all that is above it moves.
func BenchmarkChurn(b *testing.B) {
	for _, alive := range []int{1_000, 20_000, 100_000} {
		rng := rand.New(rand.NewPCG(1, 1))
		var events []trace.Event
		sizes := make([]uint64, alive)
		for i := 0; len(events) < 1_000_000; i++ {
			at := i
			if i >= alive {
				at = rng.IntN(alive)
				e := trace.Event{Action: alloc.ActionFreeRequested, Addr: 1<<40 + uint64(at)<<22, Size: sizes[at], Time: int64(i)}
				events = append(events, e)
				e.Action = alloc.ActionFreeCompleted
				events = append(events, e)
			}
			sizes[at] = 512 << rng.IntN(12)
			events = append(events, trace.Event{Action: alloc.ActionAlloc, Addr: 1<<40 + uint64(at)<<22, Size: sizes[at], Time: int64(i)})
		}
		r := madeRun(b, events...)
		for _, share := range []int{1, 10, 1000} {
			b.Run(fmt.Sprintf("alive-%d/part-%d", alive, share), func(b *testing.B) {
				w := &window{x0: r.extent(false) / 2}
				w.x1 = w.x0 + r.extent(false)/2/float64(share)
				y := r.fullScale(800)
				rects := 0
				for b.Loop() {
					r.cut(w, 1600)
					rects = len(draw(&r.lives.Spans, nil, w, &y, maxRects).rects)
				}
				b.ReportMetric(float64(rects), "rects")
			})
		}
	}
}

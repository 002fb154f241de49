package timeline_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Between two moments the blocks of each stack add up to what a walk from the
// first event finds at both, and the peak is that of the walk.
func TestBetween(t *testing.T) {
	for _, name := range []string{"snapshots/streams_graphs-tight-default", "variety/ring", "variety/midrun"} {
		f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "testdata", name+".pickle.gz"), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		x, err := run.New(f.Traces[0], nil).Indices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := f.Traces[0].Events.Len()
		r := rand.New(rand.NewPCG(1, 1))
		pieces := [][2]int{{-1, n - 1}, {n / 2, n/2 + 1}}
		for range 6 {
			after := r.IntN(n-1) - 1
			pieces = append(pieces, [2]int{after, after + 1 + r.IntN(n-1-after)})
		}
		for _, p := range pieces {
			b := timeline.NewBetween(x.Lifetimes, x.Totals, p[0], p[1])
			flows := map[trace.StackID]*timeline.Flow{}
			var all timeline.Flow
			b.Each(func(i int) {
				id := b.Stack(i)
				if flows[id] == nil {
					flows[id] = &timeline.Flow{}
				}
				b.Count(flows[id], i)
			})
			for _, f := range flows {
				all.Add(f)
			}
			if all.Before.Bytes+all.Kept.Bytes-all.Released.Bytes != all.End.Bytes || all.Leaked.Bytes > all.Kept.Bytes {
				t.Errorf("%s %v: %+v does not add up", name, p, all)
			}
			live := x.Timeline.LiveAt(p[0], b.Peak, p[1])
			for k, l := range live {
				for _, h := range l.Holders {
					f := flows[h.Stack]
					if f == nil {
						t.Fatalf("%s %v: stack %d is missing", name, p, h.Stack)
					}
					if got := []timeline.Amount{f.Before, f.Peak, f.End}[k]; got.Bytes != h.Size || got.Blocks != h.Blocks {
						t.Errorf("%s %v: stack %d has %+v at moment %d, want %d bytes in %d blocks", name, p, h.Stack, got, k, h.Size, h.Blocks)
					}
				}
			}
			most, at := live[0].Totals.Active, p[0]
			for c := x.Timeline.Cursor(); c.Next() && c.Index <= p[1]; {
				if c.Index > p[0] && c.Totals.Active > most {
					most, at = c.Totals.Active, c.Index
				}
			}
			if b.Peak != at || all.Peak.Bytes != most {
				t.Errorf("%s %v: the peak is %d after event %d, want %d after %d", name, p, all.Peak.Bytes, b.Peak, most, at)
			}
		}
	}
}

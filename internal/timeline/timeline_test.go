package timeline

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func open(t testing.TB, name string) *trace.Trace {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "testdata", name), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, _, err := f.Pick(-1)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func verified(t testing.TB, tr *trace.Trace) *verify.Verified {
	t.Helper()
	v, err := verify.Run(t.Context(), tr, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// exact are options with block sizes.
func exact(t testing.TB, tr *trace.Trace) Options {
	t.Helper()
	v := verified(t, tr)
	return Options{Start: v.Start, Sizes: v.Sizes}
}

// naive keeps every block and segment by itself and adds them up each time.
type naive struct {
	blocks   map[uint64]naiveBlock
	segments map[uint64]uint64
	mapped   uint64
}

type naiveBlock struct {
	requested, size uint64
	pending         bool
}

func newNaive(start []alloc.Segment) *naive {
	n := &naive{map[uint64]naiveBlock{}, map[uint64]uint64{}, 0}
	for _, s := range start {
		if s.Expandable {
			n.mapped += s.TotalSize
		} else {
			n.segments[s.Address] = s.TotalSize
		}
		for _, b := range s.Blocks {
			if b.State != alloc.Inactive {
				n.blocks[b.Address] = naiveBlock{b.RequestedSize, b.Size, b.State == alloc.ActivePendingFree}
			}
		}
	}
	return n
}

func (n *naive) event(e trace.Event, size uint64) error {
	b, live := n.blocks[e.Addr]
	switch e.Action {
	case alloc.ActionAlloc:
		if live {
			return fmt.Errorf("%#x is live already", e.Addr)
		}
		n.blocks[e.Addr] = naiveBlock{requested: e.Size, size: size}
	case alloc.ActionFreeRequested, alloc.ActionFreeCompleted:
		if !live || b.requested != e.Size || size != 0 && b.size != 0 && b.size != size {
			return fmt.Errorf("%#x: freed %d of %d, but it is %+v", e.Addr, e.Size, size, b)
		}
		b.pending = true
		n.blocks[e.Addr] = b
		if e.Action == alloc.ActionFreeCompleted {
			delete(n.blocks, e.Addr)
		}
	case alloc.ActionSegmentAlloc:
		n.segments[e.Addr] = e.Size
	case alloc.ActionSegmentFree:
		delete(n.segments, e.Addr)
	case alloc.ActionSegmentMap:
		n.mapped += e.Size
	case alloc.ActionSegmentUnmap:
		n.mapped -= e.Size
	}
	return nil
}

func (n *naive) totals(exact bool) Totals {
	t := Totals{Reserved: n.mapped, Blocks: len(n.blocks)}
	for _, size := range n.segments {
		t.Reserved += size
	}
	for _, b := range n.blocks {
		t.Requested += b.requested
		if b.pending {
			t.Pending += b.requested
			t.PendingBlocks++
		}
		if exact {
			t.Active += b.size
			if !b.pending {
				t.Allocated += b.size
			}
		}
	}
	return t
}

func TestTotalsAreThoseOfANaiveWalk(t *testing.T) {
	for _, name := range []string{
		"snapshots/streams_graphs-default", "snapshots/streams_graphs-tight-default", "snapshots/resnet_batches-tight-default",
		"variety/graphs", "variety/expand_tight", "variety/midrun", "variety/ring",
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			tr := open(t, name+".pickle.gz")
			o := verified(t, tr)
			if !o.Result.Identical {
				t.Fatal(o.Result.First)
			}
			l := New(tr, Options{Start: o.Start, Sizes: o.Sizes})
			n := newNaive(l.Start.Segments)
			exact := l.Start.Kind == start.Recorded // a rebuilt start lacks some block sizes
			every := max(1, tr.Events.Len()/500)
			c := l.Cursor()
			for c.Next() {
				if err := n.event(c.Event, o.Sizes.At(c.Index)); err != nil {
					t.Fatalf("event %d: %v", c.Index, err)
				}
				if c.Index%every != 0 && c.Index != tr.Events.Len()-1 {
					continue
				}
				got := c.Totals
				if !exact {
					got.Allocated, got.Active = 0, 0
				}
				if want := n.totals(exact); got != want {
					t.Fatalf("event %d: got %+v, want %+v", c.Index, got, want)
				}
			}
			if c.Index != tr.Events.Len()-1 {
				t.Errorf("stopped after event %d of %d", c.Index, tr.Events.Len())
			}
		})
	}
}

// all returns the files with a trace.
func all(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"snapshots/*.pickle.gz", "variety/*.pickle.gz"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "testdata", pattern))
		if err != nil || len(files) < 10 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, f := range files {
			out = append(out, strings.TrimPrefix(filepath.ToSlash(f), "../../testdata/"))
		}
	}
	return short.Some(out, 6)
}

// After the last event the totals are those that the segments show.
func TestTheEventsLeadToTheFinalState(t *testing.T) {
	for _, name := range all(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			tr := open(t, name)
			o := verified(t, tr)
			l := New(tr, Options{Start: o.Start, Sizes: o.Sizes})
			p, s := l.Peaks(), NewState(tr)
			if o.Result.Identical != l.Exact {
				t.Errorf("identical %t, exact %t", o.Result.Identical, l.Exact)
			}
			got := p.Last
			if got.Reserved != s.Reserved || got.Requested != s.Requested || got.Blocks != s.Blocks {
				t.Errorf("got %+v, want %+v", got, s)
			}
			if l.Exact && (got.Allocated != s.Allocated || got.Active != s.Active) {
				t.Errorf("by block size: got %+v, want %+v", got, s)
			}
		})
	}
}

// A ring that lost its oldest events tells the same totals for those it has.
func TestTotalsOfARingAreThoseOfTheWholeTrace(t *testing.T) {
	for _, name := range []string{"snapshots/streams_graphs-default", "snapshots/llama_ckpt-tight-default", "variety/expand_tight", "variety/graphs"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			tr := open(t, name+".pickle.gz")
			whole := New(tr, Options{})
			lost := tr.Events.Len() / 3
			ring := *tr
			ring.Events = trace.Events{}
			for i := lost; i < tr.Events.Len(); i++ {
				ring.Events.Copy(&tr.Events, i)
			}
			a, b := whole.Cursor(), New(&ring, Options{}).Cursor()
			for range lost {
				a.Next()
			}
			if a.Totals != b.Totals {
				t.Fatalf("at the start: %+v, want %+v", b.Totals, a.Totals)
			}
			for a.Next() {
				if !b.Next() || a.Totals != b.Totals {
					t.Fatalf("event %d: got %+v, want %+v", a.Index, b.Totals, a.Totals)
				}
			}
		})
	}
}

// A file that ends within the events keeps their totals if recording began
// with the process, and says so if it did not.
func TestPartialTraces(t *testing.T) {
	partial := func(tr *trace.Trace) *trace.Trace {
		p := *tr
		p.Partial = true
		p.Events = trace.Events{}
		for i := range tr.Events.Len() / 2 {
			p.Events.Copy(&tr.Events, i)
		}
		return &p
	}
	tr := open(t, "variety/expand_tight.pickle.gz")
	whole, cut := New(tr, Options{}).Cursor(), New(partial(tr), Options{})
	if cut.AtLeast {
		t.Error("the totals are taken for lower bounds")
	}
	c := cut.Cursor()
	for c.Next() {
		if whole.Next(); c.Totals != whole.Totals {
			t.Fatalf("event %d: got %+v, want %+v", c.Index, c.Totals, whole.Totals)
		}
	}

	tr = open(t, "variety/midrun.pickle.gz")
	if !New(partial(tr), Options{}).AtLeast {
		t.Error("midrun: the totals are not taken for lower bounds")
	}
	ring := open(t, "variety/ring.pickle.gz")
	l := New(partial(ring), Options{})
	if b := l.Before(); !l.AtLeast || b.Blocks == 0 || b.Requested == 0 {
		t.Errorf("ring: before the first event: %+v", b)
	}
}

func TestCursorAllocatesNothingPerEvent(t *testing.T) {
	tr := open(t, "snapshots/streams_graphs-default.pickle.gz")
	l := New(tr, exact(t, tr))
	n := testing.AllocsPerRun(20, func() {
		c := l.Cursor()
		for c.Next() {
			c.Pool()
		}
	})
	// The cursor, and the addresses and pools of its segments, which grow a few times.
	if n > 20 {
		t.Errorf("%v allocations for %d events", n, tr.Events.Len())
	}
}

func BenchmarkCursor(b *testing.B) {
	tr := open(b, "snapshots/serve_generate-default.pickle.gz")
	l := New(tr, exact(b, tr))
	b.ReportAllocs()
	for b.Loop() {
		c := l.Cursor()
		for c.Next() {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tr.Events.Len()), "ns/event")
}

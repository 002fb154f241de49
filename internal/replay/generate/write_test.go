package generate

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func open(t testing.TB, name string) *trace.Trace {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "..", "testdata", name+".pickle.gz"), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, _, err := f.Pick(-1)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// make generates a snapshot and reads it back.
func generated(t testing.TB, tr *trace.Trace, o Options) (*snapshot.File, []byte) {
	t.Helper()
	var buf bytes.Buffer
	res, err := Write(t.Context(), &buf, tr, o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Bytes != int64(buf.Len()) {
		t.Errorf("%d bytes announced, %d written", res.Bytes, buf.Len())
	}
	f, err := snapshot.Read(context.Background(), "generated", bytes.NewReader(buf.Bytes()), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for _, tr := range f.Traces {
		n += int64(tr.Events.Len())
	}
	if res.Events != n || len(f.Warnings) > 0 || f.Truncated != nil {
		t.Errorf("%d events announced, %d read; %v %v", res.Events, n, f.Warnings, f.Truncated)
	}
	return f, buf.Bytes()
}

// check walks through a trace on its own and says what is inconsistent in it.
func check(t *trace.Trace) error {
	live, pending, segments := map[uint64]uint64{}, map[uint64]uint64{}, map[uint64]uint64{}
	mapped := map[uint64]bool{} // pages of 2 MiB
	inside := func(addr uint64) bool {
		if mapped[addr>>21] {
			return true
		}
		for a, n := range segments {
			if addr >= a && addr < a+n {
				return true
			}
		}
		return false
	}
	last := int64(0)
	for i := range t.Events.Len() {
		e := t.Events.At(i)
		if e.Time < last {
			return fmt.Errorf("event %d: time goes back by %d", i, last-e.Time)
		}
		last = e.Time
		ok := true
		switch e.Action {
		case alloc.ActionAlloc:
			_, ok = live[e.Addr]
			ok = !ok && inside(e.Addr)
			live[e.Addr] = e.Size
		case alloc.ActionFreeRequested:
			ok = live[e.Addr] == e.Size
			delete(live, e.Addr)
			pending[e.Addr] = e.Size
		case alloc.ActionFreeCompleted:
			ok = pending[e.Addr] == e.Size
			delete(pending, e.Addr)
		case alloc.ActionSegmentAlloc:
			ok = !inside(e.Addr)
			segments[e.Addr] = e.Size
		case alloc.ActionSegmentFree:
			ok = segments[e.Addr] == e.Size
			delete(segments, e.Addr)
		case alloc.ActionSegmentMap, alloc.ActionSegmentUnmap:
			for a := e.Addr; a < e.Addr+e.Size; a += 2 << 20 {
				ok = ok && mapped[a>>21] == (e.Action == alloc.ActionSegmentUnmap)
				mapped[a>>21] = e.Action == alloc.ActionSegmentMap
			}
		}
		if !ok {
			return fmt.Errorf("event %d does not fit the state: %v %#x %d", i, e.Action, e.Addr, e.Size)
		}
	}
	for _, s := range t.Segments {
		if !s.Expandable && segments[s.Address] != s.TotalSize {
			return fmt.Errorf("segment %#x of %d bytes was obtained with %d", s.Address, s.TotalSize, segments[s.Address])
		}
		delete(segments, s.Address)
		for _, b := range s.Blocks {
			switch b.State {
			case alloc.ActiveAllocated:
				if live[b.Address] != b.RequestedSize {
					return fmt.Errorf("block %#x: %d bytes requested, %d in the trace", b.Address, b.RequestedSize, live[b.Address])
				}
				delete(live, b.Address)
			case alloc.ActivePendingFree:
				delete(pending, b.Address)
			}
		}
	}
	if len(live)+len(pending)+len(segments) > 0 {
		return fmt.Errorf("%d live and %d pending blocks and %d segments are not in the final state", len(live), len(pending), len(segments))
	}
	return nil
}

func recordings(t testing.TB) []string {
	var names []string
	for _, dir := range []string{"snapshots", "variety"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", dir, "*.pickle.gz"))
		if err != nil || len(files) == 0 {
			t.Fatal("no recordings", err)
		}
		for _, f := range files {
			names = append(names, filepath.Join(dir, strings.TrimSuffix(filepath.Base(f), ".pickle.gz")))
		}
	}
	return names
}

// Whatever is repeated, the result is consistent and its replay is identical.
func TestRepeatedRecordings(t *testing.T) {
	for _, name := range short.Some(recordings(t), 3) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := open(t, name)
			n := int64(tr.Events.Len())
			if n == 0 {
				if _, err := Write(t.Context(), &bytes.Buffer{}, tr, Options{}); err == nil {
					t.Error("a recording without events is accepted")
				}
				return
			}
			want := min(n*5/2, n+60_000)
			f, _ := generated(t, tr, Options{Events: want})
			got := f.Traces[0]
			if k := int64(got.Events.Len()); k < want || k > want+100 {
				t.Errorf("%d events, want %d", k, want)
			}
			if err := check(got); err != nil {
				t.Error(err)
			}
			v, err := verify.Run(t.Context(), got, verify.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := v.Result
			if !r.Identical || r.Start != start.Recorded {
				t.Errorf("start %s, %d of %d events identical: %v", r.Start, r.IdenticalEvents, r.Events, r.First)
			}
		})
	}
}

func TestOnePass(t *testing.T) {
	tr := open(t, "variety/midrun")
	f, _ := generated(t, tr, Options{})
	live := 0
	for _, s := range start.Find(tr).Segments {
		live += len(s.Blocks)
	}
	// The segments that were there at the beginning are obtained as well.
	calls := func(t *trace.Trace) (n int) {
		for i := range t.Events.Len() {
			switch t.Events.Action.At(i) {
			case alloc.ActionAlloc, alloc.ActionFreeRequested, alloc.ActionOOM, alloc.ActionSnapshot:
				n++
			}
		}
		return n
	}
	if got, want := calls(f.Traces[0]), calls(tr)+live; got != want || live == 0 {
		t.Errorf("%d calls, want %d with the %d blocks of the start", got, want, live)
	}
}

// What the recording leaves allocated is not allocated again by each pass.
func TestWhatStays(t *testing.T) {
	tr := open(t, "snapshots/gpt2_fixed-tight-default") // ends with an oom and all of the model
	f, _ := generated(t, tr, Options{Events: int64(8 * tr.Events.Len())})
	before, after := timeline.NewState(tr), timeline.NewState(f.Traces[0])
	if after.Blocks < before.Blocks || after.Blocks > 2*before.Blocks || after.Reserved > 3*before.Reserved {
		t.Errorf("%d blocks and %d bytes became %d and %d", before.Blocks, before.Reserved, after.Blocks, after.Reserved)
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	tr := open(t, "variety/graphs")
	o := Options{Events: 2000, StackDepth: 7, DistinctStacks: 50, Seed: 3, Devices: 2}
	_, first := generated(t, tr, o)
	_, second := generated(t, tr, o)
	if !bytes.Equal(first, second) {
		t.Error("the same options give different files")
	}
	o.Seed++
	if _, other := generated(t, tr, o); bytes.Equal(first, other) {
		t.Error("another seed gives the same file")
	}
}

// stacksOf returns the distinct stacks of events, and the depths they have.
func stacksOf(t *trace.Trace) (distinct int, depths map[int]bool) {
	seen := map[trace.StackID]bool{}
	depths = map[int]bool{}
	for i := range t.Events.Len() {
		if id := t.Events.Stack.At(i); id > trace.EmptyStack && !seen[id] {
			seen[id] = true
			depths[len(t.Stacks.Frames(id))] = true
		}
	}
	return len(seen), depths
}

func TestStacks(t *testing.T) {
	for _, c := range []struct {
		name            string
		o               Options
		distinct, depth int // depth 0: several
	}{
		{"variety/graphs", Options{Events: 3000}, 14, 0},
		{"variety/graphs", Options{Events: 3000, StackDepth: 40, DistinctStacks: 1000}, 1000, 40},
		{"variety/graphs", Options{Events: 3000, StackDepth: 1, DistinctStacks: 1000}, 1000, 1},
		{"variety/graphs", Options{Events: 3000, StackDepth: 2, DistinctStacks: 1}, 1, 2},
		{"variety/graphs", Options{Events: 3000, StackDepth: 25}, 14, 25},
		{"variety/graphs", Options{Events: 3000, DistinctStacks: 300}, 300, 4},
		{"variety/nocontext", Options{Events: 3000}, 0, 0},
		{"variety/nocontext", Options{Events: 3000, DistinctStacks: 9}, 9, 10},
		{"variety/nocontext", Options{Events: 3000, StackDepth: 9}, 0, 0},
	} {
		f, _ := generated(t, open(t, c.name), c.o)
		tr := f.Traces[0]
		n, depths := stacksOf(tr)
		if n != c.distinct || c.depth > 0 && (len(depths) != 1 || !depths[c.depth]) {
			t.Errorf("%s %+v: %d stacks of depths %v", c.name, c.o, n, depths)
		}
		if c.depth > 2 && tr.Stacks.NumFrames() > c.depth*n/2 {
			t.Errorf("%s %+v: %d frames for %d stacks", c.name, c.o, tr.Stacks.NumFrames(), n)
		}
		if err := check(tr); err != nil {
			t.Errorf("%s %+v: %v", c.name, c.o, err)
		}
	}
}

func TestDevices(t *testing.T) {
	for _, name := range []string{"variety/expand", "variety/round"} {
		t.Run(name, func(t *testing.T) { testDevices(t, name) })
	}
}

func testDevices(t *testing.T, name string) {
	f, _ := generated(t, open(t, name), Options{Events: 10001, Devices: 3})
	if len(f.Traces) != 3 {
		t.Fatalf("%d devices", len(f.Traces))
	}
	seen := map[uint64]int{}
	for i, tr := range f.Traces {
		if n := tr.Events.Len(); tr.Device != i || n < 3333 || n > 3340 {
			t.Errorf("device %d has %d events", tr.Device, n)
		}
		if err := check(tr); err != nil {
			t.Errorf("device %d: %v", i, err)
		}
		if v, err := verify.Run(t.Context(), tr, verify.Options{}); err != nil || !v.Result.Identical {
			t.Errorf("device %d: %v, %+v", i, err, v)
		}
		for _, s := range tr.Segments {
			if other, ok := seen[s.Address]; ok {
				t.Errorf("devices %d and %d have a segment at %#x", other, i, s.Address)
			}
			seen[s.Address] = i
		}
	}
}

// Annotations repeat with the steps, in the order of time.
func TestAnnotations(t *testing.T) {
	tr := open(t, "variety/profiler")
	f, _ := generated(t, tr, Options{Events: int64(3 * tr.Events.Len())})
	got := f.Traces[0].Annotations
	if n := len(tr.Annotations); len(got) < 3*n-2 || len(got) > 4*n {
		t.Errorf("%d annotations of %d", len(got), n)
	}
	depth := 0
	for i, a := range got {
		if i > 0 && a.Time < got[i-1].Time {
			t.Errorf("annotation %d is older than the one before", i)
		}
		if depth--; a.Begin {
			depth += 2
		}
	}
	if depth < 0 || depth > 2 {
		t.Errorf("%d annotations do not end", depth)
	}
	events := &f.Traces[0].Events
	if last := events.Time.At(events.Len() - 1); got[len(got)-1].Time > last {
		t.Errorf("the last annotation is %d after the last event", got[len(got)-1].Time-last)
	}
}

func TestBytes(t *testing.T) {
	for _, name := range []string{"snapshots/gpt2_fixed-default", "snapshots/gpt2_fixed-tight-default", "variety/ring"} {
		for _, want := range short.Some([]int{500_000, 7_000_000}, 1) {
			_, data := generated(t, open(t, name), Options{Bytes: int64(want)})
			if n := len(data); n < want*97/100 || n > want*103/100 {
				t.Errorf("%s: %d bytes, want %d", name, n, want)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	tr := open(t, "variety/graphs")
	for _, o := range []Options{
		{Events: -1},
		{Events: 1, Bytes: 1},
		{StackDepth: -1},
		{StackDepth: maxDepth + 1},
		{DistinctStacks: maxDistinct + 1},
		{Devices: maxDevices + 1},
		{Bytes: -5},
	} {
		if _, err := Write(t.Context(), &bytes.Buffer{}, tr, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	// Memory that is only ever allocated cannot be repeated.
	var only trace.Trace
	only.Strings, only.Stacks = &trace.Strings{}, trace.NewStacks()
	only.Events.Append(trace.Event{Action: alloc.ActionAlloc, Addr: 1 << 40, Size: 512, Time: trace.NoTime})
	if _, err := Write(t.Context(), &bytes.Buffer{}, &only, Options{Events: 2}); err != nil {
		t.Error(err) // the segment counts
	}
	if _, err := Write(t.Context(), &bytes.Buffer{}, &only, Options{Events: 30}); err == nil || !strings.Contains(err.Error(), "no more can be made") {
		t.Errorf("repeated without anything to repeat: %v", err)
	}
}

type limitedWriter struct{ left int }

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, fmt.Errorf("disk full")
	}
	return len(p), nil
}

func TestWritingFails(t *testing.T) {
	tr := open(t, "variety/graphs")
	for _, left := range []int{0, 10, 100_000, 1_000_000} {
		if _, err := Write(t.Context(), &limitedWriter{left}, tr, Options{Events: 50_000}); err == nil || err.Error() != "disk full" {
			t.Errorf("%d bytes: %v", left, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ctx, &bytes.Buffer{}, tr, Options{}); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

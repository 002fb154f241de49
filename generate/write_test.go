package generate

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/replay"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func open(t testing.TB, name string) *trace.Trace {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "testdata", name+".pickle.gz"), snapshot.Options{})
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
			case "active_allocated":
				if live[b.Address] != b.RequestedSize {
					return fmt.Errorf("block %#x: %d bytes requested, %d in the trace", b.Address, b.RequestedSize, live[b.Address])
				}
				delete(live, b.Address)
			case "active_pending_free":
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
		files, err := filepath.Glob(filepath.Join("..", "testdata", dir, "*.pickle.gz"))
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
	for _, name := range recordings(t) {
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
			r, err := replay.VerifyTrace(t.Context(), got)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Identical || r.Start != replay.StartRecorded {
				t.Errorf("start %s, %d of %d events identical: %v", r.Start, r.IdenticalEvents, r.Events, r.First)
			}
		})
	}
}

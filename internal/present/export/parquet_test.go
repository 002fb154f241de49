package export

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func open(t testing.TB, name string) *snapshot.File {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "..", "testdata", name), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func recordings(t testing.TB) []string {
	var names []string
	for _, dir := range []string{"snapshots", "variety"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", dir, "*.pickle.gz"))
		if err != nil || len(files) == 0 {
			t.Fatal("no recordings", err)
		}
		for _, f := range files {
			if !strings.Contains(f, "serve") { // large, and like the others
				names = append(names, filepath.Join(dir, filepath.Base(f)))
			}
		}
	}
	return short.Some(names, 5)
}

// expectedRows computes the rows from the back: the final segments tell the
// totals after the last event, and each event what it changed.
func expectedRows(t *trace.Trace) []EventRow {
	var reserved, requested int64
	for _, s := range t.Segments {
		reserved += int64(s.TotalSize)
		for _, b := range s.Blocks {
			if b.State != alloc.Inactive {
				requested += int64(b.RequestedSize)
			}
		}
	}
	rows := make([]EventRow, t.Events.Len())
	for i := len(rows) - 1; i >= 0; i-- {
		e := t.Events.At(i)
		device, addr, time, stack := int32(t.Device), int64(e.Addr), e.Time, int64(e.Stack)
		r := EventRow{
			Index: int64(i), Device: &device, Action: e.Action.String(), Size: int64(e.Size), Stream: int64(e.Stream),
			ReservedBytes: reserved, RequestedBytes: requested,
		}
		switch e.Action {
		case alloc.ActionOOM:
			r.DeviceFree = &addr
		case alloc.ActionAlloc:
			requested -= r.Size
		case alloc.ActionFreeCompleted:
			requested += r.Size
		case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
			reserved -= r.Size
		case alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
			reserved += r.Size
		}
		if e.Action != alloc.ActionOOM {
			r.Addr = &addr
		}
		if e.Time != trace.NoTime {
			r.TimeUS = &time
		}
		if e.Stack != trace.NoStack {
			r.StackID = &stack
		}
		if e.Meta != trace.NoString {
			s := t.Strings.Text(e.Meta)
			r.UserMetadata = &s
		}
		if e.Compile != trace.NoString {
			s := t.Strings.Text(e.Compile)
			r.CompileContext = &s
		}
		rows[i] = r
	}
	return rows
}

// flatRow is an EventRow that can be compared at once.
type flatRow struct {
	EventRow
	has     [8]bool
	numbers [5]int64
	texts   [3]string
}

func flat(r EventRow) flatRow {
	f := flatRow{EventRow: r}
	if r.Device != nil {
		f.has[0], f.numbers[0] = true, int64(*r.Device)
	}
	for i, n := range []*int64{r.Addr, r.DeviceFree, r.TimeUS, r.StackID} {
		if n != nil {
			f.has[1+i], f.numbers[1+i] = true, *n
		}
	}
	for i, s := range []*string{r.Pool, r.UserMetadata, r.CompileContext} {
		if s != nil {
			f.has[5+i], f.texts[i] = true, *s
		}
	}
	f.Device, f.Addr, f.DeviceFree, f.TimeUS, f.StackID, f.Pool, f.UserMetadata, f.CompileContext = nil, nil, nil, nil, nil, nil, nil, nil
	return f
}

func readTable[T any](t testing.TB, data []byte) []T {
	t.Helper()
	rows, err := parquet.Read[T](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestParquet(t *testing.T) {
	for _, name := range recordings(t) {
		f := open(t, name)
		var events, stacks bytes.Buffer
		if err := Parquet(t.Context(), &events, &stacks, f.Traces, Options{}); err != nil {
			t.Fatal(name, err)
		}
		tr := f.Traces[0]
		got, want := readTable[EventRow](t, events.Bytes()), expectedRows(tr)
		if len(got) != len(want) {
			t.Fatalf("%s: %d rows, want %d", name, len(got), len(want))
		}
		known := 0
		for i := range got {
			if got[i].Pool != nil {
				known++
				got[i].Pool = nil // package timeline is asked elsewhere
			}
			if flat(got[i]) != flat(want[i]) {
				t.Fatalf("%s: row %d: %s", name, i, cmp.Diff(want[i], got[i]))
			}
		}
		if len(got) > 0 && known == 0 {
			t.Errorf("%s: no event has a pool", name)
		}
		checkStacks(t, name, tr, got, readTable[StackRow](t, stacks.Bytes()))
	}
}

// checkStacks compares the table of stacks with the stacks of the events.
func checkStacks(t *testing.T, name string, tr *trace.Trace, events []EventRow, rows []StackRow) {
	t.Helper()
	table := map[int64][]StackRow{}
	for _, r := range rows {
		if int(r.Depth) != len(table[r.StackID]) {
			t.Fatalf("%s: stack %d: depth %d comes out of turn", name, r.StackID, r.Depth)
		}
		table[r.StackID] = append(table[r.StackID], r)
	}
	seen := map[int64]bool{}
	for _, e := range events {
		if e.StackID == nil || seen[*e.StackID] {
			continue
		}
		seen[*e.StackID] = true
		frames := tr.Stacks.Frames(trace.StackID(*e.StackID))
		if len(frames) != len(table[*e.StackID]) {
			t.Fatalf("%s: stack %d has %d frames, want %d", name, *e.StackID, len(table[*e.StackID]), len(frames))
		}
		for i, id := range frames {
			f, r := tr.Stacks.Frame(id), table[*e.StackID][i]
			if r.Name != tr.Strings.Text(f.Name) || r.Filename != tr.Strings.Text(f.File) || r.Line != f.Line {
				t.Fatalf("%s: stack %d frame %d: %+v", name, *e.StackID, i, r)
			}
		}
	}
	for id := range table {
		if !seen[id] {
			t.Errorf("%s: stack %d belongs to no event", name, id)
		}
	}
}

// Everything that may be absent is null, and several devices and host memory
// are told apart.
func TestParquetNulls(t *testing.T) {
	f, err := snapshot.Read(t.Context(), "old", strings.NewReader(`{
		"segments": [{"address": 4096, "total_size": 8192, "blocks": [{"size": 8192, "state": "inactive"}]}],
		"device_traces": [[{"action": "alloc", "addr": 4096, "size": 1, "stream": 0},
			{"action": "free_completed", "addr": 4096, "size": 1, "stream": -3},
			{"action": "later_kind", "addr": 1, "size": 5, "stream": 7, "pool_id": [3, 4], "time_us": 0, "user_metadata": "\ud800", "frames": []}],
			[], [{"action": "oom", "device_free": 77, "size": 9, "stream": 0}]],
		"host_traces": [[{"action": "alloc", "addr": 64, "size": 3, "stream": 0}]]}`), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var events, stacks bytes.Buffer
	if err := Parquet(t.Context(), &events, &stacks, append(f.Traces[:len(f.Traces):len(f.Traces)], f.Host), Options{}); err != nil {
		t.Fatal(err)
	}
	at := func(n int64) *int64 { return &n }
	device := func(n int32) *int32 { return &n }
	text := func(s string) *string { return &s }
	want := []EventRow{
		{Device: device(0), Action: "alloc", Addr: at(4096), Size: 1, ReservedBytes: 8192, RequestedBytes: 1},
		{Index: 1, Device: device(0), Action: "free_completed", Addr: at(4096), Size: 1, Stream: -3, ReservedBytes: 8192},
		{
			Index: 2, Device: device(0), Action: "later_kind", Addr: at(1), Size: 5, Stream: 7, TimeUS: at(0), StackID: at(1),
			Pool: text("(3,4)"), UserMetadata: text("\uFFFD"), ReservedBytes: 8192,
		},
		{Device: device(2), Action: "oom", DeviceFree: at(77), Size: 9},
		{Action: "alloc", Addr: at(64), Size: 3, RequestedBytes: 3},
	}
	got := readTable[EventRow](t, events.Bytes())
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if rows := readTable[StackRow](t, stacks.Bytes()); len(rows) != 0 {
		t.Errorf("%d frames", len(rows))
	}
}

// The table is written in pieces.
func TestParquetRowGroups(t *testing.T) {
	tr := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()}
	const n = 2*rowGroup + 10
	for i := range n {
		tr.Events.Append(trace.Event{Action: alloc.ActionAlloc, Addr: uint64(i), Size: 1, Time: int64(i)})
	}
	var events, stacks bytes.Buffer
	var told []int64
	o := Options{Progress: func(done, total int64) { told = append(told, done, total) }}
	if err := Parquet(t.Context(), &events, &stacks, []*trace.Trace{tr}, o); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(events.Bytes()), int64(events.Len()))
	if err != nil || len(f.RowGroups()) != 3 || f.NumRows() != n {
		t.Fatalf("%v, %d row groups, %d rows", err, len(f.RowGroups()), f.NumRows())
	}
	if k := len(told); k < 10 || told[k-1] != n || told[k-2] < n-4096 {
		t.Errorf("progress %v", told)
	}
}

type fullDisk struct{ left int }

func (w *fullDisk) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWritingFails(t *testing.T) {
	f := open(t, "variety/profiler.pickle.gz")
	for _, left := range []int{0, 1000, 30_000} {
		var other bytes.Buffer
		if err := Parquet(t.Context(), &fullDisk{left}, &other, f.Traces, Options{}); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("events to a disk of %d bytes: %v", left, err)
		}
		if err := Parquet(t.Context(), &other, &fullDisk{left / 100}, f.Traces, Options{}); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("stacks to a disk of %d bytes: %v", left/100, err)
		}
		if err := Perfetto(t.Context(), &fullDisk{left}, f.Traces, Options{}); err == nil || err.Error() != "disk full" {
			t.Errorf("trace to a disk of %d bytes: %v", left, err)
		}
	}
}

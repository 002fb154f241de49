package snapshot

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/trace"
)

// columns is what testdata/columns.py prints.
type columns struct {
	Texts    []string
	Stacks   [][][3]any
	Segments []struct {
		Device        int
		Address       uint64
		TotalSize     uint64 `json:"total_size"`
		AllocatedSize uint64 `json:"allocated_size"`
		ActiveSize    uint64 `json:"active_size"`
		RequestedSize uint64 `json:"requested_size"`
		Stream        int64
		SegmentType   string    `json:"segment_type"`
		SegmentPoolID [2]uint64 `json:"segment_pool_id"`
		IsExpandable  bool      `json:"is_expandable"`
		Frames        int
		Blocks        []struct {
			Address       uint64
			Size          uint64
			RequestedSize uint64 `json:"requested_size"`
			State         string
			Frames        int
		}
	}
	Annotations []struct {
		Stage, Name string
		Device      int
		TimeUS      int64 `json:"time_us"`
	}
	Settings json.RawMessage
	Counts   []int
	Keys     []string
}

// Everything in a recording is what pickle.load finds there.
func TestRecordingsEqualPython(t *testing.T) {
	for _, path := range recordings(t) {
		t.Run(title(path), func(t *testing.T) {
			t.Parallel()
			r := bufio.NewReader(bytes.NewReader(python(t, "columns.py", path)))
			head, err := r.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var want columns
			d := json.NewDecoder(bytes.NewReader(head))
			d.UseNumber()
			if err := d.Decode(&want); err != nil {
				t.Fatal(err)
			}
			f := open(t, path)
			if len(f.Traces) != len(want.Counts) || f.Truncated != nil || len(f.Warnings) > 0 || f.Format != "pickle" || f.Compression != "gzip" {
				t.Fatalf("%d traces, truncated %v, warnings %q, %s, %s", len(f.Traces), f.Truncated, f.Warnings, f.Format, f.Compression)
			}
			for i, tr := range f.Traces {
				if tr.Device != i {
					t.Errorf("trace %d is of device %d", i, tr.Device)
				}
				checkEvents(t, &want, tr, want.Counts[i], r)
				checkSegments(t, &want, tr)
				checkAnnotations(t, &want, tr)
				checkSettings(t, &want, tr)
			}
		})
	}
}

// stackText writes a stack as one text.
func stackText(tr *trace.Trace, id trace.StackID) string {
	if id == trace.NoStack {
		return "none"
	}
	text := ""
	for _, frame := range tr.Stacks.Frames(id) {
		f := tr.Stacks.Frame(frame)
		text += fmt.Sprintln(tr.Strings.Text(f.Name), tr.Strings.Text(f.File), uint64(f.Line))
	}
	return text
}

func (c *columns) stack(i int) string {
	if i < 0 {
		return "none"
	}
	text := ""
	for _, f := range c.Stacks[i] {
		text += fmt.Sprintln(f[0], f[1], f[2])
	}
	return text
}

func checkEvents(t *testing.T, want *columns, tr *trace.Trace, count int, r io.Reader) {
	t.Helper()
	if tr.Events.Len() != count {
		t.Fatalf("%d events, want %d", tr.Events.Len(), count)
	}
	var cols [8][]int64
	for i := range cols {
		cols[i] = make([]int64, count)
		if err := binary.Read(r, binary.LittleEndian, cols[i]); err != nil {
			t.Fatal(err)
		}
	}
	text := func(id trace.StringID) any {
		if id == trace.NoString {
			return nil
		}
		return tr.Strings.Text(id)
	}
	wantText := func(i int64) any {
		if i < 0 {
			return nil
		}
		return want.Texts[i]
	}
	stacks := map[[2]int64]bool{} // pairs that are known to be equal
	for i := range count {
		ev := tr.Events.At(i)
		got := [...]any{
			tr.Events.ActionName(ev.Action), int64(ev.Addr), int64(ev.Size), int64(ev.Stream), ev.Time,
			text(ev.Compile), text(ev.Meta),
		}
		expect := [...]any{
			wantText(cols[0][i]), cols[1][i], cols[2][i], cols[3][i], cols[4][i], wantText(cols[5][i]), wantText(cols[6][i]),
		}
		if got != expect {
			t.Fatalf("event %d is %v, want %v", i, got, expect)
		}
		pair := [2]int64{int64(ev.Stack), cols[7][i]}
		if !stacks[pair] {
			if got, expect := stackText(tr, ev.Stack), want.stack(int(cols[7][i])); got != expect {
				t.Fatalf("event %d has the stack\n%s, want\n%s", i, got, expect)
			}
			stacks[pair] = true
		}
	}
	if len(tr.Events.Extra) > 0 {
		t.Errorf("fields that are known are in Extra: %v", tr.Events.Extra)
	}
}

func checkSegments(t *testing.T, want *columns, tr *trace.Trace) {
	t.Helper()
	at := 0
	for i, w := range want.Segments {
		if w.Device != tr.Device {
			continue
		}
		s := tr.Segments[at]
		at++
		got := fmt.Sprint(s.Address, s.TotalSize, s.AllocatedSize, s.ActiveSize, s.RequestedSize, int64(s.Stream), s.Type,
			s.Pool.First, s.Pool.Second, s.HasPool, s.Expandable, stackText(tr, s.Stack), len(s.Blocks), s.Extra)
		expect := fmt.Sprint(w.Address, w.TotalSize, w.AllocatedSize, w.ActiveSize, w.RequestedSize, w.Stream, w.SegmentType,
			w.SegmentPoolID[0], w.SegmentPoolID[1], true, w.IsExpandable, want.stack(w.Frames), len(w.Blocks), trace.Extra(nil))
		if got != expect {
			t.Fatalf("segment %d is %s, want %s", i, got, expect)
		}
		for j, b := range s.Blocks {
			v := w.Blocks[j]
			got := fmt.Sprint(b.Address, b.Size, b.RequestedSize, b.StateName(), stackText(tr, b.Stack), b.History, b.Extra)
			expect := fmt.Sprint(v.Address, v.Size, v.RequestedSize, v.State, want.stack(v.Frames), []trace.Use(nil), trace.Extra(nil))
			if got != expect {
				t.Fatalf("block %d of segment %d is %s, want %s", j, i, got, expect)
			}
		}
	}
	if len(tr.Segments) != at {
		t.Errorf("%d segments, want %d", len(tr.Segments), at)
	}
}

func checkAnnotations(t *testing.T, want *columns, tr *trace.Trace) {
	t.Helper()
	if len(tr.Annotations) != len(want.Annotations) {
		t.Fatalf("%d annotations, want %d", len(tr.Annotations), len(want.Annotations))
	}
	for i, a := range tr.Annotations {
		w := want.Annotations[i]
		if a.Begin != (w.Stage == "START") || tr.Strings.Text(a.Name) != w.Name || a.Device != w.Device || a.Time != w.TimeUS || a.Extra != nil {
			t.Fatalf("annotation %d is %+v, want %+v", i, a, w)
		}
	}
}

func checkSettings(t *testing.T, want *columns, tr *trace.Trace) {
	t.Helper()
	e := newJSONEncoder(io.Discard)
	(&walker{encoder: e}).value(tr.Settings.Fields)
	var compact bytes.Buffer
	if err := json.Compact(&compact, want.Settings); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(compact.String(), string(e.buf)); diff != "" {
		t.Error(diff)
	}
	if !tr.Settings.Known {
		t.Error("the settings are not known")
	}
}

// What is written is equal to the original when Python loads it.
func TestWritersEqualPython(t *testing.T) {
	folder := t.TempDir()
	for _, path := range recordings(t) {
		t.Run(title(path), func(t *testing.T) {
			t.Parallel()
			f := open(t, path)
			check := func(ext string, write func(io.Writer, *File) error) {
				out := filepath.Join(folder, title(path)+ext)
				var b bytes.Buffer
				if err := write(&b, f); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(out, b.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				python(t, "compare.py", path, out)
				if again := open(t, out); !isLarge(path) && asJSON(t, again) != asJSON(t, f) {
					t.Errorf("%s reads back as something else", ext)
				}
				os.Remove(out)
			}
			check(".pickle", WritePickle)
			if f.Traces[0].Events.Len() < 15_000 { // JSON shares nothing
				check(".json", WriteJSON)
			}
		})
	}
}

// The same data by other picklers give the same file.
func TestPicklers(t *testing.T) {
	want := asJSON(t, open(t, sample))
	for _, path := range repickle(t, sample) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := open(t, path)
			if filepath.Base(path) == "segments.pickle" { // a bare list
				if got, whole := len(f.Traces[0].Segments), len(open(t, sample).Traces[0].Segments); got != whole {
					t.Errorf("%d segments, want %d", got, whole)
				}
				return
			}
			if diff := cmp.Diff(want, asJSON(t, f)); diff != "" {
				t.Error(diff)
			}
			if len(f.Warnings) > 0 {
				t.Error(f.Warnings)
			}
		})
	}
}

// The twins are one state, written by Python and by C++ a few seconds later.
func TestTwins(t *testing.T) {
	py, cpp := open(t, "testdata/py_snapshot.pickle"), open(t, "testdata/cpp_snapshot.pickle")
	events := &cpp.Traces[0].Events
	if n := events.Len(); n != 10 || events.ActionName(events.At(8).Action) != "snapshot" || events.ActionName(events.At(9).Action) != "snapshot" {
		t.Fatalf("%d events, want ten with two snapshots at the end", n)
	}
	events.Cut(8)
	if diff := cmp.Diff(asJSON(t, py), asJSON(t, cpp)); diff != "" {
		t.Error(diff)
	}
}

package snapshot

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/trace"
)

func read1(data []byte) (*File, error) {
	return Read(context.Background(), "file", bytes.NewReader(data), Options{})
}

func plain(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

// Whatever a file is cut to, what was read of it is a beginning of the whole,
// and a longer piece has no less of it.
func TestTruncatedAnywhere(t *testing.T) {
	files := map[string][]byte{"python": plain(t, sample), "c++": plain(t, "testdata/cpp_snapshot.pickle")}
	for _, path := range repickle(t, sample) {
		switch name := filepath.Base(path); name {
		case "protocol0.pickle", "protocol2.pickle", "batches4.pickle", "single1.pickle", "torch.pickle", "segments.pickle", "dumped.json":
			files[name] = plain(t, path)
		}
	}
	for _, name := range short.Some(slices.Sorted(maps.Keys(files)), 2) {
		data := files[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, err := read1(data)
			if err != nil {
				t.Fatal(err)
			}
			step := max(1, len(data)/400)
			events, segments := 0, 0
			for n := 0; n < len(data)-1; n += step {
				f, err := read1(data[:n])
				if err != nil {
					if events+segments > 0 {
						t.Fatalf("of %d bytes: %v, although a shorter piece had %d events and %d segments", n, err, events, segments)
					}
					continue
				}
				if f.Truncated == nil {
					if name == "dumped.json" && strings.TrimSpace(string(data[n:])) == "" {
						continue
					}
					t.Fatalf("%d of %d bytes are taken for a whole file", n, len(data))
				}
				if f.Truncated.ReadBytes != int64(n) || f.Truncated.Where == "" {
					t.Fatalf("of %d bytes: %+v", n, f.Truncated)
				}
				e, s := f.content()
				if e < events || s < segments {
					t.Fatalf("%d bytes have %d events and %d segments, a shorter piece %d and %d", n, e, s, events, segments)
				}
				events, segments = e, s
				checkBeginning(t, f.Traces[0], whole.Traces[0])
			}
			wantEvents, wantSegments := whole.content()
			if events < wantEvents-1 || segments < wantSegments-1 { // the last one may not be known to be complete
				t.Errorf("at the end %d of %d events and %d of %d segments", events, wantEvents, segments, wantSegments)
			}
		})
	}
}

func checkBeginning(t *testing.T, part, whole *trace.Trace) {
	t.Helper()
	for i := range part.Events.Len() {
		a, b := part.Events.At(i), whole.Events.At(i)
		if stackText(part, a.Stack) != stackText(whole, b.Stack) {
			t.Fatalf("event %d has another stack", i)
		}
		a.Stack, b.Stack = 0, 0
		if part.Strings.Text(a.Meta) != whole.Strings.Text(b.Meta) {
			t.Fatalf("event %d has other metadata", i)
		}
		a.Meta, b.Meta, a.Compile, b.Compile = 0, 0, 0, 0
		if a != b {
			t.Fatalf("event %d is %+v, want %+v", i, a, b)
		}
	}
	for i, s := range part.Segments {
		if w := whole.Segments[i]; s.Address != w.Address || len(s.Blocks) != len(w.Blocks) {
			t.Fatalf("segment %d is %+v, want %+v", i, s, w)
		}
	}
}

func TestTruncatedGzip(t *testing.T) {
	data, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	f, err := read1(data[:len(data)-100])
	if err != nil {
		t.Fatal(err)
	}
	events, segments := f.content()
	if f.Truncated == nil || events == 0 || segments == 0 || f.Traces[0].Settings.Known {
		t.Errorf("truncated %v, %d events, %d segments", f.Truncated, events, segments)
	}
}

// Several devices: the lists before the one that was being read are complete.
func TestTruncatedDevices(t *testing.T) {
	two := buildDevices(t, 3)
	for n := 1; n < len(two); n++ {
		f, err := read1(two[:n])
		if err != nil {
			continue
		}
		for i, tr := range f.Traces {
			for j := range tr.Events.Len() {
				if got := tr.Events.At(j).Addr; got != uint64(1000*i+j) {
					t.Fatalf("of %d bytes: event %d of device %d has address %d", n, j, i, got)
				}
			}
		}
	}
}

// buildDevices returns a pickle with n devices of n events each, whose
// addresses are the device number times 1,000 plus the event number.
func buildDevices(t testing.TB, n int) []byte {
	t.Helper()
	f := &File{}
	strings, stacks := newStrings(), trace.NewStacks()
	for i := range n {
		tr := &trace.Trace{Device: i, Strings: strings, Stacks: stacks}
		for j := range n {
			tr.Events.Append(trace.Event{Addr: uint64(1000*i + j), Size: 1, Time: trace.NoTime})
		}
		tr.Segments = append(tr.Segments, trace.Segment{Address: uint64(i), TotalSize: uint64(i), Type: "small"})
		f.Traces = append(f.Traces, tr)
	}
	var b bytes.Buffer
	if err := WritePickle(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestNothingLeft(t *testing.T) {
	data := plain(t, sample)
	_, err := read1(data[:20])
	if err == nil || !strings.Contains(err.Error(), "ends early") {
		t.Errorf("20 bytes: %v", err)
	}
	var format *FormatError
	if _, err = read1(nil); !errors.As(err, &format) || format.Seems != "an empty file" {
		t.Errorf("no bytes: %v", err)
	}
}

package input

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

const oom = "CUDA out of memory. Tried to allocate 786.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 77.15 GiB is free. 7.43 GiB allowed; " +
	"Of the allocated memory 6.05 GiB is allocated by PyTorch, and 712.20 MiB is reserved by PyTorch but unallocated.\n"

const dump = `{"allocated_bytes.all.current": 1024, "reserved_bytes.all.current": 2048}` + "\n"

// protocol0 is a pickle that is text.
const protocol0 = "(dp0\nVsegments\np1\n(lp2\nsVdevice_traces\np3\n(lp4\n(lp5\n(dVaction\nVsnapshot\nsVaddr\nL0L\nsVsize\nL0L\nsVstream\nL0L\nsaas."

// viewerPage is the page that PyTorch's memory viewer makes of a snapshot.
func viewerPage(t *testing.T, packed []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	plain = append(plain, make([]byte, 3-len(plain)%3)...)
	return []byte("\n<!DOCTYPE html>\n<script>\nconst local_files = [{\"name\": \"snapshot.pickle\", \"base64\": \"" + base64.StdEncoding.EncodeToString(plain) + "\"}]\n</script>")
}

// A file is what its content says, whatever else is in it; of a long text the
// end is read.
func TestOpen(t *testing.T) {
	recorded, err := os.ReadFile("../../testdata/variety/graphs.pickle.gz")
	if err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("step 1 loss=0.3 mem=12.3GiB\n"), (maxText+1<<20)/28)
	const cut = "train.log: more than 64 MiB of text; its last 64 MiB are read, and lines are counted from there"
	for name, tt := range map[string]struct {
		data            []byte
		kind            Kind
		dumps, messages int
		warned          string
	}{
		"snapshot":        {recorded, Snapshot, 0, 0, ""},
		"page":            {viewerPage(t, recorded), Snapshot, 0, 0, ""},
		"other page":      {[]byte("<html><pre>" + oom + "</pre></html>"), OOMMessage, 0, 1, ""},
		"dump":            {[]byte(dump), MemoryStats, 1, 0, ""},
		"message":         {[]byte(oom), OOMMessage, 0, 1, ""},
		"log with both":   {[]byte("step 1\n" + dump + oom), MemoryStats, 1, 1, ""},
		"gzip":            {gzipText(t, []byte(oom)), OOMMessage, 0, 1, ""},
		"zstd":            {zstdText(t, []byte(oom)), OOMMessage, 0, 1, ""},
		"latin-1":         {[]byte("Schritt 1 f\xfcr Ger\xe4t 0\n" + oom), OOMMessage, 0, 1, ""},
		"NUL":             {[]byte("step 1\x00\n" + oom), OOMMessage, 0, 1, ""},
		"UTF-16":          {wide("step 1 \U0001f525\n"+oom, binary.LittleEndian), OOMMessage, 0, 1, ""},
		"UTF-16 big":      {wide("step 1\n"+oom, binary.BigEndian), OOMMessage, 0, 1, ""},
		"protocol 0":      {[]byte(protocol0), Snapshot, 0, 0, ""},
		"like protocol 0": {[]byte("(dp_rank=0) step 1\n" + oom), OOMMessage, 0, 1, ""},
		"gzip of that":    {gzipText(t, []byte("(dp_rank=0) step 1\n"+oom)), OOMMessage, 0, 1, ""},
		"long":            {append(slices.Clip(long), oom...), OOMMessage, 0, 1, cut},
		"long, as JSON":   {append([]byte("{\"a\": 1}\n"), append(slices.Clip(long), oom...)...), OOMMessage, 0, 1, cut},
		"long compressed": {gzipText(t, append(slices.Clip(long), oom...)), OOMMessage, 0, 1, cut},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && tt.warned != "" {
				t.Skip("64 MiB of text take seconds")
			}
			t.Chdir(t.TempDir())
			if err := os.WriteFile("train.log", tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, arg := range []string{"train.log", "-"} {
				if arg == "-" && name == "long, as JSON" { // it is read as a snapshot, and then it is gone
					continue
				}
				var warned []string
				in, err := Open(t.Context(), arg, Options{Stdin: bytes.NewReader(tt.data), Warn: func(s string) { warned = append(warned, s) }})
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Replace(tt.warned, "train.log", Name(arg), 1)
				if in.Kind != tt.kind || in.Name != Name(arg) || strings.Join(warned, "\n") != want {
					t.Errorf("%s: %s, warned %q", in.Name, in.Kind, warned)
				}
				if (in.Snapshot != nil) != (tt.kind == Snapshot) || len(in.Messages) != tt.messages || len(in.Dumps) != tt.dumps {
					t.Errorf("%s: %+v", arg, in)
				}
			}
		})
	}
}

func wide(text string, order binary.AppendByteOrder) []byte {
	out := order.AppendUint16(nil, 0xfeff)
	for _, c := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, c)
	}
	return out
}

func gzipText(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstdText(t *testing.T, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// What cannot be used says in one line what is wrong and what to do.
func TestOpenProblems(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ data, want string }{
		{"", "the file is empty; give a snapshot, a memory_stats() dump or an out-of-memory message"},
		{"step 1 loss=0.3\n", "neither a memory snapshot nor text with a memory_stats() dump or an out-of-memory message"},
		{"<!doctype html>\n<html><head><title>Ashlar</title></head>CUDA out of memory. Tried to allocate 1.00 GiB", "is a page of ashlar report; open it in a browser"},
		{`{"torch": "2.11", "workload": "lessons", "ops": [`, "is a recording of the allocator's answers; ashlar verify replays it"},
		{"\x80\x02}broken", "x.pickle"},
	} {
		file := filepath.Join(dir, "x.pickle")
		if err := os.WriteFile(file, []byte(tt.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), file, Options{}); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "--") {
			t.Errorf("%.20q: %v, want %s", tt.data, err, tt.want)
		}
	}
	for arg, want := range map[string]string{dir: "is a directory; name a file in it", filepath.Join(dir, "none"): "no such file; check the name"} {
		if _, err := Open(t.Context(), arg, Options{}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("Open(%s): %v", arg, err)
		}
		if err := Check(arg); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("Check(%s): %v", arg, err)
		}
	}
	if err := Check("-"); err != nil {
		t.Error(err)
	}
}

func TestFromMessage(t *testing.T) {
	in, err := FromMessage(oom)
	if err != nil || in.Kind != OOMMessage || len(in.Messages) != 1 {
		t.Errorf("%+v, %v", in, err)
	}
	for text, want := range map[string]string{"missing.txt": "missing.txt is neither a file nor", "it did not work": "no out-of-memory message in the text"} {
		if _, err := FromMessage(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCompareNatural(t *testing.T) {
	names := []string{"r10", "r2", "r02b", "r", "rank_1.pickle", "r2a", "s1", "rank_11.pickle", "rank_2.pickle", "r99999999999999999999", "r100000000000000000000"}
	want := []string{"r", "r2", "r2a", "r02b", "r10", "r99999999999999999999", "r100000000000000000000", "rank_1.pickle", "rank_2.pickle", "rank_11.pickle", "s1"}
	slices.SortFunc(names, compareNatural)
	if !slices.Equal(names, want) {
		t.Errorf("got %v\nwant %v", names, want)
	}
}

// A file that ends before its events is not one that was recorded without any.
func TestReplayableTruncated(t *testing.T) {
	f := &snapshot.File{Name: "cut", Traces: []*trace.Trace{{Segments: []trace.Segment{{TotalSize: 2 << 20}}}}}
	for _, cut := range []*snapshot.Truncation{nil, {Where: "in segments"}} {
		f.Truncated = cut
		_, _, err := Replayable(f, AnyDevice)
		want, why := "record with", "recording was off"
		if cut != nil {
			want, why = "ends before its events", "the file ends before them"
		}
		if err == nil || !strings.Contains(err.Error(), want) || WhyNoEvents(f) != why {
			t.Errorf("truncated %v: %v; %s", cut != nil, err, WhyNoEvents(f))
		}
	}
}

// TestProtocol0: a large pickle that is text is read as a pickle, and not as text first.
func TestProtocol0(t *testing.T) {
	var long strings.Builder
	long.WriteString("(dVsegments\n(lsVdevice_traces\n(l(l")
	const events = 100_000
	for range events {
		long.WriteString("(dVaction\nVsnapshot\nsVaddr\nL0L\nsVsize\nL0L\nsVstream\nL0L\nsVtime_us\nL1234567890123L\nsa")
	}
	long.WriteString("as.")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.pickle", []byte(long.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{"a.pickle", "-"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		in, err := Open(t.Context(), arg, Options{Stdin: strings.NewReader(long.String())})
		runtime.ReadMemStats(&after)
		if err != nil || in.Kind != Snapshot || in.Snapshot.Traces[0].Events.Len() != events {
			t.Fatalf("%s: %+v, %v", arg, in, err)
		}
		// Each event is some columns, and its texts are made for a moment.
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(2*long.Len()) {
			t.Errorf("%s: %d bytes were allocated for %d", arg, got, long.Len())
		}
	}
}

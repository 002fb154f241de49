package snapshot

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// maxRefused is the most memory that a small file may take before it is refused.
const maxRefused = 96 << 20

// Files that want to do harm, or that are something else, are refused in one
// line that says what they are.
func TestHostile(t *testing.T) {
	le := func(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }
	tests := []struct{ name, data, want string }{
		{
			"os.system by GLOBAL", "\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.",
			"refusing to load os.system at byte 2: a snapshot needs no code",
		},
		{
			"os.system by STACK_GLOBAL", "\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R.",
			"refusing to load os.system at byte 16: a snapshot needs no code",
		},
		{
			"os.system in protocol 0", "cos\nsystem\n(S'id'\ntR.",
			"refusing to load os.system at byte 0",
		},
		{"os.system by INST", "(S'id'\nios\nsystem\n.", "refusing to load os.system at byte 7"},
		{"eval", "\x80\x02c__builtin__\neval\n.", "refusing to load __builtin__.eval at byte 2"},
		{"BUILD", "\x80\x02}}b.", "refusing to load an object (opcode BUILD) at byte 4"},
		{"OBJ", "\x80\x02(}o.", "refusing to load an object (opcode OBJ) at byte 4"},
		{"NEWOBJ", "\x80\x02})\x81.", "refusing to load an object (opcode NEWOBJ) at byte 4"},
		{"PERSID", "\x80\x02P1\n.", "refusing to load an object (opcode PERSID) at byte 2"},
		{"EXT1", "\x80\x02\x82\x01.", "refusing to load an object (opcode EXT1) at byte 2"},
		{"NEXT_BUFFER", "\x80\x05\x97.", "refusing to load an object (opcode NEXT_BUFFER) at byte 2"},
		{"call of data", "\x80\x02})R.", "refusing to load a call (opcode REDUCE) of a dict at byte 4"},
		{"a global as data", "\x80\x02]ccollections\nOrderedDict\na.", "collections.OrderedDict is used as data"},

		{"2^60 bytes of text", "\x80\x04\x8d" + le(1<<60) + "abc", "at byte 2: a text of 1152921504606846976 bytes is above the limit of 67108864"},
		{"2^60 bytes", "\x80\x04\x8e" + le(1<<60) + "abc", "a text of 1152921504606846976 bytes is above the limit"},
		{"2 GiB integer", "\x80\x02\x8b\xff\xff\xff\x7fabc", "an integer of 2147483647 bytes is above the limit of 1024"},
		{"negative length", "\x80\x02\x8b\xff\xff\xff\xffabc", "an integer of -1 bytes"},
		{"memo entry far away", "\x80\x02]r\xff\xff\xff\xff.", "memo entries above the limit"},
		{"memo entry unset", "\x80\x02h\x07.", "at byte 2: memo entry 7 is used before it is set"},
		{"memo bomb", memoBomb(), "values in fields of no known meaning"},
		{"memo bomb of dictionaries", dictBomb(), "values in fields of no known meaning"},
		{"blocks of many segments", blocksBomb(), "a block is listed twice"},
		{"events of many lists", listsBomb() + "eu.", "an event is listed twice"},
		{"events of many lists, cut", listsBomb(), "an event is listed twice"},
		{"deep lists", "\x80\x02" + strings.Repeat("]", 100_000) + strings.Repeat("a", 99_999) + ".", "containers inside each other above the limit of 200"},
		{"deep marks", "\x80\x02" + strings.Repeat("](", 100_000), "containers inside each other above the limit of 200"},
		{"deep JSON", strings.Repeat("[", 100_000), "containers inside each other above the limit of 200"},
		{"deep events", deepEvents(), "containers inside each other"},
		{"list in itself", "\x80\x02]q\x00h\x00a.", "at byte 7: a container is changed after its first use, as only one that contains itself would be"},
		{"list in itself by APPENDS", "\x80\x04]\x94(h\x00e.", "contains itself"},
		{"dictionary in itself", "\x80\x02}q\x00(X\x01\x00\x00\x00ah\x00u.", "contains itself"},
		{"items for nothing", "\x80\x02(K\x01e.", "items without a list to put them into"},
		{"items for a number", "\x80\x02K\x00(K\x01e.", "items for a list are put into an int"},
		{"no mark", "\x80\x02e.", "an opcode needs a mark and there is none"},
		{"empty stack", "\x80\x02.", "the end comes before any value"},
		{"pop of nothing", "\x80\x020.", "an opcode needs more values than there are"},
		{"key without value", "\x80\x02}(K\x01u.", "a dictionary with a key that has no value"},
		{"no opcode", "\x80\x02\xfe.", "at byte 2: 0xfe is no pickle opcode"},
		{"protocol 6", "\x80\x06}.", "seems to be other binary data"},
		{"protocol 6 inside", "\x80\x04\x80\x06}.", "pickle protocol 6 is newer than 5"},
		{"a segment many times", "\x80\x04]\x94(}\x94(\x8c\x07address\x94K\x01\x8c\x0atotal_size\x94K\x01\x8c\x06blocks\x94]u" +
			strings.Repeat("h\x01", 10) + "e.", "listed twice"},

		{"gzip bomb", bomb(t, "gzip"), "a decompression bomb"},
		{"zstd bomb", bomb(t, "zstd"), "a decompression bomb"},
		{"gzip in gzip", zip(t, zip(t, "x")), "gzip data inside compressed data"},
		{"damaged gzip", strings.Replace(zip(t, strings.Repeat("}(abcdef", 1000)), "\x00\x00\xff\xff", "", 1)[:20] + strings.Repeat("\xff", 50), "its gzip data are damaged"},

		{"PNG", "\x89PNG\r\n\x1a\n", "seems to be a PNG image"},
		{"checkpoint", "PK\x03\x04....archive/data.pkl", "a zip archive such as a torch.save checkpoint"},
		{"HTML", "\n <!doctype html>", "seems to be an HTML page without a snapshot in it"},
		{"text", "hello, world", "seems to be text"},
		{"message", "[rank0]: torch.OutOfMemoryError: CUDA out of memory.", "seems to be text"},
		{"text in brackets", "(default) cuda", "seems to be text"},
		{"text with c", "cuda out of memory\nsorry\n", "seems to be text"},
		{"binary", "\x00\x01\x02\x03", "seems to be other binary data"},
		{"printed dictionary", "{'active.all.allocated': 1}", "a Python dictionary or list as printed"},
		{"memory_stats", `{"active.all.allocated": 1, "num_alloc_retries": 0}`, "a dump of memory_stats() in JSON"},
		{"recording", `{"torch": "2.11", "ops": [], "trace": []}`, "a recording of the allocator's answers in JSON"},
		{"recording with segments", `{"ops": [["f", 1]], "segments": [{"address": 1, "total_size": 1, "blocks": []}]}`, "a recording of the allocator's answers in JSON"},
		{"profiler", `{"schemaVersion": 1, "traceEvents": []}`, "a trace of the profiler in JSON"},
		{"other JSON", `{"a": 1, "b": 2}`, "a dictionary of a, b in JSON"},
		{"pair", `[1, 2]`, "seems to be a pair in JSON"},
		{"other list", `[1, 2, 3]`, "item 0 of the list is an int instead of a segment"},
		{"JSON number", "[1", "a snapshot"},
		{"other pickle", "\x80\x04K\x01.", "seems to be an int in a pickle"},
		{"empty snapshot", `{"segments": [], "device_traces": [[]]}`, "a snapshot without an event or a segment"},
		{"traces that are none", `{"device_traces": 5}`, `"device_traces" is an int instead of a list`},
		{"events that are none", `{"device_traces": [[{"action": "alloc", "size": "big"}]]}`, `an event has a "size" that is a str instead of an integer`},
		{"a long action", `{"device_traces": [[{"action": "` + strings.Repeat(`\ud83d`, 1000) + `", "size": 1}]]}`, `an event has a "action" that is a text of 3000 bytes instead of one of up to 1024`},
		{"long metadata", `{"device_traces": [[{"action": "alloc", "size": 1, "user_metadata": "` + strings.Repeat(`\ud83d`, 1<<19) + `"}]]}`, `an event has a "user_metadata" that is a text of 1572864 bytes`},
		{"JSON without comma", `{"segments": [1 2]}`, "at byte 16: '2' where a comma or the end of '[' is expected"},
		{"JSON with a bad word", `{"segments": nul}`, `"nul" is no value`},
		{"JSON with a bad escape", `{"segments": "\x"}`, "is no escape in a text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "a decompression bomb" {
				short.Skip(t)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, err := read1([]byte(tt.data))
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatalf("it was read: %+v", f)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > maxRefused {
				t.Errorf("%d bytes were allocated", n)
			}
			if tt.name == "JSON number" { // cut short: nothing is left
				tt.want = "ends early"
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "file") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// memoBomb is a list of ten lists of ten lists and so on, in few bytes.
func memoBomb() string {
	var b strings.Builder
	b.WriteString("\x80\x04}(\x8c\x08segments]\x8c\x01x]\x94(K\x00K\x00K\x00e")
	for i := range 20 {
		fmt.Fprintf(&b, "0]\x94(%se", strings.Repeat("h"+string(rune(i)), 10))
	}
	b.WriteString("u.")
	return b.String()
}

func dictBomb() string {
	var b strings.Builder
	b.WriteString("\x80\x04}(\x8c\x08segments]\x8c\x01x}\x94(K\x00K\x00u")
	for i := range 20 {
		b.WriteString("0}\x94(")
		for j := range 10 {
			fmt.Fprintf(&b, "K%ch%c", rune(j), rune(i))
		}
		b.WriteString("u")
	}
	b.WriteString("u.")
	return b.String()
}

// listsBomb has very many times the list of its events, which no run stands for: they
// are in reverse.
func listsBomb() string {
	const events, lists = 1000, 10_000
	get := func(i int) string { return "j" + string(binary.LittleEndian.AppendUint32(nil, uint32(i))) }
	var b, reverse strings.Builder
	b.WriteString("\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces](")
	for i := range events {
		b.WriteString("}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x00\x8c\x04sizeK\x01u\x940")
		reverse.WriteString(get(events - 1 - i))
	}
	b.WriteString("](" + reverse.String() + "e\x94" + strings.Repeat(get(events), lists))
	return b.String()
}

// blocksBomb has segments that all name one list of blocks.
func blocksBomb() string {
	var b strings.Builder
	b.WriteString("\x80\x02]q\x00(}q\x01(X\x04\x00\x00\x00sizeK\x01X\x05\x00\x00\x00stateX\x00\x00\x00\x00u0]q\x02(")
	b.WriteString(strings.Repeat("h\x01", 10_000))
	b.WriteString("e0")
	for range 10_000 {
		b.WriteString("}(X\x07\x00\x00\x00addressK\x01X\x0a\x00\x00\x00total_sizeK\x01X\x06\x00\x00\x00blocksh\x02u")
	}
	b.WriteString("e.")
	return b.String()
}

// deepEvents is an event in a field of an event, and so on.
func deepEvents() string {
	var b strings.Builder
	b.WriteString("\x80\x04N")
	for range 1000 {
		b.WriteString("\x94" + "0}(\x8c\x06actionX\x01\x00\x00\x00x\x8c\x04sizeK\x00\x8c\x01x")
		b.WriteString("N") // replaced below
		b.WriteString("u")
	}
	b.WriteString(".")
	s := b.String()
	for i := 0; strings.Contains(s, "xNu"); i++ {
		s = strings.Replace(s, "xNu", "xj"+string(binary.LittleEndian.AppendUint32(nil, uint32(i)))+"u", 1)
	}
	return s
}

func zip(t *testing.T, data string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(data))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// bomb compresses a pickle that does nothing for very long.
func bomb(t *testing.T, kind string) string {
	var b bytes.Buffer
	var w interface {
		Write([]byte) (int, error)
		Close() error
	}
	w = gzip.NewWriter(&b)
	if kind == "zstd" {
		var err error
		if w, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	}
	w.Write([]byte("\x80\x02"))
	part := bytes.Repeat([]byte("N0"), 1<<19)
	for range 70 {
		w.Write(part)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDirectory(t *testing.T) {
	_, err := Open(context.Background(), t.TempDir(), Options{})
	var format *FormatError
	if !errors.As(err, &format) || format.Seems != "a directory" {
		t.Error(err)
	}
}

func TestMissing(t *testing.T) {
	if _, err := Open(context.Background(), "testdata/missing", Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestChangedWhileRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "growing.pickle")
	data := plain(t, sample)
	if err := os.WriteFile(path, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	grow := func(read, total int64) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Error(err)
		}
	}
	_, err := Open(context.Background(), path, Options{Progress: grow})
	if err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Error(err)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, sample, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestProgress(t *testing.T) {
	last, size := int64(0), int64(0)
	info, err := os.Stat(sample)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(context.Background(), sample, Options{Progress: func(read, total int64) {
		if read < last {
			t.Errorf("%d after %d", read, last)
		}
		last, size = read, total
	}})
	if err != nil || last != info.Size() || size != info.Size() {
		t.Errorf("%d of %d bytes, %v, want %d", last, size, err, info.Size())
	}
}

func zst(t *testing.T, data []byte) string {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return string(w.EncodeAll(data, nil))
}

// A file name that is longer than any makes no frame, since answers would repeat it.
func TestLongFrame(t *testing.T) {
	for n, depth := range map[int]int{maxText: 1, maxText + 1: 0} {
		f, err := read1([]byte(`{"device_traces": [[{"action": "alloc", "addr": 512, "size": 1, "frames": [{"name": "f", "line": 1, "filename": "` + strings.Repeat("x", n) + `"}]}]]}`))
		if err != nil {
			t.Fatal(err)
		}
		tr := f.Traces[0]
		if got := len(tr.Stacks.Frames(tr.Events.At(0).Stack)); got != depth {
			t.Errorf("a file name of %d bytes: %d frames instead of %d", n, got, depth)
		}
	}
}

// The time to read a text is proportional to its length, whatever is in it: what is
// looked at again and again would make this take minutes.
func TestLongTexts(t *testing.T) {
	for _, piece := range []string{"a", `\n`, `\\`, `a\"`, `\u0041`, `\ud83d\ude00`} {
		text := strings.Repeat(piece, 8_000_000/len(piece))
		f, err := read1([]byte(`{"device_traces": [[{"action": "alloc", "addr": 0, "size": 1, "odd": "` + text + `"}]]}`))
		if err != nil {
			t.Errorf("%s: %v", piece, err)
			continue
		}
		var want string
		if err := json.Unmarshal([]byte(`"`+text+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if got, _ := f.Traces[0].Events.Extra[0].Get("odd").(string); got != want {
			t.Errorf("%s: %d bytes instead of %d", piece, len(got), len(want))
		}
	}
}

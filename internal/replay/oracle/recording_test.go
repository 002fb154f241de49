package oracle

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

// doc returns a small scenario as JSON, one text per top-level key.
func doc() map[string]string {
	return map[string]string{
		"torch":    `"2.11.0"`,
		"scen":     `"tiny"`,
		"seed":     `1`,
		"conf":     `"max_split_size_mb:64"`,
		"fraction": `"0.5"`,
		"total":    `1000000000`,
		"streams":  `[0,77,18446744073709551615,-2]`,
		"ops": `[["a",1,1000,0,9007199254740993],["f",1],["a",2,5,1,-1],["a",3,8,0,18446744073709551615],["r",3,1],["e"],
			["newpool",1,"nosplit",[0,1]],["enter",1],["exit",1],["delpool",1],
			["capbegin",1,null],["capend",1],["capbegin",2,1],["capend",2],["delgraph",1],
			["set","a:b"],["frac",0.25],["sync"],["EXC","RuntimeError","oh"],["end"]]`,
		"stats": `[[1,{"num_ooms":0,"max_split_size":-1}],[20,{"num_ooms":3}]]`,
		"trace": `[["segment_alloc",9007199254740993,2097152,0,"0"],["oom",123,512,-2,"2"],["alloc",1,2,3,""]]`,
		"segments": `[{"device":0,"address":9007199254740993,"total_size":2097152,"allocated_size":1,"active_size":2,"requested_size":3,
			"stream":-2,"segment_type":"large","segment_pool_id":[1,0],"is_expandable":true,"frames":[{"x":[1]}],
			"blocks":[{"address":1,"size":2,"requested_size":3,"state":"active_pending_free","frames":[]}]}]`,
	}
}

func text(d map[string]string) string {
	keys := slices.Sorted(maps.Keys(d))
	for i, k := range keys {
		keys[i] = `"` + k + `":` + d[k]
	}
	return "{" + strings.Join(keys, ",\n") + "}"
}

func gz(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	const top = 1<<64 - 1
	want := &Recording{
		Format: FormatScenario, Torch: "2.11.0", Workload: "tiny", Conf: "max_split_size_mb:64", Fraction: 0.5, TotalMemory: 1e9,
		Streams: []uint64{0, 77, top, top - 1},
		Ops: []Op{
			{Kind: OpAlloc, ID: 1, Size: 1000, Addr: 1<<53 + 1},
			{Kind: OpFree, ID: 1},
			{Kind: OpAlloc, ID: 2, Size: 5, Stream: 1, Failed: true},
			{Kind: OpAlloc, ID: 3, Size: 8, Addr: top},
			{Kind: OpRecordStream, ID: 3, Stream: 1},
			{Kind: OpEmptyCache},
			{Kind: OpNewPool, ID: 1, Text: "nosplit", Pool: alloc.PoolID{Second: 1}},
			{Kind: OpEnterPool, ID: 1},
			{Kind: OpExitPool, ID: 1},
			{Kind: OpDeletePool, ID: 1},
			{Kind: OpBeginCapture, ID: 1},
			{Kind: OpEndCapture, ID: 1},
			{Kind: OpBeginCapture, ID: 2, Share: 1, Shared: true},
			{Kind: OpEndCapture, ID: 2},
			{Kind: OpDeleteGraph, ID: 1},
			{Kind: OpConfigure, Text: "a:b"},
			{Kind: OpFraction, Fraction: 0.25},
			{Kind: OpSynchronize},
			{Kind: OpException, Text: "RuntimeError", Detail: "oh"},
			{Kind: OpEnd},
		},
		Checkpoints: []Checkpoint{
			{1, map[string]int64{"num_ooms": 0, "max_split_size": -1}},
			{20, map[string]int64{"num_ooms": 3}},
		},
		Trace: []recorded.Event{
			{Action: alloc.ActionSegmentAlloc, Addr: 1<<53 + 1, Size: 2097152, Op: 0},
			{Action: alloc.ActionOOM, Addr: 123, Size: 512, Stream: top - 1, Op: 2},
			{Action: alloc.ActionAlloc, Addr: 1, Size: 2, Stream: 3, Op: -1},
		},
		Segments: []alloc.Segment{{
			Address: 1<<53 + 1, TotalSize: 2097152, AllocatedSize: 1, ActiveSize: 2, RequestedSize: 3, Stream: top - 1,
			Large: true, Pool: alloc.PoolID{First: 1}, Expandable: true,
			Blocks: []alloc.Block{{Address: 1, Size: 2, RequestedSize: 3, State: alloc.ActivePendingFree}},
		}},
	}
	for name, in := range map[string]string{"plain": text(doc()), "gzip": gz(t, text(doc()))} {
		got, err := Read(name, strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestReadOracleFormat(t *testing.T) {
	d := doc()
	delete(d, "total")
	d["total_memory"] = "7"
	d["fraction"] = `""`
	d["trace"] = `[["alloc",1,2,3]]`
	d["oom_messages"] = `[[17,"CUDA out of memory. \"x\""]]`
	got, err := Read("x", strings.NewReader(text(d)))
	if err != nil {
		t.Fatal(err)
	}
	if got.Format != FormatOracle || got.TotalMemory != 7 || got.Fraction >= 0 || got.Trace[0].Op != -1 ||
		!slices.Equal(got.OOMMessages, []string{`CUDA out of memory. "x"`}) {
		t.Errorf("%+v", got)
	}
}

// Each error names the file, says where and what, and what to do.
func TestReadErrors(t *testing.T) {
	with := func(key, value string) string {
		d := doc()
		d[key] = value
		return text(d)
	}
	without := func(key string) string {
		d := doc()
		delete(d, key)
		return text(d)
	}
	whole := text(doc())
	packed := gz(t, whole)
	damaged := []byte(packed)
	damaged[len(damaged)/2] ^= 0xff
	tests := []struct {
		name, in string
		want     []string
	}{
		{"empty", "", []string{"the file is empty"}},
		{"empty inside", gz(t, ""), []string{"empty inside"}},
		{"png", "\x89PNG\r\n\x1a\n", []string{"PNG image", "give a recording"}},
		{"pickle", "\x80\x04\x95", []string{"pickle", "snapshot"}},
		{"zstd magic only", "\x28\xb5\x2f\xfd", []string{"truncated", "again"}},
		{"twice", gz(t, packed), []string{"gzip-compressed twice"}},
		{"text", "hello", []string{"not JSON"}},
		{"list", "[1,2]", []string{"JSON list"}},
		{"gzip header only", "\x1f\x8b", []string{"truncated", "again"}},
		{"bad gzip header", "\x1f\x8b\x01" + packed[3:], []string{"damaged"}},
		{"truncated gzip", packed[:len(packed)-20], []string{"truncated"}},
		{"damaged gzip", string(damaged), []string{"x.json: "}},
		{"truncated json", whole[:len(whole)-30], []string{"byte ", "truncated"}},
		{"other json", `{"a":{"b":[1,2,{}]}}`, []string{"not a recording", `"ops"`, `"total_memory" or "total"`}},
		{"both totals", with("total_memory", "1"), []string{`"total_memory" or "total"`}},
		{"no trace", without("trace"), []string{`no "trace"`}},
		{"trailing", whole + "{}", []string{"follows the end"}},
		{"key twice", whole[:len(whole)-1] + `,"conf":""}`, []string{"appears twice"}},
		{"syntax", with("seed", "1 2"), []string{"not valid JSON", "byte"}},
		{"ops no list", with("ops", `{}`), []string{`"ops"`, "expected a list", "found an object"}},
		{"op unknown", with("ops", `[["e"],["z",1]]`), []string{`"ops" row 1`, `unknown operation "z"`, "known are a f r e"}},
		{"op short", with("ops", `[["a",1,2,0]]`), []string{`"ops" row 0`, "found the end of the list"}},
		{"op long", with("ops", `[["f",1,2]]`), []string{`"ops" row 0`, "expected the end of the list"}},
		{"op type", with("ops", `[["a","1",2,0,3]]`), []string{`"ops" row 0`, "expected a number", `text "1"`}},
		{"op float", with("ops", `[["a",1,2.5,0,3]]`), []string{"whole number", "2.5"}},
		{"op huge", with("ops", `[["a",1,18446744073709551616,0,3]]`), []string{"64 bits"}},
		{"op negative", with("ops", `[["a",1,-5,0,3]]`), []string{"not negative"}},
		{"address negative", with("ops", `[["a",1,5,0,-3]]`), []string{"address or -1"}},
		{"stream", with("ops", `[["a",1,5,4,3]]`), []string{`"ops" row 0`, "tensor 1", "only 4 streams"}},
		{"stream negative", with("ops", `[["a",1,5,-1,3]]`), []string{"position"}},
		{"free unknown", with("ops", `[["f",9]]`), []string{"free tensor 9", "no such tensor"}},
		{"free twice", with("ops", `[["a",1,5,0,3],["f",1],["f",1]]`), []string{"row 2", "no such tensor"}},
		{"free failed", with("ops", `[["a",1,5,0,-1],["f",1]]`), []string{"no such tensor"}},
		{"alloc twice", with("ops", `[["a",1,5,0,3],["a",1,5,0,3]]`), []string{"exists already"}},
		{"record unknown", with("ops", `[["r",1,0]]`), []string{"no such tensor"}},
		{"pool unknown", with("ops", `[["enter",1]]`), []string{"no such pool"}},
		{"pool twice", with("ops", `[["newpool",1,"plain",[0,1]],["newpool",1,"plain",[0,2]]]`), []string{"exists already"}},
		{"pool kind", with("ops", `[["newpool",1,"odd",[0,1]]]`), []string{`"odd"`, "plain, oom, nosplit"}},
		{"pool id", with("ops", `[["newpool",1,"oom",[0]]]`), []string{"expected a number"}},
		{"capture end", with("ops", `[["capend",1]]`), []string{"not being captured"}},
		{"capture nested", with("ops", `[["capbegin",1,null],["capbegin",2,null]]`), []string{"graph 1 is still"}},
		{"capture share", with("ops", `[["capbegin",1,7]]`), []string{"no such graph to share"}},
		{"capture share type", with("ops", `[["capbegin",1,"x"]]`), []string{"number or null"}},
		{"graph twice", with("ops", `[["capbegin",1,null],["capend",1],["capbegin",1,null]]`), []string{"exists already"}},
		{"graph unknown", with("ops", `[["delgraph",1]]`), []string{"no such graph"}},
		{"capture streams", with("streams", `[0,77]`), []string{"capture runs on stream 3"}},
		{"no streams", with("streams", `[]`), []string{`"streams"`, "empty"}},
		{"fraction", with("fraction", `"1.5"`), []string{`"fraction"`, "from 0 to 1", "1.5"}},
		{"fraction nan", with("fraction", `"nan"`), []string{"from 0 to 1"}},
		{"fraction word", with("fraction", `"half"`), []string{"from 0 to 1", `"half"`}},
		{"fraction op", with("ops", `[["frac",-1]]`), []string{"from 0 to 1"}},
		{"action", with("trace", `[["boom",1,2,3]]`), []string{`"trace" row 0`, `unknown action "boom"`}},
		{"trace op text", with("trace", `[["alloc",1,2,3,"x"]]`), []string{"number of an operation"}},
		{"trace op range", with("trace", `[["alloc",1,2,3,"99"]]`), []string{`"trace" row 0`, "operation 99, of 20"}},
		{"trace op order", with("trace", `[["alloc",1,2,3,"5"],["alloc",1,2,3,"4"]]`), []string{"row 1", "operation 4"}},
		{"trace long", with("trace", `[["alloc",1,2,3,"0",1]]`), []string{"end of the list"}},
		{"stats type", with("stats", `[[1,[]]]`), []string{`"stats" row 0`, "expected an object"}},
		{"stats value", with("stats", `[[1,{"a":null}]]`), []string{"expected a number", "null"}},
		{"stats range", with("stats", `[[21,{}]]`), []string{"after 21 operations, of 20"}},
		{"stats order", with("stats", `[[3,{}],[2,{}]]`), []string{"row 1"}},
		{"segment key", with("segments", `[{"address":1}]`), []string{`"segments" row 0`, "a segment without", `"blocks"`}},
		{"segment type", with("segments", `[{"segment_type":"medium"}]`), []string{`"medium"`}},
		{"segment bool", with("segments", `[{"is_expandable":1}]`), []string{"true or false"}},
		{"block key", with("segments", `[{"blocks":[{"address":1}]}]`), []string{"a block without", `"state"`}},
		{"block state", with("segments", `[{"blocks":[{"state":"odd"}]}]`), []string{`"odd"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec, err := Read("x.json", strings.NewReader(tt.in))
			if rec != nil || err == nil {
				t.Fatalf("read without error")
			}
			var in *InputError
			if !errors.As(err, &in) {
				t.Fatalf("error of type %T", err)
			}
			for _, w := range append(tt.want, "x.json: ", "; ") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is longer than a line", err)
			}
		})
	}
}

func TestReadCapsSize(t *testing.T) {
	whole := text(doc())
	if _, err := read(strings.NewReader(gz(t, whole)), limits{int64(len(whole)), maxValue}); err != nil {
		t.Errorf("exactly at the cap: %v", err)
	}
	_, err := read(strings.NewReader(gz(t, whole)), limits{int64(len(whole) - 1), maxValue})
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("over the cap: %v", err)
	}
}

// A value without end is stopped long before the cap on the whole.
func TestReadCapsValues(t *testing.T) {
	for name, in := range map[string]io.Reader{
		"text":   io.MultiReader(strings.NewReader(`{"conf":"`), endless('a')),
		"number": io.MultiReader(strings.NewReader(`{"total":1`), endless('0')),
		"key":    io.MultiReader(strings.NewReader(`{"`), endless('k')),
		"blanks": io.MultiReader(strings.NewReader(`{"conf":`), endless(' ')),
		"depth":  io.MultiReader(strings.NewReader(`{"x":`), endless('[')),
	} {
		_, err := read(in, limits{MaxBytes, 1 << 20})
		if err == nil || !(strings.Contains(err.Error(), "larger than 1048576") || strings.Contains(err.Error(), "nested")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// endless repeats one byte.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(t.Context(), File(dir))
	if err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("directory: %v", err)
	}
	_, err = Load(t.Context(), File(filepath.Join(dir, "none")))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing: %v", err)
	}
	path := filepath.Join(dir, "ok.json")
	if err := os.WriteFile(path, []byte(text(doc())), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), File(path)); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, File(path)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Every text that JSON allows must be read or refused, never crash; and what
// is read must be safe to run.
func FuzzRead(f *testing.F) {
	f.Add([]byte(text(doc())))
	f.Add([]byte(gz(f, text(doc()))))
	for _, name := range []string{"pools", "capture", "pending"} {
		f.Add(tinyRecording(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := read(bytes.NewReader(data), limits{1 << 20, 1 << 20})
		if err != nil {
			return
		}
		if _, err := Verify(t.Context(), rec); err != nil && t.Context().Err() == nil {
			if _, bad := json.Marshal(err.Error()); bad != nil {
				t.Error(bad)
			}
		}
	})
}

// TestFilledReads: the decoder looks at all white space before a value again after each read, so that small reads of a file that is
// full of it would take time with the square of its length. An error of the source is told, with what came before it.
func TestFilledReads(t *testing.T) {
	for _, broken := range []error{nil, io.ErrUnexpectedEOF, errors.New("the disk is gone")} {
		source := io.Reader(iotest.HalfReader(strings.NewReader(strings.Repeat(" ", 1<<20))))
		if broken != nil {
			source = io.MultiReader(source, iotest.ErrReader(broken))
		}
		c := &cappedReader{r: source, max: limits{2 << 20, 2 << 20}, decoded: func() int64 { return 0 }}
		if n, err := c.Read(make([]byte, 1<<19)); n != 1<<19 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		if n, err := c.Read(make([]byte, 1<<20)); n != 1<<19 || err != nil && !errors.Is(err, broken) {
			t.Errorf("%d bytes at the end, %v", n, err)
		}
		want := broken
		if want == nil {
			want = io.EOF
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, want) {
			t.Errorf("%d bytes after the end, %v instead of %v", n, err, want)
		}
	}
}

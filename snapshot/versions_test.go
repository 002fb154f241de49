package snapshot

import (
	"bytes"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

func readText(t *testing.T, text string) *File {
	t.Helper()
	f, err := read1([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var exact = cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })

// A file of PyTorch 2.0: blocks have a history and no address, events no time.
func TestVersion20(t *testing.T) {
	f := readText(t, `{"segments": [{"device": 0, "address": 4096, "total_size": 3072, "allocated_size": 1024, "active_size": 1024,
		"stream": 0, "segment_type": "small", "blocks": [
			{"size": 1024, "state": "active_allocated", "history": [
				{"addr": 4096, "real_size": 1000, "frames": [{"name": "f", "filename": "a.py", "line": 3}], "cpp_frames": []},
				{"addr": 4096, "real_size": 500}]},
			{"size": 2048, "state": "inactive"}]}],
		"device_traces": [[{"action": "alloc", "addr": 4096, "size": 1000, "stream": 0, "frames": []},
			{"action": "free_requested", "addr": 4096, "size": 1000, "stream": 0}]]}`)
	tr := f.Traces[0]
	s := tr.Segments[0]
	if s.HasPool || s.Stack != trace.NoStack || len(s.Blocks) != 2 {
		t.Errorf("segment %+v", s)
	}
	first, second := s.Blocks[0], s.Blocks[1]
	if first.Address != 4096 || second.Address != 5120 {
		t.Errorf("addresses %d, %d", first.Address, second.Address)
	}
	if len(first.History) != 2 || first.RequestedSize != 1000 || first.History[1].RealSize != 500 || first.History[1].Stack != trace.NoStack ||
		first.Stack != first.History[0].Stack || stackText(tr, first.Stack) != "f a.py 3\n" {
		t.Errorf("block %+v", first)
	}
	if diff := cmp.Diff(trace.Extra{{Name: "cpp_frames", Value: trace.List{}}}, first.History[0].Extra); diff != "" {
		t.Error(diff)
	}
	a, b := tr.Events.At(0), tr.Events.At(1)
	if a.Time != trace.NoTime || a.Stack != trace.EmptyStack || a.Meta != trace.NoString || a.Pool != trace.NoPool || b.Stack != trace.NoStack {
		t.Errorf("events %+v, %+v", a, b)
	}
	if tr.Settings.Known {
		t.Error("settings are known")
	}
}

// Fields that later versions have, and ones that nobody knows, at every level.
const later = `{"segments": [{"device": 1, "address": 512, "total_size": 512, "allocated_size": 512, "active_size": 512,
	"requested_size": 5, "stream": -7, "segment_type": "large", "segment_pool_id": [0, 3], "is_expandable": true, "frames": [],
	"blocks": [{"address": 512, "size": 512, "requested_size": 5, "state": "active_allocated",
		"frames": [{"name": "f", "filename": "a.py", "line": 3, "fx_node_op": "call"}, {"name": "g", "filename": "a.py", "line": 3}], "b": null}],
	"s": {"x": [1, 2.5, "y", true], "z": {"name": "n", "filename": "f", "line": 1}}}],
	"device_traces": [[], [{"action": "alloc", "addr": -9223372036854775808, "size": 5, "stream": -7, "time_us": 10, "compile_context": "N/A",
		"user_metadata": "m", "pool_id": [0, 3], "frames": [{"name": "g", "filename": "a.py", "line": 3}], "forward_frames": ["one", "two"]},
		{"action": "segment_reserve", "addr": 1, "size": 2, "stream": 0, "time_us": 11, "user_metadata": {"k": 1}},
		{"action": "oom", "device_free": 99, "size": 5, "stream": 0, "time_us": 12, "pool_id": [0, 0]}]],
	"allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "new_setting": 18446744073709551615},
	"external_annotations": [{"stage": "START", "name": "step", "device": 1, "time_us": 9, "a": 1e300}, {"stage": "END", "name": "step", "device": 1, "time_us": 13}],
	"host_segments": [{"device": 0, "address": 1, "total_size": 2, "allocated_size": 0, "active_size": 0, "requested_size": 0, "stream": 0,
		"segment_type": "small", "is_expandable": false, "blocks": []}],
	"host_traces": [[{"action": "alloc", "addr": 7, "size": 8, "stream": 0, "time_us": 1}]],
	"trace_alloc_overflowed": [false, true], "huge": -123456789012345678901234567890, "nan": NaN, "text": "a\ud800\u00e9\ud83d\ude00\n\"\\\u0001"}`

func TestLaterVersions(t *testing.T) {
	f := readText(t, later)
	if len(f.Traces) != 2 || f.Traces[1].Device != 1 || f.Host == nil || !f.Host.Host {
		t.Fatalf("%+v", f)
	}
	tr := f.Traces[1]
	ev := tr.Events.At(0)
	if ev.Addr != 1<<63 || int64(ev.Stream) != -7 || tr.Events.Pools[ev.Pool] != (alloc.PoolID{Second: 3}) || stackText(tr, ev.Stack) != "g a.py 3\n" {
		t.Errorf("event %+v", ev)
	}
	if got := tr.Events.ActionName(tr.Events.At(1).Action); got != "segment_reserve" {
		t.Errorf("action %q", got)
	}
	if oom := tr.Events.At(2); oom.Action != alloc.ActionOOM || oom.Addr != 99 || oom.Pool == trace.NoPool {
		t.Errorf("oom %+v", oom)
	}
	wantEvents := map[int]trace.Extra{
		0: {{Name: "forward_frames", Value: trace.List{"one", "two"}}},
		1: {{Name: "user_metadata", Value: trace.Extra{{Name: "k", Value: int64(1)}}}},
	}
	if diff := cmp.Diff(wantEvents, tr.Events.Extra); diff != "" {
		t.Error(diff)
	}
	s := tr.Segments[0]
	wantSegment := trace.Extra{{Name: "s", Value: trace.Extra{
		{Name: "x", Value: trace.List{int64(1), 2.5, "y", true}},
		{Name: "z", Value: trace.Extra{{Name: "name", Value: "n"}, {Name: "filename", Value: "f"}, {Name: "line", Value: int64(1)}}},
	}}}
	if diff := cmp.Diff(wantSegment, s.Extra); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(trace.Extra{{Name: "b"}}, s.Blocks[0].Extra); diff != "" {
		t.Error(diff)
	}
	frame := tr.Stacks.Frame(tr.Stacks.Frames(s.Blocks[0].Stack)[0])
	if frame.Extra == 0 || tr.Stacks.Extra[frame.Extra-1].Get("fx_node_op") != "call" {
		t.Errorf("frame %+v", frame)
	}
	if diff := cmp.Diff(trace.Extra{{Name: "a", Value: 1e300}}, tr.Annotations[0].Extra); diff != "" {
		t.Error(diff)
	}
	if got := tr.Settings.Fields.Get("new_setting"); got != uint64(math.MaxUint64) {
		t.Errorf("new_setting %v", got)
	}
	if f.Host.Events.At(0).Addr != 7 || len(f.Host.Segments) != 1 || len(f.Host.Annotations) != 2 {
		t.Errorf("host %+v", f.Host)
	}
	huge, _ := new(big.Int).SetString("-123456789012345678901234567890", 10)
	if diff := cmp.Diff(huge, f.Extra.Get("huge"), exact); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(trace.List{false, true}, f.Extra.Get("trace_alloc_overflowed")); diff != "" {
		t.Error(diff)
	}
	if x, ok := f.Extra.Get("nan").(float64); !ok || !math.IsNaN(x) {
		t.Errorf("nan %v", f.Extra.Get("nan"))
	}
	if got, want := f.Extra.Get("text"), "a\xed\xa0\x80é😀\n\"\\\x01"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if diff := cmp.Diff(f.Extra.Get("text"), tr.Extra.Get("text")); diff != "" {
		t.Error(diff)
	}
}

// All of that comes back from both writers, and Python agrees.
func TestLaterVersionsWritten(t *testing.T) {
	f := readText(t, later)
	want := asJSON(t, f)
	var b bytes.Buffer
	if err := WritePickle(&b, f); err != nil {
		t.Fatal(err)
	}
	again, err := read1(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, asJSON(t, again)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, asJSON(t, readText(t, want))); diff != "" {
		t.Error(diff)
	}
	folder := t.TempDir()
	original, written := filepath.Join(folder, "a.json"), filepath.Join(folder, "b.json")
	text := strings.Replace(later, `"pool_id": [0, 3], "frames"`, `"pool_id": [0, 3],"frames"`, 1)
	if err := os.WriteFile(original, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(written, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	python(t, "compare.py", original, written)
}

// The state of a block is written as it was read, in whichever words.
func TestBlockStatesWritten(t *testing.T) {
	states := []string{"active_allocated", "active_awaiting_free", "asleep", ""}
	var blocks []string
	for _, s := range states {
		blocks = append(blocks, `{"size": 512, "state": "`+s+`"}`)
	}
	f := readText(t, `{"segments": [{"device": 0, "address": 512, "total_size": 2048, "blocks": [`+strings.Join(blocks, ",")+`]}], "device_traces": [[]]}`)
	for i, want := range []alloc.BlockState{alloc.ActiveAllocated, alloc.ActivePendingFree, trace.OtherState, trace.OtherState} {
		if got := f.Traces[0].Segments[0].Blocks[i].State; got != want {
			t.Errorf("block %d is %v, want %v", i, got, want)
		}
	}
	written := asJSON(t, f)
	for i, s := range states {
		at := strings.Index(written, `"state":"`)
		if at < 0 {
			t.Fatalf("block %d has no state", i)
		}
		written = written[at+len(`"state":"`):]
		if got, _, _ := strings.Cut(written, `"`); got != s {
			t.Errorf("block %d is written as %q, want %q", i, got, s)
		}
	}
}

func TestSettings(t *testing.T) {
	table := func(i int, n uint64) (d [16]uint64) {
		d[i] = n
		return d
	}
	for _, tt := range []struct {
		name, dict string
		want       func(*settings.Settings)
		warning    string
	}{
		{"defaults", `{"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1}`, func(*settings.Settings) {}, ""},
		{
			"text only", `{"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128,large_segment_size_mb:40"}`,
			func(s *settings.Settings) {
				s.MaxSplitSize, s.LargeSegmentSize, s.MaxNonSplitRounding = 128<<20, 40<<20, 40<<20
			}, "",
		},
		{
			"fields count", `{"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128", "max_split_size": -1, "garbage_collection_threshold": 0.5,
				"expandable_segments": true, "roundup_power2_divisions": {"1": 0, "4": 8}}`,
			func(s *settings.Settings) {
				s.GarbageCollectionThreshold, s.ExpandableSegments, s.RoundupPower2Divisions = 0.5, true, table(2, 8)
			}, "",
		},
		{
			"text that fails", `{"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:maybe", "max_split_size": 104857600}`,
			func(s *settings.Settings) { s.MaxSplitSize = 100 << 20 },
			"does not parse",
		},
		{
			"unknown key", `{"PYTORCH_CUDA_ALLOC_CONF": "nonsense:1,expandable_segments:True", "max_split_size": 104857600}`,
			func(s *settings.Settings) { s.MaxSplitSize, s.ExpandableSegments = 100<<20, true },
			`has "nonsense", a key that is not modelled: it is left out, the rest holds`,
		},
		{
			"key of 2.12", `{"PYTORCH_CUDA_ALLOC_CONF": "throw_on_cudamalloc_oom:True,expandable_segments:True"}`,
			func(s *settings.Settings) { s.ExpandableSegments = true },
			"(PyTorch 2.12 has it)",
		},
		{
			"other variable", `{"PYTORCH_ALLOC_CONF": "expandable_segments:True"}`,
			func(s *settings.Settings) { s.ExpandableSegments = true }, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := readText(t, `{"device_traces": [[{"action": "alloc", "addr": 512, "size": 1, "stream": 0}]], "allocator_settings": `+tt.dict+`}`)
			want := settings.Default()
			tt.want(&want)
			got := f.Traces[0].Settings
			if diff := cmp.Diff(want, got.Parsed); diff != "" || !got.Known {
				t.Errorf("known %v: %s", got.Known, diff)
			}
			if warned := strings.Join(f.Warnings, ""); !strings.Contains(warned, tt.warning) || (warned == "") != (tt.warning == "") {
				t.Errorf("warnings %q", f.Warnings)
			}
		})
	}
}

// Without settings the defaults are assumed and not called known.
func TestNoSettings(t *testing.T) {
	f := readText(t, `{"device_traces": [[{"action": "alloc", "addr": 512, "size": 1, "stream": 0}]]}`)
	if s := f.Traces[0].Settings; s.Known || s.Parsed != settings.Default() {
		t.Errorf("%+v", s)
	}
}

func TestPick(t *testing.T) {
	event := func(action string) string { return `{"action": "` + action + `", "addr": 1, "size": 1, "stream": 0}` }
	segment := func(device, size string) string {
		return `{"device": ` + device + `, "address": 1, "total_size": ` + size + `, "blocks": []}`
	}
	for _, tt := range []struct {
		name, traces, segments string
		device, want           int
		why                    string
	}{
		{"only one", `[[` + event("alloc") + `]]`, `[]`, -1, 0, ""},
		{"only one with content", `[[], [` + event("alloc") + `], []]`, `[]`, -1, 1, ""},
		{"most events", `[[` + event("alloc") + `], [` + event("alloc") + `,` + event("alloc") + `]]`, `[]`, -1, 1, "most events"},
		{"oom", `[[` + event("oom") + `], [` + event("alloc") + `,` + event("alloc") + `]]`, `[]`, -1, 0, "ran out of memory"},
		{"most memory", `[]`, `[` + segment("0", "5") + `,` + segment("3", "9") + `]`, -1, 3, "most memory"},
		{"asked for", `[[` + event("oom") + `], [` + event("alloc") + `]]`, `[]`, 1, 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := readText(t, `{"device_traces": `+tt.traces+`, "segments": `+tt.segments+`}`)
			tr, why, err := f.Pick(tt.device)
			if err != nil || tr.Device != tt.want || !strings.Contains(why, tt.why) || (why == "") != (tt.why == "") {
				t.Errorf("device %v, %q, %v", tr, why, err)
			}
		})
	}
	f := readText(t, `{"device_traces": [[`+event("alloc")+`]]}`)
	if _, _, err := f.Pick(2); err == nil || !strings.Contains(err.Error(), "has no device 2: it has device 0 only") {
		t.Error(err)
	}
}

// Several devices share one table while they are read.
func TestDevices(t *testing.T) {
	f, err := read1(buildDevices(t, 20))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Traces) != 20 {
		t.Fatalf("%d traces", len(f.Traces))
	}
	for i, tr := range f.Traces {
		if tr.Device != i || tr.Events.Len() != 20 || len(tr.Segments) != 1 {
			t.Fatalf("trace %d: device %d, %d events, %d segments", i, tr.Device, tr.Events.Len(), len(tr.Segments))
		}
		for j := range 20 {
			if got := tr.Events.At(j).Addr; got != uint64(1000*i+j) {
				t.Fatalf("event %d of device %d has address %d", j, i, got)
			}
		}
	}
}

// Events in another order than they were written in are put in order.
func TestShuffledEvents(t *testing.T) {
	// Protocol 2: three events are made and named, then listed backwards.
	event := func(i byte) string {
		return "}q" + string(i) + "(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocX\x04\x00\x00\x00addrK" + string(i) + "X\x04\x00\x00\x00sizeK\x01u0"
	}
	f := readText(t, "\x80\x02"+event(1)+event(2)+event(3)+"}X\x0d\x00\x00\x00device_traces]](h\x03h\x02h\x01eas.")
	var got []uint64
	for i := range f.Traces[0].Events.Len() {
		got = append(got, f.Traces[0].Events.At(i).Addr)
	}
	if diff := cmp.Diff([]uint64{3, 2, 1}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCompression(t *testing.T) {
	data := plain(t, sample)
	for _, tt := range []struct{ name, data string }{{"", string(data)}, {"gzip", zip(t, string(data))}, {"zstd", zst(t, data)}} {
		f, err := read1([]byte(tt.data))
		if err != nil {
			t.Fatal(err)
		}
		if f.Compression != tt.name || f.Bytes != int64(len(data)) || len(f.Warnings) > 0 {
			t.Errorf("%q: %d bytes, warnings %q", f.Compression, f.Bytes, f.Warnings)
		}
	}
	f, err := read1(append(data, "and more"...))
	if err != nil || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "8 bytes or more behind the snapshot") {
		t.Errorf("%v, %v", f.Warnings, err)
	}
}

package anonymous

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// crafted has the word zebra wherever a file can have a text, also where PyTorch
// writes none.
const crafted = `{
"segments": [{"device": 0, "address": 4096, "total_size": 2097152, "allocated_size": 512, "active_size": 512, "requested_size": 100, "stream": 0,
  "segment_type": "zebra", "segment_pool_id": [0, 0], "is_expandable": false, "zebra": 1, "frames": [],
  "blocks": [{"address": 4096, "size": 512, "requested_size": 100, "state": "zebra", "zebra": {"zebra": ["zebra"]}, "frames": []},
    {"address": 4608, "size": 2096640, "requested_size": 0, "state": "inactive", "frames": []}]}],
"device_traces": [[
  {"action": "segment_alloc", "addr": 4096, "size": 2097152, "stream": 0, "time_us": 1, "compile_context": "N/A", "user_metadata": "", "frames": []},
  {"action": "alloc", "addr": 4096, "size": 100, "stream": 0, "time_us": 2, "compile_context": "zebra", "user_metadata": "zebra 17 mallocWithAddress", "zebra": "zebra",
   "frames": [{"name": "zebra_loss", "filename": "/home/zebra/train.py", "line": 7, "fx_node_name": "zebra"},
     {"name": "zebra_loss", "filename": "/home/zebra/train.py", "line": 7},
     {"name": "at::native::zebra_cudnn(zebra)", "filename": "zebra.cpp", "line": 3}, {"name": "zebra", "filename": "<zebra>", "line": 1},
     {"name": "step", "filename": "/zebra/lib/python3.12/site-packages/torch/optim/zebra.py", "line": 9}]},
  {"action": "zebra", "addr": 4096, "size": 100, "stream": 0, "time_us": 3, "compile_context": "0/1", "user_metadata": "", "frames": []}]],
"allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64,zebra:zebra,oom_snapshot:/zebra/x", "expandable_segments": false, "zebra": 1, "expandable_segments_reserve": "zebra"},
"external_annotations": [{"stage": "START", "name": "ProfilerStep#3zebra", "device": 0, "time_us": 1, "zebra": "zebra"},
  {"stage": "START", "name": "Optimizer.step#Zebra.step", "device": 0, "time_us": 1}, {"stage": "START", "name": "zebra", "device": 0, "time_us": 1}],
"zebra": "zebra", "trace_alloc_overflowed": true,
"ashlar": {"version": 1, "torch": "2.11.0+zebra", "reason": "zebra", "pid": 3, "note": "zebra", "host": "zebra", "step": "zebra", "steps": [["zebra", 1], [1, 2]],
  "message": "zebra: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 (zebra) has a total capacity of 1EB /home/zebra",
  "settings": {"PYTORCH_CUDA_ALLOC_CONF": "zebra:1,backend:zebra", "ZEBRA": "zebra"}, "memory_stats": {"0": {"num_ooms": 1, "zebra": 2}, "zebra": {}},
  "devices": [{"index": 0, "name": "zebra", "capability": "zebra", "zebra": 1}, {"index": 1, "name": "NVIDIA H200", "capability": "9.0"}]}}`

func written(t *testing.T, f *snapshot.File) (pickle, json string) {
	t.Helper()
	var p, j bytes.Buffer
	if err := snapshot.WritePickle(&p, f); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.WriteJSON(&j, f); err != nil {
		t.Fatal(err)
	}
	return p.String(), j.String()
}

func TestCrafted(t *testing.T) {
	f, err := snapshot.Read(context.Background(), "crafted", strings.NewReader(crafted), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hidden, names := File(f, []byte("salt"))
	pickle, json := written(t, hidden)
	for _, text := range []string{pickle, json} {
		if at := regexp.MustCompile(`(?i).{0,40}zebra.{0,40}`).FindString(text); at != "" {
			t.Errorf("a name is left: %s", at)
		}
	}
	for _, want := range []string{
		`"max_split_size_mb:64"`, `"ProfilerStep#3"`, `"Optimizer.step#range-`, ` 17mallocWithAddress"`, `"loss-function-`, `cudnn-function-`,
		`"/site-packages/torch/optim/file-`, `"0/1"`, `"trace_alloc_overflowed":true`, `"torch":"2.11.0"`, `"steps":[[1],[1,2]]`, `"num_ooms":1`,
		`"message":"CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 1EB"`, `"NVIDIA H200"`, `"line":7`,
	} {
		if !strings.Contains(json, want) {
			t.Errorf("%s is not there:\n%s", want, json)
		}
	}
	if !slices.ContainsFunc(names, func(n Name) bool { return n.Was == "/home/zebra/train.py" && strings.Contains(json, n.Word) }) {
		t.Errorf("the table of names does not say what train.py became: %v", names)
	}
	_, other := written(t, first(File(f, []byte("another salt"))))
	if _, again := written(t, first(File(f, []byte("salt")))); again != json || other == json {
		t.Error("the salt alone decides the words")
	}
}

// Frames of two copies of PyTorch become the same; what comes after keeps its own.
func TestTwins(t *testing.T) {
	frame := func(file string) string { return `[{"name": "_call_impl", "filename": "` + file + `", "line": 1}]` }
	events := ""
	for i, file := range []string{"/a/torch/nn/modules/module.py", "/b/torch/nn/modules/module.py", "/c/mine.py"} {
		events += `,{"action": "alloc", "addr": ` + strconv.Itoa(4096+512*i) + `, "size": 512, "stream": 0, "time_us": 1, "frames": ` + frame(file) + `}`
	}
	f, err := snapshot.Read(context.Background(), "twins", strings.NewReader(`{"segments": [], "device_traces": [[`+events[1:]+`]]}`), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hidden, _ := File(f, []byte("salt"))
	tr := hidden.Traces[0]
	last := timeline.Frames(tr, tr.Events.Stack.At(2))
	if tr.Events.Stack.At(0) != tr.Events.Stack.At(1) || len(last) != 1 || !strings.HasPrefix(last[0].Filename, "/program/file-") {
		t.Errorf("the last event has %v", last)
	}
}

func first(f *snapshot.File, _ []Name) *snapshot.File { return f }

// formatWords are in every file.
const formatWords = " segments device address total_size allocated_size active_size requested_size stream segment_type segment_pool_id is_expandable blocks " +
	"state frames name filename line active_allocated inactive active_pending_free small large device_traces action alloc free_requested free_completed " +
	"segment_alloc segment_free snapshot device_free time_us compile_context user_metadata allocator_settings external_annotations stage START END "

// A recording's own names are nowhere in what is written, unless they are words
// of PyTorch that rules go by.
func TestRecordings(t *testing.T) {
	allowed := formatWords + strings.Join(slices.Concat(keys(functions), keys(torchFiles), torchFolders, otherFiles, anyParts, nativeParts,
		nativeStarts, keys(settingKeys), keys(factFields), endings), " ") + " /site-packages/ /program/ file- function- range- Optimizer.step# Optimizer.zero_grad#"
	for _, file := range []string{"variety/cppstacks", "variety/profiler", "variety/compile", "advice/ddp_buckets", "advice/attention_maps"} {
		f, err := snapshot.Open(context.Background(), filepath.Join("../../testdata", file+".pickle.gz"), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var pickle bytes.Buffer
		if err := snapshot.WritePickle(&pickle, first(File(f, []byte("salt")))); err != nil {
			t.Fatal(err)
		}
		looked := 0
		for _, name := range originalNames(f) {
			if len(name) < 4 || strings.Contains(allowed, name) || profilerRange.MatchString(name) {
				continue
			}
			looked++
			if bytes.Contains(pickle.Bytes(), []byte(name)) {
				t.Errorf("%s: %q is left", file, name)
			}
		}
		if looked < 20 {
			t.Errorf("%s: only %d names were looked for", file, looked)
		}
	}
}

func keys(m map[string]bool) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// originalNames are the names in a file, paths also by their parts.
func originalNames(f *snapshot.File) []string {
	seen := map[string]bool{}
	for _, t := range f.Traces {
		for i := range t.Stacks.NumFrames() {
			frame := frameAt(t.Stacks, t.Strings, i)
			seen[frame.Name], seen[frame.Filename] = true, true
			for part := range strings.SplitSeq(frame.Filename, "/") {
				seen[part] = true
			}
		}
		for _, a := range t.Annotations {
			seen[t.Strings.Text(a.Name)] = true
		}
	}
	return keys(seen)
}

// Rules that go by names see the same in a frame with and without them.
func TestRulesSeeTheSame(t *testing.T) {
	h := newHider([]byte("salt"))
	files, err := filepath.Glob("../../testdata/variety/*.pickle.gz")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	frames := []timeline.Frame{
		{Name: "f", Filename: "/home/me/torch/mine.py", Line: 3},
		{Name: "f", Filename: "torch/mine.py", Line: 3},
		{Name: "f", Filename: "<ipython-input-3-ab>", Line: 3},
		{Name: "f", Filename: "<string>", Line: 3},
		{Name: "f", Filename: "<stdin>", Line: 3},
		{Name: "f", Filename: "/opt/pytorch/torch/_dynamo/eval_frame.py", Line: 3},
		{Name: "inner", Filename: "/x/site-packages/torch/_dynamo/a.py", Line: 3},
		{Name: "__call__", Filename: "/x/site-packages/torch/_ops.py", Line: 3},
		{Name: "__call__", Filename: "/home/me/_ops.py", Line: 3},
		{Name: "f", Filename: "/x/site-packages/accelerate/utils/memory.py", Line: 3},
		{Name: "f", Filename: "/x/lightning/tuner/batch_size_scaling.py", Line: 3},
		{Name: "f", Filename: "/tmp/torchinductor_me/ab.py", Line: 3},
		{Name: "f", Filename: "script", Line: 3},
		{Name: "f", Filename: "script", Line: 0},
		{Name: "cudnnConvolutionForward", Filename: "??", Line: 0},
		{Name: "at::native::getWorkspace()", Filename: "a.cpp", Line: 9},
		{},
	}
	for _, file := range files {
		f, err := snapshot.Open(context.Background(), file, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range f.Traces[:min(1, len(f.Traces))] {
			for i := range tr.Stacks.NumFrames() {
				frames = append(frames, frameAt(tr.Stacks, tr.Strings, i))
			}
		}
	}
	for _, f := range frames {
		g := timeline.Frame{Line: f.Line}
		g.Name, g.Filename = h.frame(f)
		path := func(f timeline.Frame) string { return f.BelowTorch() }
		caught := func(f timeline.Frame) *whatif.Caught { return whatif.LooksCaught([]timeline.Frame{f}) }
		if f.User() != g.User() || f.Native() != g.Native() || (path(f) == "") != (path(g) == "") || torchFiles[path(f)] != torchFiles[path(g)] || caught(f) != caught(g) {
			t.Errorf("%+v is seen otherwise as %+v", f, g)
		}
	}
	if len(frames) < 500 {
		t.Errorf("only %d frames", len(frames))
	}
}

// Every setting that PyTorch has is kept.
func TestSettingKeys(t *testing.T) {
	var unknown *settings.Error
	if _, err := settings.Parse("no_such_key:1"); !errors.As(err, &unknown) {
		t.Fatal(err)
	}
	for key := range strings.SplitSeq(unknown.Allowed, ", ") {
		if !settingKeys[key] {
			t.Errorf("%s is left out of settings texts", key)
		}
	}
}

func TestConf(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"max_split_size_mb:64": "max_split_size_mb:64",
		"expandable_segments:True, garbage_collection_threshold:0.5":          "expandable_segments:True,garbage_collection_threshold:0.5",
		"roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True": "roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True",
		"oom_snapshot:/home/me,backend:native":                                "backend:native",
		"user@host":                                                           "",
		"a:[me]]]],max_split_size_mb:100":                                     "max_split_size_mb:100",
	} {
		if got := conf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

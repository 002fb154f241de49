package recorder_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// sample is written by python/test_ashlar.py, on a fake of torch.
const sample = "testdata/oom.pickle"

func open(t testing.TB) *snapshot.File {
	t.Helper()
	f, err := snapshot.Open(context.Background(), sample, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSample(t *testing.T) {
	f := recorder.Read(open(t).Extra)
	if f == nil {
		t.Fatal("no facts")
	}
	text, ok := f.Conf()
	got := map[string]any{
		"version": f.Version, "torch": f.Torch, "cuda": f.CUDA, "hip": f.HIP, "reason": f.Reason, "late": f.Late, "note": f.Note,
		"time": *f.TimeUS, "pid": *f.PID, "rank": *f.Rank, "device": *f.Device, "step": *f.Step,
		"request": *f.RequestBytes, "segment": *f.SegmentBytes, "free": *f.DeviceFreeBytes, "limit": *f.LimitBytes, "known": f.LimitKnown,
		"ooms": *f.OOMs, "entries": *f.MaxEntries, "conf": text, "set": ok, "extra": len(f.Extra), "warnings": len(f.Warnings),
		"settings": f.Settings, "stats": len(f.MemoryStats), "devices": len(f.Devices), "steps": len(f.Steps),
	}
	want := map[string]any{
		"version": int64(1), "torch": "2.11.0+fake", "cuda": "13.0", "hip": "", "reason": recorder.OOM, "late": false, "note": "",
		"time": int64(1_700_000_000_000_100), "pid": int64(4242), "rank": int64(3), "device": 0, "step": int64(12),
		"request": uint64(30 << 20), "segment": uint64(30 << 20), "free": uint64(140_000_000_000), "limit": uint64(40 << 20), "known": true,
		"ooms": int64(1), "entries": int64(500_000), "conf": "expandable_segments:True", "set": true, "extra": 0, "warnings": 0,
		"settings": []recorder.Variable{{Name: "PYTORCH_ALLOC_CONF", Text: "expandable_segments:True"}}, "stats": 1, "devices": 2, "steps": 2,
	}
	for key := range want {
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s: %v, want %v", key, got[key], want[key])
		}
	}

	d := f.MemoryStats[0]
	if d == nil || d.Device != 0 || !d.Exact || d.Source != stats.Recorded || len(d.Missing)+len(d.Unknown) > 0 {
		t.Fatalf("memory_stats %+v", d)
	}
	if d.Values["reserved_bytes.all.current"] != 22<<20 || d.Values["num_ooms"] != 1 || d.Values["max_split_size"] != -1 {
		t.Errorf("memory_stats %v", d.Values)
	}
	used, unused := f.DeviceFacts(0), f.DeviceFacts(1)
	if used.Name != "Fake GPU" || used.Capability != "9.0" || *used.TotalMemory != 150e9 || *used.TotalBytes != 150e9 || *used.FreeBytes != 140e9 || *used.LimitBytes != 40<<20 {
		t.Errorf("device 0: %+v", used)
	}
	if *unused.TotalMemory != 150e9 || unused.FreeBytes != nil || unused.TotalBytes != nil || unused.LimitBytes != nil || unused.LimitKnown {
		t.Errorf("device 1: %+v", unused)
	}
	if f.DeviceFacts(2) != nil {
		t.Error("a device 2")
	}
}

// TestSampleAgrees: the facts and the snapshot in the file tell the same, and
// the message is one that package message reads.
func TestSampleAgrees(t *testing.T) {
	file := open(t)
	f := recorder.Read(file.Extra)
	tr, _, err := file.Pick(*f.Device)
	if err != nil {
		t.Fatal(err)
	}
	last := tr.Events.At(tr.Events.Len() - 1)
	if tr.Events.ActionName(last.Action) != "oom" || last.Size != *f.RequestBytes {
		t.Errorf("the last event is %+v, the request %d", last, *f.RequestBytes)
	}
	reserved := uint64(0)
	for _, s := range tr.Segments {
		reserved += s.TotalSize
	}
	if d := f.MemoryStats[*f.Device]; uint64(d.Values["reserved_bytes.all.current"]) != reserved {
		t.Errorf("reserved %d, in segments %d", d.Values["reserved_bytes.all.current"], reserved)
	}
	all, err := message.Parse(f.Message)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d messages, %v", len(all), err)
	}
	if m := all[0]; !m.TriedBytes.Contains(*f.SegmentBytes) || !m.LimitBytes.Contains(*f.LimitBytes) || !m.FreeBytes.Contains(*f.DeviceFreeBytes) {
		t.Errorf("message %+v", m)
	}
	if !reflect.DeepEqual(recorder.Read(tr.Extra), f) {
		t.Error("the fields of the trace give other facts than those of the file")
	}
}

// TestConvert: the facts survive writing the file in either format.
func TestConvert(t *testing.T) {
	file := open(t)
	want := recorder.Read(file.Extra)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"pickle": func(b *bytes.Buffer) error { return snapshot.WritePickle(b, file) },
		"json":   func(b *bytes.Buffer) error { return snapshot.WriteJSON(b, file) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		again, err := snapshot.Read(context.Background(), name, &b, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := recorder.Read(again.Extra); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestOtherFiles(t *testing.T) {
	f, err := snapshot.Open(context.Background(), "../testdata/py_snapshot.pickle", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := recorder.Read(f.Extra); got != nil {
		t.Errorf("facts in a plain snapshot: %+v", got)
	}
	if got := recorder.Read(nil); got != nil {
		t.Errorf("facts in nothing: %+v", got)
	}
}

// What a job was called is read, and a tag that is no text is left out.
func TestIdentity(t *testing.T) {
	f := recorder.Read(trace.Extra{{Name: recorder.Key, Value: trace.Extra{
		{Name: "run", Value: "r"},
		{Name: "attempt", Value: int64(2)},
		{Name: "world", Value: int64(8)},
		{Name: "commit", Value: "abc"},
		{Name: "tags", Value: trace.Extra{{Name: "a", Value: "1"}, {Name: "b", Value: int64(2)}}},
	}}})
	if f.Run != "r" || *f.Attempt != 2 || *f.World != 8 || f.Commit != "abc" || !reflect.DeepEqual(f.Tags, map[string]string{"a": "1"}) || len(f.Warnings) != 1 {
		t.Errorf("%+v", f)
	}
}

func TestWrongTypes(t *testing.T) {
	huge := new(big.Int).Lsh(big.NewInt(1), 100)
	for _, c := range []struct {
		name    string
		value   any
		warning string // "" for none
	}{
		{"ashlar", nil, "ashlar is nothing, not a dictionary; it is left out"},
		{"ashlar", "facts", "ashlar is a text, not a dictionary; it is left out"},
		{"ashlar", trace.List{}, "ashlar is a list of 0, not a dictionary; it is left out"},
		{"version", int64(2), `"ashlar" is of version 2, and this program knows version 1: update it to read all`},
		{"version", 1.5, "ashlar.version is the fraction 1.5, not a whole number of 64 bits; it is left out"},
		{"version", math.NaN(), "ashlar.version is not a number, not a whole number of 64 bits; it is left out"},
		{"torch", int64(2), "ashlar.torch is 2, not a text; it is left out"},
		{"message", nil, ""},
		{"message", trace.List{"a", "b"}, "ashlar.message is a list of 2, not a text; it is left out"},
		{"late", int64(1), "ashlar.late is 1, not true or false; it is left out"},
		{"step", "four", "ashlar.step is a text, not a whole number of 64 bits; it is left out"},
		{"step", true, "ashlar.step is true, not a whole number of 64 bits; it is left out"},
		{"step", uint64(math.MaxUint64), "ashlar.step is 18446744073709551615, not a whole number of 64 bits; it is left out"},
		{"step", int64(-3), ""},
		{"attempt", int64(-1), "ashlar.attempt is -1, not a number from 0 to 2147483647; it is left out"},
		{"attempt", int64(1) << 40, "ashlar.attempt is 1099511627776, not a number from 0 to 2147483647; it is left out"},
		{"world", int64(math.MaxInt32), ""},
		{"time_us", int64(5), "ashlar.time_us is 5, not microseconds since 1970; it is left out"},
		{"time_us", int64(math.MaxInt64), "ashlar.time_us is 9223372036854775807, not microseconds since 1970; it is left out"},
		{"limit_bytes", int64(-1), "ashlar.limit_bytes is -1, not a number of bytes; it is left out"},
		{"limit_bytes", 1e9, "ashlar.limit_bytes is the fraction 1e+09, not a number of bytes; it is left out"},
		{"limit_bytes", huge, "ashlar.limit_bytes is a number of 101 bits, not a number of bytes; it is left out"},
		{"limit_bytes", uint64(math.MaxUint64), ""},
		{"device", int64(-1), "ashlar.device is -1, not the number of a device; it is left out"},
		{"device", int64(1 << 40), "ashlar.device is 1099511627776, not the number of a device; it is left out"},
		{"steps", trace.Extra{}, "ashlar.steps is a dictionary, not a list; it is left out"},
		{"steps", trace.List{int64(1)}, "ashlar.steps[0] is 1, not a pair of numbers; it is left out"},
		{"steps", trace.List{trace.List{int64(1)}}, "ashlar.steps[0] is a list of 1, not a pair of numbers; it is left out"},
		{"steps", trace.List{trace.List{int64(1), "x"}}, "ashlar.steps[0][1] is a text, not a whole number of 64 bits; it is left out"},
		{"settings", "expandable_segments:True", "ashlar.settings is a text, not a dictionary; it is left out"},
		{"settings", trace.Extra{{Name: "A\x1b[31m", Value: int64(1)}}, `ashlar.settings["A\x1b[31m"] is 1, not a text; it is left out`},
		{"settings", trace.Extra{{Name: strings.Repeat("x", 1000), Value: nil}}, `ashlar.settings["` + strings.Repeat("x", 60) + `..."] is nothing, not a text; it is left out`},
		{"memory_stats", trace.List{}, "ashlar.memory_stats is a list of 0, not a dictionary; it is left out"},
		{"memory_stats", trace.Extra{{Name: "cuda:0"}}, `ashlar.memory_stats["cuda:0"]: this is no number of a device; it is left out`},
		{"memory_stats", trace.Extra{{Name: "-1"}}, `ashlar.memory_stats["-1"]: this is no number of a device; it is left out`},
		{"memory_stats", trace.Extra{{Name: "0", Value: int64(4)}}, `ashlar.memory_stats["0"] is 4, not a dictionary; it is left out`},
		{"memory_stats", trace.Extra{{Name: "0", Value: trace.Extra{{Name: "num_ooms", Value: "1"}}}}, `ashlar.memory_stats["0"]["num_ooms"] is a text, not a whole number of 64 bits; it is left out`},
		{"devices", trace.Extra{}, "ashlar.devices is a dictionary, not a list; it is left out"},
		{"devices", trace.List{trace.Extra{{Name: "name", Value: "A100"}}}, "ashlar.devices[0] has no index; it is left out"},
		{"devices", trace.List{trace.Extra{{Name: "index", Value: int64(0)}, {Name: "free_bytes", Value: int64(-5)}}}, "ashlar.devices[0].free_bytes is -5, not a number of bytes; it is left out"},
		{"something_new", trace.List{huge}, ""},
	} {
		fields := trace.Extra{{Name: "ashlar", Value: trace.Extra{{Name: "rank", Value: int64(6)}, {Name: c.name, Value: c.value}}}}
		if c.name == "ashlar" {
			fields = trace.Extra{{Name: c.name, Value: c.value}}
		}
		f := recorder.Read(fields)
		var want []string
		if c.warning != "" {
			want = []string{c.warning}
		}
		if !slices.Equal(f.Warnings, want) {
			t.Errorf("%s = %v: warnings %q, want %q", c.name, c.value, f.Warnings, want)
		}
		if c.name != "ashlar" && (f.Rank == nil || *f.Rank != 6) {
			t.Errorf("%s = %v: the rank is lost", c.name, c.value)
		}
	}
}

// TestEveryPlace puts something wrong into every place of the sample. Nothing
// panics, the rest is read, and there is a warning unless the value fits.
func TestEveryPlace(t *testing.T) {
	whole := open(t).Extra.Get(recorder.Key).(trace.Extra)
	wrong := []any{nil, true, int64(-7), int64(7), uint64(math.MaxUint64), new(big.Int), 0.5, math.Inf(1), "text", trace.List{}, trace.List{nil, nil}, trace.Extra{}, trace.Extra{{Name: "x"}}}
	silent := 0
	tried := 0
	for _, path := range places(whole, nil) {
		for _, w := range wrong {
			changed := replace(whole, path, w).(trace.Extra)
			f := recorder.Read(trace.Extra{{Name: recorder.Key, Value: changed}})
			tried++
			if len(f.Warnings) == 0 {
				silent++
			}
			if path[0] != "torch" && f.Torch != "2.11.0+fake" {
				t.Fatalf("%v = %v: the version is lost", path, w)
			}
			if same := fmt.Sprintf("%T", w) == fmt.Sprintf("%T", at(whole, path)); !same && w != nil && len(f.Warnings) == 0 && at(whole, path) != nil {
				if _, isSize := w.(uint64); !isSize || !strings.Contains(path[len(path)-1], "_") {
					t.Errorf("%v = %T without a warning", path, w)
				}
			}
		}
	}
	if tried < 1000 || silent == 0 || silent > tried/2 {
		t.Errorf("%d tried, %d without a warning", tried, silent)
	}
}

// places lists the paths to all values inside v.
func places(v any, above []string) [][]string {
	var all [][]string
	add := func(name string, value any) {
		path := append(slices.Clone(above), name)
		all = append(all, path)
		all = append(all, places(value, path)...)
	}
	switch v := v.(type) {
	case trace.Extra:
		for _, f := range v {
			add(f.Name, f.Value)
		}
	case trace.List:
		for i, item := range v {
			add(fmt.Sprint(i), item)
		}
	}
	return all
}

// at returns the value at a path.
func at(v any, path []string) any {
	for _, name := range path {
		switch x := v.(type) {
		case trace.Extra:
			v = x.Get(name)
		case trace.List:
			var i int
			fmt.Sscan(name, &i)
			v = x[i]
		}
	}
	return v
}

// replace returns a copy of v with another value at a path.
func replace(v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch v := v.(type) {
	case trace.Extra:
		out := slices.Clone(v)
		for i := range out {
			if out[i].Name == path[0] {
				out[i].Value = replace(out[i].Value, path[1:], value)
			}
		}
		return out
	case trace.List:
		var i int
		fmt.Sscan(path[0], &i)
		out := slices.Clone(v)
		out[i] = replace(out[i], path[1:], value)
		return out
	}
	return v
}

func TestManyWarnings(t *testing.T) {
	var steps trace.List
	for range 500 {
		steps = append(steps, "wrong")
	}
	f := recorder.Read(trace.Extra{{Name: recorder.Key, Value: trace.Extra{{Name: "steps", Value: steps}}}})
	if len(f.Warnings) != 21 || f.Warnings[20] != `480 more values under "ashlar" are not as expected` {
		t.Errorf("%d warnings, the last %q", len(f.Warnings), f.Warnings[len(f.Warnings)-1])
	}
}

func TestLimit(t *testing.T) {
	read := func(fields ...trace.Field) *recorder.Facts {
		return recorder.Read(trace.Extra{{Name: recorder.Key, Value: trace.Extra(fields)}})
	}
	known := trace.Field{Name: "limit_known", Value: true}
	if f := read(known, trace.Field{Name: "limit_bytes"}); !f.LimitKnown || f.LimitBytes != nil {
		t.Errorf("no limit: %v %v", f.LimitKnown, f.LimitBytes)
	}
	if f := read(); f.LimitKnown || f.LimitBytes != nil {
		t.Errorf("unknown: %v %v", f.LimitKnown, f.LimitBytes)
	}
	if f := read(trace.Field{Name: "limit_bytes", Value: int64(0)}); !f.LimitKnown || *f.LimitBytes != 0 {
		t.Errorf("limit 0: %v %v", f.LimitKnown, f.LimitBytes)
	}
}

func TestConf(t *testing.T) {
	for _, c := range []struct {
		variables []string
		want      string
	}{
		{nil, ""},
		{[]string{"PYTORCH_ALLOC_CONF"}, "PYTORCH_ALLOC_CONF"},
		{[]string{"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}, "PYTORCH_CUDA_ALLOC_CONF"},
		{[]string{"PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"}, "PYTORCH_HIP_ALLOC_CONF"},
		{[]string{"SOMETHING"}, ""},
	} {
		var variables trace.Extra
		for _, name := range c.variables {
			variables = append(variables, trace.Field{Name: name, Value: name})
		}
		f := recorder.Read(trace.Extra{{Name: recorder.Key, Value: trace.Extra{{Name: "settings", Value: variables}}}})
		if conf, ok := f.Conf(); conf != c.want || ok != (c.want != "") {
			t.Errorf("%v: %q %v, want %q", c.variables, conf, ok, c.want)
		}
	}
	// A variable that is set but empty hides the others.
	f := &recorder.Facts{Settings: []recorder.Variable{{Name: "PYTORCH_CUDA_ALLOC_CONF"}, {Name: "PYTORCH_ALLOC_CONF", Text: "backend:native"}}}
	if conf, ok := f.Conf(); conf != "" || !ok {
		t.Errorf("%q %v", conf, ok)
	}
}

func TestStepAt(t *testing.T) {
	var steps trace.List
	for _, mark := range [][2]int64{{5, 100}, {7, 300}, {6, 200}, {8, 300}} {
		steps = append(steps, trace.List{mark[0], mark[1]})
	}
	f := recorder.Read(trace.Extra{{Name: recorder.Key, Value: trace.Extra{{Name: "steps", Value: steps}}}})
	for time, want := range map[int64]int64{99: -1, 100: 5, 199: 5, 200: 6, 299: 6, 300: 8, 9999: 8} {
		n, ok := f.StepAt(time)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("at %d: step %d, want %d", time, n, want)
		}
	}
	if _, ok := (&recorder.Facts{}).StepAt(1); ok {
		t.Error("a step of no steps")
	}
}

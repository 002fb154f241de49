package view

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// plain takes the words out of a document and counts them.
func plain(v any, sites, frames *int) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = plain(v[i], sites, frames)
		}
	case map[string]any:
		if text, ok := v["site"].(string); ok && text != "" {
			*sites++
		}
		if text, ok := v["text"].(string); ok && text != "" && v["filename"] != nil {
			*frames++
			delete(v, "text")
			delete(v, "user")
		}
		if _, number := v["site"].(float64); !number { // of diff.Matched
			delete(v, "site")
		}
		for name := range v {
			v[name] = plain(v[name], sites, frames)
		}
	}
	return v
}

// With words a document says what it says without.
func TestWords(t *testing.T) {
	c := serve(t, nil, "snapshots/leak_graph-default", "snapshots/leak_graph-tight-default", "variety/nocontext")
	for _, path := range []string{
		"pair?run=1&run=2", "pair?run=1&run=3", "ranks?run=1&run=2&run=3", "whatif?run=1&set=max_split_size_mb:64&limit=300MiB&curve=5",
	} {
		var want, got any
		c.json("api/"+path, &want)
		c.json("api/"+path+"&sites=1", &got)
		sites, frames := 0, 0
		got = plain(got, &sites, &frames)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if sites == 0 || frames < sites {
			t.Errorf("%s: %d sites, %d frames", path, sites, frames)
		}
	}
	status, _, body := c.do("GET", "api/pair?run=1&run=2&sites=2", nil)
	refused(t, "sites=2", 400, status, body)
}

// A field is found by its name in JSON, also where an embedded struct has its
// name in Go.
func TestWordedEmbedded(t *testing.T) {
	data, err := json.Marshal(worded(struct {
		Kind string `json:"kind"`
		*diff.Ranks
	}{"ranks", &diff.Ranks{Ranks: []*diff.Rank{{Name: "first"}}}}))
	if err != nil {
		t.Fatal(err)
	}
	if got := read[diff.Ranks](t, data); len(got.Ranks) != 1 || got.Ranks[0].Name != "first" {
		t.Errorf("%s", data)
	}
}

// A field hides an embedded one of the same name, as encoding/json has it.
func TestWordedHidden(t *testing.T) {
	data, err := json.Marshal(worded(struct {
		*diff.Ranks
		All []string `json:"ranks"`
	}{&diff.Ranks{Sizes: "block", Ranks: []*diff.Rank{{Name: "hidden"}}}, []string{"shown"}}))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(data); !strings.Contains(got, `"ranks":["shown"]`) || !strings.Contains(got, `"sizes":"block"`) {
		t.Error(got)
	}
}

// A stack is worded by package timeline; what has none says so.
func TestWorded(t *testing.T) {
	kernel := timeline.Frame{Name: "at::native::add(at::Tensor const&)", Filename: "Add.cpp", Line: 7}
	own := timeline.Frame{Name: "step", Filename: "/home/me/train.py", Line: 12}
	report := &explain.Report{
		Failure: &explain.Failure{Frames: []timeline.Frame{kernel, own}, Site: timeline.Site{Inner: kernel, User: own, HasUser: true, Via: &own}},
		Holders: []explain.Holder{{Bytes: 3}},
		ByLine:  []explain.LineHolder{{Line: own}},
		Fixes:   []explain.Fix{{Kind: "code"}},
	}
	data, err := json.Marshal(worded(report))
	if err != nil {
		t.Fatal(err)
	}
	got := read[map[string]any](t, data)
	at := func(path ...any) (v any) {
		v = got
		for _, p := range path {
			if name, ok := p.(string); ok {
				v = v.(map[string]any)[name]
			} else {
				v = v.([]any)[p.(int)]
			}
		}
		return v
	}
	for _, x := range []struct {
		path []any
		want any
	}{
		{[]any{"failure", "site"}, "at::native::add < train.py:12 step"},
		{[]any{"failure", "event"}, nil},
		{[]any{"failure", "frames", 0, "text"}, "at::native::add"},
		{[]any{"failure", "frames", 0, "user"}, false},
		{[]any{"failure", "frames", 1, "user"}, true},
		{[]any{"failure", "frames", 1, "line"}, 12.0},
		{[]any{"holders", 0, "site"}, nil},
		{[]any{"holders", 0, "stack"}, nil},
		{[]any{"holders", 0, "bytes"}, 3.0},
		{[]any{"lines", 0, "line", "text"}, "train.py:12 step"},
		{[]any{"self_check"}, nil},
		{[]any{"findings"}, nil},
	} {
		if got := at(x.path...); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%v is %v, want %v", x.path, got, x.want)
		}
	}
	if fix := at("fixes", 0).(map[string]any); fix["kind"] != "code" {
		t.Errorf("%v", fix)
	} else if _, ok := fix["settings"]; ok {
		t.Error("an empty field that is to be left out is there")
	}
}

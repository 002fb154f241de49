package view

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestCheckPlace(t *testing.T) {
	for _, good := range []string{
		"#/1/timeline", "#//plan?v=1&shape=gpt2", "#/2/whatif?sets=max_split_size_mb:64;defaults&limit=3GiB", "#/1/stacks?stack=a%5Bb%20c", "#//overview",
	} {
		if err := CheckPlace(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "timeline", "/1/timeline", "#/1", "#/x/timeline", "#/1/elsewhere", "#/1/timeline#x", "#/1/timeline?a b", "#/1/timeline?a=\"", "#/1/timeline?a=%zz",
		"#/1/timeline?<script>", "https://example.com/#/1/timeline", "#/1/timeline\n", "#/1/timeline?" + strings.Repeat("a", maxPlace), "#//1/timeline",
	} {
		if CheckPlace(bad) == nil {
			t.Errorf("%.40q is taken for a place", bad)
		}
	}
}

// The page has the same screens.
func TestScreens(t *testing.T) {
	source, err := os.ReadFile("../../web/src/route.ts")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)export const screens = \[(.*?)\]`).FindSubmatch(source)
	var names []string
	for _, m := range regexp.MustCompile(`'(\w+)'`).FindAllSubmatch(list[1], -1) {
		names = append(names, string(m[1]))
	}
	if !slices.Equal(names, Screens) {
		t.Errorf("the page has %q", names)
	}
}

// A link names the files that its place shows, and its runs have the numbers that
// they get if it is followed.
func TestLinkCommand(t *testing.T) {
	runs := []listing{
		{ID: 1, File: "a/x.pickle"},
		{ID: 2, File: "two of them.pickle"},
		{ID: 4, File: "two of them.pickle"},
		{ID: 3, File: "it's.pickle"},
		{ID: 9, File: "x.pickle", Dropped: true},
	}
	for _, x := range []struct{ at, want string }{
		{"#/1/timeline?event=7&range=3..9", `ashlar view a/x.pickle --at '#/1/timeline?event=7&range=3..9'`},
		{"#/4/segments", `ashlar view 'two of them.pickle' --at '#/2/segments'`},
		{"#/3/events?stack=a%27b", `ashlar view 'it'\''s.pickle' --at '#/1/events?stack=a%27b'`},
		{"#/9/overview", `ashlar view x.pickle --at '#/1/overview'`},
		{"#/9/compare?b=4&off=1,77", `ashlar view a/x.pickle 'two of them.pickle' 'it'\''s.pickle' x.pickle --at '#/4/compare?b=5&off=1'`},
		{"#//overview", `ashlar view a/x.pickle 'two of them.pickle' 'it'\''s.pickle' x.pickle --at '#//overview'`},
		{"#/4/plan?v=1&shape=gpt2&against=4", `ashlar view --at '#//plan?shape=gpt2&v=1'`},
		{"#/1/whatif?sets=max_split_size_mb:64;defaults", `ashlar view a/x.pickle --at '#/1/whatif?sets=max_split_size_mb%3A64%3Bdefaults'`},
	} {
		p, err := parsePlace(x.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.command(runs); got != x.want {
			t.Errorf("%s: %s\nwant %s", x.at, got, x.want)
		}
		if err := CheckPlace(p.String()); err != nil {
			t.Error(err)
		}
	}
}

func TestLink(t *testing.T) {
	c := serve(t, nil, "variety/graphs")
	var l link
	if err := json.Unmarshal(c.get("api/link?at="+url.QueryEscape("#/1/timeline?event=3")), &l); err != nil || !strings.HasSuffix(l.Command, "graphs.pickle.gz --at '#/1/timeline?event=3'") {
		t.Errorf("%v, %q", err, l.Command)
	}
	for _, at := range []string{"", "#/1/nowhere", "http://example.com"} {
		status, _, body := c.do("GET", "api/link?at="+url.QueryEscape(at), nil)
		refused(t, at, http.StatusBadRequest, status, body)
	}
}

// The sample is a run of testdata, and opens.
func TestSample(t *testing.T) {
	same, err := os.ReadFile("../../testdata/snapshots/leak_graph-tight-default.pickle.gz")
	if err != nil || !bytes.Equal(same, sample) {
		t.Errorf("the sample differs from leak_graph-tight-default: %v", err)
	}
	c := serve(t, nil)
	status, _, body := c.do("POST", "api/sample", nil)
	var got taken
	if err := json.Unmarshal(body, &got); err != nil || status != http.StatusOK || !slices.Equal(got.Runs, []int{1}) {
		t.Fatalf("%d %s", status, body)
	}
	l := c.runs()
	if r := l.Runs[0]; r.Label != sampleName || !r.Dropped || r.OOMs != 1 || r.LastOOM == nil || *r.LastOOM != 11344 || r.WentOn {
		t.Errorf("%+v", r)
	}
	status, _, body = c.do("GET", "api/sample", nil)
	refused(t, "GET", http.StatusMethodNotAllowed, status, body)
}

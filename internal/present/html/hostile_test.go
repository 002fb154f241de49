package html

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// hostile are names that try to get out of the place where they stand.
var hostile = []string{
	`</title><script>alert(1)</script>`,
	`</style><script>alert(2)</script>`,
	`"><img src=x onerror=alert(3)>`,
	`' onmouseover='alert(4)`,
	`</svg><svg onload=alert(5)>`,
	`<!--`, `]]>`, `-->`, `<![CDATA[`,
	`javascript:alert(6)`,
	`{{.Policy}}{{define "page.html"}}`,
	"\u202egnp.exe\u2066", "\x00\x07\x1b[31mred", "\xff\xfe\xc0\x80", "line\nbreak\r\n\u2028",
	`&lt;b&gt;&amp;#x3c;`, `%3Cscript%3E`, `\u003cscript\u003e`,
}

// snapshotNamed returns a snapshot whose files, functions and annotations have
// a name. One request of it fails.
func snapshotNamed(t *testing.T, name string) string {
	t.Helper()
	frames := []map[string]any{{"name": name, "filename": name, "line": 1}, {"name": name, "filename": "/home/me/" + name + ".py", "line": 2}}
	events := []map[string]any{}
	event := func(action string, addr, size, time int) {
		events = append(events, map[string]any{"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time, "frames": frames})
	}
	const base = 1 << 40
	event("segment_alloc", base, 20<<20, 1)
	event("alloc", base, 8<<20, 2)
	event("alloc", base+8<<20, 8<<20, 3)
	event("free_requested", base, 8<<20, 4)
	event("free_completed", base, 8<<20, 5)
	events = append(events, map[string]any{"action": "oom", "device_free": 5 << 20, "size": 12 << 20, "stream": 0, "time_us": 6, "frames": frames})
	doc := map[string]any{
		"device_traces": []any{events},
		"segments": []any{map[string]any{
			"device": 0, "address": base, "total_size": 20 << 20, "allocated_size": 8 << 20, "active_size": 8 << 20, "stream": 0, "segment_type": "large",
			"blocks": []any{
				map[string]any{"size": 8 << 20, "state": "inactive"},
				map[string]any{"size": 8 << 20, "requested_size": 8 << 20, "state": "active_allocated", "frames": frames},
				map[string]any{"size": 4 << 20, "state": "inactive"},
			},
		}},
		"external_annotations": []any{map[string]any{"stage": "START", "name": name, "device": 0, "time_us": 1}, map[string]any{"stage": "END", "name": name, "device": 0, "time_us": 6}},
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "snapshot.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// tags counts the elements of a report by name and names of attributes. Lines
// may be broken at a comma, and frames of the program's own have a class.
func tags(html string) map[string]int {
	out := map[string]int{}
	for _, e := range elements(html) {
		delete(e.attributes, "class")
		if e.name != "wbr" {
			out[e.name+" "+strings.Join(slices.Sorted(maps.Keys(e.attributes)), " ")]++
		}
	}
	return out
}

// Whatever things are called, the report has the same elements as if they were
// called x.
func TestHostileNames(t *testing.T) {
	named := func(name string) string {
		in := read(t, snapshotNamed(t, name), true)
		in.Name, in.Version = name, name
		in.Explain.Notes = append(in.Explain.Notes, name)
		in.Explain.Record = append(in.Explain.Record, name)
		in.Explain.Fixes = append(in.Explain.Fixes, explain.Fix{Kind: explain.FixSetting, Export: name, Detail: name, Settings: name})
		in.WhatIf.Results = append(in.WhatIf.Results, &whatif.Result{Settings: name})
		return write(t, in)
	}
	plain := named("x")
	want := tags(plain)
	if want["section data-cause data-confidence id"] != 1 || want["circle cx cy r"] != 2 || want["details "] < 3 {
		t.Fatalf("%v", want)
	}
	for _, name := range hostile {
		html := named(name)
		checkAlone(t, html)
		checkPictures(t, html)
		if got := tags(html); !maps.Equal(got, want) {
			for k := range want {
				if got[k] == want[k] {
					delete(got, k)
				}
			}
			t.Errorf("%q makes other elements: %v", name, got)
		}
		if i := strings.IndexFunc(html, func(r rune) bool {
			return r == 0 || r == 0x1b || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
		}); i >= 0 {
			t.Errorf("%q: %q is left", name, html[i:i+10])
		}
	}
}

// Names without end, lists without end: the report stays small.
func TestSizeBound(t *testing.T) {
	short.Skip(t)
	endless := strings.Repeat(`"&'<`, 1<<14)
	frame := timeline.Frame{Name: endless, Filename: "/" + endless + ".py", Line: 1}
	frames := slices.Repeat([]timeline.Frame{frame}, 500)
	site := timeline.Site{Inner: frame, User: frame, HasUser: true}
	number := uint64(1 << 40)
	in := read(t, fragmented, true)
	in.Name, in.Text = endless, strings.Repeat(strings.Repeat("<", 5000)+"\n", 3000)
	r := in.Explain
	r.Summary, r.Failure.Frames, r.Failure.Site = endless, frames, site
	for range 200 {
		b := explain.Block{Bytes: number, Count: 1, Frames: frames, Site: site}
		r.Holders = append([]explain.Holder{{Bytes: number, Frames: frames, Site: site, Category: "unknown"}}, r.Holders...)
		r.ByLine = append(r.ByLine, explain.LineHolder{Bytes: number, Line: frame})
		r.ByModule = append(r.ByModule, explain.ModuleHolder{Bytes: number, Module: endless})
		number--
		r.Pinners = append(r.Pinners, explain.Segment{Size: number, Stuck: 1, Live: 1, Blocks: []explain.Block{b, b, b, b, b}})
		r.Findings = append(r.Findings, explain.Finding{Kind: explain.Leak, Detail: endless, Parts: slices.Repeat([]explain.Block{b}, 10)},
			explain.Finding{Kind: explain.Ignored, Detail: endless})
		r.Fixes = append(r.Fixes, explain.Fix{Kind: explain.FixSetting, Export: endless, Detail: endless})
		r.Alternatives = append(r.Alternatives, explain.Alternative{Verdict: endless, When: endless})
		r.Notes, r.Arithmetic, r.Record = append(r.Notes, endless), append(r.Arithmetic, endless), append(r.Record, endless)
		in.WhatIf.Results = append(in.WhatIf.Results, &whatif.Result{Settings: endless})
		in.Facts.Missing = append(in.Facts.Missing, stats.Missing{What: "replay", Text: endless})
		in.Facts.Segments = append(in.Facts.Segments, stats.Group{Type: &endless})
		in.Facts.Devices = append(in.Facts.Devices, stats.Device{})
		in.Facts.Settings.NonDefault = append(in.Facts.Settings.NonDefault, stats.Setting{Key: endless, Value: endless, Meaning: endless})
	}
	html := write(t, in)
	checkAlone(t, html)
	checkPictures(t, html)
	// The first attempt is too large, the last one far from it.
	var sizes []int
	for _, d := range details {
		var b bytes.Buffer
		if err := render(&b, newPage(subjectOf(t, in), d)); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, b.Len())
	}
	if n := len(sizes); sizes[0] < MaxBytes || sizes[n-1] > MaxBytes/3 {
		t.Errorf("the attempts have %d bytes", sizes)
	}
	for _, d := range details {
		if n := len(d.clip(endless)); n > d.text+5 {
			t.Errorf("a text of %d characters, of at most %d", n, d.text)
		}
	}
}

// What is cut keeps both ends and stays valid.
func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"short", 10, "short"},
		{"a/long/path/to/a/file.py", 12, "a/long/p ... e.py"},
		{strings.Repeat("é", 400), 3, "éé ... é"},
		{"a\xffb\u202ec", 10, "a?b?c"},
	} {
		if got := (detail{}).cut(c.text, c.most); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	if got := details[0].say("needs 6.91 GiB, 15.1 % of it"); got != "needs 6.91\u00a0GiB, 15.1\u00a0% of it" {
		t.Errorf("%q", got)
	}
}

// A report has names of files, but no place where they lie.
func TestNoPaths(t *testing.T) {
	d := details[0]
	d.file = "/home/ann lee/runs/oom.pickle"
	for in, want := range map[string]string{
		"/home/ann lee/runs/oom.pickle has no events": "oom.pickle has no events",
		`File "/srv/jobs/train.py", line 3, in f`:     `File "train.py", line 3, in f`,
		"see /usr/lib/x.so: bad":                      "see x.so: bad",
		`read C:\Users\ann\run.pickle first`:          "read run.pickle first",
		"1/2/3 and 5 B/s, and/or https://a.b/c/d":     "1/2/3 and 5 B/s, and/or https://a.b/c/d",
		"settings a:[256:1,>:8]":                      "settings a:[256:1,>:8]",
	} {
		if got := d.clip(in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for in, want := range map[string]string{
		"/opt/env/lib/python3.12/site-packages/torch/nn/modules/linear.py": "torch/nn/modules/linear.py",
		"/home/ann/project/train.py":                                       "project/train.py",
		"/train.py":                                                        "train.py",
		"train.py":                                                         "train.py",
		`C:\jobs\train.py`:                                                 "jobs/train.py",
	} {
		if got := inPackage(in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	in := read(t, fragmented, true)
	in.Name = "/home/ann/secret/folder/oom.pickle"
	in.Explain.Notes = append(in.Explain.Notes, in.Name+" is odd")
	in.NoWhatIf = in.Name + " is no snapshot"
	html := write(t, in)
	if found := regexp.MustCompile(`[^<>\n]{0,30}(secret|[\s">(]/(home|usr|opt|root|tmp|mnt)/)[^<>\n]{0,30}`).FindAllString(html, 5); found != nil {
		t.Errorf("%q", found)
	}
	if !strings.Contains(html, `content: "oom.pickle"`) || !strings.Contains(html, "oom.pickle is odd") {
		t.Error("the report does not name its file")
	}
}

// A hostile name under the pages stays within its quotes.
func TestFoot(t *testing.T) {
	if got := cssText("a\"; } </style> é.html"); strings.ContainsAny(got, "\"<>;}é") || !strings.HasPrefix(got, `a\22 \3b `) {
		t.Errorf("%q", got)
	}
}

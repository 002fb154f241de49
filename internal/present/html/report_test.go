package html

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

var update = flag.Bool("update", false, "rewrite the golden files with what the reports have now")

// The files that the tests report on.
const (
	fragmented = "../../../testdata/snapshots/gpt2_fixed-tight-default.pickle.gz"
	healthy    = "../../../testdata/snapshots/leak_graph-default.pickle.gz"
	streams    = "../../../testdata/snapshots/streams_graphs-tight-default.pickle.gz" // pending frees, private pools
	expandable = "../../../testdata/variety/expand_tight.pickle.gz"
	midrun     = "../../../testdata/variety/midrun.pickle.gz"
	stateOnly  = "../../../testdata/variety/stateonly.pickle.gz"
	long       = "../../../testdata/snapshots/serve_generate-tight-default.pickle.gz" // 373,685 events
)

// read makes an input from a file as the command does; without an explanation
// unless that is asked for.
func read(t *testing.T, file string, explained bool) Input {
	t.Helper()
	f, err := snapshot.Open(t.Context(), file, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Name: filepath.Base(file), Version: "test", Run: run.New(f.Traces[0], recorder.Read(f.Extra)), NoVerdict: "Nobody asked."}
	if in.Facts, err = stats.NewSnapshot(t.Context(), f, stats.Options{Device: input.AnyDevice, Run: in.Run}); err != nil {
		t.Fatal(err)
	}
	if !explained {
		return in
	}
	c, err := in.Run.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if in.Explain, err = explain.FromSnapshot(t.Context(), explain.Input{Run: c, Facts: in.Run.Facts}); err != nil {
		t.Fatal(err)
	}
	q := whatif.Question{}
	q.Limit, q.Memory = whatif.Bounds(c, nil, nil)
	for _, s := range explain.Remedies(c.Program.Settings) {
		q.Settings = append(q.Settings, whatif.Setting{Conf: s.String(), Parsed: s})
	}
	if in.WhatIf, err = whatif.Ask(t.Context(), c, q); err != nil {
		t.Fatal(err)
	}
	return in
}

// subjectOf returns what a report of an input is made from.
func subjectOf(t *testing.T, in Input) *subject {
	t.Helper()
	s, err := newSubject(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, in Input) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(t.Context(), &b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The structure of reports: sections, headings, how long tables and legends are.
func TestStructure(t *testing.T) {
	for _, c := range []struct {
		file      string
		explained bool
	}{{fragmented, true}, {healthy, true}, {streams, true}, {expandable, true}, {stateOnly, false}} {
		name := strings.TrimSuffix(filepath.Base(c.file), ".pickle.gz")
		t.Run(name, func(t *testing.T) {
			html := write(t, read(t, c.file, c.explained))
			checkAlone(t, html)
			checkPictures(t, html)
			got, golden := outline(html), filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the report has another structure than %s (-update rewrites it):\n%s", golden, got)
			}
		})
	}
}

var (
	landmark = regexp.MustCompile(`(?s)<section[^>]*>|</section>|<h[1-3]>.*?</h[1-3]>|<summary>.*?</summary>|<tr\b|<data [^>]*data-field="([^"]*)"|<path class="([a-z_-]+)"|<rect class="([a-z_-]+)"`)
	tag      = regexp.MustCompile(`<[^>]*>`)
)

// outline says what a report consists of, without its numbers.
func outline(html string) string {
	var b strings.Builder
	rows, classes, fields := 0, map[string]int{}, map[string]int{}
	flush := func() {
		if rows > 0 {
			fmt.Fprintf(&b, "    %d rows\n", rows)
		}
		rows = 0
		for _, list := range []map[string]int{classes, fields} {
			var names []string
			for n := range list {
				names = append(names, n)
			}
			if len(names) > 0 {
				slices.Sort(names)
				fmt.Fprintf(&b, "    %s\n", strings.Join(names, " "))
			}
			clear(list)
		}
	}
	digits := regexp.MustCompile(`[0-9]+`)
	for _, m := range landmark.FindAllStringSubmatch(html, -1) {
		switch {
		case m[1] != "":
			fields[digits.ReplaceAllString(m[1], "N")]++
		case m[2] != "":
			classes[m[2]]++
		case m[3] != "":
			classes[m[3]]++
		case m[0] == "<tr":
			rows++
		case strings.HasPrefix(m[0], "<section"):
			flush()
			fmt.Fprintln(&b, m[0])
		case strings.HasPrefix(m[0], "<h"):
			flush()
			fmt.Fprintln(&b, "  "+strings.TrimSpace(tag.ReplaceAllString(m[0], " ")))
		case strings.HasPrefix(m[0], "<summary") && !strings.Contains(m[0], "<code>"):
			flush()
			fmt.Fprintln(&b, "  > "+tag.ReplaceAllString(m[0], ""))
		}
	}
	flush()
	return b.String()
}

// element is the beginning of an element of a page.
type element struct {
	name       string
	attributes map[string]string
}

var (
	beginning = regexp.MustCompile(`<([a-zA-Z!?][^\s>/]*)([^>]*)>`)
	attribute = regexp.MustCompile(`([^\s="]+)="([^"]*)"`)
	bare      = regexp.MustCompile(`^[\s/]*$`)
)

// elements lists those of a page, as a browser finds them.
func elements(html string) []element {
	var out []element
	for _, m := range beginning.FindAllStringSubmatch(html, -1) {
		e := element{strings.ToLower(m[1]), map[string]string{}}
		for _, a := range attribute.FindAllStringSubmatch(m[2], -1) {
			e.attributes[strings.ToLower(a[1])] = a[2]
		}
		// What is left over would be an attribute without quotes.
		if rest := attribute.ReplaceAllString(m[2], ""); !bare.MatchString(rest) {
			e.attributes["on"+rest] = ""
		}
		if e.name == "!doctype" {
			continue
		}
		out = append(out, e)
	}
	return out
}

// allowed are the elements that a report may have.
var allowed = strings.Fields("html head meta title link style body header main section footer h1 h2 h3 p b i a small span code pre br wbr data " +
	"ul ol li dl dt dd div table thead tbody tr th td details summary figure figcaption " +
	"svg desc defs pattern rect path text circle")

// checkAlone fails if a report has a script or loads something.
func checkAlone(t *testing.T, html string) {
	t.Helper()
	if len(html) >= MaxBytes {
		t.Errorf("%d bytes", len(html))
	}
	for _, e := range elements(html) {
		if !slices.Contains(allowed, e.name) {
			t.Errorf("the report has an element %s", e.name)
		}
		for name, value := range e.attributes {
			switch {
			case strings.HasPrefix(name, "on"), name == "style", name == "src", name == "srcdoc", name == "action", name == "xlink:href":
				t.Errorf("the report has <%s %s=%q>", e.name, name, value)
			case name == "href" && !strings.HasPrefix(value, "#") && value != "data:,":
				t.Errorf("the report refers to %q", value)
			}
		}
	}
	if strings.Contains(html, "ZgotmplZ") {
		t.Error("the template has refused a value")
	}
	_, rest, _ := strings.Cut(html, "<style>")
	style, _, ok := strings.Cut(rest, "</style>")
	if !ok || regexp.MustCompile(`@import|url\([^#]|expression`).MatchString(style) {
		t.Fatal("there is no style, or it loads something")
	}
	hash := sha256.Sum256([]byte(style))
	policy := `<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; style-src &#39;sha256-` +
		strings.ReplaceAll(base64.StdEncoding.EncodeToString(hash[:]), "+", "&#43;") + `&#39;; img-src data:; `
	if !strings.Contains(html, policy) {
		t.Errorf("the policy does not name the style: want %s", policy)
	}
	if at := strings.Index(html, "Content-Security-Policy"); at > strings.Index(html, "<style>") {
		t.Error("the policy comes after the style")
	}
}

// checkPictures fails if a picture is not well-formed.
func checkPictures(t *testing.T, html string) {
	t.Helper()
	all := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(html, -1)
	for _, svg := range all {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%.200s: %v", svg, err)
				break
			}
		}
		if wrong := regexp.MustCompile(`NaN|Inf|e[+-]\d|="-`).FindString(regexp.MustCompile(`<(title|desc)[^>]*>[^<]*`).ReplaceAllString(svg, "")); wrong != "" {
			t.Errorf("a picture has %q: %.200s", wrong, svg)
		}
	}
	if len(all) == 0 {
		t.Error("there is no picture")
	}
}

// All files in testdata make reports that stand alone.
func TestAllFiles(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/variety/*.pickle.gz")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range short.Files(t, append(files, long), 4) {
		html := write(t, read(t, file, false))
		checkAlone(t, html)
		checkPictures(t, html)
		if limit := 400_000; len(html) > limit {
			t.Errorf("%s: %d bytes", file, len(html))
		}
	}
}

// The same input makes the same bytes.
func TestReproducible(t *testing.T) {
	in := read(t, streams, true)
	if first, second := write(t, in), write(t, in); first != second {
		t.Error("two reports differ")
	}
}

func TestNothing(t *testing.T) {
	if err := Write(t.Context(), io.Discard, Input{Name: "x"}); err == nil {
		t.Error("a report on nothing")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ctx, io.Discard, Input{Name: "x", Text: "some text"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

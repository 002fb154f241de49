package browsertests

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

func axe(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/axe-core/axe.min.js.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// axe-core finds no serious fault of accessibility on any screen, light or dark,
// in a wide window or a narrow one.
func TestAccessible(t *testing.T) {
	script := axe(t)
	type look struct {
		width int64
		dark  bool
	}
	looks := []look{{1280, false}, {640, true}}
	if *whole {
		looks = append(looks, look{1280, true}, look{640, false})
	}
	for i, l := range looks {
		s := openAt(t, "#/1/overview", 1280, 720, l.dark, varlen, multi)
		s.sees("[data-field=cause]")
		s.value(script+"\n;void 0", nil)
		for j, v := range views {
			if !*whole && j%len(looks) != i {
				continue // every view in one of the looks
			}
			s.must(s.page.Resize(1280, 720))
			s.arrives(v)
			s.must(s.page.Resize(l.width, 720))
			s.rests()
			s.accessible(fmt.Sprintf("%s at %d px, dark %v", v.name, l.width, l.dark))
			s.leaves(v)
		}
	}
}

// accessible fails at serious faults, and logs the others.
func (s *scene) accessible(where string) {
	s.Helper()
	for _, f := range s.faults() {
		if f.Impact == "serious" || f.Impact == "critical" {
			s.Errorf("%s: %s", where, f)
		} else {
			s.Logf("%s: %s", where, f)
		}
	}
}

// fault is what axe-core found.
type fault struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

func (f fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s", f.ID, f.Impact, f.Help)
	for _, n := range f.Nodes[:min(3, len(f.Nodes))] {
		fmt.Fprintf(&b, "\n  %.200s\n  %s", n.HTML, n.Summary)
	}
	return b.String()
}

// faults asks axe-core, whose script the page has got.
func (s *scene) faults() (list []fault) {
	s.Helper()
	s.value("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)", &list)
	return list
}

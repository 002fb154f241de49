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

// axe-core finds no serious fault of accessibility on any screen, light or dark.
func TestAccessible(t *testing.T) {
	script := axe(t)
	shows := []struct{ name, hash, ready, keys string }{
		{"overview", "#/1/overview", "[data-panel=verdict] [data-field=cause]", ""},
		{"all runs", "#//overview", "[data-panel=odd], .run-table", ""},
		{"timeline", "#/1/timeline?event=18434&alloc=100", "[data-panel=block] .facts", ""},
		{"segments", "#/1/segments?event=18434&alloc=100", "[data-panel=request]", ""},
		{"stacks", "#/1/stacks?q=forward", "[data-field=matched]", ""},
		{"events", "#/1/events?event=12345", ".list .row.on", ""},
		{"playground", "#/1/playground?lesson=every-second&step=31", "[data-rule=out_of_memory]", ""},
		{"playground-lessons", "#/1/playground?lesson=pools", ".lessons", ""},
		{"playground-share", "#/1/playground?lesson=two-streams&step=8", "[data-field=at][data-at='8']", "s"},
		{"whatif", "#/1/whatif?sets=expandable_segments:True;defaults", "[data-panel=outcomes] [data-copy]", ""},
		{"whatif, tuned", "#/1/whatif?tune=1", "[data-panel=tune]", ""},
		{"a variant's segments", "#/1/segments?event=18434&variant=max_split_size_mb:512", ".variant-line", ""},
		{"compare", "#/1/compare", "[data-panel=flame] .icicle", ""},
		{"compare moments", "#/1/compare?b=1", "[data-panel=flame] .icicle", ""},
		{"plan, not asked", "#/1/plan", ".plan-form", ""},
		{"plan, beside a run", "#/1/plan?v=1&shape=gpt2&batch=8&seq=1024&gpu=3060&against=1", "[data-panel=against]", ""},
		{"plan, two of them", "#/1/plan?v=1&shape=gpt2&batch=8&seq=1024&gpu=3060&recompute=best", "[data-step='1']", ""},
		{"plan, wrong", "#/1/plan?v=2&shape=gpt2", ".plan-main .trouble", ""},
		{"plan-share", "#/1/plan?v=1&shape=gpt2&batch=8&seq=1024&gpu=3060", "[data-field=planned]", "s"},
		{"keys", "#/1/timeline", ".plot", "?"},
		{"files", "#/1/overview", "[data-field=cause]", "F"},
	}
	for _, dark := range []bool{false, true} {
		s := openAt(t, "#/1/overview", 1280, 720, dark, varlen, multi)
		s.sees("[data-field=cause]")
		s.value(script+"\n;void 0", nil)
		for _, show := range shows {
			s.must(s.page.Go(show.hash))
			s.sees(show.ready)
			s.until("!document.querySelector('main .spin')")
			if show.keys != "" {
				s.press(show.keys)
				s.sees("dialog[open]")
			}
			var faults []struct {
				ID     string `json:"id"`
				Impact string `json:"impact"`
				Help   string `json:"help"`
				Nodes  []struct {
					HTML    string `json:"html"`
					Summary string `json:"failureSummary"`
				} `json:"nodes"`
			}
			s.value("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)", &faults)
			for _, f := range faults {
				var b strings.Builder
				for _, n := range f.Nodes[:min(3, len(f.Nodes))] {
					fmt.Fprintf(&b, "\n  %.200s\n  %s", n.HTML, n.Summary)
				}
				if f.Impact == "serious" || f.Impact == "critical" {
					t.Errorf("%s, dark %v: %s (%s): %s%s", show.name, dark, f.ID, f.Impact, f.Help, b.String())
				} else {
					t.Logf("%s, dark %v: %s (%s): %s%s", show.name, dark, f.ID, f.Impact, f.Help, b.String())
				}
			}
			if show.keys != "" {
				s.press("\x1b")
				s.value("document.querySelector('dialog[open]')?.close()", nil)
			}
		}
	}
}

// All screens fit a window of 1280x720: nothing scrolls sideways, the bar at
// the foot and the tools are in view.
func TestSmallWindow(t *testing.T) {
	s := openAt(t, "#/1/overview", 1280, 720, false, varlen, multi)
	s.sees("[data-field=cause]")
	for _, screen := range []string{"overview", "timeline", "segments", "stacks", "events", "whatif", "compare"} {
		s.must(s.page.Go("#/1/" + screen))
		s.sees("main ." + screen)
		s.until("!document.querySelector('main .spin')")
		var wide []string
		s.value("[...document.querySelectorAll('body, main, header, footer, main > div, .tools, .side, .panel')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.className || e.tagName)", &wide)
		if len(wide) > 0 {
			t.Errorf("%s: too wide: %v", screen, wide)
		}
		if b, err := s.page.Box("footer.moment"); err != nil || b[1]+b[3] > 720.5 {
			t.Errorf("%s: the foot is at %v, %v", screen, b, err)
		}
	}
}

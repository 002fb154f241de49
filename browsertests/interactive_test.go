package browsertests

import (
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// openInteractive writes a page that needs no server and opens it from the disk.
func openInteractive(t *testing.T, hash string, args ...string) *scene {
	t.Helper()
	return openWritten(t, hash, 1600, 900, false, append([]string{"--interactive"}, args...)...)
}

// loadsNothing fails if the page fetched anything but its own worker.
func (s *scene) loadsNothing() {
	s.Helper()
	var loaded []string
	s.value("performance.getEntriesByType('resource').map((r) => r.name).filter((n) => !n.startsWith('data:') && !n.startsWith('blob:'))", &loaded)
	if len(loaded) > 0 {
		s.Errorf("the page loaded %q", loaded)
	}
}

// Somebody opens a run from a mail: verdict, timeline, what-if and all other
// screens are those of the commands, and nothing is loaded.
func TestInteractive(t *testing.T) {
	s := openInteractive(t, "", varlen)
	var explained map[string]any
	command(t, &explained, "explain", varlen)
	s.sees("[data-field=cause]")
	for _, field := range []string{"cause", "cause_confidence"} {
		if got, want := s.text("[data-field="+field+"]"), explained[field]; got != want {
			t.Errorf("%s is %q, that of explain %q", field, got, want)
		}
	}
	first, _ := explained["fixes"].([]any)[0].(map[string]any)["export"].(string)
	if got := s.text("[data-field=first] code"); got != first || first == "" {
		t.Errorf("the first fix is %q, that of explain %q", got, first)
	}

	s.press("2")
	s.until(drawn)
	var p picture
	s.value(pictureScript, &p)
	want := totals(t, varlen)
	perPixel := p.YMax / p.Height
	for col := range p.Live {
		end := p.X0 + (p.X1-p.X0)*float64(col+1)/float64(len(p.Live))
		event := min(len(want)-1, max(0, int(math.Ceil(end-1e-6))-1))
		if bytes := float64(want[event].Active); math.Abs(p.Live[col]*perPixel-bytes) > p.YMax*1e-6 {
			t.Fatalf("column %d ends with event %d: it should be %.0f bytes high and is %.0f", col, event, bytes, p.Live[col]*perPixel)
		}
	}
	if len(p.Live) < 100 {
		t.Errorf("the timeline has %d columns", len(p.Live))
	}

	s.press("6") // which tries the standard settings
	s.until(settledWhatIf)
	var tried whatIfDocument
	args := []string{"whatif", varlen}
	for _, conf := range usual {
		args = append(args, "--set", conf)
	}
	command(t, &tried, args...)
	got := s.outcomes()
	if len(got) != len(tried.Results) {
		t.Fatalf("what-if has %+v", got)
	}
	for i, r := range tried.Results {
		if g := got[i]; g.Peak == nil || *g.Peak != r.Peak || g.Fails != map[bool]string{true: "true", false: "false"}[r.Fails] {
			t.Errorf("%s: peak %v, fails %s; whatif says %d, %v", g.Variant, g.Peak, g.Fails, r.Peak, r.Fails)
		}
	}

	for key, selector := range map[string]string{"3": ".segments", "4": ".icicle", "5": ".list .row", "8": ".lessons", "9": ".plan-form"} {
		s.press(key)
		s.sees(selector)
	}
	s.loadsNothing()
}

// On the page of make site a broken file is named, and a good one opens; nothing
// is loaded or sent.
func TestSite(t *testing.T) {
	s := openInteractive(t, "")
	s.sees(".start .drop")
	if s.number("document.querySelectorAll('[data-ask=sample]').length") != 0 {
		t.Error("a page without a server offers a sample, which it does not have")
	}
	s.value(fmt.Sprintf(dropScript, page.Quote("\x80\x04this is no pickle"), page.Quote("notes.pickle")), nil)
	s.sees("dialog[open] [data-field=drop-error]")
	if said := s.text("dialog[open] .drop"); !strings.Contains(said, "nothing leaves the browser") {
		t.Errorf("the drop zone says %q", said)
	}
	data, err := os.ReadFile(midrun)
	s.must(err)
	array := fmt.Sprintf("Uint8Array.from(atob(%s), (c) => c.charCodeAt(0))", page.Quote(base64.StdEncoding.EncodeToString(data)))
	s.value(fmt.Sprintf(dropScript, array, page.Quote("midrun.pickle.gz")), nil)
	s.hash("#/1/overview")
	var stats map[string]any
	command(t, &stats, "stats", midrun)
	if got, want := s.bytes("memory.reserved.peak_bytes"), lookup(stats, "snapshot.memory.reserved.peak_bytes"); float64(got) != want {
		t.Errorf("peak reserved is %d, that of stats %v", got, want)
	}
	s.loadsNothing()
}

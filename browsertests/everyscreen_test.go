package browsertests

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// shown is the main content of each screen, in the order of the keys.
var shown = []struct{ screen, selector string }{
	{"overview", "[data-field=cause]"},
	{"timeline", ".plot[data-drawn]"},
	{"segments", ".map[data-rows]"},
	{"stacks", ".icicle"},
	{"events", ".list .row"},
	{"whatif", ".whatif-form"},
	{"compare", "main .compare"},
	{"playground", ".playground .lessons"},
	{"plan", ".plan-form"},
}

// Every screen of every kind of run shows what it is for, and the console stays
// empty: of a run that failed, of one that did not, of several, without a server.
func TestEveryScreen(t *testing.T) {
	for _, c := range []struct {
		name string
		open func(t *testing.T) *scene
	}{
		{"failed", func(t *testing.T) *scene { return open(t, "", varlen) }},
		{"nothing failed", func(t *testing.T) *scene { return open(t, "", calm) }},
		{"several", func(t *testing.T) *scene { return open(t, "#/1/overview", varlen, calm, multi) }},
		{"from the disk", func(t *testing.T) *scene { return openInteractive(t, "", varlen) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.open(t)
			s.sees("footer .where")
			for i, want := range shown {
				s.press(fmt.Sprint(i + 1))
				s.hash("/" + want.screen)
				s.sees(want.selector)
				s.rests()
			}
		})
	}
	t.Run("no file", func(t *testing.T) {
		s := open(t, "#//overview")
		s.sees("main > *")
		for i, want := range shown {
			s.press(fmt.Sprint(i + 1))
			s.hash("/" + want.screen)
			s.sees("main > *")
			s.rests()
		}
	})
	t.Run("static report", func(t *testing.T) {
		s := openReport(t, 1160, 900, false, varlen)
		for _, selector := range []string{"h1", "#holders", "svg"} {
			s.sees(selector)
		}
	})
}

// What goes wrong on the page is seen by the tests: errors, messages in red, and
// what the content security policy refuses.
func TestConsoleIsHeard(t *testing.T) {
	s := open(t, "", varlen)
	s.sees("[data-field=cause]")
	s.value(`void setTimeout(() => { throw new Error('a thrown error') })`, nil)
	s.value(`console.error('a message in red')`, nil)
	s.value(`(() => { const e = document.createElement('script'); e.textContent = '1'; document.body.append(e); })()`, nil)
	s.hints = []string{"a thrown error", "a message in red", "script-src"}
	for _, hint := range s.hints {
		end := time.Now().Add(soon)
		for !strings.Contains(strings.Join(s.page.Problems(), "\n"), hint) {
			if time.Now().After(end) {
				t.Fatalf("%q is not among %q", hint, s.page.Problems())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// netIs compares the net change of the selected range with ashlar diff.
func (s *scene) netIs(file string, after, until int) {
	s.Helper()
	var want struct {
		Delta int64 `json:"delta_bytes"`
	}
	command(s.T, &want, "diff", file, "--at", fmt.Sprint(after), "--at", fmt.Sprint(until))
	if got := int64(s.number("Number(document.querySelector('[data-panel=range] [data-field=delta_bytes]').dataset.delta)")); got != want.Delta {
		s.Errorf("from %d to %d the page says %+d bytes, diff %+d", after, until, got, want.Delta)
	}
}

// survivors fails unless a setting would have saved the run.
func (s *scene) survivors() {
	s.Helper()
	for _, o := range s.outcomes() {
		if o.Fails == "false" {
			return
		}
	}
	s.Errorf("nothing saves the run: %+v", s.outcomes())
}

// The way that most people go: why it failed, the moment, what lay there, who
// held it, what would have helped. With the mouse.
func TestMainPathByMouse(t *testing.T) {
	s := openAt(t, "#/1/overview", 1280, 720, false, varlen)
	s.sees("[data-field=cause]")
	s.click("[data-screen=timeline]")
	s.until(drawn)
	s.click("[data-jump='oom+']")
	s.hash("event=18434")
	left, top, width, height := s.plotBox()
	s.must(s.page.Drag(left+width*0.4, top+height/2, left+width*0.6, top+height/2, false))
	after, until := s.rangeIs()
	s.netIs(varlen, after, until)
	s.click("[data-screen=segments]")
	s.sees(".map[data-rows]")
	if got := s.bytes("request.size_bytes"); got <= s.bytes("largest_free_bytes") {
		t.Errorf("the request of %d bytes should not fit", got)
	}
	s.click("[data-screen=whatif]")
	s.until(settledWhatIf)
	s.survivors()
}

// The same with the keyboard.
func TestMainPathByKeyboard(t *testing.T) {
	s := openAt(t, "#/1/overview", 1280, 720, false, varlen)
	s.sees("[data-field=cause]")
	s.press("2")
	s.until(drawn)
	s.press("o")
	s.hash("event=18434")
	s.value("document.querySelector('.plot').focus()", nil)
	s.must(s.page.PressShifted(page.Left))
	after, until := s.rangeIs()
	s.netIs(varlen, after, until)
	s.press("3")
	s.sees(".map[data-rows]")
	s.press("h")
	s.sees("[data-panel=hole]")
	s.press("6")
	s.until(settledWhatIf)
	s.survivors()
}

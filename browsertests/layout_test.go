package browsertests

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// whole makes TestLayout and TestAccessible see every width in both themes.
var whole = flag.Bool("whole", false, "all widths, light and dark, in the tests of the layout")

// A view is a screen in a state that is measured.
type view struct {
	name, hash string
	ready      string // a selector
	keys       string // pressed then: they open a dialog
}

// views are the screens of two runs, of which the first failed at event 18434.
var views = []view{
	{"overview", "#/1/overview", "[data-panel=verdict] [data-field=cause]", ""},
	{"all runs", "#//overview", ".run-table", ""},
	{"all runs", "#//overview", "[data-panel=odd], .run-table", ""},
	{"overview of a range", "#/1/overview?range=9000..12000", "[data-panel=range] .alive", ""},
	{"timeline", "#/1/timeline?event=18434&alloc=100", "[data-panel=block] .facts", ""},
	{"timeline of a range", "#/1/timeline?color=category&range=9000..12000", "[data-panel=range] .alive", ""},
	{"timeline, filtered", "#/1/timeline?color=stack&stack=cross_entropy&only=1", "[data-panel=matches]", ""},
	{"segments", "#/1/segments?event=18434", "[data-panel=request]", ""},
	{"segments with a block", "#/1/segments?event=18434&alloc=100&color=stack", "[data-panel=block] .facts", ""},
	{"a variant's segments", "#/1/segments?event=18434&variant=max_split_size_mb:512", ".variant-line", ""},
	{"stacks", "#/1/stacks?q=forward", "[data-field=matched]", ""},
	{"stacks, sandwich", "#/1/stacks?view=sandwich&lib=1", "[data-panel=frame]", ""},
	{"stacks, difference", "#/1/stacks?mode=diff&after=9000&until=18000&view=up&q=forward", "[data-field=matched]", ""},
	{"events", "#/1/events?event=12345", ".list .row.on", ""},
	{"events, filtered", "#/1/events?stack=adam&frees=both", ".list.filtered .row[data-event]", ""},
	{"whatif", "#/1/whatif?sets=expandable_segments:True;max_split_size_mb:512,garbage_collection_threshold:0.8", "[data-panel=outcomes] [data-copy]", ""},
	{"whatif, tuned", "#/1/whatif?tune=1", "[data-panel=tune]", ""},
	{"whatif, wrong", "#/1/whatif?sets=max_split_size_mb:1;expandable_segments:Yes", ".whatif-form", ""},
	{"compare", "#/1/compare", "[data-panel=flame] .icicle", ""},
	{"compare moments", "#/1/compare?b=1", "[data-panel=flame] .icicle", ""},
	{"plan, not asked", "#/1/plan", ".plan-form", ""},
	{"plan", "#/1/plan?v=1&shape=llama-3.1-8b&batch=2&seq=4096&gpu=h100", "[data-field=planned]", ""},
	{"plan, beside a run", "#/1/plan?v=1&shape=gpt2&batch=8&seq=1024&gpu=3060&against=1", "[data-panel=against]", ""},
	{"plan, two of them", "#/1/plan?v=1&shape=gpt2&batch=8&seq=1024&gpu=3060&recompute=best", "[data-step='1']", ""},
	{"plan, wrong", "#/1/plan?v=2&shape=gpt2", ".plan-main .trouble", ""},
	{"plan, shared", "#/1/plan?v=1&shape=gpt2&batch=8&seq=1024&gpu=3060", "[data-field=planned]", "s"},
	{"playground", "#/1/playground?lesson=every-second&step=31", "[data-rule=out_of_memory]", ""},
	{"playground, all steps", "#/1/playground?lesson=every-second&step=42", "[data-field=at][data-at='42']", ""},
	{"playground, lessons", "#/1/playground?lesson=pools", ".lessons", ""},
	{"keys", "#/1/timeline", ".plot", "?"},
	{"files", "#/1/overview", "[data-field=cause]", "F"},
	{"playground, shared", "#/1/playground?lesson=two-streams&step=8", "[data-field=at][data-at='8']", "s"},
}

// On every screen, in windows from 640 to 3840 px, nothing lies outside of the
// window or on something else, and no text is cut without an ellipsis and a
// title. The panels beside the pictures are measured as sheets as well.
func TestLayout(t *testing.T) {
	widths, themes := []int64{640, 1280}, []bool{false}
	if *whole {
		widths, themes = []int64{640, 800, 960, 1280, 1920, 3840}, []bool{false, true}
	}
	for _, dark := range themes {
		t.Run(map[bool]string{false: "light", true: "dark"}[dark], func(t *testing.T) {
			s := openAt(t, "#/1/overview", 1280, 720, dark, varlen, multi)
			s.sees("[data-field=cause]")
			s.measures()
			for _, v := range views {
				s.must(s.page.Resize(1280, 720))
				s.arrives(v)
				for _, width := range widths {
					s.must(s.page.Resize(width, max(720, width*9/16)))
					s.fits(fmt.Sprintf("%s at %d px", v.name, width))
				}
				s.leaves(v)
			}
		})
		for _, first := range []struct {
			name, hash string
			files      []string
		}{
			{"no file", "", nil},
			{"nothing failed", "", []string{calm}},
			{"no events", "", []string{state}},
			{"many runs", "", []string{varlen, multi, calm, stream, expand, midrun, long}},
			{"many runs compared", "#/1/compare", []string{varlen, multi, calm, stream, expand, midrun, long}},
		} {
			t.Run(first.name, func(t *testing.T) {
				s := openAt(t, first.hash, 1280, 720, dark, first.files...)
				s.sees("main > *")
				s.measures()
				for _, width := range widths {
					s.must(s.page.Resize(width, max(720, width*9/16)))
					s.fits(fmt.Sprintf("%s at %d px", first.name, width))
				}
			})
		}
	}
}

// arrives goes to a view and waits until all of it is there.
func (s *scene) arrives(v view) {
	s.Helper()
	s.must(s.page.Go(v.hash))
	s.sees(v.ready)
	s.rests()
	if v.keys != "" {
		s.press(v.keys)
		s.sees("dialog[open]")
	}
}

// leaves closes what the view opened.
func (s *scene) leaves(v view) {
	s.Helper()
	if v.keys != "" {
		s.press(page.Escape)
		s.until("!document.querySelector('dialog[open]')")
	}
}

// rests waits until nothing is on its way and two frames have been drawn.
func (s *scene) rests() {
	s.Helper()
	s.until("!document.querySelector('main .spin')")
	s.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))", nil)
}

// measures puts the measuring script into the page.
func (s *scene) measures() {
	s.Helper()
	script, err := os.ReadFile("testdata/layout.js")
	s.must(err)
	s.value(string(script)+"\n;void 0", nil)
}

// fits fails for each fault of the layout, also of the sheet that the panel
// beside the picture becomes.
func (s *scene) fits(where string) {
	s.Helper()
	s.rests()
	s.faultless(where)
	var sheet bool
	s.value("!document.querySelector('dialog[open]') && !!document.querySelector('.side-open')", &sheet)
	if sheet {
		s.value("document.querySelector('.side-open').scrollIntoView({block: 'nearest'})", nil)
		s.click(".side-open")
		s.sees("dialog.side-sheet[open]")
		s.rests()
		s.faultless(where + ", its sheet")
		s.press(page.Escape)
		s.until("!document.querySelector('dialog[open]')")
	}
}

func (s *scene) faultless(where string) {
	s.Helper()
	var faults []string
	s.value("layoutFaults()", &faults)
	for i, f := range faults {
		if i == 12 {
			s.Errorf("%s: %d more", where, len(faults)-i)
			break
		}
		s.Errorf("%s: %s", where, f)
	}
}

// In a narrow window the panel beside a picture is a sheet: a button or a key
// opens it, the focus stays in it, Escape closes it and the focus is where it was.
func TestSideSheet(t *testing.T) {
	s := openAt(t, "#/1/segments?event=18434&alloc=100", 640, 720, false, varlen, multi)
	const closed = "!document.querySelector('dialog[open]')"
	s.click(".side-open")
	s.sees("dialog.side-sheet[open] [data-panel=block] .facts")
	for range 40 {
		s.press(page.Tab)
		if !s.truth("document.activeElement === document.body || !!document.activeElement.closest('dialog[open]')") {
			t.Fatal("the focus has left the sheet")
		}
	}
	s.press(page.Escape)
	s.until(closed)
	s.until("document.activeElement.matches('.side-open')")
	s.hash("alloc=100") // Escape closed the sheet alone
	s.rests()
	s.press("D")
	s.sees("dialog.side-sheet[open]")
	s.must(s.page.ClickAt(20, 360)) // past it
	s.until(closed)
	// Where there is room again it stands beside the picture.
	s.must(s.page.Resize(1280, 720))
	s.sees("aside.side [data-panel=block]")
	s.until("!document.querySelector('.side-open')")
}

package browsertests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// holder is a stack of ashlar explain --json with what it holds at the failure.
type holder struct {
	Bytes  int64 `json:"bytes"`
	Blocks int   `json:"blocks"`
	Stack  []struct {
		Name     string `json:"name"`
		Filename string `json:"filename"`
		Line     int    `json:"line"`
	} `json:"stack"`
}

func (h *holder) has(place string) bool {
	for _, f := range h.Stack {
		if fmt.Sprintf("%s:%d", f.Filename, f.Line) == place {
			return true
		}
	}
	return false
}

func holders(t *testing.T, file string) []holder {
	t.Helper()
	var explain struct {
		Holders []holder `json:"holders"`
	}
	command(t, &explain, "explain", file)
	return explain.Holders
}

// graph waits for the graph of what the address says now.
func (s *scene) graph() {
	s.Helper()
	s.until("document.querySelector('.icicle')?.dataset.nodes > 0 && document.querySelector('.stacks [aria-busy=false]')")
}

// framePlace is the file and line of the frame that the panel is about.
func (s *scene) framePlace() string {
	s.Helper()
	s.sees("[data-panel=frame] dd.mono")
	return s.text("[data-panel=frame] dd.mono")
}

// siteBytes is the sum of the list of places.
func (s *scene) siteBytes() int64 {
	s.Helper()
	return int64(s.number("[...document.querySelectorAll('[data-site-bytes]')].reduce((sum, e) => sum + Number(e.dataset.siteBytes), 0)"))
}

// Somebody zooms into a frame: it is in the address, the list of places follows,
// going back shows all again, and a link shows the same.
func TestStacksZoom(t *testing.T) {
	s := open(t, "#/1/stacks", varlen, multi)
	s.graph()
	s.sees("[data-site-bytes]")
	all, listed := s.bytes("total_bytes"), s.siteBytes()
	box, err := s.page.Box(".icicle")
	s.must(err)
	s.until("document.querySelector('.icicle > div').clientHeight > 300")       // it uses the height it has
	row := s.number("document.querySelector('.icicle > div').clientHeight") / 6 // with the root
	s.must(s.page.ClickAt(box[0]+box[2]*0.79, box[1]+row*4.5))
	s.hash("zoom=")
	s.sees("[data-panel=frame]")
	zoomed := s.number("Number(document.querySelector('.icicle').dataset.root)")
	place := s.framePlace()
	want := int64(0)
	for _, h := range holders(t, varlen) {
		if h.has(place) {
			want += h.Bytes
		}
	}
	if got := s.bytes("frame.bytes"); got != want || got >= all {
		t.Errorf("%s has %d bytes, the holders of ashlar explain %d", place, got, want)
	}
	s.until(fmt.Sprintf("[...document.querySelectorAll('[data-site-bytes]')].reduce((sum, e) => sum + Number(e.dataset.siteBytes), 0) === %d", want))
	var hash string
	s.value("location.hash", &hash)
	s.value("history.back()", nil)
	s.until("document.querySelector('.icicle').dataset.root === '-1' && location.hash.endsWith('/stacks')")
	s.until(fmt.Sprintf("[...document.querySelectorAll('[data-site-bytes]')].reduce((sum, e) => sum + Number(e.dataset.siteBytes), 0) === %d", listed))
	// The same by keys, from the link on.
	s.must(s.page.Go("#/1/overview"))
	s.sees("[data-field=cause]")
	s.must(s.page.Go(hash))
	s.until(fmt.Sprintf("Number(document.querySelector('.icicle')?.dataset.root) === %.0f", zoomed))
	s.until(fmt.Sprintf("[...document.querySelectorAll('[data-site-bytes]')].reduce((sum, e) => sum + Number(e.dataset.siteBytes), 0) === %d", want))
	s.press("0")
	s.until("document.querySelector('.icicle').dataset.root === '-1'")
	s.press(page.Down)
	s.press(page.Down)
	s.press("z")
	s.until("document.querySelector('.icicle').dataset.root === document.querySelector('.icicle').dataset.selected && document.querySelector('.icicle').dataset.root !== '-1'")
	// A place of the list zooms to itself.
	s.press("0")
	s.until(fmt.Sprintf("document.querySelector('.icicle').dataset.root === '-1' && [...document.querySelectorAll('[data-site-bytes]')].reduce((sum, e) => sum + Number(e.dataset.siteBytes), 0) === %d", listed))
	first := int64(s.number("Number(document.querySelector('[data-site-bytes]').dataset.siteBytes)"))
	s.click("[data-site-bytes]")
	s.until(fmt.Sprintf("document.querySelectorAll('[data-site-bytes]').length === 1 && Number(document.querySelector('[data-site-bytes]').dataset.siteBytes) === %d", first))
}

// Somebody asks who allocated, whoever called, and who calls one function.
func TestStacksViews(t *testing.T) {
	s := open(t, "#/1/stacks?lib=1", varlen, multi)
	s.graph()
	all := holders(t, varlen)
	leaf := map[string]int64{}
	for _, h := range all {
		if len(h.Stack) > 0 {
			leaf[fmt.Sprintf("%s:%d", h.Stack[0].Filename, h.Stack[0].Line)] += h.Bytes
		}
	}
	most := int64(0)
	for _, n := range leaf {
		most = max(most, n)
	}
	s.click("[data-choice=up]")
	s.hash("view=up")
	s.graph()
	s.press(page.Down)
	if got, place := s.bytes("frame.bytes"), s.framePlace(); got != most || leaf[place] != most {
		t.Errorf("bottom-up %s comes first with %d bytes; the holders say %d, at most %d", place, got, leaf[place], most)
	}
	s.click("[data-choice=down]")
	s.until("!location.hash.includes('view=')")
	s.graph()
	for range 9 {
		s.press(page.Down)
	}
	sandwiched := func(how string) {
		t.Helper()
		s.hash("view=sandwich")
		s.graph()
		place, want := s.framePlace(), int64(0)
		for _, h := range all {
			if h.has(place) {
				want += h.Bytes
			}
		}
		s.until(fmt.Sprintf("Number(document.querySelector('[data-field=\"frame.bytes\"]')?.dataset.bytes) === %d", want))
		if got := s.bytes("total_bytes"); got != want || want == 0 {
			t.Errorf("%s: the sandwich of %s has %d bytes, the holders %d", how, place, got, want)
		}
	}
	s.press("s")
	sandwiched("key")
	s.value("history.back()", nil)
	s.until("!location.hash.includes('view=')")
	s.graph()
	s.press(page.Down)
	s.press(page.Down)
	s.click("[data-frame-view=sandwich]")
	sandwiched("button")
	// Up goes to a caller; Enter puts it into the middle.
	was := s.number("Number(document.querySelector('[data-panel=frame]').dataset.frame)")
	s.press(page.Down)
	s.press(page.Up)
	s.until(fmt.Sprintf("Number(document.querySelector('.icicle').dataset.selected) !== %.0f", was))
	s.press(page.Enter)
	s.until(fmt.Sprintf("!location.hash.includes('frame=%.0f')", was))
	sandwiched("caller")
	s.press("v")
	s.until("!location.hash.includes('view=')")
	s.press("v")
	s.hash("view=up")
}

// Somebody goes from match to match; a search that is not complete does nothing.
func TestStacksMatches(t *testing.T) {
	s := open(t, "#/1/stacks?lib=1", varlen, multi)
	s.graph()
	s.must(s.page.Type("input[name=q]", "modeling_gpt2.*forward"))
	s.sees("[data-field=matched]")
	bytes, blocks := int64(0), 0
	for _, h := range holders(t, varlen) {
		if slices.ContainsFunc(h.Stack, func(f struct {
			Name     string `json:"name"`
			Filename string `json:"filename"`
			Line     int    `json:"line"`
		},
		) bool {
			return strings.Contains(f.Filename, "modeling_gpt2") && strings.Contains(f.Name, "forward")
		}) {
			bytes += h.Bytes
			blocks += h.Blocks
		}
	}
	if got := s.bytes("matched"); got != bytes || bytes == 0 {
		t.Errorf("the search finds %d bytes, the holders have %d", got, bytes)
	}
	if got := int(s.number("Number(document.querySelector('[data-field=matched]').dataset.blocks)")); got != blocks {
		t.Errorf("the search finds %d blocks, the holders have %d", got, blocks)
	}
	frames := int(s.number("Number(document.querySelector('[data-field=matched]').dataset.frames)"))
	s.press(page.Escape)
	at := func() float64 {
		return s.number("Number(document.querySelector('[data-panel=frame]')?.dataset.frame ?? -1)")
	}
	s.click("[aria-label='Next match']")
	s.sees("[data-panel=frame]")
	first := at()
	s.press("m")
	s.until(fmt.Sprintf("Number(document.querySelector('[data-panel=frame]').dataset.frame) !== %.0f", first))
	s.press("M")
	s.until(fmt.Sprintf("Number(document.querySelector('[data-panel=frame]').dataset.frame) === %.0f", first))
	s.click("[aria-label='Previous match']")
	s.click("[aria-label='Next match']")
	s.until(fmt.Sprintf("Number(document.querySelector('[data-panel=frame]').dataset.frame) === %.0f", first))
	// All of them can be reached, and after the last comes the first.
	for range frames {
		s.press("m")
	}
	s.until(fmt.Sprintf("Number(document.querySelector('[data-panel=frame]').dataset.frame) === %.0f", first))
	// What is being typed changes nothing.
	top := "document.querySelector('.icicle').getBoundingClientRect().top"
	was := s.number(top)
	s.must(s.page.Type("input[name=q]", "forward("))
	s.sees("input[name=q][aria-invalid=true]")
	if now := s.number(top); now != was {
		t.Errorf("the graph moved from %v to %v", was, now)
	}
	s.hash("q=modeling_gpt2")
	if got := s.bytes("matched"); got != bytes {
		t.Errorf("an incomplete expression finds %d bytes", got)
	}
}

// Somebody compares two moments, from a range, by steps and by events.
func TestStacksDifference(t *testing.T) {
	s := open(t, "#/1/stacks?range=3000..6000", leaking)
	s.graph()
	check := func(after, until string) {
		t.Helper()
		s.graph()
		var want struct {
			A     int64 `json:"a_bytes"`
			B     int64 `json:"b_bytes"`
			Delta int64 `json:"delta_bytes"`
		}
		command(t, &want, "diff", leaking, "--at", after, "--at", until)
		s.press("0")
		s.press(page.Down)
		s.sees("[data-field='frame.delta']")
		var tree struct {
			A int64 `json:"a_bytes"`
			B int64 `json:"b_bytes"`
		}
		s.api(fmt.Sprintf("stacks?run=1&after=%s&until=%s&user=1", strings.Replace(after, "start", "-1", 1), until), &tree)
		if tree.B-tree.A != want.Delta {
			t.Errorf("from %s to %s the graph has %d to %d, diff says %+d", after, until, tree.A, tree.B, want.Delta)
		}
		if got := s.text(".tools"); want.Delta != 0 && !strings.Contains(got, fmt.Sprintf("%+.2f", float64(want.Delta)/(1<<20))) {
			t.Errorf("from %s to %s the tools read %q, diff says %+d", after, until, got, want.Delta)
		}
	}
	s.click("[data-choice=diff]")
	s.hash("mode=diff")
	check("3000", "6000")
	s.must(s.page.Type("input[name=until]", "9000"))
	s.press(page.Enter)
	s.hash("until=9000")
	s.hash("after=3000")
	s.press(page.Escape)
	check("3000", "9000")
	var m struct {
		Steps []struct{ Number, End int } `json:"steps"`
	}
	s.api("meta?run=1", &m)
	s.must(s.page.Type("input[name=after]", fmt.Sprintf("step %d", m.Steps[1].Number)))
	s.press(page.Enter)
	s.hash(fmt.Sprintf("after=%d", m.Steps[1].End-1))
	s.press(page.Escape)
	check(fmt.Sprint(m.Steps[1].End-1), "9000")
	s.must(s.page.Type("input[name=after]", "yesterday"))
	s.sees("input[name=after][aria-invalid=true]")
	s.must(s.page.Type("input[name=after]", "start"))
	s.press(page.Enter)
	s.hash("after=-1")
	s.press(page.Escape)
	check("start", "9000")
	// In red and blue, in every view.
	s.click("[data-choice=up]")
	s.hash("view=up")
	check("start", "9000")
	s.click("[data-choice=larger]")
	s.hash("width=larger")
	s.graph()
}

package browsertests

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// What a person can do with the timeline and the curves, and the test that does
// it, by mouse and by keyboard:
//
//	select a range, its answers                      TestRange, TestRangeKeys
//	zoom, in Stacks, compare its ends, as a command  TestRangeButtons
//	select on the overview's curve                   TestRangeOverview
//	wheel and keys zoom around pointer and moment    TestZoomAround
//	every jump brings its target into view           TestJumps
//	changing the axis keeps the window               TestAxisKeepsWindow
//	steps and annotations: tooltip, click, zoom      TestSteps
//	hover and click name the same event              TestHoverIsClick
//	filter: count, bytes, next, marks, only these    TestMatches
//	legend and rows: highlight, isolate              TestIsolate
//	frames: filter, copy, open in an editor          TestFrames
//	a block without a mouse                          TestBlockKeys
//	requested line, constant part                    TestLeftOut
const leaking = "../testdata/snapshots/leak_graph-tight-default.pickle.gz"

// window is the piece of the run that the timeline shows.
func (s *scene) window() (from, to float64) {
	s.Helper()
	s.sees("[data-field=window]")
	return s.number("Number(document.querySelector('[data-field=window]').dataset.from)"), s.number("Number(document.querySelector('[data-field=window]').dataset.to)")
}

// windowWidth is how much of the axis the page shows.
const windowWidth = "Number(document.querySelector('[data-field=window]').dataset.to) - Number(document.querySelector('[data-field=window]').dataset.from)"

// holds waits until the window has a place of the axis in it.
func (s *scene) holds(x float64) {
	s.Helper()
	s.until(fmt.Sprintf("(() => { const d = document.querySelector('[data-field=window]').dataset; return Number(d.from) <= %v && Number(d.to) >= %v })()", x, x))
}

// plotBox is where the plot's picture is in the window of the browser.
func (s *scene) plotBox() (left, top, width, height float64) {
	s.Helper()
	s.until(drawn)
	var b []float64
	s.value(`(() => {
		const e = document.querySelector('.plot'), r = e.getBoundingClientRect(), b = e.plot.sight().box;
		return [r.left + e.clientLeft + b.left, r.top + e.clientTop + b.top, b.width, b.height];
	})()`, &b)
	return b[0], b[1], b[2], b[3]
}

// rangeIs reads the selected range off the panel.
func (s *scene) rangeIs() (after, until int) {
	s.Helper()
	s.sees("[data-panel=range] [data-field=delta_bytes]")
	return int(s.number("Number(document.querySelector('[data-panel=range]').dataset.after)")), int(s.number("Number(document.querySelector('[data-panel=range]').dataset.until)"))
}

func TestRange(t *testing.T) {
	s := open(t, "#/1/timeline", leaking)
	left, top, width, height := s.plotBox()
	s.must(s.page.Drag(left+width*0.3, top+height/2, left+width*0.7, top+height/3, false))
	after, until := s.rangeIs()
	s.checkRange(after, until)
	for _, view := range []string{"kept", "freed", "peak", "net"} {
		s.click(fmt.Sprintf("[data-panel=range] [data-choice=%s]", view))
		s.sees(fmt.Sprintf("[data-rows=%s]", view))
	}
	// A row shows its call stack alone.
	s.click("[data-rows=net] li:nth-child(2) .alive")
	s.hash("like=")
	s.until("document.querySelectorAll('[data-rows] .alive').length === 1")
	s.click("[data-rows=net] .alive")
	s.until("!location.hash.includes('like=')")
	s.until("document.querySelectorAll('[data-rows] .alive').length > 1")
	s.click("[data-panel=range] [data-choice=category]")
	s.until("[...document.querySelectorAll('[data-rows] .alive')].some((e) => e.innerText.includes('activations'))")
	// It stays on other screens, and Escape lets go.
	s.press("3")
	s.hash("/segments")
	s.hash(fmt.Sprintf("range=%d..%d", after, until))
	s.press("2")
	s.sees("[data-panel=range]")
	s.press(page.Escape)
	s.until("!location.hash.includes('range=')")
}

// checkRange compares the panel with ashlar diff.
func (s *scene) checkRange(after, until int) {
	s.Helper()
	at := fmt.Sprint(after)
	if after < 0 {
		at = "start"
	}
	var want struct {
		A struct {
			Reserved int64 `json:"reserved_bytes"`
		} `json:"a"`
		Delta  int64 `json:"delta_bytes"`
		Stacks []struct {
			Delta int64 `json:"delta_bytes"`
		} `json:"stacks"`
	}
	command(s.T, &want, "diff", leaking, "--at", at, "--at", fmt.Sprint(until))
	if got := int64(s.number("Number(document.querySelector('[data-panel=range] [data-field=delta_bytes]').dataset.delta)")); got != want.Delta {
		s.Errorf("from %d to %d the page says %+d bytes, diff %+d", after, until, got, want.Delta)
	}
	if kept, freed := s.bytes("kept_bytes"), s.bytes("released_bytes"); kept-freed != want.Delta {
		s.Errorf("kept %d and freed %d make no %d", kept, freed, want.Delta)
	}
	if got := int64(s.number("Number(document.querySelector('[data-rows=net] .alive').dataset.rowBytes)")); len(want.Stacks) == 0 || got != want.Stacks[0].Delta {
		s.Errorf("the first row is %d, diff has %+v", got, want.Stacks)
	}
}

func TestRangeKeys(t *testing.T) {
	s := open(t, "#/1/timeline?event=4000", leaking)
	s.until(drawn)
	shiftArrow := func(key string) {
		s.value("document.querySelector('.plot').dispatchEvent(new KeyboardEvent('keydown', {key: "+page.Quote(key)+", shiftKey: true, bubbles: true}))", nil)
	}
	shiftArrow("ArrowRight")
	after, until := s.rangeIs()
	if after != 4000 || until <= after {
		t.Errorf("Shift and the arrow select %d..%d", after, until)
	}
	shiftArrow("ArrowRight")
	s.until(fmt.Sprintf("Number(document.querySelector('[data-panel=range]')?.dataset.until) > %d", until))
	after, until = s.rangeIs()
	s.checkRange(after, until)
}

func TestRangeButtons(t *testing.T) {
	s := open(t, "#/1/timeline?range=3000..6000", leaking)
	s.rangeIs()
	var text string
	s.value("document.querySelector('[data-panel=range] [data-copy]').dataset.copy", &text)
	if !strings.HasPrefix(text, "ashlar diff ") || !strings.HasSuffix(text, " --at 3000 --at 6000") {
		t.Errorf("the command is %q", text)
	}
	s.click("[data-range=zoom]")
	s.until("document.querySelector('[data-field=window]').dataset.from === '3001' && document.querySelector('[data-field=window]').dataset.to === '6001'")
	s.press("0")
	s.until("!location.hash.includes('from=')")
	s.press("z")
	s.hash("from=3001")
	s.click("[data-panel=range] a[href*='/stacks']")
	s.until("document.querySelector('.stacks')?.innerText.includes('from event 3,001 to 6,000')")
	s.press("2")
	s.click("[data-panel=range] a[href*='/compare']")
	s.hash("at=3000")
	s.hash("bt=6000")
	s.until("document.querySelector('.stack-change')")
}

func TestRangeOverview(t *testing.T) {
	s := open(t, "#/1/overview", leaking)
	s.sees(".curve canvas")
	b, err := s.page.Box(".curve")
	s.must(err)
	s.must(s.page.Drag(b[0]+200, b[1]+b[3]/2, b[0]+400, b[1]+b[3]/2, false))
	after, until := s.rangeIs()
	s.checkRange(after, until)
}

func TestZoomAround(t *testing.T) {
	s := open(t, "#/1/timeline?event=11000", leaking)
	s.until(drawn)
	for range 4 {
		s.press("w")
	}
	s.until(windowWidth + " < 2000")
	s.holds(11000.5)
	s.press("0")
	s.until("!location.hash.includes('from=')")
	s.until(windowWidth + " > 11000") // the way back has ended
	for range 3 {
		from, to := s.window()
		s.clickUntil("[aria-label='Zoom in']", fmt.Sprintf("%s < %g", windowWidth, 0.75*(to-from)))
	}
	s.until(windowWidth + " < 2000")
	s.holds(11000.5)
	s.press("0")
	s.until("!location.hash.includes('from=')")
	left, top, width, height := s.plotBox()
	_, end := s.window()
	for range 4 {
		s.must(s.page.Wheel(left+width/4, top+height/2, -240))
	}
	s.hash("from=")
	s.holds(end / 4)
}

func TestJumps(t *testing.T) {
	s := open(t, "#/1/timeline?from=100&to=900", varlen, multi)
	s.until(drawn)
	var m struct {
		OOMs []int `json:"ooms"`
		Peak struct {
			Allocated, Reserved struct {
				Event int `json:"event"`
			}
		} `json:"peak"`
	}
	s.api("meta?run=1", &m)
	away := func() {
		s.must(s.page.Go("#/1/timeline?from=100&to=900"))
		s.until("document.querySelector('[data-field=window]').dataset.to === '900'")
	}
	for _, jump := range []struct {
		key, button string
		event       int
	}{
		{"o", "[data-jump='oom+']", m.OOMs[0]},
		{"p", "[data-jump=peak-allocated]", m.Peak.Allocated.Event},
		{"P", "[data-jump=peak-reserved]", m.Peak.Reserved.Event},
	} {
		s.press(jump.key)
		s.hash(fmt.Sprintf("event=%d", jump.event))
		s.holds(float64(jump.event))
		away()
		s.click(jump.button)
		s.hash(fmt.Sprintf("event=%d", jump.event))
		s.holds(float64(jump.event))
		// The same again, after the window was moved.
		s.must(s.page.Go(fmt.Sprintf("#/1/timeline?from=100&to=900&event=%d", jump.event)))
		s.press(jump.key)
		s.holds(float64(jump.event))
		away()
	}
	// By time as well.
	s.must(s.page.Go("#/1/timeline?x=time&from=1000&to=9000"))
	s.until("document.querySelector('[data-field=window]').dataset.to === '9000'")
	s.press("o")
	s.until("Number(document.querySelector('[data-field=window]').dataset.from) > 1000000")
}

func TestAxisKeepsWindow(t *testing.T) {
	s := open(t, "#/1/timeline?from=13000&to=15000", varlen, multi)
	s.until(drawn)
	var both struct {
		Time struct{ From, To float64 } `json:"time"`
	}
	s.api("window?run=1&from=13000&to=15000", &both)
	s.press("x")
	s.hash("x=time")
	if from, to := s.window(); from != both.Time.From || to != both.Time.To {
		t.Errorf("by time the window is %v to %v, want %+v", from, to, both.Time)
	}
	s.until(drawn)
	s.click("[data-choice=event]")
	s.until("!location.hash.includes('x=time')")
	if from, to := s.window(); math.Abs(from-13000) > 2 || math.Abs(to-15000) > 2 {
		t.Errorf("by event again the window is %v to %v", from, to)
	}
}

func TestSteps(t *testing.T) {
	s := open(t, "#/1/timeline", varlen, multi)
	left, top, width, height := s.plotBox()
	var m struct {
		Events int
		Steps  []struct{ Number, Begin, End int } `json:"steps"`
	}
	s.api("meta?run=1", &m)
	step := m.Steps[2]
	x := left + width*float64(step.Begin+step.End)/2/float64(m.Events)
	y := top + height + 22 + 7
	s.must(s.page.Move(x, y))
	s.sees(fmt.Sprintf("[data-bar='step %d']", step.Number))
	s.must(s.page.ClickAt(x, y))
	if after, until := s.rangeIs(); after != step.Begin-1 || until != step.End-1 {
		t.Errorf("a click selects %d..%d, the step is %+v", after, until, step)
	}
	s.value(fmt.Sprintf("document.querySelector('.plot').dispatchEvent(new MouseEvent('dblclick', {clientX: %v, clientY: %v, bubbles: true}))", x, y), nil)
	s.until(fmt.Sprintf("document.querySelector('[data-field=window]').dataset.from === '%d'", step.Begin))
	s.press("e")
	next := m.Steps[3]
	s.hash(fmt.Sprintf("range=%d..%d", next.Begin-1, next.End-1))
	s.holds(float64(next.Begin))
	s.holds(float64(next.End))
	s.press("E")
	s.hash(fmt.Sprintf("range=%d..%d", step.Begin-1, step.End-1))
}

// At every pixel column of the timeline and of the overview's curve, or at every
// fifth, a click selects the event that hovering names.
func TestHoverIsClick(t *testing.T) {
	step := 5
	if *whole {
		step = 1
	}
	walk := `(selector, left, width, y, named, step) => {
		const e = document.querySelector(selector), wrong = [];
		const wait = () => new Promise((done) => setTimeout(done));
		const send = (type, x) => e.dispatchEvent(new PointerEvent(type, {clientX: x, clientY: y, button: 0, pointerId: 1, bubbles: true}));
		e.setPointerCapture = () => {};
		history.pushState = history.replaceState = () => {}; // browsers refuse hundreds of them
		return (async () => {
			for (let x = Math.ceil(left); x < left + width; x += step) {
				send('pointermove', x);
				await wait();
				const said = document.querySelector(named)?.dataset.event;
				send('pointerdown', x);
				send('pointerup', x);
				await wait();
				const got = document.querySelector('[data-field=moment]').dataset.event;
				if (said === undefined || said !== got) wrong.push([x, said ?? 'nothing', got]);
			}
			return wrong;
		})();
	}`
	check := func(s *scene, what, args string) {
		s.Helper()
		var wrong [][]any
		s.value(fmt.Sprintf("(%s)(%s, %d)", walk, args, step), &wrong)
		if len(wrong) > 0 {
			s.Errorf("%s: at %d columns hover and click differ, first %v", what, len(wrong), wrong[0])
		}
	}
	for _, query := range []string{"", "?x=time", "?from=3000.5&to=3400"} {
		s := openAt(t, "#/1/timeline"+query, 800, 600, false, varlen, multi)
		left, top, width, height := s.plotBox()
		check(s, "timeline"+query, fmt.Sprintf("'.plot', %v, %v, %v, '[data-tip]'", left, width, top+height-3))
	}
	s := openAt(t, "#/1/overview", 800, 600, false, varlen, multi)
	s.sees(".curve canvas")
	b, err := s.page.Box(".curve")
	s.must(err)
	check(s, "overview", fmt.Sprintf("'.curve', %v, %v, %v, '.reading'", b[0]+1+62, b[2]-2-62-10, b[1]+b[3]/2))
}

func TestMatches(t *testing.T) {
	s := open(t, "#/1/timeline?event=9000", varlen, multi)
	s.until(drawn)
	s.must(s.page.Type("input[name=stack]", "cross_entropy"))
	s.sees("[data-panel=matches]")
	var want struct {
		Blocks    int   `json:"blocks"`
		Most      int64 `json:"most_bytes"`
		MostEvent int   `json:"most_event"`
		Next      int   `json:"next"`
		Previous  int   `json:"previous"`
	}
	s.api("matches?run=1&stack=cross_entropy&event=9000", &want)
	if got := int(s.number("Number(document.querySelector('[data-panel=matches]').dataset.blocks)")); got != want.Blocks || got == 0 {
		t.Errorf("%d blocks match on the page, %d by the server", got, want.Blocks)
	}
	if got := s.bytes("match_most_bytes"); got != want.Most {
		t.Errorf("at most %d bytes on the page, %d by the server", got, want.Most)
	}
	s.click("[aria-label='Next match']")
	s.hash(fmt.Sprintf("event=%d", want.Next))
	s.must(s.page.Go("#/1/timeline?stack=cross_entropy&event=9000&from=100&to=900"))
	s.until("document.querySelector('[data-field=moment]').dataset.event === '9000' && document.querySelector('[data-panel=matches]')")
	s.holds(9000) // the link brought the moment into view
	s.press("m")
	s.hash(fmt.Sprintf("event=%d", want.Next))
	s.holds(float64(want.Next))
	s.click("input[name=only]")
	s.hash("only=1")
	s.until("(() => { const d = document.querySelector('.plot').plot.feed.detail; for (let i = 0; i < d.rects; i++) if (d.words[i * 6 + 5] & 0x80000000) return false; return d.rects > 0; })()")
	s.press("0")
	s.until(fmt.Sprintf("Math.abs(document.querySelector('.plot').plot.sight().scale.high / %d - 1.05) < 0.01", want.Most))
	s.press("i")
	s.until("!location.hash.includes('only=1')")
	// Its field follows the address even while it has the focus.
	s.value("document.querySelector('input[name=stack]').focus()", nil)
	s.must(s.page.Go("#/1/timeline"))
	s.until("document.querySelector('input[name=stack]').value === ''")
}

func TestIsolate(t *testing.T) {
	s := open(t, "#/1/timeline?color=category", varlen, multi)
	s.until(drawn)
	s.click(".legend [data-pick='3']")
	s.hash("pick=3")
	s.hash("only=1")
	alone := "(() => { const d = document.querySelector('.plot').plot.feed.detail; for (let i = 0; i < d.rects; i++) if ((d.words[i * 6 + 5] & 0xffffff) !== 3) return false; return d.rects > 0; })()"
	s.until(alone)
	s.press(page.Escape)
	s.click(".legend [data-pick='3']")
	s.until("!location.hash.includes('pick=')")
	s.until("!(" + alone + ")")
	// By keyboard, on a row of the list.
	s.value("document.querySelector('[data-panel=alive] [data-pick=\"3\"]').focus()", nil)
	s.press(page.Enter)
	s.hash("pick=3")
	s.until(alone)
}

func TestFrames(t *testing.T) {
	s := open(t, "#/1/timeline?alloc=300", varlen, multi)
	s.click("[data-panel=block] .stack .own button.frame")
	s.sees(".frame-uses [data-copy*='train.py:']")
	var link string
	s.value("document.querySelector('[data-frame=open]').getAttribute('href')", &link)
	if !strings.HasPrefix(link, "vscode://file/") || !strings.Contains(link, "train.py:") {
		t.Errorf("a frame opens %q", link)
	}
	s.click(".frame-uses [aria-label='Which editor']")
	s.must(s.page.Type("input[name=editor]", "idea://open?file={file}&line={line}"))
	s.press(page.Enter)
	s.until("document.querySelector('[data-frame=open]').getAttribute('href').startsWith('idea://open?file=')")
	s.must(s.page.Type("input[name=editor]", "javascript:{file}"))
	s.press(page.Enter)
	s.until("!document.querySelector('[data-frame=open]')")
	s.value("localStorage.removeItem('ashlar.editor')", nil)
	s.click("[data-frame=filter]")
	s.hash("stack=")
	s.until("Number(document.querySelector('[data-panel=matches]')?.dataset.blocks) > 0")
}

func TestBlockKeys(t *testing.T) {
	s := open(t, "#/1/timeline?event=9000", varlen, multi)
	s.until(drawn)
	s.press(page.Enter)
	s.sees("[data-panel=block] .facts")
	first := s.number("Number(document.querySelector('[data-panel=block]').dataset.alloc)")
	s.sees("[data-panel=alive] .alive") // the colours keep their names
	s.press("k")
	s.until(fmt.Sprintf("document.querySelector('[data-panel=block]').dataset.alloc !== '%v'", first))
	s.press("j")
	s.until(fmt.Sprintf("document.querySelector('[data-panel=block]').dataset.alloc === '%v'", first))
}

func TestLeftOut(t *testing.T) {
	s := open(t, "#/1/timeline?from=9000&to=15000", varlen, multi)
	s.until(drawn)
	if on := s.text(".legend [data-line=requested][aria-pressed=true]"); on != "" {
		t.Error("the line of requested bytes is on at first")
	}
	s.click("[data-line=requested]")
	s.hash("asked=1")
	high := "document.querySelector('.plot').plot.sight().scale.high"
	was := s.number(high)
	s.press("u")
	s.hash("moving=1")
	s.until(fmt.Sprintf("%s < %v", high, was))
	s.click("input[name=moving]")
	s.until(fmt.Sprintf("%s === %v", high, was))
}

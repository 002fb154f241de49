package browsertests

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
)

const drawn = "document.querySelector('.plot')?.dataset.drawn > 0 && !document.querySelector('.caption .spin')"

// Somebody zooms into the timeline and reads the stack of a block.
func TestTimelineZoom(t *testing.T) {
	s := open(t, "#/1/timeline", varlen, multi)
	s.until(drawn)
	plot, err := s.page.Box(".plot")
	s.must(err)
	x, y := plot[0]+plot[2]*0.8, plot[1]+plot[3]*0.75
	for range 8 {
		s.must(s.page.Wheel(x, y, -240))
	}
	s.hash("from=")
	s.until("Number(document.querySelector('[data-field=window]').dataset.to) - Number(document.querySelector('[data-field=window]').dataset.from) < 2000")
	s.until(drawn)
	s.must(s.page.Move(x, y))
	s.sees("[data-tip] strong")
	tip := s.text("[data-tip]")
	s.must(s.page.ClickAt(x, y))
	s.sees("[data-panel=block] .facts")
	s.hash("alloc=")
	s.hash("event=")
	id := int(s.number("Number(document.querySelector('[data-panel=block]').dataset.alloc)"))
	var alloc struct {
		Size   int64   `json:"size_bytes"`
		Site   *string `json:"site"`
		Frames []any   `json:"frames"`
	}
	s.api(fmt.Sprintf("alloc?run=1&id=%d", id), &alloc)
	if got := s.bytes("size_bytes"); got != alloc.Size {
		t.Errorf("block %d has %d bytes on the page, %d by the server", id, got, alloc.Size)
	}
	if alloc.Site == nil || !strings.Contains(tip, *alloc.Site) {
		t.Errorf("the tooltip reads %q and not the site of block %d", tip, id)
	}
	if n := s.number("document.querySelectorAll('[data-panel=block] .stack li').length"); int(n) != len(alloc.Frames) || n == 0 {
		t.Errorf("the stack has %v frames on the page, %d in the file", n, len(alloc.Frames))
	}
	if first := s.text("[data-panel=block] .stack li.own"); !strings.Contains(first, "train.py") {
		t.Errorf("the user's own line reads %q", first)
	}
	// The block stays selected on the other screens, and the whole run comes back.
	s.press("3")
	s.sees(fmt.Sprintf("[data-panel=block][data-alloc='%d']", id))
	s.press("2")
	s.until(drawn)
	s.press("0")
	s.until("document.querySelector('[data-field=window]').dataset.to === '18435'")
	s.press(page.Escape)
	s.until("!location.hash.includes('alloc=')")
}

// Keys alone do what the mouse does.
func TestTimelineKeys(t *testing.T) {
	s := open(t, "#/1/timeline", varlen, multi)
	s.until(drawn)
	from := func() float64 { return s.number("Number(document.querySelector('[data-field=window]').dataset.from)") }
	s.press("+++")
	s.hash("from=")
	was := from()
	s.press(page.Right)
	s.until(fmt.Sprintf("Number(document.querySelector('[data-field=window]').dataset.from) > %v", was))
	s.press(page.Left)
	s.until(fmt.Sprintf("Math.abs(Number(document.querySelector('[data-field=window]').dataset.from) - %v) < 1", was))
	s.press("o")
	s.hash("event=18434")
	s.press("x")
	s.hash("x=time")
	s.until("document.querySelector('[data-field=window]').innerText.includes(' s to ')")
	s.press("c")
	s.hash("color=stack")
	s.press("?")
	s.sees("dialog[open] .keys")
	if text := s.text("dialog[open]"); !strings.Contains(text, "Zoom in") || !strings.Contains(text, "Previous, next segment event") {
		t.Errorf("the sheet of keys reads %q", text)
	}
	s.press(page.Escape)
	s.until("!document.querySelector('dialog[open]')")
	s.hash("event=18434")
}

// The mini-map moves the window, and so does dragging with Shift.
func TestTimelineDrag(t *testing.T) {
	s := open(t, "#/1/timeline?from=4000&to=6000", varlen, multi)
	s.until(drawn)
	plot, err := s.page.Box(".plot")
	s.must(err)
	mid := plot[1] + plot[3]/2
	s.must(s.page.Drag(plot[0]+600, mid, plot[0]+400, mid, true))
	s.until("Number(document.querySelector('[data-field=window]').dataset.from) > 4300")
	mini, err := s.page.Box(".minimap")
	s.must(err)
	s.must(s.page.ClickAt(mini[0]+mini[2]*0.9, mini[1]+mini[3]/2))
	s.until("Number(document.querySelector('[data-field=window]').dataset.from) > 14000")
	s.until(drawn)
}

// What a filter leaves out is dimmed, and all colourings draw.
func TestTimelineFilter(t *testing.T) {
	s := open(t, "#/1/timeline", varlen, multi)
	s.until(drawn)
	dimmed := `(() => {
		const d = document.querySelector('.plot').plot.feed.detail;
		let n = 0;
		for (let i = 0; i < d.rects; i++) if (d.words[i * 6 + 5] & 0x80000000) n++;
		return n / d.rects;
	})()`
	if got := s.number(dimmed); got != 0 {
		t.Errorf("without a filter %v of the rectangles are dimmed", got)
	}
	s.must(s.page.Type("input[name=stack]", "adam"))
	s.hash("stack=adam")
	s.until(dimmed + " > 0.2 && " + dimmed + " < 1")
	// What is not complete yet changes nothing, moves nothing and is not sent.
	top := s.number("document.querySelector('.plot').getBoundingClientRect().top")
	s.must(s.page.Type("input[name=stack]", "adam("))
	s.sees("input[name=stack][aria-invalid=true]")
	s.until("!document.querySelector('.trouble') && " + dimmed + " > 0.2 && location.hash.includes('stack=adam') && !location.hash.includes('(')")
	if now := s.number("document.querySelector('.plot').getBoundingClientRect().top"); now != top {
		t.Errorf("the plot moved from %v to %v", top, now)
	}
	// The field follows the address, whatever was typed.
	s.must(s.page.Go("#/1/timeline?stack=backward"))
	s.until("document.querySelector('input[name=stack]').value === 'backward' && !document.querySelector('input[aria-invalid]')")
	s.must(s.page.Type("input[name=stack]", ""))
	s.until("!document.querySelector('.trouble') && " + dimmed + " === 0")
	s.click("input[name=never]")
	s.until(dimmed + " > 0")
	s.click("input[name=never]")
	for _, by := range []string{"size", "stream", "pool", "category", "lifetime", "stack"} {
		s.must(s.page.Pick("select[name=color]", by))
		s.until(drawn)
		s.sees("[data-panel=alive] .alive")
	}
}

// totals are the sums after every event, as ashlar stats follows them; the
// page's server counts in another way.
func totals(t *testing.T, file string) []timeline.Totals {
	t.Helper()
	ctx := context.Background()
	f, err := snapshot.Open(ctx, file, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := run.New(f.Traces[0], nil).History(ctx)
	if err != nil {
		t.Fatal(err)
	}
	line := h.Timeline
	if !line.Exact {
		t.Fatalf("%s: block sizes are not known", file)
	}
	var out []timeline.Totals
	for c := line.Cursor(); c.Next(); {
		out = append(out, c.Totals)
	}
	return out
}

// picture is what the plot has drawn.
type picture struct {
	X0      float64   `json:"x0"`
	X1      float64   `json:"x1"`
	YMax    float64   `json:"yMax"`
	Height  float64   `json:"height"`
	Live    []float64 `json:"live"`
	Stacked []float64 `json:"stacked"` // sum of rectangles and band
	Below   []float64 `json:"below"`   // where the band begins
	Left    float64   `json:"left"`    // of the plot in the window
	Bottom  float64   `json:"bottom"`
	Width   float64   `json:"width"`
	Tall    float64   `json:"tall"`
	High    float64   `json:"high"` // bytes at the top of the plot
}

const pictureScript = `(() => {
	const plot = document.querySelector('.plot').plot;
	const d = plot.feed.detail, s = plot.sight(), r = document.querySelector('.plot').getBoundingClientRect();
	const live = [], stacked = [], below = [];
	for (let c = 0; c < d.columns; c++) {
		live.push(d.column[6 * c]);
		stacked.push(d.column[6 * c] - d.column[6 * c + 1]);
		below.push(d.column[6 * c + 1]);
	}
	for (let i = 0; i < d.rects; i++) {
		const [c0, c1, y0, y1] = d.floats.subarray(6 * i, 6 * i + 4);
		for (let c = Math.round(c0); c < Math.round(c1); c++) stacked[c] += y1 - y0;
	}
	return {x0: d.x0, x1: d.x1, yMax: d.yMax, height: d.height, live, stacked, below,
		left: r.left + s.box.left, bottom: r.top + s.box.top + s.box.height, width: s.box.width, tall: s.box.height, high: s.scale.high};
})()`

// The stack is as high as the live bytes at every column: the rectangles and
// the band that were sent, and the pixels on the screen.
func TestStackedHeight(t *testing.T) {
	cases := []struct {
		name, file, query string
		plain             bool
	}{
		{"fragmentation", varlen, "", false},
		{"zoomed", varlen, "?from=13000&to=18435", false},
		{"streams", stream, "", false},
		{"expandable", expand, "", false},
		{"canvas", varlen, "?gl=0", true},
		{"segments", varlen, "?what=segments", false},
		{"mapped segments", expand, "?what=segments", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files := []string{c.file}
			if c.file == varlen {
				files = []string{varlen, multi}
			}
			s := open(t, "#/1/timeline"+c.query, files...)
			s.until(drawn)
			var kind string
			s.value("document.querySelector('.plot').plot.kind", &kind)
			// Firefox has no WebGL without a graphics driver.
			if want := map[bool]string{false: "webgl2", true: "canvas"}[c.plain || inFirefox]; kind != want {
				t.Fatalf("it is drawn with %s, not %s", kind, want)
			}
			// Lines and the band lie on a canvas of their own: without it the
			// rectangles alone are seen.
			s.value("document.querySelector('.plot .over').style.visibility = 'hidden'", nil)
			s.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))", nil)
			var p picture
			s.value(pictureScript, &p)
			shot, err := s.page.Screenshot()
			s.must(err)
			img, err := png.Decode(bytes.NewReader(shot))
			s.must(err)
			want := totals(t, c.file)
			perPixel := p.YMax / p.Height
			r := rand.New(rand.NewPCG(1, 2))
			worst := 0.0
			for range 200 {
				col := r.IntN(len(p.Live))
				end := p.X0 + (p.X1-p.X0)*float64(col+1)/float64(len(p.Live))
				event := min(len(want)-1, max(0, int(math.Ceil(end-1e-6))-1))
				bytes := float64(want[event].Active)
				if strings.Contains(c.query, "segments") {
					bytes = float64(want[event].Reserved)
				}
				// 32-bit floats hold a pixel position to a part in 16 million.
				if diff := math.Abs(p.Live[col]*perPixel - bytes); diff > p.YMax*1e-6 {
					t.Errorf("column %d ends with event %d: it should be %.0f bytes high and is %.0f", col, event, bytes, p.Live[col]*perPixel)
				}
				if diff := math.Abs(p.Stacked[col] - p.Live[col]); diff > 0.01 {
					t.Errorf("column %d: rectangles and band are %.3f pixels high, the live bytes %.3f", col, p.Stacked[col], p.Live[col])
				}
				x := int(p.Left + (float64(col)+0.5)*p.Width/float64(len(p.Live)))
				top := p.Bottom - p.Below[col]*perPixel/p.High*p.Tall
				worst = max(worst, math.Abs(top-topOf(img, x, p.Bottom-p.Tall, p.Bottom)))
			}
			// Rectangles thinner than a pixel may fall between two.
			if worst > 2 {
				t.Errorf("on the screen the rectangles end up to %.1f pixels above or below their sum", worst)
			}
		})
	}
}

// topOf is where the highest pixel of a column is that is not background.
func topOf(img image.Image, x int, top, bottom float64) float64 {
	for y := int(top); y < int(bottom); y++ {
		r, g, b, _ := img.At(x, y).RGBA()
		if r>>8 < 250 || g>>8 < 250 || b>>8 < 250 {
			return float64(y)
		}
	}
	return bottom
}

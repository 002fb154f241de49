package browsertests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/present/palette"
)

// pixels lists the colours that a canvas shows, as rgb, with how many pixels.
const pixels = `(() => {
	const c = document.querySelector('.map-canvas'), n = {};
	const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
	for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) { const k = d[i] + ' ' + d[i + 1] + ' ' + d[i + 2]; n[k] = (n[k] ?? 0) + 1; }
	return n;
})()`

func rgb(c palette.RGB) string { return fmt.Sprintf("%d %d %d", c[0], c[1], c[2]) }

func shadeOf(name string) palette.Shade {
	for _, n := range palette.Names() {
		if n.Name == name {
			return n.Shade
		}
	}
	return palette.Shade{}
}

const marks = "document.querySelector('.map')?.marks"

// Somebody asks who lies beside the hole that the request did not fit into.
func TestSegmentsHole(t *testing.T) {
	s := open(t, "#/1/segments", varlen, multi)
	s.sees("[data-panel=hole] [data-beside]")
	var stats struct {
		Snapshot struct {
			OOMs []struct {
				Request int64 `json:"request_bytes"`
				Largest int64 `json:"largest_free_bytes"`
			} `json:"oom_events"`
		} `json:"snapshot"`
	}
	command(t, &stats, "stats", varlen)
	o := stats.Snapshot.OOMs[0]
	if got := s.bytes("hole.size_bytes"); got != o.Largest {
		t.Errorf("the hole has %d bytes, %d by ashlar stats", got, o.Largest)
	}
	s.until(marks + "?.request === " + fmt.Sprint(o.Request))
	// The block beside it is outlined, and named with its call site.
	id := int(s.number("Number(document.querySelector('[data-beside]').dataset.beside)"))
	if !s.truth(fmt.Sprintf("%s.beside.has(%d)", marks, id)) {
		t.Errorf("block %d lies beside the hole and is not outlined", id)
	}
	var alloc struct{ Site string }
	s.api(fmt.Sprintf("alloc?run=1&id=%d", id), &alloc)
	s.until("document.querySelector('[data-panel=hole]').innerText.includes(" + page.Quote(alloc.Site) + ")")
	s.click("[data-beside]")
	s.sees(fmt.Sprintf("[data-panel=block][data-alloc='%d'] .stack", id))
	// By keys: from the block to the hole beside it, and back by h.
	s.press(page.Right)
	s.until("document.querySelector('[data-panel=hole] h2').innerText === 'Selected hole'")
	s.hash("hole=")
	s.press(page.Left)
	s.sees(fmt.Sprintf("[data-panel=block][data-alloc='%d']", id))
	s.press("h")
	s.until("!document.querySelector('[data-panel=block]') && document.querySelector('[data-panel=hole] h2').innerText === 'Selected hole'")
	if got := s.bytes("hole.size_bytes"); got != o.Largest {
		t.Errorf("h goes to a hole of %d bytes, the largest has %d", got, o.Largest)
	}
}

func (s *scene) truth(script string) bool {
	s.Helper()
	var v bool
	s.value(script, &v)
	return v
}

// Arrows go through all blocks of a segment and on to the next one.
func TestSegmentsArrows(t *testing.T) {
	s := open(t, "#/1/segments?event=9000", varlen, multi)
	s.sees(".map")
	s.until(marks)
	s.press(page.Down)
	s.sees("[data-panel=segment]")
	first := s.number("document.querySelector('.map').rows[0].segment.address")
	n := int(s.number("document.querySelector('.map').rows[0].segment.blocks.filter((b) => b[2] !== 3).length"))
	for range n {
		s.press(page.Right)
	}
	s.until(fmt.Sprintf("Number(document.querySelector('[data-panel=segment]').dataset.address) === %.0f", first))
	s.press(page.Right)
	s.until("Number(document.querySelector('[data-panel=segment]').dataset.address) === document.querySelector('.map').rows[1].segment.address")
	s.press(page.Left)
	s.until(fmt.Sprintf("Number(document.querySelector('[data-panel=segment]').dataset.address) === %.0f", first))
}

// The map shows the colours of the palette, light and dark, for every colouring.
func TestSegmentsColours(t *testing.T) {
	for _, dark := range []bool{false, true} {
		s := openAt(t, "#/1/segments", 1280, 720, dark, varlen, multi)
		s.hints = []string{"willReadFrequently"}
		s.sees("[data-legend=category]")
		want := shadeOf("activations").Light
		if dark {
			want = shadeOf("activations").Dark
		}
		s.until(fmt.Sprintf("(%s)['%s'] > 1000", pixels, rgb(want)))
		for _, by := range []string{"stack", "stream", "pool", "size", "age", "category"} {
			s.press("c")
			s.sees("[data-legend=" + by + "]")
		}
		for _, by := range []string{"stack", "stream", "age"} {
			s.must(s.page.Pick("select[name=color]", by))
			s.sees("[data-legend=" + by + "]")
			s.hash("color=" + by)
		}
		if text := s.text("[data-legend=age]"); !strings.Contains(text, "1 event") || strings.Contains(text, "1 events") || !strings.Contains(text, "1,048,576 events") {
			t.Errorf("the legend of ages reads %q", text)
		}
	}
}

// The tooltip of a block names its call site.
func TestSegmentsTip(t *testing.T) {
	s := open(t, "#/1/segments", varlen, multi)
	s.until(marks)
	var alloc struct{ Site string }
	s.api(fmt.Sprintf("alloc?run=1&id=%.0f", s.number("document.querySelector('.map').rows[0].segment.blocks[0][3]")), &alloc)
	box, err := s.page.Box(".map")
	s.must(err)
	s.must(s.page.Move(box[0]+400, box[1]+11))
	s.until("document.querySelector('.map-box .tip .site')?.innerText === " + page.Quote(alloc.Site))
}

// Time plays until it is stopped, and from the beginning when it is at the end.
func TestSegmentsPlay(t *testing.T) {
	s := open(t, "#/1/segments", varlen, multi)
	s.sees("[data-field=segments-event][data-event='18434']")
	s.click("[data-play]")
	event := "Number(document.querySelector('[data-field=segments-event]').dataset.event)"
	s.until(event + " > 0 && " + event + " < 18434")
	s.press("r")
	s.until("document.querySelector('[data-play]').getAttribute('aria-pressed') === 'false'")
	// The last frames end by themselves.
	s.must(s.page.Go("#/1/segments?event=18400"))
	s.sees("[data-field=segments-event][data-event='18400']")
	s.press("r")
	s.sees("[data-field=segments-event][data-event='18434']")
	s.until("document.querySelector('[data-play]').getAttribute('aria-pressed') === 'false'")
}

// A click on the strip selects the event under it.
func TestSegmentsStrip(t *testing.T) {
	s := open(t, "#/1/segments", varlen, multi)
	s.sees("[data-field=segments-event]")
	box, err := s.page.Box(".scrub-curve")
	s.must(err)
	x := box[0] + box[2]/4
	s.must(s.page.ClickAt(x, box[1]+box[3]/2))
	want := int((x - box[0] - 8) / (box[2] - 16) * 18435)
	s.sees(fmt.Sprintf("[data-field=segments-event][data-event='%d']", want))
}

// The details can be widened by the mouse and by keys, and stay so.
func TestSegmentsSide(t *testing.T) {
	s := open(t, "#/1/segments", varlen, multi)
	s.sees(".side-edge")
	width := func() float64 { return s.number("document.querySelector('.side').getBoundingClientRect().width") }
	was := width()
	box, err := s.page.Box(".side-edge")
	s.must(err)
	s.must(s.page.Drag(box[0]+3, box[1]+100, box[0]-147, box[1]+100, false))
	s.until(fmt.Sprintf("document.querySelector('.side').getBoundingClientRect().width > %f", was+140))
	was = width()
	s.value("document.querySelector('.side-edge').focus()", nil)
	s.press(page.Left)
	s.until(fmt.Sprintf("document.querySelector('.side').getBoundingClientRect().width > %f", was+30))
	was = width()
	s.value("location.reload()", nil)
	s.until(fmt.Sprintf("document.querySelector('.side')?.getBoundingClientRect().width === %f", was))
	s.value("localStorage.clear()", nil)
}

// A pinner on the overview leads to its segment.
func TestPinnerToSegment(t *testing.T) {
	s := open(t, "#/1/overview", varlen, multi)
	var explain struct {
		Pinners []struct {
			Segment uint64 `json:"segment"`
			Stuck   int64  `json:"stuck_bytes"`
		} `json:"pinners"`
	}
	command(t, &explain, "explain", varlen)
	s.sees("[data-panel=pinners] li > a")
	s.value("document.querySelector('[data-panel=pinners] li > a').scrollIntoView({block: 'center'})", nil)
	s.click("[data-panel=pinners] li > a")
	s.sees(fmt.Sprintf("[data-panel=segment][data-address='%d']", explain.Pinners[0].Segment))
}

// The legend of pools has every colour that is drawn, in one wording.
func TestPoolsLegend(t *testing.T) {
	s := open(t, "#/1/timeline?color=pool", stream)
	s.until("document.querySelector('.plot')?.dataset.drawn > 0")
	for _, want := range []string{"pool default", "pool 0,1", "pool not known"} {
		if got := s.text(".caption"); !strings.Contains(got, want) {
			t.Errorf("the legend reads %q and has no %q", got, want)
		}
	}
}

// Words of the glossary say what they mean; the footer has both totals.
func TestWords(t *testing.T) {
	s := openAt(t, "#/1/segments?alloc=4000", 1280, 720, false, varlen, multi)
	s.sees("[data-word=reserved]")
	for _, word := range []string{"reserved", "allocated", "free"} {
		title := ""
		s.value("document.querySelector('[data-word="+word+"]').title", &title)
		if !strings.HasPrefix(title, word+": ") || len(title) < len(word)+10 {
			t.Errorf("%s is explained by %q", word, title)
		}
	}
	s.until("document.querySelector('footer .what')?.innerText.includes('reserved 15.26 GiB')")
	for _, part := range []string{"allocated", "reserved"} {
		if !strings.Contains(s.text("footer .what"), part) {
			t.Errorf("the footer reads %q", s.text("footer .what"))
		}
	}
	// Both totals are inside the box, not behind the ellipsis, and so is the block.
	for _, hash := range []string{"#/1/segments?alloc=4000", "#/1/timeline?event=18283&alloc=5678", "#/1/events?event=9000&alloc=4000"} {
		s.must(s.page.Go(hash))
		s.until("document.querySelector('footer .held button') && /reserved .*iB, /.test(document.querySelector('footer .what span')?.innerText ?? '')")
		if !s.truth(`(() => {
			const span = document.querySelector('footer .what span'), node = span.firstChild, r = document.createRange(), held = document.querySelector('footer .held button');
			r.setStart(node, 0);
			r.setEnd(node, /.*reserved .*iB,/.exec(node.data)[0].length);
			return r.getBoundingClientRect().right <= span.getBoundingClientRect().right + 1 && held.getBoundingClientRect().right <= innerWidth;
		})()`) {
			t.Errorf("%s: the footer cuts off the totals, or the block", hash)
		}
	}
}

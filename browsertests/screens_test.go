package browsertests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Somebody scrubs the segments to the failure and sees why nothing fits.
func TestSegmentsScrub(t *testing.T) {
	s := open(t, "#/1/segments?event=5000", varlen, multi)
	at := func(event int) {
		t.Helper()
		s.sees(fmt.Sprintf("[data-field=segments-event][data-event='%d']", event))
	}
	at(5000)
	if got := s.text(".request"); got != "" {
		t.Errorf("at an ordinary event there is a failed request: %q", got)
	}
	// The slider by the keyboard, then to its end.
	s.value("document.querySelector('input[name=moment]').focus()", nil)
	s.press(page.Right)
	at(5001)
	s.value("(() => { const e = document.querySelector('input[name=moment]'); e.value = e.max; e.dispatchEvent(new Event('input', {bubbles: true})); })()", nil)
	at(18434)
	s.press(",")
	at(18433)
	s.press("o")
	at(18434)
	var stats struct {
		Snapshot struct {
			OOMs []struct {
				Request   int64 `json:"request_bytes"`
				Reserved  int64 `json:"reserved_bytes"`
				Allocated int64 `json:"allocated_bytes"`
				Free      int64 `json:"free_bytes"`
				Largest   int64 `json:"largest_free_bytes"`
			} `json:"oom_events"`
		} `json:"snapshot"`
	}
	command(t, &stats, "stats", varlen)
	o := stats.Snapshot.OOMs[0]
	for field, want := range map[string]int64{
		"request.size_bytes": o.Request, "largest_free_bytes": o.Largest, "reserved_bytes": o.Reserved, "allocated_bytes": o.Allocated, "free_bytes": o.Free,
	} {
		if got := s.bytes(field); got != want {
			t.Errorf("%s is %d on the page, %d by ashlar stats --json", field, got, want)
		}
	}
	// The pinners of explain are marked, the first of the sorted list is opened.
	s.must(s.page.Pick("select[name=sort]", "stuck"))
	s.hash("sort=stuck")
	box, err := s.page.Box(".map")
	s.must(err)
	s.must(s.page.ClickAt(box[0]+400, box[1]+11))
	s.sees("[data-panel=segment] .pins")
	s.sees("[data-panel=block] .facts")
	if text := s.text("[data-panel=segment]"); !strings.Contains(text, "1.04 GiB from release") {
		t.Errorf("the segment that pins most reads %q", text)
	}
	// By keys to the next segment.
	was := s.number("Number(document.querySelector('[data-panel=segment]').dataset.address)")
	s.press(page.Down)
	s.until(fmt.Sprintf("Number(document.querySelector('[data-panel=segment]')?.dataset.address) !== %.0f", was))
	s.press("N")
	s.until("Number(document.querySelector('[data-field=segments-event]').dataset.event) < 18434")
}

// Sums of the map are those of the events, at moments of all kinds of files.
func TestSegmentSums(t *testing.T) {
	for _, file := range []string{stream, expand, midrun} {
		s := open(t, "#/1/segments", file)
		s.sees("[data-field=segments-event]")
		events := int(s.number("Number(document.querySelector('input[name=moment]').max)")) + 1
		for _, event := range []int{0, events / 3, events / 2, events - 1} {
			s.must(s.page.Go(fmt.Sprintf("#/1/segments?event=%d", event)))
			s.sees(fmt.Sprintf("[data-field=segments-event][data-event='%d']", event))
			var list struct {
				Events []struct {
					Reserved int64 `json:"reserved_bytes"`
				} `json:"events"`
			}
			command(t, &list, "events", "--from", fmt.Sprint(event), "--limit", "1", file)
			if got, want := s.bytes("reserved_bytes"), list.Events[0].Reserved; got != want {
				t.Errorf("%s: %d bytes are reserved after event %d, %d by ashlar events", file, got, event, want)
			}
		}
	}
}

// Somebody searches the flame graph.
func TestStacksSearch(t *testing.T) {
	s := open(t, "#/1/stacks", varlen, multi)
	s.until("document.querySelector('.icicle')?.dataset.nodes > 0")
	var explain struct {
		Evidence struct {
			Live int64 `json:"live_bytes"`
		} `json:"evidence"`
		Holders []struct {
			Bytes int64 `json:"bytes"`
			Stack []struct {
				Name string `json:"name"`
			} `json:"stack"`
		} `json:"holders"`
	}
	command(t, &explain, "explain", varlen)
	if got := s.bytes("total_bytes"); got != explain.Evidence.Live {
		t.Errorf("the graph has %d bytes, %d are live by ashlar explain", got, explain.Evidence.Live)
	}
	s.click("input[name=fold]")
	s.hash("lib=1")
	s.must(s.page.Type("input[name=q]", "cross_entropy"))
	s.hash("q=cross_entropy")
	want := int64(0)
	for _, h := range explain.Holders {
		if slices.ContainsFunc(h.Stack, func(f struct {
			Name string `json:"name"`
		},
		) bool {
			return strings.Contains(f.Name, "cross_entropy")
		}) {
			want += h.Bytes
		}
	}
	s.until("document.querySelector('[data-field=matched]')?.dataset.bytes > 0")
	if got := s.bytes("matched"); got != want {
		t.Errorf("the search finds %d bytes, the holders of ashlar explain have %d", got, want)
	}
	s.must(s.page.Type("input[name=q]", "("))
	s.until("document.querySelector('.tools').innerText.includes('no regular expression')")
	s.must(s.page.Type("input[name=q]", ""))
	// Zoom by the mouse, out again by a key, along the tree by arrows.
	box, err := s.page.Box(".icicle")
	s.must(err)
	s.must(s.page.ClickAt(box[0]+60, box[1]+90))
	s.sees("[data-panel=frame]")
	s.press("0")
	s.press(page.Down)
	s.press(page.Down)
	s.sees("[data-panel=frame] .facts")
	if got := s.bytes("frame.bytes"); got <= 0 || got > explain.Evidence.Live {
		t.Errorf("the frame has %d bytes", got)
	}
	s.click("[data-choice=peak]")
	var stats map[string]any
	command(t, &stats, "stats", varlen)
	peak := lookup(stats, "snapshot.memory.allocated.peak_bytes").(float64)
	s.until(fmt.Sprintf("document.querySelector('[data-field=total_bytes]').dataset.bytes === '%.0f'", peak))
	s.click("[data-choice=area]")
	s.until(fmt.Sprintf("Number(document.querySelector('[data-field=total_bytes]').dataset.bytes) < %.0f", peak))
}

// Somebody looks for an event.
func TestEventsFind(t *testing.T) {
	s := open(t, "#/1/events", varlen, multi)
	s.sees(".list .row.a-oom.on")
	if n := s.number("document.querySelectorAll('.list .row').length"); n > 80 {
		t.Errorf("the list keeps %v rows in the page", n)
	}
	s.click("[data-jump=peak-reserved]")
	s.sees(".list .row.on[data-event='18283']")
	s.click("[data-jump='oom+']")
	s.sees(".list .row.a-oom.on")
	s.click("[data-jump='oom+']")
	s.until("document.querySelector('.notice').innerText.includes('no later out-of-memory event')")
	s.must(s.page.Pick("select[name=action]", "segment_free"))
	s.until("document.querySelector('[data-field=matches]').dataset.value === '37'")
	s.must(s.page.Type("input[name=min_size]", "1GiB"))
	s.hash("min_size=1GiB")
	s.until("Number(document.querySelector('[data-field=matches]').dataset.value) < 37")
	s.click(".tools button")
	s.until("document.querySelector('[data-field=matches]').dataset.value === '18435'")
	s.must(s.page.Type("input[name=goto]", "12345"))
	s.press(page.Enter)
	s.sees(".list .row.on[data-event='12344']") // it ends the free of this row
	s.sees("[data-panel=event][data-event='12345']")
	var list struct {
		Events []struct {
			Size     int64  `json:"size_bytes"`
			Reserved int64  `json:"reserved_bytes"`
			Action   string `json:"action"`
		} `json:"events"`
	}
	command(t, &list, "events", "--from", "12345", "--limit", "1", varlen)
	e := list.Events[0]
	if got := s.bytes("event.size_bytes"); got != e.Size {
		t.Errorf("event 12345 has %d bytes on the page, %d by ashlar events", got, e.Size)
	}
	if got := s.bytes("event.reserved_bytes"); got != e.Reserved {
		t.Errorf("after event 12345 %d bytes are reserved on the page, %d by ashlar events", got, e.Reserved)
	}
	if got := s.text("[data-panel=event] h2"); !strings.Contains(got, e.Action) {
		t.Errorf("event 12345 reads %q and is %q", got, e.Action)
	}
	// Scroll to the end as a person does with the bar, then walk by keys.
	s.press(page.Escape)
	s.value("(() => { const e = document.querySelector('.list'); e.scrollTop = e.scrollHeight; })()", nil)
	s.sees(".list .row[data-event='18434']")
	s.value("document.querySelector('.list').focus()", nil)
	s.press(page.Up)
	s.hash("event=")
	// A stack filter, and the block of an event.
	s.must(s.page.Go("#/1/events?action=alloc&stack=adam&event=16800"))
	s.until("Number(document.querySelector('[data-field=matches]')?.dataset.value) > 100 && Number(document.querySelector('[data-field=matches]').dataset.value) < 6579")
	s.sees(".list .row.on[data-event='16800']")
	s.click(".list .row.on + .row")
	s.sees("[data-panel=event][data-event='16801']")
	s.sees("[data-panel=block] .stack")
	if got := s.text("[data-panel=block] .stack"); !strings.Contains(got, "adam") {
		t.Errorf("the block's stack reads %q", got)
	}
}

// The theme follows the system until it is chosen, and the choice lasts.
func TestTheme(t *testing.T) {
	s := openAt(t, "#/1/overview", 1280, 720, true, varlen, multi)
	s.sees("[data-field=cause]")
	s.until("document.documentElement?.dataset.theme === 'dark'")
	s.press("t")
	s.until("document.documentElement?.dataset.theme === 'light'")
	s.value("location.reload()", nil)
	s.sees("[data-field=cause]")
	s.until("document.documentElement?.dataset.theme === 'light'")
	s.value("localStorage.clear()", nil)
}

// Every size on every screen is written as package units does, with the exact
// number behind it.
func TestSizes(t *testing.T) {
	s := open(t, "#/1/overview", varlen, multi)
	s.sees("[data-field=cause]")
	seen := map[int64]bool{}
	for _, hash := range []string{
		"#/1/overview", "#/1/timeline?event=9000&alloc=4000", "#/1/timeline?color=lifetime", "#/1/segments?event=9000&alloc=4000", "#/1/stacks?mode=area&lib=1",
		"#/1/events?event=9000", "#/1/events?action=alloc&max_size=1100&event=100", "#/2/overview", "#/2/events?event=3000", "#/1/compare", "#/1/whatif?sets=max_split_size_mb:128",
	} {
		s.must(s.page.Go(hash))
		s.until("location.hash === " + page.Quote(hash) + " && !document.querySelector('main .spin') && document.querySelector('main [data-bytes]')")
		var all []struct {
			Bytes       int64
			Text, Title string
		}
		s.value("[...document.querySelectorAll('.num[data-bytes]')].map((e) => ({Bytes: Number(e.dataset.bytes), Text: e.innerText, Title: e.title}))", &all)
		for _, v := range all {
			seen[v.Bytes] = true
			size := units.Delta(v.Bytes)
			if v.Bytes >= 0 {
				size = units.Size(uint64(v.Bytes))
			}
			if v.Text != size || v.Title != units.Count(v.Bytes)+" bytes" {
				t.Errorf("%s: %d bytes read %q, %q; package units writes %q", hash, v.Bytes, v.Text, v.Title, size)
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d sizes were looked at", len(seen))
	}
}

// When ashlar view ends, the page says so and does not pretend.
func TestServerGone(t *testing.T) {
	server, err := page.Serve(stage.ashlar, stream)
	if err != nil {
		t.Fatal(err)
	}
	p, err := stage.browser.Open(server.Address, 1280, 720, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := &scene{T: t, page: p, server: server}
	s.sees("[data-field=cause]")
	s.must(server.Close())
	s.until("document.querySelector('.trouble')?.innerText.includes('does not answer')")
	s.press("5")
	s.until("document.querySelector('main .trouble')?.innerText.includes('Start it again')")
}

// A list that is higher than a browser scrolls: the bar maps onto it, the wheel
// goes row by row.
func TestEventsLong(t *testing.T) {
	s := open(t, "#/1/events?frees=both", long)
	s.sees(".list .row.a-oom.on")
	first := "Number(document.querySelector('.list .row:not(.head)[data-event]')?.dataset.event)"
	s.value("document.querySelector('.list').focus()", nil)
	s.press(page.Home)
	s.until(first + " === 0")
	s.value("(() => { const e = document.querySelector('.list'); e.scrollTop = (e.scrollHeight - e.clientHeight) / 2; })()", nil)
	s.until("Math.abs(" + first + " - 373685 / 2) < 100")
	// A bar that is pulled before the browser has told of the key counts too: one
	// event stands for both.
	s.value(`(() => {
		const e = document.querySelector('.list');
		e.dispatchEvent(new KeyboardEvent('keydown', {key: 'Home', bubbles: true}));
		e.scrollTop = (e.scrollHeight - e.clientHeight) / 4;
	})()`, nil)
	s.until("Math.abs(" + first + " - 373685 / 4) < 100")
	was := s.number(first)
	box, err := s.page.Box(".list")
	s.must(err)
	s.must(s.page.Wheel(box[0]+200, box[1]+200, 66)) // three rows of 22 pixels
	s.until(fmt.Sprintf("%s === %.0f", first, was+3))
	s.press(page.End)
	s.sees(".list .row[data-event='373684']")
	if h := s.number("document.querySelector('.list').scrollHeight"); h > 1e7 {
		t.Errorf("the list is %.0f pixels high", h)
	}
}

// A screen takes its keys from the moment that it is there.
func TestKeysAtOnce(t *testing.T) {
	s := open(t, "", varlen)
	s.sees("[data-field=cause]")
	s.value(`void new MutationObserver((_, watch) => {
		const map = document.querySelector('.map');
		if (!map) return;
		watch.disconnect();
		map.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}));
	}).observe(document.body, {childList: true, subtree: true})`, nil)
	s.press("3")
	s.sees("[data-panel=segment]")
}

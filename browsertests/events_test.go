package browsertests

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// listedEvent is an event of ashlar events --json.
type listedEvent struct {
	Index    int    `json:"index"`
	Action   string `json:"action"`
	Size     int64  `json:"size_bytes"`
	Reserved int64  `json:"reserved_bytes"`
	Live     int64  `json:"live_bytes"`
}

func listed(t *testing.T, args ...string) []listedEvent {
	t.Helper()
	var list struct {
		Events []listedEvent `json:"events"`
	}
	command(t, &list, append([]string{"events"}, args...)...)
	return list.Events
}

// Somebody reads the list with a free as one row, then as two.
func TestEventsFolded(t *testing.T) {
	s := open(t, "#/1/events?event=9000", varlen, multi)
	s.sees(".list .row.on[data-event='9000']")
	all := listed(t, varlen)
	completed := 0
	for _, e := range all {
		if e.Action == "free_completed" {
			completed++
		}
	}
	rows := func(events, rows int) {
		t.Helper()
		s.until(fmt.Sprintf("(() => { const d = document.querySelector('[data-field=matches]')?.dataset; return d?.value === '%d' && d.rows === '%d' })()", events, rows))
	}
	rows(len(all), len(all)-completed)
	if s.truth("!![...document.querySelectorAll('.list .c-action')].find((e) => e.innerText.startsWith('free_'))") {
		t.Error("a free has two rows")
	}
	s.click("input[name=fold]")
	s.hash("frees=both")
	rows(len(all), len(all))
	s.until("[...document.querySelectorAll('.list .c-action')].some((e) => e.title === 'free_completed')")
	s.value("document.querySelector('.list').focus()", nil)
	s.press("f")
	s.until("!location.hash.includes('frees=')")
	rows(len(all), len(all)-completed)
	// The second half of a free is found in its row.
	end := -1
	for _, e := range all[9000:] {
		if e.Action == "free_completed" {
			end = e.Index
			break
		}
	}
	s.must(s.page.Go(fmt.Sprintf("#/1/events?event=%d", end)))
	s.until(fmt.Sprintf("(() => { const e = document.querySelector('.list .row.on'); return Number(e?.dataset.event) < %d && e.querySelector('.c-action').innerText === 'free' })()", end))
	// A filter that wants one of the two gets it.
	s.must(s.page.Go("#/1/events?action=free_completed"))
	rows(completed, completed)
}

// The call site is the widest column, and what is cut off says so.
func TestEventsColumns(t *testing.T) {
	s := openAt(t, "#/1/events?event=9000", 1280, 720, false, varlen, multi)
	s.sees(".list .row.on .c-category")
	if got := s.text(".list .row.on .c-category"); got == "" {
		t.Error("event 9000 has no category")
	}
	var width struct{ Site, Most float64 }
	s.value(`(() => {
		const cells = [...document.querySelector('.list .row.on').children].filter((e) => e.offsetWidth > 0);
		const site = cells.find((e) => e.classList.contains('c-call-site'));
		return {Site: site.offsetWidth, Most: Math.max(...cells.filter((e) => e !== site).map((e) => e.offsetWidth))};
	})()`, &width)
	if width.Site < 2*width.Most {
		t.Errorf("the call site is %v pixels wide, another column %v", width.Site, width.Most)
	}
	if !s.truth("[...document.querySelectorAll('.list .row .c-call-site')].every((e) => e.scrollWidth <= e.clientWidth || getComputedStyle(e).textOverflow === 'ellipsis' && e.title === e.innerText)") {
		t.Error("a call site is cut off without a sign")
	}
	// With a filter there is a sum of what it chose.
	s.must(s.page.Go("#/1/events?stack=adam&event=16800"))
	s.sees(".list.filtered .row.on .c-running")
	var got struct {
		Rows []struct {
			Running int64 `json:"running_bytes"`
		} `json:"rows"`
	}
	s.api("events?run=1&stack=adam&from=16800&count=1", &got)
	if shown := int64(s.number("Number(document.querySelector('.list .row.on .c-running').dataset.delta)")); shown != got.Rows[0].Running || shown == 0 {
		t.Errorf("the running change is %d, the server says %d", shown, got.Rows[0].Running)
	}
	for width := range 3 {
		s := openAt(t, "#/1/events?stack=adam", int64(640+width*160), 720, false, varlen, multi)
		s.sees(".list .row[data-event]")
		if s.truth("document.querySelector('.list').scrollWidth > document.querySelector('.list').clientWidth") {
			t.Errorf("at %d pixels the list is wider than its box", 640+width*160)
		}
	}
}

// checkCSV compares a list that was saved with ashlar events.
func checkCSV(t *testing.T, text string, want []listedEvent) {
	t.Helper()
	got, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(got) != len(want)+1 {
		t.Fatalf("%d lines for %d events: %v", len(got), len(want), err)
	}
	at := map[string]int{}
	for i, name := range got[0] {
		at[name] = i
	}
	for i, e := range want {
		line := got[i+1]
		for name, v := range map[string]string{
			"index": strconv.Itoa(e.Index), "action": e.Action, "size_bytes": fmt.Sprint(e.Size), "reserved_bytes": fmt.Sprint(e.Reserved), "live_bytes": fmt.Sprint(e.Live),
		} {
			if line[at[name]] != v {
				t.Fatalf("%s of event %d is %q, ashlar events has %q", name, e.Index, line[at[name]], v)
			}
		}
	}
}

// Somebody saves what the filter chooses.
func TestEventsSave(t *testing.T) {
	s := open(t, "#/1/events?stack=adam&min_size=1MiB", varlen, multi)
	s.sees(".list .row[data-event]")
	want := listed(t, "--stack", "adam", "--min-size", "1MiB", varlen)
	if !s.truth("[...document.querySelectorAll('[data-export]')].every((e) => e.hasAttribute('download'))") {
		t.Error("a link would leave the page")
	}
	var text string
	s.value("fetch(document.querySelector('[data-export=csv]').href).then((r) => r.text())", &text)
	checkCSV(t, text, want)
	var head string
	s.value("fetch(document.querySelector('[data-export=parquet]').href).then((r) => r.arrayBuffer()).then((b) => new TextDecoder().decode(b.slice(0, 4)) + new TextDecoder().decode(b.slice(-4)))", &head)
	if head != "PAR1PAR1" {
		t.Errorf("the Parquet file begins and ends with %q", head)
	}
}

// Without a server the page makes the file itself.
func TestEventsSaveOffline(t *testing.T) {
	s := openInteractive(t, "#/1/events?action=oom,segment_alloc", varlen)
	s.sees(".list .row[data-event]")
	s.value("(() => { const make = URL.createObjectURL; URL.createObjectURL = (b) => (window.saved = b, make(b)); })()", nil)
	s.click("[data-export=csv]")
	s.until("window.saved")
	var text string
	s.value("window.saved.text()", &text)
	checkCSV(t, text, listed(t, "--action", "oom,segment_alloc", varlen))
	s.until("!document.querySelector('[data-export=parquet]').disabled")
	s.value("void (window.saved = null, document.querySelector('[data-export=parquet]').focus())", nil)
	s.press(page.Enter)
	s.until("window.saved?.size > 100")
}

// The sheet behind ? says what the mouse does.
func TestMouseSheet(t *testing.T) {
	s := open(t, "#/1/timeline", varlen, multi)
	s.until(drawn)
	s.press("?")
	s.sees("dialog[open] .keys")
	text := s.text("dialog[open]")
	for _, gesture := range []string{"Drag", "Shift drag", "Wheel", "Alt wheel", "Shift wheel", "Double click", "Enter", "Block below, above"} {
		if !strings.Contains(text, gesture) {
			t.Errorf("the sheet does not mention %q", gesture)
		}
	}
	s.press(page.Escape)
	for key, gesture := range map[string]string{"1": "Select a range of the curve", "3": "Zoom on bytes around the pointer", "4": "put it into the middle"} {
		s.press(key)
		s.sees(map[string]string{"1": ".curve canvas", "3": ".map", "4": ".icicle"}[key])
		s.click("header [aria-label=Keys]")
		s.until("document.querySelector('dialog[open]')?.innerText.includes(" + page.Quote(gesture) + ")")
		s.press(page.Escape)
		s.until("!document.querySelector('dialog[open]')")
	}
}

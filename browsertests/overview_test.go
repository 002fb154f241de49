package browsertests

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Somebody opens the file of a job that died and reads why.
func TestVerdict(t *testing.T) {
	s := open(t, "#/1/overview", varlen, multi)
	s.sees("[data-panel=verdict] [data-field=cause]")
	var explain, stats map[string]any
	command(t, &explain, "explain", varlen)
	command(t, &stats, "stats", varlen)
	for _, field := range []string{"cause", "cause_confidence", "cause_text"} {
		if got, want := s.text("[data-field="+field+"]"), explain[field]; strings.TrimSuffix(got, ".") != want {
			t.Errorf("%s is %q on the page, %q by ashlar explain --json", field, got, want)
		}
	}
	evidence := []string{"live_bytes", "rounded_bytes", "available_bytes", "free_bytes", "largest_free_bytes"}
	for _, name := range evidence {
		field := "evidence." + name
		if got, want := float64(s.bytes(field)), lookup(explain, field); got != want {
			t.Errorf("%s is %v on the page, %v by ashlar explain --json", field, got, want)
		}
	}
	memory := []string{"reserved.peak_bytes", "allocated.peak_bytes", "reserved.now_bytes", "allocated.now_bytes", "free_bytes", "largest_free_bytes"}
	for _, name := range memory {
		field := "memory." + name
		got, want := s.bytes(field), lookup(stats, "snapshot."+field)
		if float64(got) != want {
			t.Errorf("%s is %v on the page, %v by ashlar stats --json", field, got, want)
		}
		if text := s.text(`[data-field="` + field + `"]`); text != units.Size(uint64(got)) {
			t.Errorf("%s reads %q, package units writes %q", field, text, units.Size(uint64(got)))
		}
	}
	if got := s.text("[data-field=events]"); got != "18,435" {
		t.Errorf("the page counts %s events", got)
	}
	// The sum adds up, and its exact parts are a hover away.
	if s.bytes("needed") != s.bytes("evidence.live_bytes")+s.bytes("evidence.rounded_bytes") {
		t.Error("the sum on the page does not add up")
	}
	var title string
	s.value(`document.querySelector('[data-field="evidence.live_bytes"]').title`, &title)
	if want := units.Count(s.bytes("evidence.live_bytes")) + " bytes"; title != want {
		t.Errorf("the title says %q, not %q", title, want)
	}
	// Every fix of the command is there, the first one first, what to type ready to
	// copy.
	var typed []string
	s.value("['[data-field=first]', '[data-panel=fixes]'].flatMap((part) => [...document.querySelectorAll(part + ' [data-copy]')].map((e) => e.dataset.copy))", &typed)
	var want []string
	for _, f := range explain["fixes"].([]any) {
		for _, field := range []string{"export", "code"} {
			if line, ok := f.(map[string]any)[field].(string); ok {
				want = append(want, line)
			}
		}
	}
	if len(want) == 0 || !slices.Equal(typed, want) {
		t.Errorf("to copy:\n%q\nby ashlar explain --json:\n%q", typed, want)
	}
	var missing []string
	s.value("[...document.querySelectorAll('[data-missing]')].map((e) => e.innerText)", &missing)
	for i, m := range lookup(stats, "snapshot.missing").([]any) {
		if text := m.(map[string]any)["text"]; i >= len(missing) || missing[i] != text {
			t.Errorf("what is missing reads %q, and lacks %q", missing, text)
		}
	}
}

// The call sites of the overview are those of the legend: both are package
// timeline's.
func TestSites(t *testing.T) {
	for _, file := range []string{varlen, expand, stream, "../testdata/variety/cppstacks.pickle.gz", "../testdata/variety/compile.pickle.gz"} {
		s := open(t, "", file)
		s.sees("[data-panel=holders] [data-site]")
		var explain struct {
			Failure *struct {
				Event int `json:"event"`
			} `json:"failure"`
		}
		command(t, &explain, "explain", file)
		moment := "peak=1"
		if explain.Failure != nil {
			moment = fmt.Sprintf("event=%d", explain.Failure.Event)
		}
		var legend struct {
			Entries []struct {
				Label string `json:"label"`
			} `json:"entries"`
		}
		s.api("legend?run=1&color=stack&"+moment, &legend)
		labels := map[string]bool{"(no call stack)": true}
		for _, e := range legend.Entries {
			labels[e.Label] = true
		}
		var sites []string
		s.value("[...document.querySelectorAll('[data-panel=holders] [data-site]')].map((e) => e.textContent)", &sites)
		if len(sites) == 0 {
			t.Fatalf("%s: no call sites", file)
		}
		found := 0
		for _, site := range sites {
			if labels[site] {
				found++
			} else if strings.Contains(site, " < ") {
				t.Errorf("%s: the page writes %q, which package timeline does not; it has\n%v", file, site, labels)
			}
		}
		if found < 2 {
			t.Errorf("%s: %d of %d sites are those of package timeline", file, found, len(sites))
		}
	}
}

// A rank that behaves, and a file without events.
func TestQuietFiles(t *testing.T) {
	s := open(t, "", midrun)
	s.sees("[data-panel=verdict] .verdict.good")
	if got := s.text("[data-field=cause][data-value=none]"); got != "nothing failed" {
		t.Errorf("the verdict is %q", got)
	}
	s = open(t, "", state)
	s.sees("[data-panel=verdict] [data-field=cause]")
	if got := s.text("[data-panel=memory]"); !strings.Contains(got, "no events") {
		t.Errorf("without events the curve's place says %q", got)
	}
	for _, screen := range []string{"timeline", "events"} {
		s.must(s.page.Go("#/1/" + screen))
		s.until("document.querySelector('main').innerText.includes('recording was off')")
	}
	s.must(s.page.Go("#/1/segments"))
	s.sees(".map[data-rows='160']")
	s.must(s.page.Go("#/1/stacks"))
	s.sees(".icicle[data-nodes='1']")
}

// Two ranks: the picker, the keys, and an address that opens the second.
func TestSwitchRank(t *testing.T) {
	s := open(t, "#/1/overview", varlen, multi)
	s.sees("[data-field=cause]")
	first := s.bytes("memory.reserved.peak_bytes")
	var stats map[string]any
	command(t, &stats, "stats", multi)
	want := lookup(stats, "snapshot.memory.reserved.peak_bytes").(float64)
	if float64(first) == want {
		t.Fatal("the two files cannot be told apart")
	}
	s.must(s.page.Pick("select[name=run]", "2"))
	is := fmt.Sprintf("document.querySelector('[data-field=\"memory.reserved.peak_bytes\"]')?.dataset.bytes === '%.0f'", want)
	s.until(is)
	s.hash("#/2/overview")
	s.press("[")
	s.hash("#/1/overview")
	s.until("!(" + is + ")")
	s.press("]")
	s.until(is)
	// Another screen of the second rank, and back by the browser's button.
	s.press("2")
	s.hash("#/2/timeline")
	s.until("document.querySelector('.plot')?.dataset.drawn > 0")
	s.value("history.back()", nil)
	s.hash("#/2/overview")
	s.sees("[data-panel=verdict]")
	s = open(t, "#/2/events", varlen, multi)
	s.until("document.querySelector('[data-field=matches]')?.dataset.value === '7053'")
}

// A page that is sent to a run that is not there says so and offers another.
func TestUnknownRun(t *testing.T) {
	s := open(t, "#/77/timeline", varlen, multi)
	s.hash("#/1/timeline")
	s.until("document.querySelector('.plot')?.dataset.drawn > 0")
}

const dropScript = `(() => {
	const data = new DataTransfer();
	data.items.add(new File([%s], %s));
	for (const kind of ['dragenter', 'dragover', 'drop']) {
		window.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
	}
})()`

// Somebody drops a file that is no snapshot and reads what is wrong with it.
func TestDropBroken(t *testing.T) {
	s := open(t, "#/1/overview", varlen, multi)
	s.hints = []string{"status of 422"}
	s.sees("[data-field=cause]")
	s.value(fmt.Sprintf(dropScript, page.Quote("\x80\x04this is no pickle"), page.Quote("notes.pickle")), nil)
	s.sees("dialog[open] [data-field=drop-error]")
	said := s.text("dialog[open] .trouble")
	if !strings.Contains(said, "notes.pickle") || len(s.text("[data-field=drop-error]")) < 20 {
		t.Errorf("the page says only: %s", said)
	}
	t.Log(said)
	var runs struct {
		Runs []any `json:"runs"`
	}
	s.api("runs", &runs)
	if len(runs.Runs) != 2 {
		t.Errorf("there are %d runs after a broken file was dropped", len(runs.Runs))
	}
	s.click("dialog[open] .trouble button")
	s.until("!document.querySelector('[data-field=drop-error]')")
	s.press(page.Escape)
	s.until("!document.querySelector('dialog[open]')")
	s.sees("[data-field=cause]")
}

// A good file that is dropped opens, and can be forgotten.
func TestDropGood(t *testing.T) {
	s := openAlone(t, "", midrun)
	s.sees("[data-field=cause]")
	// A snapshot of one segment, written by hand.
	const snapshot = `{"segments":[{"device":0,"address":140000000000000,"total_size":2097152,"allocated_size":512,"active_size":512,"requested_size":400,` +
		`"stream":0,"segment_type":"small","blocks":[{"address":140000000000000,"size":512,"requested_size":400,"state":"active_allocated","frames":[]},` +
		`{"address":140000000000512,"size":2096640,"requested_size":0,"state":"inactive","frames":[]}]}],"device_traces":[[]]}`
	s.value(fmt.Sprintf(dropScript, page.Quote(snapshot), page.Quote("mine.json")), nil)
	s.hash("#/2/overview")
	s.until("document.querySelector('select[name=run]').selectedOptions[0].innerText.startsWith('mine.json')")
	if got := s.bytes("memory.allocated.now_bytes"); got != 512 {
		t.Errorf("the dropped file has %d bytes allocated", got)
	}
	s.until("!document.querySelector('dialog[open]')")
	s.press("F")
	s.click("dialog[open] button[aria-label='Forget mine.json']")
	s.until("document.querySelectorAll('select[name=run] option').length === 1")
	s.hash("#/1/overview")
}

// A file that was cut off: the page says so first, and its numbers are bounds
// that its own state does not disprove.
func TestTruncated(t *testing.T) {
	file, err := os.Open(varlen)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.pickle")
	if err := os.WriteFile(cut, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, "", cut)
	s.sees("[data-warning=truncated]")
	var stats map[string]any
	command(t, &stats, "stats", cut)
	for _, name := range []string{"reserved", "allocated"} {
		peak, now := s.bytes("memory."+name+".peak_bytes"), s.bytes("memory."+name+".now_bytes")
		if want := lookup(stats, "snapshot.memory."+name+".peak_bytes").(float64); float64(peak) != want || peak < now {
			t.Errorf("%s: peak %d, now %d, %v by ashlar stats", name, peak, now, want)
		}
	}
	if got := s.text(".strip"); !strings.Contains(got, "Reserved, at least") || strings.Contains(got, ", peak") {
		t.Errorf("the numbers are called %q", got)
	}
	s.sees("[data-field=cause]")
	if got := s.text("[data-panel=held] h2"); !strings.Contains(got, "of the events that are there") {
		t.Errorf("%q", got)
	}
}

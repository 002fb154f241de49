package browsertests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/units"
)

const ring = "../testdata/variety/ring.pickle.gz" // begins mid-run, with 15 GiB cached

// Under a limit below what was reserved when the recording began, the peak is
// that of the run after its cache was released.
func TestWhatIfMidRun(t *testing.T) {
	s := open(t, "#/1/whatif?sets=expandable_segments:True;defaults&limit=4GiB", ring)
	s.until(settledWhatIf)
	var want whatIfDocument
	command(t, &want, "whatif", ring, "--set", "expandable_segments:True", "--set", "", "--limit", "4GiB")
	for i, o := range s.outcomes() {
		if o.Fails != "false" || *o.Peak > 4<<30 || *o.Peak != want.Results[i].Peak || *o.Need > 4<<30 {
			t.Errorf("%+v on the page, %+v by ashlar whatif", o, want.Results[i])
		}
	}
	if got := s.text("[data-panel=trust]"); !strings.Contains(got, "that was cached is released first") {
		t.Errorf("it is not said that the start was trimmed: %q", got)
	}
}

// Peaks are compared with the recorded one only if the recording did not die, and
// a setting that fails although it passes under less says so.
func TestWhatIfAgainst(t *testing.T) {
	s := open(t, "#/1/whatif?sets=expandable_segments:True;garbage_collection_threshold:0.6", varlen, multi)
	s.until(settledWhatIf)
	var against []string
	s.value("[...document.querySelectorAll('[data-field=against]')].map((e) => e.innerText)", &against)
	if !slices.Equal(against, []string{"-", "-"}) {
		t.Errorf("%q", against)
	}
	if said := s.text("[data-field=uncompared]"); !strings.Contains(said, "The recorded run fails at 18,434, step 5") {
		t.Errorf("%q", said)
	}
	got := s.outcomes()[2]
	if got.Fails != "true" || *got.Smallest >= 17<<30 {
		t.Fatalf("%+v", got)
	}
	if said := s.text("[data-field=passes-lower]"); said != "but passes under "+units.SizeUp(uint64(*got.Smallest)) {
		t.Errorf("%q", said)
	}
	// The same words in the form and beside the table.
	var placeholder string
	s.value("document.querySelector('#whatif-limit').placeholder", &placeholder)
	if head := s.text("[data-panel=outcomes] h2"); placeholder != "17.22 GiB, inferred" || !strings.Contains(head, "limit "+placeholder) {
		t.Errorf("%q in the form, %q beside the table", placeholder, head)
	}
	s.must(s.page.Go("#/1/whatif?sets=expandable_segments:True;garbage_collection_threshold:0.6&limit=none"))
	s.until("document.querySelector('[data-panel=outcomes] h2')?.innerText.includes('no limit') && " + settledWhatIf)
	s.value("[...document.querySelectorAll('[data-field=against]')].map((e) => e.innerText)", &against)
	if len(against) != 2 || !strings.HasSuffix(against[0], " MiB") || against[1] != "0 B" {
		t.Errorf("without a limit: %q", against)
	}
}

// What was stopped before the limits were found has its lines to export: they
// follow from the settings.
func TestWhatIfStopped(t *testing.T) {
	s := open(t, "#/1/whatif?sets=expandable_segments:True;max_split_size_mb:20;roundup_power2_divisions:8", long)
	s.must(s.page.Until("document.querySelector('[data-panel=outcomes] tbody tr')", 4*soon))
	s.press("s")
	s.must(s.page.Until("!document.querySelector('[data-ask=stop]')", 4*soon))
	var copies []string
	s.value("[...document.querySelectorAll('[data-panel=outcomes] [data-copy]')].map((e) => e.dataset.copy)", &copies)
	const line = "export PYTORCH_CUDA_ALLOC_CONF="
	if !slices.Equal(copies, []string{line + "expandable_segments:True", line + "max_split_size_mb:20", line + "roundup_power2_divisions:8"}) {
		t.Errorf("%q", copies)
	}
}

// The form says what the address asks; what was typed is not lost on the way to
// another screen and back; every question is asked once.
func TestWhatIfForm(t *testing.T) {
	s := open(t, "#/1/whatif", varlen, multi)
	s.hints = []string{"status of 400"}
	s.sees(".whatif-form")
	form := func() string {
		t.Helper()
		var all []string
		s.value("[...document.querySelectorAll('.variants input')].map((e) => e.value)", &all)
		return strings.Join(all, " | ")
	}
	s.must(s.page.Type("input[name=set-0]", "max_split_size_mb:333"))
	s.press(page.Escape)
	s.press("1")
	s.sees("main .overview")
	s.click("[data-screen=whatif]")
	s.sees(".whatif-form")
	if got := form(); !strings.HasPrefix(got, "max_split_size_mb:333 | ") {
		t.Errorf("after another screen the form has %q", got)
	}

	s.hash("mb%3A333") // it is asked now

	// Back brings the question before, with its answer.
	s.must(s.page.Go("#/1/whatif?sets=max_split_size_mb:64"))
	s.until(settledWhatIf)
	if got := form(); got != "max_split_size_mb:64" {
		t.Errorf("with another address the form has %q", got)
	}
	s.value("history.back()", nil)
	s.until("!location.hash.includes('mb:64')")
	s.until(settledWhatIf)
	if got := form(); !strings.HasPrefix(got, "max_split_size_mb:333 | ") {
		t.Errorf("after going back the form has %q", got)
	}

	// Text with the sign that the address puts between settings, and a search.
	// Entries come when an answer has ended, which may be late: so by their start.
	since := s.number("performance.now()")
	asked := func(path string) float64 {
		t.Helper()
		return s.number(fmt.Sprintf("performance.getEntriesByType('resource').filter((e) => e.startTime > %f && e.name.includes('/api/%s?')).length", since, path))
	}
	s.must(s.page.Type("input[name=set-0]", "a;b"))
	s.press(page.Enter)
	s.until("document.querySelector('[data-field=refused]')?.innerText.includes('a;b')")
	s.until(settledWhatIf)
	if n := asked("whatif"); n != 1 || !strings.HasPrefix(form(), "a;b | ") {
		t.Errorf("it was asked %v times, and the form has %q", n, form())
	}
	for _, wrong := range []string{"0", "abc", "1e9"} {
		s.must(s.page.Go("#/1/whatif?tune=" + wrong))
		s.until(fmt.Sprintf("document.querySelector('.whatif-main .trouble')?.innerText.includes('tune is \"%s\"')", wrong))
	}
	if n := asked("tune"); n != 0 {
		t.Errorf("%v searches were begun", n)
	}
	s.must(s.page.Pick("select[name=budget]", "5"))
	s.click("[data-ask=tune]")
	s.sees("[data-ask=stop]")
	s.press("s")
	s.must(s.page.Until("!document.querySelector('[data-ask=stop]')", 4*soon))
	if n := asked("tune"); n != 1 {
		t.Errorf("one search was asked for, %v were begun", n)
	}
}

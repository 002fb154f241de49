package browsertests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// whatIfDocument is what ashlar whatif --json says, as far as tests look at it.
type whatIfDocument struct {
	SelfCheck struct {
		Note string `json:"note"`
	} `json:"self_check"`
	Results []struct {
		Settings string  `json:"settings"`
		Recorded bool    `json:"recorded"`
		Fails    bool    `json:"fails"`
		Peak     int64   `json:"peak_reserved_bytes"`
		DriverMS float64 `json:"estimated_driver_ms"`
		First    *struct {
			Event     int   `json:"event"`
			Size      int64 `json:"size_bytes"`
			Reserved  int64 `json:"reserved_bytes"`
			Allocated int64 `json:"allocated_bytes"`
			Largest   int64 `json:"largest_free_bytes"`
		} `json:"first_failure"`
	} `json:"results"`
}

// outcome is a row of the table.
type outcome struct {
	Variant, Outcome, Fails string
	Peak, Smallest, Need    *int64
}

func (s *scene) outcomes() []outcome {
	s.Helper()
	var out []outcome
	s.value(`[...document.querySelectorAll('[data-panel=outcomes] tbody tr')].map((r) => {
		const n = (f) => { const e = r.querySelector('[data-field=' + f + '][data-bytes]'); return e ? Number(e.dataset.bytes) : null; };
		return {
			Variant: r.dataset.variant, Fails: r.dataset.fails, Outcome: r.querySelector('[data-field=outcome]').innerText,
			Peak: n('peak_reserved_bytes'), Smallest: n('smallest_limit_bytes') ?? n('need_bytes'), Need: n('need_bytes'), // only what differs is said
		};
	})`, &out)
	return out
}

const settledWhatIf = "document.querySelector('[data-result=whatif]:not(.stale) [data-panel=outcomes] tbody tr') && !document.querySelector('[data-ask=stop]')"

var usual = []string{"expandable_segments:True", "max_split_size_mb:128", "max_split_size_mb:512", "roundup_power2_divisions:4", "garbage_collection_threshold:0.8"}

// Somebody whose run died of fragmentation tries other settings and sees which
// would have saved it, and how the segments lie where another fails too. All by
// the keyboard.
func TestWhatIfSurvivor(t *testing.T) {
	s := open(t, "#/1/overview", varlen, multi)
	s.sees("[data-field=cause]")
	s.press("6") // which tries the standard settings
	s.until(settledWhatIf)
	var want whatIfDocument
	args := []string{"whatif", varlen}
	for _, conf := range usual {
		args = append(args, "--set", conf)
	}
	command(t, &want, args...)
	got := s.outcomes()
	if len(got) != 6 || len(want.Results) != 6 {
		t.Fatalf("%+v", got)
	}
	saved := 0
	for i, r := range want.Results {
		g := got[i]
		variant := r.Settings
		if r.Recorded {
			variant = "recorded"
		}
		if g.Variant != variant || g.Fails != fmt.Sprint(r.Fails) || *g.Peak != r.Peak {
			t.Errorf("%+v on the page, %+v by ashlar whatif", g, r)
		}
		if said := strings.HasPrefix(g.Outcome, "passes"); said == r.Fails {
			t.Errorf("%s: %q", variant, g.Outcome)
		}
		if r.Fails && !strings.Contains(g.Outcome, units.Count(int64(r.First.Event))) {
			t.Errorf("%s fails at %d, the page says %q", variant, r.First.Event, g.Outcome)
		}
		if !r.Fails {
			saved++
		}
		if g.Smallest == nil || g.Need == nil || *g.Smallest > *g.Need {
			t.Errorf("%s: smallest limit %v, need %v", variant, g.Smallest, g.Need)
		}
	}
	if saved != 3 || want.Results[1].Fails {
		t.Errorf("%d settings survive", saved)
	}
	// The limits are those of tune.
	var tuned struct {
		Current, Recommended struct {
			Settings string `json:"settings"`
			Smallest int64  `json:"smallest_limit_bytes"`
			Need     int64  `json:"need_bytes"`
		}
	}
	command(t, &tuned, "tune", varlen, "--budget", "1s")
	if *got[0].Smallest != tuned.Current.Smallest || *got[0].Need != tuned.Current.Need {
		t.Errorf("%+v on the page, %+v by ashlar tune", got[0], tuned.Current)
	}
	if r := tuned.Recommended; r.Settings == usual[0] && (*got[1].Smallest != r.Smallest || *got[1].Need != r.Need) {
		t.Errorf("%+v on the page, %+v by ashlar tune", got[1], r)
	}
	if note := s.text("[data-field=self_check]"); note != want.SelfCheck.Note {
		t.Errorf("%q", note)
	}
	if n := s.number("Number(document.querySelector('.curve.lines').dataset.lines)"); n != 6 {
		t.Errorf("%v curves", n)
	}
	var copies []string
	s.value("[...document.querySelectorAll('[data-panel=outcomes] [data-copy]')].map((e) => e.dataset.copy)", &copies)
	if len(copies) != 5 || copies[0] != "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" {
		t.Errorf("%q", copies)
	}
	// To the segments of one that fails, by Enter on its link.
	first := want.Results[4].First
	s.value("document.querySelector('[data-variant=\"roundup_power2_divisions:4\"] a').focus()", nil)
	s.press(page.Enter)
	s.sees("[data-panel=request]")
	s.sees(".variant-line[data-variant='roundup_power2_divisions:4']")
	s.until(fmt.Sprintf("document.querySelector('[data-field=reserved_bytes]')?.dataset.bytes === '%d'", first.Reserved))
	for field, n := range map[string]int64{
		"request.size_bytes": first.Size, "largest_free_bytes": first.Largest, "allocated_bytes": first.Allocated, "reserved_bytes": first.Reserved,
	} {
		if got := s.bytes(field); got != n {
			t.Errorf("%s is %d in the map, %d by ashlar whatif", field, got, n)
		}
	}
	// A block of it is one of the recording.
	s.value("document.querySelector('.map').focus()", nil)
	s.press(page.Down)
	s.sees("[data-panel=segment]")
	s.press(page.Right)
	s.sees("[data-panel=block] .facts")
	// The address holds it all: another tab shows the same, and the recording is a
	// button away.
	s.click(".variant-line button")
	s.until("!document.querySelector('.variant-line')")
	s.value("history.back()", nil)
	s.sees(".variant-line")
	s.click(".variant-line a")
	s.hash("/whatif?")
	s.until(settledWhatIf)
}

// A question in the address is asked again; what cannot be asked is said in words
// of the page.
func TestWhatIfQuestions(t *testing.T) {
	s := open(t, "#/1/whatif?sets=expandable_segments:True;defaults&limit=9GiB&oom=skip", varlen, multi)
	s.hints = []string{"status of 400"}
	s.until(settledWhatIf)
	var want whatIfDocument
	command(t, &want, "whatif", varlen, "--set", "expandable_segments:True", "--set", "", "--limit", "9GiB", "--on-oom", "skip")
	got := s.outcomes()
	for i, r := range want.Results {
		if *got[i].Peak != r.Peak || !strings.Contains(got[i].Outcome, "left out, first at "+units.Count(int64(r.First.Event))) {
			t.Errorf("%+v on the page, %+v by ashlar whatif", got[i], r)
		}
	}
	if text := s.text("[data-panel=outcomes] h2"); !strings.Contains(text, "limit 9.00 GiB, as given") {
		t.Errorf("%q", text)
	}
	var form []string
	s.value("[...document.querySelectorAll('.variants input')].map((e) => e.value)", &form)
	if !slices.Equal(form, []string{"expandable_segments:True", ""}) {
		t.Errorf("%q", form)
	}
	// Typed, and sent by Enter. What is wrong is said under the field.
	s.press("e")
	s.must(s.page.Type("input[name=set-0]", "max_split_size_mb:1"))
	s.press(page.Enter)
	s.sees("[data-field=refused]")
	if said := s.text("[data-field=refused]"); !strings.Contains(said, "max_split_size_mb") || strings.Contains(said, "--") {
		t.Errorf("%q", said)
	}
	s.must(s.page.Type("input[name=set-0]", "max_split_size_mb:200"))
	s.must(s.page.Type("input[name=limit]", ""))
	s.until(settledWhatIf)
	s.hash("max_split_size_mb%3A200")
	if got := s.outcomes(); len(got) != 3 || got[1].Variant != "max_split_size_mb:200" {
		t.Errorf("%+v", got)
	}
	// Without events there is nothing to replay, and the screen says so.
	s = open(t, "#/1/whatif", state)
	s.until("document.querySelector('main').innerText.includes('nothing to replay')")
}

// Tune names what the command names, and draws it.
func TestTune(t *testing.T) {
	const graphs = "../testdata/variety/graphs.pickle.gz" // so short that the search ends
	s := open(t, "#/1/whatif", graphs)
	s.sees(".whatif-form")
	s.must(s.page.Pick("select[name=budget]", "30"))
	s.click("[data-ask=tune]")
	s.hash("tune=30")
	s.sees("[data-panel=tune]")
	s.until(settledWhatIf)
	var want struct {
		Recommended struct {
			Settings string `json:"settings"`
			Export   string `json:"export"`
			Reason   string `json:"reason"`
			Smallest int64  `json:"smallest_limit_bytes"`
		} `json:"recommended"`
		Evaluated int64 `json:"evaluated"`
		Lower     int64 `json:"lower_bound_bytes"`
	}
	command(t, &want, "tune", graphs, "--budget", "30s")
	if got := s.text("[data-field='recommended.reason']"); got != want.Recommended.Reason {
		t.Errorf("%q on the page, %q by ashlar tune", got, want.Recommended.Reason)
	}
	if got := s.bytes("recommended.smallest_limit_bytes"); got != want.Recommended.Smallest {
		t.Errorf("%d on the page, %d by ashlar tune", got, want.Recommended.Smallest)
	}
	if got := s.bytes("lower_bound_bytes"); got != want.Lower {
		t.Errorf("%d on the page, %d by ashlar tune", got, want.Lower)
	}
	if got := s.text("[data-panel=tune] h2"); !strings.Contains(got, units.Count(want.Evaluated)+" settings evaluated") {
		t.Errorf("%q, %d by ashlar tune", got, want.Evaluated)
	}
	if line := s.text("[data-field='recommended.export']"); line != "" && line != want.Recommended.Export {
		t.Errorf("%q on the page, %q by ashlar tune", line, want.Recommended.Export)
	}
	if n := s.number("Number(document.querySelector('.curve.lines').dataset.lines)"); n < 2 {
		t.Errorf("%v curves", n)
	}
}

// The goal of a search can be chosen; what is recommended for another one than
// reserved memory, and reserves more, says so beside the line to copy.
func TestTuneGoal(t *testing.T) {
	const graphs = "../testdata/variety/graphs.pickle.gz"
	s := open(t, "#/1/whatif", graphs)
	s.until(settledWhatIf)
	for _, goal := range []string{"limit", "calls", "reserved"} {
		s.must(s.page.Pick("select[name=goal]", goal))
		s.must(s.page.Pick("select[name=budget]", "30"))
		s.click("[data-ask=tune]")
		s.hash("goal=" + goal)
		s.sees("[data-result=tune]:not(.stale)")
		s.until(settledWhatIf)
		var want struct {
			Goal                 string `json:"goal"`
			Current, Recommended struct {
				Reason string `json:"reason"`
				Peak   int64  `json:"peak_reserved_bytes"`
			}
		}
		command(t, &want, "tune", graphs, "--budget", "30s", "--goal", goal)
		if got := s.text("[data-field='recommended.reason']"); want.Goal != goal || got != want.Recommended.Reason {
			t.Errorf("%s: %q on the page, %q by ashlar tune", goal, got, want.Recommended.Reason)
		}
		more := s.number("Number(document.querySelector('.export [data-field=\"recommended.more\"]')?.dataset.delta ?? 0)")
		if int64(more) != max(0, want.Recommended.Peak-want.Current.Peak) {
			t.Errorf("%s: %v more on the page; %+v", goal, more, want)
		}
	}
}

// A search that takes too long is stopped, and what it knows is there.
func TestTuneStopped(t *testing.T) {
	s := open(t, "#/1/whatif?tune=300", varlen, multi)
	evaluated := "Number((document.querySelector('.doing')?.innerText.match(/([0-9,]+) settings evaluated/)?.[1] ?? '0').replaceAll(',', ''))"
	s.must(s.page.Until(evaluated+" > 30", 4*soon))
	s.press("s")
	s.must(s.page.Until("document.querySelector('[data-panel=tune]')", 4*soon))
	s.must(s.page.Until(settledWhatIf, 2*soon))
	if got := s.text("[data-panel=tune] h2"); !strings.Contains(got, ", stopped") {
		t.Errorf("%q", got)
	}
	if n := s.bytes("recommended.smallest_limit_bytes"); n <= 0 {
		t.Error(n)
	}
	// The cores are free again: another question is answered.
	s.must(s.page.Go("#/1/whatif"))
	s.until("document.querySelectorAll('[data-panel=outcomes] tbody tr').length === 6")
	s.until("[...document.querySelectorAll('[data-panel=outcomes] [data-variant]')].some((e) => e.dataset.variant === 'max_split_size_mb:512')")
}

// Other allocators stand among the settings, by a button or in the address, and have
// the command's figures.
func TestWhatIfPolicies(t *testing.T) {
	s := open(t, "#/1/whatif?sets=buddy&limit=none&memory=none", multi)
	s.until(settledWhatIf)
	s.click("[data-preset=best-fit]")
	s.hash("best-fit")
	s.until("document.querySelector('[data-variant=best-fit] [data-field=need_bytes]')")
	var want struct {
		Results []struct {
			Policy   string `json:"policy"`
			Peak     int64  `json:"peak_reserved_bytes"`
			Smallest int64  `json:"smallest_limit_bytes"`
		} `json:"results"`
	}
	command(t, &want, "policies", multi, "--policy", "buddy,best-fit", "--limit", "none", "--device-memory", "none")
	got := s.outcomes()
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, r := range want.Results {
		if g := got[i+1]; g.Variant != r.Policy || *g.Peak != r.Peak || *g.Need != r.Smallest {
			t.Errorf("%+v on the page, %+v by ashlar policies", g, r)
		}
	}
	if n := s.number("document.querySelectorAll('[data-variant=buddy] .line code, [data-variant=buddy] a').length"); n != 0 {
		t.Errorf("an allocator has %v lines to export or links to segments", n)
	}
}

package browsertests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/units"
)

const (
	loose = "../testdata/snapshots/gpt2_varlen-default.pickle.gz" // the same program, without the limit
	fixed = "../testdata/snapshots/gpt2_fixed-default.pickle.gz"
)

// pairDocument is what ashlar diff A B --json says, as far as tests look at it.
type pairDocument struct {
	A, B map[string]any
	Sum  int64 `json:"delta_bytes"`
	AAll int64 `json:"a_bytes"`
	BAll int64 `json:"b_bytes"`
	Grew struct {
		Delta int64 `json:"delta_bytes"`
	} `json:"grown"`
	Stacks []struct {
		Change string `json:"change"`
		Delta  int64  `json:"delta_bytes"`
		A      int64  `json:"a_bytes"`
		B      int64  `json:"b_bytes"`
	} `json:"stacks"`
}

const settledCompare = "document.querySelector('[data-panel=stacks] [data-change]') && document.querySelector('.icicle')?.dataset.nodes > 0 && !document.querySelector('main .spin')"

func (s *scene) delta(selector string) int64 {
	s.Helper()
	s.sees(selector)
	return int64(s.number("Number(document.querySelector(" + page.Quote(selector) + ").dataset.delta)"))
}

// checkPair holds the page against ashlar diff.
func (s *scene) checkPair(args ...string) pairDocument {
	s.Helper()
	s.until(settledCompare)
	var want pairDocument
	command(s.T, &want, append([]string{"diff"}, args...)...)
	var rows []struct {
		Change string
		Delta  int64
		A, B   int64
	}
	s.value(`[...document.querySelectorAll('[data-panel=stacks] [data-change]')].map((r) => {
		const [a, b] = [...r.querySelectorAll('summary [data-bytes]')].map((e) => Number(e.dataset.bytes));
		return { Change: r.dataset.change, Delta: Number(r.dataset.delta), A: a, B: b };
	})`, &rows)
	if len(rows) != min(len(want.Stacks), 40) {
		s.Errorf("%d stacks on the page, %d by ashlar diff", len(rows), len(want.Stacks))
	}
	for i, r := range rows {
		w := want.Stacks[i]
		if r.Change != w.Change || r.Delta != w.Delta || r.A != w.A || r.B != w.B {
			s.Errorf("stack %d: %+v on the page, %+v by ashlar diff", i, r, w)
		}
	}
	if got := s.delta("[data-field=delta_bytes]"); got != want.Sum {
		s.Errorf("%d more on the page, %d by ashlar diff", got, want.Sum)
	}
	if got := s.delta("[data-field='grown.delta_bytes']"); got != want.Grew.Delta {
		s.Errorf("%d grown on the page, %d by ashlar diff", got, want.Grew.Delta)
	}
	for _, field := range []string{"peak_reserved_bytes", "peak_allocated_bytes", "reserved_bytes", "allocated_bytes"} {
		for name, side := range map[string]map[string]any{"a": want.A, "b": want.B} {
			if got := float64(s.bytes(name + "." + field)); got != side[field] {
				s.Errorf("%s of %s is %v on the page, %v by ashlar diff", field, name, got, side[field])
			}
		}
	}
	return want
}

// Somebody compares two runs and reads what grew most.
func TestComparePair(t *testing.T) {
	s := open(t, "#/1/overview", loose, varlen, fixed)
	s.sees("[data-field=cause]")
	s.press("7")
	want := s.checkPair(loose, varlen)
	most := int64(0)
	for _, w := range want.Stacks {
		most = max(most, w.Delta)
	}
	var texts []string
	s.value("[...document.querySelectorAll('[data-panel=stacks] [data-change=grown] summary, [data-panel=stacks] [data-change=new] summary')].map((e) => e.innerText)", &texts)
	if len(texts) == 0 || !strings.Contains(texts[0], units.Delta(most)) {
		t.Errorf("the largest growth is %s, the page begins with %q", units.Delta(most), texts)
	}
	// Its stack opens by Enter.
	s.value("document.querySelector('[data-panel=stacks] [data-change=grown] summary').focus()", nil)
	s.press(page.Enter)
	s.sees("[data-panel=stacks] [data-change=grown][open] .stack li.own")
	// The other way round, with the button.
	s.click(".tools button")
	s.hash("#/2/compare")
	s.until("document.querySelector('[data-field=a]')?.innerText.includes('tight')")
	s.checkPair(varlen, loose)
	// At their ends.
	s.must(s.page.Pick("select[name=at]", "end"))
	s.hash("at=end")
	s.until("document.querySelector('[data-panel=totals]')?.innerText.includes('end, event')")
	s.checkPair(varlen, loose, "--at", "end")
}

// The graph: red and blue by the keyboard, and its sums.
func TestCompareGraph(t *testing.T) {
	s := open(t, "#/1/compare?width=larger", loose, varlen, fixed)
	want := s.checkPair(loose, varlen)
	s.value("document.querySelector('.icicle').focus()", nil)
	s.press(page.Down)
	s.sees("[data-panel=frame] .facts")
	a, b := s.bytes("frame.a"), s.bytes("frame.b")
	if a <= 0 || a > want.AAll || b <= 0 || b > want.BAll || s.delta("[data-field='frame.delta']") != b-a {
		t.Errorf("the first frame has %d and %d, all %d and %d", a, b, want.AAll, want.BAll)
	}
	s.press("z")
	s.press("l")
	s.hash("lib=1")
	s.until("!document.querySelector('main .spin')")
	s.click("[data-panel=flame] [data-choice=change]")
	s.until("!location.hash.includes('width=')")
	s.until("document.querySelector('.icicle')?.ariaLabel.includes('only what changed')")
	// Arrows are the graph's only while it has the focus.
	s.value("document.querySelector('.compare-main').focus()", nil)
	s.press(page.Down)
	s.sees("[data-panel=flame]")
}

// Three runs: which is odd, and where they part.
func TestCompareRanks(t *testing.T) {
	s := open(t, "#/1/compare", loose, varlen, fixed)
	s.until(settledCompare)
	s.sees("[data-panel=divergence] [data-branch]")
	var want struct {
		Ranks []struct {
			Peak          int64 `json:"peak_allocated_bytes"`
			Reserved      int64 `json:"peak_reserved_bytes"`
			Fragmentation int64 `json:"fragmentation_bytes"`
			Parts         *int  `json:"diverges_at_event"`
		} `json:"ranks"`
		Odd        []any `json:"odd"`
		Divergence struct {
			Common   int64 `json:"calls_in_common"`
			Branches []struct {
				Size  int64 `json:"size_bytes"`
				Event int   `json:"event"`
			} `json:"branches"`
		} `json:"divergence"`
	}
	command(t, &want, "diff", loose, varlen, fixed)
	for i, r := range want.Ranks {
		at := func(field string) int64 {
			return int64(s.number(fmt.Sprintf("Number(document.querySelector('[data-rank=\"%d\"] [data-field=%s]').dataset.bytes)", i, field)))
		}
		if at("peak") != r.Peak || at("peak_reserved_bytes") != r.Reserved || at("fragmentation_bytes") != r.Fragmentation {
			t.Errorf("run %d: %d, %d, %d on the page, %+v by ashlar diff", i, at("peak"), at("peak_reserved_bytes"), at("fragmentation_bytes"), r)
		}
	}
	if n := s.number("document.querySelectorAll('[data-panel=odd] li').length"); int(n) != len(want.Odd) || n == 0 {
		t.Errorf("%v odd on the page, %d by ashlar diff", n, len(want.Odd))
	}
	if n := s.number("Number(document.querySelector('[data-field=calls_in_common]').dataset.value)"); int64(n) != want.Divergence.Common {
		t.Errorf("%v calls in common on the page, %d by ashlar diff", n, want.Divergence.Common)
	}
	var sizes []int64
	s.value("[...document.querySelectorAll('[data-branch] [data-field=\"branch.size_bytes\"]')].map((e) => Number(e.dataset.bytes))", &sizes)
	for i, b := range want.Divergence.Branches {
		if len(sizes) != len(want.Divergence.Branches) || sizes[i] != b.Size {
			t.Errorf("branches of %v on the page, %+v by ashlar diff", sizes, want.Divergence.Branches)
		}
	}
	// Curves: three runs, live and reserved; aligned three ways; one hidden.
	lines := func(n int) {
		t.Helper()
		s.until(fmt.Sprintf("document.querySelector('.curve.lines')?.dataset.lines === '%d'", n))
	}
	lines(6)
	for _, align := range []string{"event", "time", "step"} {
		s.click("[data-panel=curves] [data-choice=" + align + "]")
		s.hash("align=" + align)
		lines(6)
	}
	s.click("[data-panel=curves] [data-choice=live]")
	lines(3)
	s.value("document.querySelector('[data-rank=\"2\"] input').focus()", nil)
	s.press(" ")
	s.hash("off=3")
	lines(2)
	// From the place where they part to the event.
	s.value("document.querySelector('[data-branch=\"1\"] p button').focus()", nil)
	s.press(page.Enter)
	s.hash(fmt.Sprintf("#/3/timeline?event=%d", want.Divergence.Branches[1].Event))
	s.until(drawn)
}

// One file is compared with itself at two moments.
func TestCompareMoments(t *testing.T) {
	s := open(t, "#/1/compare", loose)
	s.checkPair(loose, "--at", "peak", "--at", "end")
	var value string
	s.value("[...document.querySelectorAll('select[name=bt] option')].find((o) => o.innerText === 'end of step 2').value", &value)
	s.must(s.page.Pick("select[name=bt]", value))
	if value != "step:2" {
		t.Errorf("the end of step 2 is %q", value)
	}
	s.hash("bt=step%3A2")
	s.until("document.querySelector('[data-panel=totals] tbody tr td:nth-child(3)')?.innerText.startsWith('end of step 2, event')")
	s.checkPair(loose, "--at", "peak", "--at", value)
	// A file without events has one moment.
	quiet := open(t, "#/1/compare", state)
	quiet.until("document.querySelector('[data-panel=only]')?.innerText.includes('one moment only')")
	// A moment that is not there is said in words.
	s.hints = []string{"status of 400"}
	s.must(s.page.Go("#/1/compare?at=peak&bt=99999999"))
	s.until("document.querySelector('main .trouble')?.innerText.includes('there is no event 99,999,999')")
}

// The moment of B is that of A until another is chosen, and can be so again; a
// step is the same step in both runs.
func TestCompareFollows(t *testing.T) {
	chosen := func(s *scene, name string) string {
		t.Helper()
		var text string
		s.value("document.querySelector('select[name="+name+"]').selectedOptions[0].text", &text)
		return text
	}
	s := open(t, "#/1/compare", loose, fixed)
	s.checkPair(loose, fixed)
	s.must(s.page.Pick("select[name=at]", "step:3"))
	s.until("document.querySelector('[data-panel=totals] tbody tr')?.innerText.match(/end of step 3/g)?.length === 2")
	s.checkPair(loose, fixed, "--at", "step:3")
	if got := chosen(s, "bt"); got != "as A: end of step 3" {
		t.Errorf("B is at %q", got)
	}
	s.must(s.page.Pick("select[name=bt]", "end"))
	s.until("document.querySelector('[data-panel=totals] tbody td:nth-child(3)')?.innerText.startsWith('end, event')")
	s.checkPair(loose, fixed, "--at", "step:3", "--at", "end")
	s.must(s.page.Pick("select[name=bt]", ""))
	s.until("document.querySelector('[data-panel=totals] tbody tr')?.innerText.match(/end of step 3/g)?.length === 2")
	if got := chosen(s, "bt"); got != "as A: end of step 3" {
		t.Errorf("B is at %q again", got)
	}
	s.must(s.page.Pick("select[name=at]", ""))
	s.until("!location.hash.includes('at=')")
	s.checkPair(loose, fixed)
}

// The step in which a run died is as wide as it got: the curve of the run ends
// there, and not where others finish the step.
func TestCompareUnfinishedStep(t *testing.T) {
	s := open(t, "#/1/compare?align=step&lines=live", loose, varlen)
	s.until("document.querySelector('.curve.lines')?.dataset.lines === '2'")
	var meta struct {
		Events int `json:"events"`
		Steps  []struct {
			Number   int  `json:"number"`
			Begin    int  `json:"begin"`
			End      int  `json:"end"`
			Complete bool `json:"complete"`
		} `json:"steps"`
	}
	s.api("meta?run=2", &meta)
	last := meta.Steps[len(meta.Steps)-1]
	if last.Complete {
		t.Fatalf("the last step is complete: %+v", last)
	}
	var lengths []int
	for _, x := range meta.Steps {
		if x.Complete {
			lengths = append(lengths, x.End-x.Begin)
		}
	}
	slices.Sort(lengths)
	want := float64(last.Number-1) + min(1, float64(last.End-last.Begin)/float64(lengths[len(lengths)/2]))
	end := s.number("Number(document.querySelector('.curve.lines').dataset.ends.split(' ')[1])")
	if end != want || want == float64(last.Number) {
		t.Errorf("the curve ends at step %v, want %v", end, want)
	}
}

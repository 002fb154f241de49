package browsertests

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

const healthy = "../testdata/snapshots/leak_graph-default.pickle.gz"

// openReport writes a report and opens it from the disk.
func openReport(t *testing.T, width, height int64, dark bool, args ...string) *scene {
	t.Helper()
	return openWritten(t, "", width, height, dark, args...)
}

// openWritten opens what ashlar report writes, from the disk.
func openWritten(t *testing.T, hash string, width, height int64, dark bool, args ...string) *scene {
	t.Helper()
	// A name that a browser and a shell may stumble over.
	file := filepath.Join(t.TempDir(), `a page <b>&"' 100%.html`)
	if out, err := exec.Command(stage.ashlar, append([]string{"report", "-o", file}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("ashlar report %v: %v\n%s", args, err, out)
	}
	address := url.URL{Scheme: "file", Path: file}
	p, err := stage.browser.Open(address.String()+hash, width, height, dark)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, page: p}
	t.Cleanup(func() {
		s.noProblems()
		p.Close()
	})
	return s
}

// Somebody opens the report of a run that died from a mail, offline.
func TestReport(t *testing.T) {
	for _, c := range []struct{ file, cause, fix string }{
		{varlen, "fragmentation", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
		{stream, "stranded", "torch.cuda.empty_cache()\nbefore the use_mem_pool block"},
		{healthy, "none", ""},
		{state, "none", ""},
	} {
		s := openReport(t, 1160, 900, false, c.file)
		if got := s.text("#verdict .name"); got != c.cause {
			t.Errorf("%s: the cause is %q", c.file, got)
		}
		if got := s.text(".fixes"); !strings.Contains(got, c.fix) {
			t.Errorf("%s: the fixes are %q", c.file, got)
		}
		if n := s.number("document.scripts.length + performance.getEntriesByType('resource').filter((r) => !r.name.startsWith('data:')).length"); n != 0 {
			t.Errorf("%s: %v scripts and loaded things", c.file, n)
		}
		// The policy lets the style through, and the pictures have a size.
		if got := s.text("title"); got == "" || s.number("document.querySelector('#verdict').getBoundingClientRect().height") < 100 ||
			s.number("parseFloat(getComputedStyle(document.querySelector('#verdict')).borderLeftWidth)") != 5 {
			t.Errorf("%s: it is not styled", c.file)
		}
		if n := s.number("[...document.querySelectorAll('svg')].filter((e) => e.getBoundingClientRect().height < 4).length"); n != 0 {
			t.Errorf("%s: %v pictures are flat", c.file, n)
		}
	}
}

// A run that did not fail begins with what would make it smaller, as explain has
// it; a report names no folder.
func TestReportCouldBeSmaller(t *testing.T) {
	file, err := filepath.Abs(healthy)
	if err != nil {
		t.Fatal(err)
	}
	s := openReport(t, 1160, 900, false, file)
	var want struct {
		Health struct {
			Smaller []struct {
				Export string `json:"export"`
			} `json:"could_be_smaller"`
		} `json:"health"`
	}
	command(t, &want, "explain", healthy)
	if len(want.Health.Smaller) == 0 {
		t.Fatal("nothing would make it smaller")
	}
	if got := s.text("#verdict .smaller .export"); got != want.Health.Smaller[0].Export {
		t.Errorf("%q, by ashlar explain %q", got, want.Health.Smaller[0].Export)
	}
	if b, err := s.page.Box("#verdict .smaller"); err != nil || b[1]+b[3] > 900 {
		t.Errorf("it is at %v, %v", b, err)
	}
	var folders bool
	s.value("document.documentElement.outerHTML.includes("+page.Quote(filepath.Dir(file))+")", &folders)
	if folders {
		t.Error("the report has the folder of its file")
	}
}

// A hostile name is a name, and the policy of the report refuses what somebody
// might put into it.
func TestReportPolicy(t *testing.T) {
	raw, err := os.ReadFile(stream)
	if err != nil {
		t.Fatal(err)
	}
	const name = `<img src=x onerror=alert(1)>"'&lt;.pickle.gz`
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openReport(t, 1160, 900, false, file)
	if got := s.text("h1"); got != name || len(s.page.Problems()) > 0 {
		t.Errorf("the heading is %q, the console says %q", got, s.page.Problems())
	}
	s.hints = []string{"Content Security Policy", "Content-Security-Policy"}
	s.value(`(() => {
		window.refused = [];
		document.addEventListener('securitypolicyviolation', (e) => window.refused.push(e.effectiveDirective));
		const e = document.createElement('script');
		e.textContent = 'window.ran = true';
		document.body.append(e);
		document.body.setAttribute('onclick', 'window.ran = true');
		document.body.click();
		document.body.setAttribute('style', 'color: red');
		const i = document.createElement('img');
		i.src = 'http://127.0.0.1:9/x.png';
		document.body.append(i);
	})()`, nil)
	s.until("['script-src-elem', 'script-src-attr', 'style-src-attr', 'img-src'].every((d) => window.refused.includes(d))")
	var ran bool
	s.value("window.ran === true", &ran)
	if ran {
		t.Error("a script ran")
	}
}

// Stacks open by the keyboard alone, in light and dark, and nothing is too wide.
func TestReportByKeyboard(t *testing.T) {
	grounds := map[string]bool{}
	for _, dark := range []bool{false, true} {
		s := openReport(t, 1160, 900, dark, varlen)
		s.value("document.querySelector('#holders details.stack summary').focus()", nil)
		s.press(page.Enter)
		s.until("document.querySelector('#holders details.stack').open && document.querySelector('#holders .frames').offsetHeight > 40")
		var ground string
		s.value("getComputedStyle(document.body).backgroundColor", &ground)
		grounds[ground] = true
		for _, width := range []int64{1160, 700, 400} {
			s.must(s.page.Resize(width, 900))
			if n := s.number("document.documentElement.scrollWidth - innerWidth"); n > 0 {
				t.Errorf("dark %v: %v too wide for %d", dark, n, width)
			}
		}
	}
	if len(grounds) != 2 && !inFirefox { // Firefox has one theme for all tabs
		t.Errorf("light and dark have the ground %v", grounds)
	}
}

// axe-core finds no serious fault in reports, light or dark, all unfolded.
func TestReportAccessible(t *testing.T) {
	script := axe(t)
	for _, c := range []struct {
		file string
		dark bool
	}{{varlen, false}, {healthy, true}, {state, false}, {stream, true}} {
		s := openReport(t, 1160, 900, c.dark, c.file)
		s.value("document.querySelectorAll('details').forEach((d) => { d.open = true; })", nil)
		s.value(script+"\n;void 0", nil)
		for _, f := range s.faults() {
			t.Errorf("%s, dark %v: %s", filepath.Base(c.file), c.dark, f)
		}
	}
}

// The report is printed: a few pages, light, everything unfolded, no picture
// higher than a page.
func TestReportPrinted(t *testing.T) {
	if inFirefox {
		t.Skip("printing is tested with Chromium alone")
	}
	for _, c := range []struct {
		file     string
		min, max int
	}{{varlen, 4, 8}, {healthy, 3, 7}, {state, 2, 4}} {
		s := openReport(t, 1160, 900, true, c.file)
		papers := map[string]page.Paper{"A4": page.A4}
		if c.file == varlen {
			papers["Letter"] = page.Letter
		}
		for name, paper := range papers {
			pdf, err := s.page.PDF(paper)
			s.must(err)
			pages, err := page.PageTexts(pdf)
			s.must(err)
			if len(pages) < c.min || len(pages) > c.max {
				t.Errorf("%s on %s: %d pages", c.file, name, len(pages))
			}
			for i, text := range pages {
				if !strings.Contains(text, fmt.Sprintf("%d of %d", i+1, len(pages))) || !strings.Contains(text, filepath.Base(c.file)) {
					t.Errorf("%s on %s, page %d has no number, or no name: %.200s", c.file, name, i+1, text)
				}
			}
			if !strings.Contains(pages[0], "Memory over the run") || c.file != state && !strings.Contains(pages[0], "Each event of the allocator takes the same width") {
				t.Errorf("%s on %s: the curve is not on the first page: %.300s", c.file, name, pages[0])
			}
			if dir := os.Getenv("REPORTS"); dir != "" { // to be looked at
				s.must(os.WriteFile(filepath.Join(dir, strings.TrimSuffix(filepath.Base(c.file), ".pickle.gz")+"-"+name+".pdf"), pdf, 0o644))
			}
		}
		s.must(s.page.OnPaper(703, 1020)) // A4 without its margins
		if c.file != state {
			if b, err := s.page.Box("#curves svg"); err != nil || b[3] < 100 || b[1]+b[3] > 1020 {
				t.Errorf("%s: the curve is not on the first page: %v %v", c.file, b, err)
			}
			// Of the call stacks the first five, with their frames.
			var rows []float64
			s.value("[...document.querySelectorAll('#holders table')].slice(0, 2).map((e) => [...e.querySelectorAll('tbody tr')].filter((r) => r.offsetHeight > 0).length)", &rows)
			if len(rows) != 2 || rows[0] > 5 || rows[1] != 5 || s.number("[...document.querySelectorAll('#holders .frames')].filter((e) => e.offsetHeight > 0).length") == 0 {
				t.Errorf("%s: %v call stacks are printed", c.file, rows)
			}
		}
		if n := s.number("[...document.querySelectorAll('figure')].filter((e) => e.getBoundingClientRect().height > 1020).length"); n != 0 {
			t.Errorf("%s: %v pictures do not fit a page", c.file, n)
		}
		if n := s.number("[...document.querySelectorAll('details:not(.further) > :not(summary)')].filter((e) => !e.closest('.top tr:nth-child(n+6), .further')).filter((e) => e.getBoundingClientRect().height === 0).length"); n != 0 {
			t.Errorf("%s: %v things stay folded", c.file, n)
		}
		if n := s.number("document.documentElement.scrollWidth - innerWidth"); n > 0 {
			t.Errorf("%s: %v too wide for the paper", c.file, n)
		}
		var ground string
		s.value("getComputedStyle(document.body).backgroundColor", &ground)
		if ground != "rgb(255, 255, 255)" {
			t.Errorf("%s: printed on %s", c.file, ground)
		}
	}
}

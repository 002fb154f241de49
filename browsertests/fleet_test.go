package browsertests

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/test/planted"
)

// fleetOf are the files of a fleet, and what is true of them.
type fleetOf struct {
	server *page.Server
	truth  *planted.Truth
}

// serveFleet plants a small fleet, and serves it.
func serveFleet(t *testing.T) *fleetOf {
	t.Helper()
	dir := t.TempDir()
	p := planted.Usual()
	p.Seed = 10 // a commit that grew, an odd rank
	p.Files, p.Runs, p.Ranks, p.Commits, p.Causes = 24, 1, 6, 3, 2
	p.Bases = []string{"advice/ddp_buckets"}
	p.Failures = []string{"advice/huge_vocab", "advice/side_stream"}
	truth, err := planted.Write(t.Context(), "../testdata", filepath.Join(dir, "files"), p)
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "store")
	if out, err := exec.Command(stage.ashlar, "fleet", "add", "--dir", store, filepath.Join(dir, "files", "*", "*", "*.gz")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server, err := page.Fleet(stage.ashlar, "--dir", store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return &fleetOf{server, truth}
}

// open waits until every file is analysed.
func (f *fleetOf) open(t *testing.T, hash string, width int64, dark bool) *scene {
	t.Helper()
	s := show(t, f.server, hash, width, 900, dark)
	failed := 0
	for _, files := range f.truth.Causes {
		failed += len(files)
	}
	s.until(fmt.Sprintf("document.querySelector('.fleet-head')?.textContent.includes('%d files of 1 run, %d failed')", len(f.truth.Files), failed))
	return s
}

// rows waits until the table has so many rows.
func (s *scene) rows(n int) {
	s.Helper()
	s.until(fmt.Sprintf("document.querySelectorAll('.fleet-table tbody tr').length === %d && document.querySelector('[data-panel=files] [aria-busy=false]')", n))
}

// fleetStore is a fleet with 100,000 results: make fleet-bars makes it.
var fleetStore = flag.String("fleet-store", "", "measure the screen Fleet with the store in this folder")

// The screen of a large fleet: how long from the click to the rows. It measures and
// asserts nothing about time.
func TestFleetMany(t *testing.T) {
	if *fleetStore == "" {
		t.Skip("only with -fleet-store")
	}
	server, err := page.Fleet(stage.ashlar, "--dir", *fleetStore, "-j", "0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	t.Logf("the page is served after %.1f s", time.Since(server.Started).Seconds())
	for range 2 { // the second as one who comes back
		begin := time.Now()
		s := show(t, server, "#//fleet", 1440, 900, false)
		s.rows(100)
		t.Logf("the first 100 rows are there after %.2f s", time.Since(begin).Seconds())
		aside := func(panel, text string) string {
			return fmt.Sprintf("document.querySelector('[data-panel=%s] .aside')?.textContent.includes('%s')", panel, text)
		}
		for _, x := range []struct{ place, there string }{
			{"where=run+%3D~+%22run1.*%22", aside("files", " of 50,000 files")},
			{"sort=-peak_reserved_bytes", aside("files", "50,000 files") + " && document.querySelector('th[aria-sort=descending]')"},
			{"group=run,commit", aside("files", " groups")},
			{"group=cause", aside("files", "1 group")},
			{"rows=all", "document.querySelectorAll('.fleet-table tbody tr').length === 1000"},
			{"view=growth&of=run3", "document.querySelector('[data-panel=growth] [data-commit]')"},
			{"view=causes", aside("causes", "1 cause of 50000 failures") + "||" + aside("causes", "1 cause of 50,000 failures")},
			{"view=ranks&of=run3", "document.querySelector('.rank-table')"},
		} {
			begin := time.Now()
			s.must(s.page.Go("#//fleet?" + x.place))
			s.until("!document.querySelector('.fleet div[aria-busy=true]') && (" + x.there + ")")
			t.Logf("%s: %.2f s", x.place, time.Since(begin).Seconds())
		}
	}
}

func TestFleet(t *testing.T) {
	f := serveFleet(t)
	t.Run("questions", f.questions)
	t.Run("layout", f.layout)
}

// The table is filtered in the language of ashlar fleet query, sorted and grouped; a
// row opens in Overview; growth, causes and ranks name what was planted. Every view
// is a link.
func (f *fleetOf) questions(t *testing.T) {
	s := f.open(t, "#//fleet", 1440, false)
	all := len(f.truth.Files)
	failed := len(f.truth.Causes[0]) + len(f.truth.Causes[1])
	s.rows(all)
	s.must(s.page.Type("[name=where]", "failed and attempt >= 0"))
	s.hash("where=failed")
	s.rows(failed)
	s.click("[data-sort=peak_reserved_bytes]")
	s.hash("sort=-peak_reserved_bytes")
	s.until("document.querySelector('th[aria-sort=descending] [data-sort=peak_reserved_bytes]')")
	s.must(s.page.Pick("[name=group]", "cause"))
	s.rows(len(f.truth.Causes))
	s.click(".fleet-table tbody tr:first-child td:first-child a")
	s.hash("cause")
	s.until("document.querySelector('[name=group]').value === ''")
	s.rows(max(len(f.truth.Causes[0]), len(f.truth.Causes[1])))

	s.hints = []string{"400"}
	s.must(s.page.Go("#//fleet?where=rnk"))
	s.until("document.querySelector('[data-panel=files] .trouble')?.innerText.includes('there is no column')")
	s.must(s.page.Go("#//fleet?where=run+%3D+none"))
	s.until("document.querySelector('[data-panel=files] .empty') && !document.querySelector('.trouble')")

	grown, odd := f.truth.Grown[0], f.truth.Odd[0]
	s.click("[data-view=growth]")
	s.hash("view=growth")
	s.until("document.querySelector('[data-panel=growth] .aside')?.textContent === '1 commit grew'")
	s.until(fmt.Sprintf("document.querySelector('[data-commit=\"%s\"]').textContent.endsWith('grew')", grown.Commit))
	s.until("document.querySelector('.fleet-stacks').textContent.includes(" + page.Quote(grown.File) + ")")

	s.click("[data-view=causes]")
	s.until(fmt.Sprintf("document.querySelector('[data-panel=causes] .aside')?.textContent === '2 causes of %d failures'", failed))
	s.until("[...document.querySelectorAll('[data-cause] .fleet-frames')].every((f) => f.innerText.includes('.py:'))")

	s.click("[data-view=ranks]")
	s.until(fmt.Sprintf("document.querySelector('[data-panel=odd]')?.textContent.includes('rank %d of %s')", odd.Rank, odd.Commit))
	s.until(fmt.Sprintf("document.querySelector('.rank-table tr.odd')?.dataset.rank === '%d'", odd.Rank))

	s.must(s.page.Go("#//fleet?where=failed"))
	s.rows(failed)
	s.click(".fleet-table tbody tr:first-child [data-hash]")
	s.hash("/overview")
	s.sees("[data-panel=verdict] [data-field=cause]")
	s.value("history.back()", nil)
	s.hash("where=failed")
	s.rows(failed)
	s.must(s.page.Go("#//fleet?open=none"))
	s.until("document.querySelector('.fleet .trouble')?.innerText.includes('there is no file')")
	s.press("l")
	s.hash("view=growth")
	s.press("9")
	s.hash("/plan")
	s.press("0")
	s.hash("/fleet")
}

// Nothing lies outside of the window or on something else, and axe-core finds no
// serious fault.
func (f *fleetOf) layout(t *testing.T) {
	script := axe(t)
	for width, dark := range map[int64]bool{1280: false, 640: true} {
		s := f.open(t, "#//fleet", width, dark)
		s.measures()
		s.value(script+"\n;void 0", nil)
		for view, there := range map[string]string{"": ".fleet-table", "growth&of=run-00": ".fleet-stacks", "causes": ".fleet-causes", "ranks": ".rank-table"} {
			s.must(s.page.Go("#//fleet?view=" + view))
			s.sees(there)
			s.fits(fmt.Sprintf("%q at %d px", view, width))
			s.accessible(view)
		}
	}
}

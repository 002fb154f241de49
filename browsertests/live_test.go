package browsertests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/watch/watchtest"
)

// jobs are what a test watches: four ranks of a run, of which the last stands out
// and dies of fragmentation, and two processes of one script.
type jobs struct {
	server  *page.Server
	senders []*watchtest.Sender
}

// watchJobs starts ashlar watch, and lets jobs send to it once.
func watchJobs(t *testing.T) *jobs {
	t.Helper()
	dir := t.TempDir()
	socket, alarms := filepath.Join(dir, "w.sock"), filepath.Join(dir, "alarms")
	if err := os.WriteFile(alarms, []byte("full: reserved > 30GiB -> log, snapshot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := page.Watch(stage.ashlar, "--dir", filepath.Join(dir, "store"), "--listen", "unix:"+socket, "--alarms", alarms)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	died, err := os.ReadFile(varlen)
	if err != nil {
		t.Fatal(err)
	}
	j := &jobs{server: server}
	for rank := range 4 {
		s := watchtest.NewSender(socket, "pretrain", rank)
		s.World = 4
		if rank == 3 {
			s.Snapshot = died
			s.Change = func(sample map[string]int64) { sample["reserved"], sample["peak_reserved"] = 40<<30, 40<<30 }
		}
		j.senders = append(j.senders, s)
	}
	for process := range 2 {
		s := watchtest.NewSender(socket, "serve.py", process)
		j.senders = append(j.senders, s)
	}
	for range 3 { // the alarm, the ask, its answer
		j.send(t)
	}
	return j
}

func (j *jobs) send(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for _, s := range j.senders {
		s.Sample(time.Now())
		if err := s.Send(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func (j *jobs) open(t *testing.T, hash string, width int64, dark bool) *scene {
	t.Helper()
	s := show(t, j.server, hash, width, 900, dark)
	s.sees(".live .panel")
	return s
}

// The table names each job, with a curve; a click shows its ranks over each other,
// and says which of them stands out; one more opens the alarm's snapshot with its
// verdict. Every view is a link.
func TestLive(t *testing.T) {
	j := watchJobs(t)
	s := j.open(t, "#//live", 1440, false)
	s.until("document.querySelectorAll('.live-table tbody tr').length === 3 && document.querySelectorAll('.small-curve path.reserved').length === 3")
	for _, label := range []string{"pretrain", "serve.py pid 1", "serve.py pid 2"} {
		s.until("[...document.querySelectorAll('.job-name a')].some((a) => a.textContent === " + page.Quote(label) + ")")
	}
	s.click("[data-job='pretrain.0'] a")
	s.hash("job=pretrain.0")
	s.until("document.querySelector('.curve.lines')?.dataset.lines === '4'")
	s.until("document.querySelector('[data-panel=odd]')?.textContent.includes('rank 3 stands out in peak reserved')")
	s.click("[data-panel=ranks] [data-rank='0'] input")
	s.hash("off=pretrain-rank00000")
	s.until("document.querySelector('.curve.lines')?.dataset.lines === '3'")
	s.click("[data-choice='10m']")
	s.hash("span=10m")
	s.click("[data-panel=alarms] [data-snapshot]")
	s.hash("/overview")
	s.sees("[data-panel=verdict] [data-field=cause]")
	s.value("history.back()", nil)
	s.hash("job=pretrain.0")
	s.sees("[data-panel=ranks]")
	var name string
	s.value("document.querySelector('[data-snapshot]').dataset.snapshot", &name)
	var files struct {
		Runs []struct{ File string }
	}
	s.must(s.page.Go("#//live?snapshot=" + name))
	s.hash("/overview")
	if s.api("runs", &files); len(files.Runs) != 1 || files.Runs[0].File != name {
		t.Errorf("after the second look there are %v", files.Runs)
	}
	s.hints = []string{"400"}
	s.must(s.page.Go("#//live?snapshot=none.pickle"))
	s.until("document.querySelector('.live .trouble')?.innerText.includes('there is no snapshot')")
	s.sees(".live-table")
}

// New samples are shown as they come, the keys do what the mouse does, and the page
// needs no more memory in the end.
func TestLiveKeys(t *testing.T) {
	j := watchJobs(t)
	s := j.open(t, "#//live?job=pretrain.0&span=10m", 1440, true)
	s.until("document.querySelector('.curve.lines')?.dataset.lines === '4'")
	step := func() int {
		return int(s.number("Number(document.querySelector('[data-rank=\"0\"] td:nth-of-type(2)').textContent)"))
	}
	var first int64
	for n := range 6 {
		before := step()
		j.send(t)
		s.until(fmt.Sprintf("Number(document.querySelector('[data-rank=\"0\"] td:nth-of-type(2)').textContent) > %d", before))
		if inFirefox {
			continue
		}
		heap, err := s.page.Heap()
		s.must(err)
		if n == 1 {
			first = heap
		} else if n == 5 && heap > first+first/2 {
			t.Errorf("the heap grew from %d to %d bytes", first, heap)
		}
	}
	s.press("l")
	s.hash("job=serve-py-rank00000")
	s.until("document.querySelector('.live-head h2').textContent === 'serve.py pid 1'")
	s.press(page.Escape)
	s.until("!location.hash.includes('job=')")
	s.press("9")
	s.hash("/plan")
	s.press("0")
	s.hash("/live")
	s.sees(".live-table")
}

// Nothing lies outside of the window or on something else, and axe-core finds no
// serious fault.
func TestLiveLayout(t *testing.T) {
	j := watchJobs(t)
	script := axe(t)
	for _, dark := range []bool{false, true} {
		s := j.open(t, "#//live", 1280, dark)
		s.measures()
		s.value(script+"\n;void 0", nil)
		for _, hash := range []string{"#//live?sort=alarms", "#//live?job=pretrain.0", "#//live?job=serve-py-rank00001"} {
			s.must(s.page.Go(hash))
			s.sees(map[bool]string{true: ".live-head", false: ".live-table"}[hash != "#//live?sort=alarms"])
			for _, width := range []int64{640, 1280} {
				s.must(s.page.Resize(width, max(720, width*9/16)))
				s.fits(fmt.Sprintf("%s at %d px", hash, width))
			}
			s.accessible(hash)
		}
	}
}

package browsertests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

const ckpt = "../testdata/snapshots/llama_ckpt-default.pickle.gz" // did not fail, and could be smaller

// inView fails unless the whole element is in the window, above the foot.
func (s *scene) inView(selector string) {
	s.Helper()
	s.sees(selector)
	b, err := s.page.Box(selector)
	s.must(err)
	foot, err := s.page.Box("footer.moment")
	s.must(err)
	if b[1] < 0 || b[1]+b[3] > foot[1] || b[2] == 0 || b[3] == 0 {
		s.Errorf("%s is at %v, and the foot begins at %v", selector, b, foot[1])
	}
}

// balanced fails if one column is longer than the other by a window.
func (s *scene) balanced() {
	s.Helper()
	s.until("document.querySelectorAll('.overview-grid .column').length === 2 && !document.querySelector('main .spin')")
	by := s.number(`(() => {
		const ends = [...document.querySelectorAll('.overview-grid .column')].map((c) => c.lastElementChild.getBoundingClientRect().bottom);
		return Math.abs(ends[0] - ends[1]);
	})()`)
	if window := s.number("innerHeight"); by >= window {
		s.Errorf("one column is longer by %.0f of %.0f pixels", by, window)
	}
}

// Somebody opens a run that died, and sees without scrolling why, what to try,
// who holds the memory, and the curve; the fix's curve is a click away.
func TestOverviewFirstScreen(t *testing.T) {
	for _, file := range []string{varlen, leaking, multi, "../testdata/snapshots/moe_train-tight-default.pickle.gz"} {
		s := openAt(t, "#/1/overview", 1280, 720, false, file)
		for _, part := range []string{"[data-field=cause]", "[data-field=cause_text]", "[data-field=first]", "[data-field=first] [data-copy]", ".held-bar", ".held-keys"} {
			s.inView(part)
		}
		s.balanced()
	}
	s := openAt(t, "#/1/overview", 1280, 720, false, varlen)
	var explain struct {
		Fixes []struct {
			Settings string `json:"settings"`
		} `json:"fixes"`
	}
	command(t, &explain, "explain", varlen)
	s.click("[data-field=first] a[href*='/whatif']")
	s.until("new URLSearchParams(location.hash.split('?')[1]).get('sets') === " + page.Quote(explain.Fixes[0].Settings))
	s.until("document.querySelector('[data-panel=whatif-curves] .curve.lines')?.dataset.lines === '2'")
	// The same by the keyboard.
	s.press("1")
	s.sees("[data-field=first] a[href*='/whatif']")
	s.value("document.querySelector(\"[data-field=first] a[href*='/whatif']\").focus()", nil)
	s.press(page.Enter)
	s.hash("/whatif?")
}

// A leak's first fix is a change of a line: the curve with it is drawn over the
// recorded one, by a click and by a key.
func TestOverviewCodeFix(t *testing.T) {
	s := openAt(t, "#/1/overview", 1280, 720, false, leaking)
	s.click("[data-field=first] a")
	s.hash("fix=0")
	s.sees(".curve[data-after]")
	after, before := int64(s.number("Number(document.querySelector('.curve').dataset.after)")), s.bytes("memory.reserved.peak_bytes")
	if after <= 0 || after >= before {
		t.Errorf("with the fix %d bytes are reserved at most, without %d", after, before)
	}
	s.inView(".curve")
	s.value("document.querySelector('[data-field=first] a').focus()", nil)
	s.press(page.Enter)
	s.until("!location.hash.includes('fix=') && !document.querySelector('.curve[data-after]')")
	// One whose effect is not replayed leads to the memory of its line.
	s.value("document.querySelector(\"[data-panel=fixes] a[href*='/timeline']\").focus()", nil)
	s.press(page.Enter)
	s.hash("stack=train")
	s.hash("only=1")
	s.until(drawn)
	s.until("document.querySelector('[data-panel=matches]')")
}

// Who holds the memory, as explain has it, in one bar; a part leads to the
// timeline, by the pointer and by the keyboard.
func TestHeldBar(t *testing.T) {
	for _, file := range []string{varlen, ckpt} {
		s := open(t, "#/1/overview", file)
		s.sees("[data-held]")
		var explain struct {
			Categories []struct {
				Category string `json:"category"`
				Bytes    int64  `json:"bytes"`
			} `json:"categories"`
		}
		command(t, &explain, "explain", file)
		var held map[string]int64
		s.value("Object.fromEntries([...document.querySelectorAll('[data-held]')].map((e) => [e.dataset.held, Number(e.querySelector('[data-bytes]').dataset.bytes)]))", &held)
		total := int64(0)
		for _, c := range explain.Categories {
			total += c.Bytes
			if held[c.Category] != c.Bytes {
				t.Errorf("%s: %s has %d bytes on the page, %d by ashlar explain", file, c.Category, held[c.Category], c.Bytes)
			}
		}
		if len(held) != len(explain.Categories) {
			t.Errorf("%d parts on the page, %d by ashlar explain", len(held), len(explain.Categories))
		}
		// The parts are as wide as they are large.
		width := s.number("document.querySelector('.held-bar').clientWidth")
		first := explain.Categories[0]
		got := s.number("document.querySelector('[data-part=" + page.Quote(first.Category) + "]').clientWidth")
		if want := width * float64(first.Bytes) / float64(total); got < want-6 || got > want+6 {
			t.Errorf("%s is %.0f pixels wide of %.0f, want %.0f", first.Category, got, width, want)
		}
		s.click("[data-panel=held] [data-choice=stack]")
		s.hash("held=stack")
		s.until("document.querySelectorAll('[data-held]').length > 3 && !document.querySelector('[data-held=activations]')")
		s.click("[data-panel=held] [data-choice=category]")
		s.sees("[data-held=activations]")
		// The pointer on a part lets the others stand back.
		b, err := s.page.Box("[data-part=activations]")
		s.must(err)
		s.must(s.page.Move(b[0]+b[2]/2, b[1]+b[3]/2))
		s.until("document.querySelectorAll('.held-part.faint').length === document.querySelectorAll('.held-part').length - 1")
		s.value("document.querySelector('[data-held=parameters] a').focus()", nil)
		s.press(page.Enter)
		s.hash("/timeline?")
		s.hash("pick=")
		s.until(drawn)
		s.value("history.back()", nil)
		s.click("[data-part=activations]")
		s.hash("/timeline?")
	}
}

// A run that did not fail could be smaller, as explain says.
func TestCouldBeSmaller(t *testing.T) {
	s := openAt(t, "#/1/overview", 1280, 720, false, ckpt)
	s.inView("[data-field=smaller]")
	var explain struct {
		Health struct {
			Smaller []struct {
				Settings string `json:"settings"`
				Peak     int64  `json:"peak_reserved_bytes"`
			} `json:"could_be_smaller"`
		} `json:"health"`
	}
	command(t, &explain, "explain", ckpt)
	if len(explain.Health.Smaller) == 0 {
		t.Fatal("the file cannot be smaller")
	}
	for i, x := range explain.Health.Smaller {
		if got := s.bytes(fmt.Sprintf("health.could_be_smaller.%d.peak_reserved_bytes", i)); got != x.Peak {
			t.Errorf("with %s it reserves %d on the page, %d by ashlar explain", x.Settings, got, x.Peak)
		}
	}
	s.balanced()
	s.click("[data-field=smaller] a[href*='/whatif']")
	s.until("document.querySelector('[data-panel=whatif-curves] .curve.lines')?.dataset.lines === '2'")
}

// The explanation comes after the curve, can be stopped, and ends with the screen
// that shows it.
func TestExplainingStops(t *testing.T) {
	s := openAlone(t, "#/1/playground", long)
	s.until("fetch('api/runs').then((r) => r.json()).then((d) => d.runs[0].state === 'ready')")
	// What the page asks, in order; explain is answered by nobody until it is given
	// up, so that the test does not race with it.
	s.value(`void (() => {
		const real = window.fetch;
		window.asked = [];
		window.fetch = (path, init) => {
			const text = String(path);
			window.asked.push((init?.method ?? 'GET') + ' ' + text);
			if (!text.startsWith('api/explain')) return real(path, init);
			const said = new TransformStream();
			const writer = said.writable.getWriter();
			const line = (o) => writer.write(new TextEncoder().encode(JSON.stringify(o) + '\n'));
			init.signal.addEventListener('abort', () => window.asked.push('left'));
			void line({work: 77});
			window.stopped = () => { void line({stopped: true}); void line({end: true}); void writer.close(); };
			return Promise.resolve(new Response(said.readable));
		};
	})()`, nil)
	s.press("1")
	s.sees("[data-ask=stop-explain]")
	s.until("window.asked.some((a) => a.includes('api/explain'))")
	var asked []string
	s.value("window.asked", &asked)
	at := func(name string) int {
		for i, a := range asked {
			if strings.Contains(a, name) {
				return i
			}
		}
		return len(asked)
	}
	if at("api/curve") >= at("api/explain") {
		t.Errorf("explain is asked for before the curve: %q", asked)
	}
	if s.number("document.querySelectorAll('.curve canvas').length") != 1 {
		t.Error("explain is asked for before the curve is drawn")
	}
	// By its button.
	s.click("[data-ask=stop-explain]")
	s.until("window.asked.some((a) => a === 'DELETE api/work?work=77')")
	s.value("window.stopped()", nil)
	s.sees("[data-field=explain-stopped] button")
	// Again, by the keyboard, and then another screen.
	s.value("document.querySelector('[data-field=explain-stopped] button').focus()", nil)
	s.press(page.Enter)
	s.sees("[data-ask=stop-explain]")
	s.until("window.asked.filter((a) => a.includes('api/explain')).length === 2")
	s.press("5")
	s.until("window.asked.includes('left')")
	s.press("1")
	s.until("window.asked.filter((a) => a.includes('api/explain')).length === 3")
}

// A pinner leads to its segment.
func TestPinnersLead(t *testing.T) {
	s := open(t, "#/1/overview", varlen)
	var explain struct {
		Pinners []struct {
			Segment uint64 `json:"segment"`
		} `json:"pinners"`
		Failure struct {
			Event int `json:"event"`
		} `json:"failure"`
	}
	command(t, &explain, "explain", varlen)
	s.sees("[data-panel=pinners] li a")
	s.value("document.querySelector('[data-panel=pinners] li a').focus()", nil)
	s.press(page.Enter)
	s.hash(fmt.Sprintf("segment=%d", explain.Pinners[0].Segment))
	s.hash(fmt.Sprintf("event=%d", explain.Failure.Event))
	s.sees("[data-panel=segment]")
}

// Where the failed request has no call stack, the page says where it was made.
func TestRequestedWhere(t *testing.T) {
	s := open(t, "#/1/overview", varlen)
	s.until("document.querySelector('[data-field=requested-at]')?.innerText.includes('in the backward pass of step 5, after train.py:40')")
}

// Several runs begin with a table, which says who died and who is odd; a row
// opens its run, by the pointer and by the keyboard.
func TestRunTable(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i, from := range []string{loose, varlen, fixed, varlen} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, []string{"monday", "tuesday", "tuesday", "wednesday"}[i], []string{"rank0", "rank0", "rank1", "rank0"}[i], "oom.pickle.gz")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	s := openAt(t, "", 1280, 720, false, files...)
	s.sees("[data-panel=runs]")
	s.until("document.querySelectorAll('.run-table [data-field=fragmentation_bytes]').length === 4")
	var ranks struct {
		Ranks []struct {
			Peak     int64 `json:"peak_allocated_bytes"`
			Reserved int64 `json:"peak_reserved_bytes"`
			OOMs     int   `json:"oom_events"`
		} `json:"ranks"`
		Odd []struct {
			Rank int `json:"rank"`
		} `json:"odd"`
	}
	command(t, &ranks, append([]string{"diff"}, files...)...)
	for i, r := range ranks.Ranks {
		row := fmt.Sprintf("[data-run='%d'] ", i+1)
		at := func(field string) int64 {
			return int64(s.number("Number(document.querySelector(" + page.Quote(row+"[data-field="+field+"]") + ").dataset.bytes)"))
		}
		if at("peak") != r.Peak || at("peak_reserved_bytes") != r.Reserved {
			t.Errorf("run %d: %d and %d on the page, %+v by ashlar diff", i+1, at("peak"), at("peak_reserved_bytes"), r)
		}
		if got := s.text(row + "[data-field=outcome]"); strings.HasPrefix(got, "OOM at event") != (r.OOMs > 0) {
			t.Errorf("run %d: %q, %d failures by ashlar diff", i+1, got, r.OOMs)
		}
	}
	odd := map[int]bool{}
	for _, o := range ranks.Odd {
		odd[o.Rank] = true
	}
	if got := int(s.number("[...document.querySelectorAll('.run-table tbody tr')].filter((r) => r.querySelector('.odd-cell')).length")); got != len(odd) || got == 0 {
		t.Errorf("%d rows have odd cells, %d by ashlar diff", got, len(odd))
	}
	// Names have as many folders as it takes.
	if got := s.text(".run-table tbody"); !strings.Contains(got, "monday/rank0/oom.pickle.gz") || !strings.Contains(got, "tuesday/rank1/oom.pickle.gz") || strings.Contains(got, dir) {
		t.Errorf("the runs are called\n%s", got)
	}
	var title string
	s.value("document.title", &title)
	if title != "4 runs, 2 OOM - Ashlar" {
		t.Errorf("the title is %q", title)
	}
	// By the keyboard into the second, and back to the table.
	s.value("document.querySelector(\"[data-run='2'] a\").focus()", nil)
	s.press(page.Enter)
	s.hash("#/2/overview")
	s.sees("[data-field=cause]")
	s.value("document.title", &title)
	if !strings.HasPrefix(title, "OOM: tuesday/rank0/oom.pickle.gz - ") {
		t.Errorf("the title is %q", title)
	}
	var picked string
	s.value("document.querySelector('select[name=run]').selectedOptions[0].text", &picked)
	if picked != "OOM: tuesday/rank0/oom.pickle.gz" {
		t.Errorf("the picker has %q", picked)
	}
	s.press("F")
	s.until("document.querySelectorAll('dialog[open] .file').length === 4")
	if got := s.text("dialog[open] .files"); strings.Count(got, "OOM; ") != 2 {
		t.Errorf("the files are\n%s", got)
	}
	s.press(page.Escape)
	s.press("R")
	s.sees(".run-table")
	// By the pointer into the third; the picker's first entry goes back.
	s.click("[data-run='3'] [data-field=outcome]")
	s.hash("#/3/overview")
	s.must(s.page.Pick("select[name=run]", ""))
	s.sees(".run-table")
	// Other screens have a run.
	s.press("2")
	s.hash("#/1/timeline")
}

// On Compare A and B are in colours of their own, the others grey until they are
// pointed at; a drag selects a range of A.
func TestCompareCurves(t *testing.T) {
	s := open(t, "#/1/compare?lines=live", leaking, varlen, loose, fixed)
	s.until("document.querySelector('.curve.lines')?.dataset.lines === '4'")
	colours := func() (c []string) {
		s.value("[...document.querySelectorAll('[data-run-key]')].map((e) => e.dataset.colour)", &c)
		return c
	}
	if c := colours(); len(c) != 4 || c[0] == c[1] || c[2] != c[3] || c[0] == c[2] || c[1] == c[2] {
		t.Errorf("the colours are %q", c)
	}
	grey := colours()[2]
	b, err := s.page.Box("[data-run-key='4']")
	s.must(err)
	s.must(s.page.Move(b[0]+b[2]/2, b[1]+b[3]/2))
	s.until("document.querySelector(\"[data-run-key='4']\").dataset.colour !== " + page.Quote(grey))
	if c := colours(); c[2] != grey {
		t.Errorf("the colours are %q", c)
	}
	for _, align := range []string{"event", "time", "step"} {
		s.click("[data-panel=curves] [data-choice=" + align + "]")
		s.hash("align=" + align)
		s.until("document.querySelector('.curve.lines')?.dataset.lines === '4'")
		b, err = s.page.Box(".curve.lines")
		s.must(err)
		s.must(s.page.Drag(b[0]+90, b[1]+b[3]/2, b[0]+200, b[1]+b[3]/2, false))
		after, until := s.rangeIs()
		s.checkRange(after, until)
		s.press(page.Escape)
		s.until("!location.hash.includes('range=')")
	}
	// A range of another screen is there as well.
	s.must(s.page.Go("#/1/timeline?range=3000..6000"))
	s.rangeIs()
	s.press("7")
	s.hash("/compare?")
	if after, until := s.rangeIs(); after != 3000 || until != 6000 {
		t.Errorf("the range is %d..%d", after, until)
	}
}

// A link is a command that opens the page where it was.
func TestCopyLink(t *testing.T) {
	s := open(t, "#/1/timeline?event=18434&color=stack", varlen)
	s.until(drawn)
	s.value("void (navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); })", nil)
	s.click("[data-ask=link]")
	s.until("window.copied")
	var link string
	s.value("window.copied", &link)
	if want := "ashlar view " + varlen + " --at '#/1/timeline?color=stack&event=18434'"; link != want {
		t.Errorf("the link is %s, want %s", link, want)
	}
	s.value("void (window.copied = '')", nil)
	s.press("L")
	s.until("window.copied === " + page.Quote(link))
	at := strings.Trim(link[strings.Index(link, "'"):], "'")
	server, err := page.Serve(stage.ashlar, varlen, "--at", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.must(server.Close()) })
	if !strings.HasSuffix(server.Address, "/"+at) {
		t.Fatalf("the address is %s", server.Address)
	}
	again := show(t, server, "", 1280, 720, false)
	again.until(drawn)
	again.until("document.querySelector('[data-field=moment]').dataset.event === '18434'")
}

const oomMessage = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.50 GiB is free. " +
	"Including non-PyTorch memory, this process has 22.14 GiB memory in use. Of the allocated memory 17.10 GiB is allocated by PyTorch, and 4.60 GiB is reserved by PyTorch but unallocated."

// Without a file: a message is explained as ashlar explain does, pasted, typed or
// dropped; the sample opens; playground and plan are there.
func TestStart(t *testing.T) {
	s := openAlone(t, "")
	s.sees(".start .drop")
	file := filepath.Join(t.TempDir(), "oom.txt")
	s.must(os.WriteFile(file, []byte(oomMessage), 0o600))
	var explain map[string]any
	command(t, &explain, "explain", file)
	told := func() {
		t.Helper()
		s.sees("dialog[open] [data-panel=told]")
		for field, from := range map[string]string{"cause": "cause", "cause_text": "summary"} {
			want := strings.TrimSuffix(strings.ReplaceAll(fmt.Sprint(explain[from]), "_", " "), ".")
			if got := s.text("dialog[open] [data-field=" + field + "]"); strings.TrimSuffix(got, ".") != want {
				t.Errorf("%s is %q on the page, %q by ashlar explain", field, got, want)
			}
		}
		s.press(page.Escape)
		s.until("!document.querySelector('[data-panel=told]')")
	}
	// Typed, by the keyboard.
	s.value("document.querySelector('textarea[name=message]').focus()", nil)
	s.press(oomMessage)
	s.value("document.querySelector('.message-form button').focus()", nil)
	s.press(page.Enter)
	told()
	// Pasted anywhere.
	s.value("document.activeElement.blur(), (() => { const d = new DataTransfer(); d.setData('text/plain', "+page.Quote(oomMessage)+"); document.body.dispatchEvent(new ClipboardEvent('paste', {clipboardData: d, data: d.getData('text/plain'), dataType: 'text/plain', bubbles: true})); })()", nil)
	told()
	// Dropped.
	s.value(fmt.Sprintf(dropScript, page.Quote(oomMessage), page.Quote("oom.txt")), nil)
	told()
	// What is no message says so.
	s.hints = []string{"status of 422"}
	s.value(fmt.Sprintf(dropScript, page.Quote("nothing of the kind"), page.Quote("notes.txt")), nil)
	s.sees("dialog[open] [data-field=drop-error]")
	s.click("dialog[open] .trouble button")
	s.press(page.Escape)
	for _, screen := range []string{"playground", "plan"} {
		s.click(".start-ways a[href*='" + screen + "']")
		s.hash("#//" + screen)
		s.press("1")
		s.sees(".start")
	}
	s.value("document.querySelector('[data-ask=sample]').focus()", nil)
	s.press(page.Enter)
	s.hash("#/1/overview")
	s.until("document.querySelector('[data-field=cause]')?.innerText === 'leak'")
}

package browsertests

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// lesson is an experiment as the server lists it.
type lesson struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Lines []string `json:"lines"`
}

// at waits until a step of the playground is shown.
func (s *scene) at(step int) {
	s.Helper()
	s.sees(fmt.Sprintf("[data-field=at][data-at='%d'][data-wanted='%d']", step, step))
}

// sentences are what the page says about the step, each with its rule.
func (s *scene) sentences() []string {
	s.Helper()
	var all []string
	s.value("[...document.querySelectorAll('.sentences li')].map((e) => e.innerText)", &all)
	return all
}

// says checks that a sentence is told.
func (s *scene) says(want string) {
	s.Helper()
	s.until("[...document.querySelectorAll('.sentences li')].some((e) => e.innerText === " + page.Quote(want) + ")")
}

// rate is a hit rate of the strip of sums.
func (s *scene) rate(field string) (hits, requests int) {
	s.Helper()
	selector := "[data-field=" + field + "]"
	s.sees(selector)
	hits = int(s.number("Number(document.querySelector('" + selector + "').dataset.hits)"))
	requests = int(s.number("Number(document.querySelector('" + selector + "').dataset.requests)"))
	return hits, requests
}

// Without a file the playground is there all the same, and the first lesson plays.
func TestPlaygroundOpens(t *testing.T) {
	s := open(t, "#//playground")
	s.sees(".lessons [data-lesson='every-second'][aria-current]")
	s.hash("#//playground")
	if text := s.text(".told"); !strings.Contains(text, "Every second tensor freed") || !strings.Contains(text, "limit 100.00 MiB") {
		t.Errorf("the page begins with %q", text)
	}
	// The other screens still want a file.
	s.click("[data-screen=overview]")
	s.sees(".drop")
	s.click("[data-screen=playground]")
	s.sees(".lessons")
	// Played, not stepped.
	s.click("[data-lesson='two-streams']")
	s.hash("lesson=two-streams")
	s.click("[data-choice=fast]")
	s.click("[data-step=play]")
	s.at(11)
	s.until("document.querySelector('[data-step=play]').getAttribute('aria-pressed') === 'false'")
	s.says("Merge: it is the whole of segment A, there is nothing to merge with.")
}

// Every lesson is played to its end; three of its steps say what they should.
func TestPlaygroundLessons(t *testing.T) {
	s := open(t, "#//playground")
	s.sees(".lessons")
	var all struct {
		Experiments []lesson `json:"experiments"`
	}
	s.api("playground", &all)
	type told struct {
		step int
		text string
	}
	want := map[string][3]told{
		"pools": {
			{1, "Rounding: 1000 B up to 1.00 KiB, the next multiple of 512 B."},
			{7, "Segment size: 10.00 MiB ≥ 10.00 MiB, so a segment of its own, a multiple of 2.00 MiB: 10.00 MiB."},
			{10, "No fit: the only free block of the small pool of stream 0 has 723.00 KiB, too small for 900.00 KiB."},
		},
		"warm-up": {
			{1, "New segment: the driver gives 24.00 MiB: segment A (cudaMalloc)."},
			{5, "Best fit: the 8.00 MiB block at B+12.00 MiB is the smallest free one that is large enough."},
			{5, "Split: remainder 5.00 MiB > 1.00 MiB, so it is split; the rest stays free."},
		},
		"every-second": {
			{21, "Merge: none: no neighbour is free, so a hole of 4.00 MiB is left."},
			{31, "Out of memory: nothing gives 24.00 MiB in one piece, though 40.00 MiB are free, in 10 blocks of at most 4.00 MiB."},
			{42, "Given back: segments D (20.00 MiB), C (20.00 MiB), B (20.00 MiB), A (20.00 MiB) go back to the driver (cudaFree), 80.00 MiB in all."},
		},
		"varied-sizes": {
			{11, "No fit: 80.00 MiB are free in 5 blocks of the large pool of stream 0, but the largest has 20.00 MiB, too small for 22.00 MiB."},
			{13, "Limit: 102.00 MiB are reserved; with 30.00 MiB more it would be 132.00 MiB, above the limit of 128.00 MiB: refused."},
			{17, "Split: remainder 2.00 MiB > 1.00 MiB, so it is split; the rest stays free."},
		},
		"rounding": {
			{3, "No fit: the only free block of the large pool of stream 0 has 34.00 MiB, too small for 35.00 MiB."},
			{10, "Settings: from here on roundup_power2_divisions:4. What is reserved keeps its shape; only what comes is treated differently."},
			{13, "Rounding: 35.00 MiB up to 40.00 MiB: roundup_power2_divisions cuts the sizes from 32.00 MiB to 64.00 MiB into 4 steps of 8.00 MiB."},
		},
		"empty-cache": {
			{14, "Merge: with the free 15.00 MiB before it: segment A is one free block of 20.00 MiB again."},
			{18, "Given back: segments A (20.00 MiB), C (40.00 MiB) go back to the driver (cudaFree), 60.00 MiB in all."},
			{18, "Stranded: 2 free blocks, 15.00 MiB in all, stay: blocks in use are in the same segment."},
		},
		"two-streams": {
			{3, "No fit: the 12.00 MiB block at the start of A is free and large enough, but it belongs to stream 1: work there may still touch it."},
			{6, "Pending: c, 12.00 MiB at the start of A, is freed, but stream 2 may still use it: an event is recorded there, and until it is done the block serves nobody."},
			{9, "Event: the other streams are past the free: c, 12.00 MiB at the start of A, returns to its pool."},
		},
		"max-split": {
			{6, "No fit: the only free block of the large pool of stream 0 has 64.00 MiB, too small for 100.00 MiB."},
			{15, "No fit: the 100.00 MiB block at the start of C is the smallest that is large enough, but 100.00 MiB ≥ 50.00 MiB, max_split_size_mb: it is kept for requests of that size."},
			{20, "No split: requests of max_split_size_mb or more, here 90.00 MiB ≥ 50.00 MiB, take the whole block: 10.00 MiB of it are not needed."},
		},
		"expandable": {
			{3, "Mapping: 2.00 MiB are missing; 20.00 MiB are mapped at A+20.00 MiB, whole granules of 20.00 MiB."},
			{24, "Growth: the free 6.00 MiB at A+54.00 MiB can be extended: unmapped addresses follow."},
			{27, "Unmapping: of the free 38.00 MiB at A+42.00 MiB only whole granules of 20.00 MiB can go. 1 of them lies inside: it is unmapped and goes back to the driver."},
		},
		"mem-pools": {
			{4, "Private pool: from here on requests go to p (torch.cuda.use_mem_pool): the free blocks of the default pools are not looked at."},
			{9, "Best fit: the 20.00 MiB block at the start of A is the smallest free one that is large enough."},
			{10, "Stranded: 36.00 MiB free in private pools stays with them."},
		},
		"tenants": {
			{1, "Tenant: serve has an allocator of its own; together the tenants reserve at most 100.00 MiB. 40.00 MiB of it are guaranteed to serve, whatever the others do."},
			{6, "Tenant: cudaMalloc of 20.00 MiB is refused: what the others have, and what is guaranteed to them, leaves too little."},
			{6, "Tenant: train has 60.00 MiB reserved, 0 B guaranteed; for 20.00 MiB more the other tenants leave too little of the group's 100.00 MiB."},
		},
		"garbage-collection": {
			{11, "Garbage collection: 170.00 MiB are reserved, not more than 200.00 MiB, garbage_collection_threshold times the limit of 400.00 MiB: nothing to do."},
			{12, "Age: segment B, 60.00 MiB, was not used for 5 searches of its pool, the average is 3.3: it goes."},
			{13, "Given back: segments C (50.00 MiB), D (40.00 MiB) go back to the driver (cudaFree), 90.00 MiB in all."},
		},
	}
	for _, e := range all.Experiments {
		s.must(s.page.Pick("select[name=lesson]", e.Name))
		s.hash("lesson=" + e.Name)
		s.at(0)
		steps := 0
		for _, line := range e.Lines {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "device ") {
				steps++
			}
		}
		for _, w := range want[e.Name] {
			if w.step == 0 {
				t.Fatalf("nothing is known about the lesson %s", e.Name)
			}
			s.value(fmt.Sprintf("(() => { const e = document.querySelector('input[name=step]'); e.value = %d; e.dispatchEvent(new Event('input', {bubbles: true})); })()", w.step), nil)
			s.at(w.step)
			s.says(w.text)
		}
		s.press(page.End)
		s.at(steps)
		var got struct {
			Moment struct {
				Reserved  int64 `json:"reserved_bytes"`
				Allocated int64 `json:"allocated_bytes"`
				Free      int64 `json:"free_bytes"`
				Hits      int   `json:"hits"`
				Requests  int   `json:"requests"`
			} `json:"moment"`
		}
		lines := make([]string, len(e.Lines))
		for i, line := range e.Lines {
			lines[i] = page.Quote(line)
		}
		s.value(fmt.Sprintf("fetch('api/playground', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({version: 1, lines: [%s]})}).then((r) => r.json())",
			strings.Join(lines, ",")), &got)
		for field, n := range map[string]int64{"reserved_bytes": got.Moment.Reserved, "allocated_bytes": got.Moment.Allocated, "free_bytes": got.Moment.Free} {
			if shown := s.bytes(field); shown != n {
				t.Errorf("%s: %s is %d on the page, %d by the server", e.Name, field, shown, n)
			}
		}
		if hits, requests := s.rate("hit_rate"); hits != got.Moment.Hits || requests != got.Moment.Requests {
			t.Errorf("%s: %d of %d hits on the page, %+v by the server", e.Name, hits, requests, got.Moment)
		}
	}
}

// The hit rate of the warm-up, round by round: low, then all.
func TestPlaygroundWarmUp(t *testing.T) {
	s := open(t, "#//playground?lesson=warm-up&step=14")
	s.at(14)
	if hits, requests := s.rate("chapter_hit_rate"); hits >= requests || requests != 10 {
		t.Errorf("in the first round %d of %d are hits", hits, requests)
	}
	s.press(page.End)
	s.at(244)
	if text := s.text("[data-field=chapter_hit_rate]"); text != "100.0 %" {
		t.Errorf("the hit rate of the last round is %q", text)
	}
	if hits, requests := s.rate("hit_rate"); requests != 124 || hits*100 < requests*95 {
		t.Errorf("in all %d of %d are hits", hits, requests)
	}
	// Back by a chapter and a step; the same state comes again.
	reserved := s.bytes("reserved_bytes")
	s.press(page.Left)
	s.at(243)
	s.press(page.Right)
	s.at(244)
	if again := s.bytes("reserved_bytes"); again != reserved {
		t.Errorf("%d bytes are reserved after a step back and forth, %d before", again, reserved)
	}
	s.press(page.Home)
	s.at(0)
}

// Somebody plays by hand, with the keyboard alone, and passes it on.
func TestPlaygroundByHand(t *testing.T) {
	s := open(t, "#//playground")
	s.sees(".lessons")
	focus := func(selector string) {
		t.Helper()
		s.sees(selector)
		s.value("document.querySelector("+page.Quote(selector)+").focus()", nil)
	}
	act := func(name string) {
		t.Helper()
		focus("[data-act=" + name + "]")
		s.press(page.Enter)
	}
	act("begin")
	s.until("document.querySelector('.told')?.innerText.includes('An empty device')")
	s.must(s.page.Type("input[name=alloc-size]", "12 MiB"))
	s.press(page.Enter)
	s.at(1)
	s.says("Handed out: a is 12.00 MiB at the start of A.")
	s.press(page.Enter) // the field still has the focus: once more
	s.at(2)
	s.must(s.page.Type("input[name=alloc-size]", "3MiB"))
	s.must(s.page.Type("input[name=alloc-stream]", "2"))
	s.press(page.Enter)
	s.at(3)
	s.says("Pool: 3.00 MiB > 1.00 MiB, so the large pool; in it only free blocks of stream 2 are looked at.")

	// Free, and note another stream first.
	s.must(s.page.Pick("select[name=block]", "a"))
	s.sees("[data-act=record]")
	s.must(s.page.Type("input[name=record-stream]", "2"))
	s.press(page.Enter)
	s.at(4)
	act("free")
	s.at(5)
	s.sees("[data-rule=pending]")
	if n := s.bytes("allocated_bytes"); n != 15<<20 {
		t.Errorf("%d bytes are allocated after a was freed", n)
	}
	act("complete")
	s.at(6)

	// A request that cannot be read changes nothing.
	s.hints = append(s.hints, "400 (Bad Request)")
	s.must(s.page.Type("input[name=alloc-size]", "much"))
	s.press(page.Enter)
	s.until("document.querySelector('.notice').innerText.includes('does not begin with a number')")
	s.at(6)

	// Settings from here on, then from the start.
	s.must(s.page.Type("input[name=conf]", "max_split_size_mb:20"))
	act("set")
	s.at(7)
	s.says("Settings: from here on max_split_size_mb:20. What is reserved keeps its shape; only what comes is treated differently.")
	s.must(s.page.Type("input[name=limit]", "20MiB"))
	act("restart")
	s.until("document.querySelector('.strip')?.innerText.includes('limit 20.00 MiB')")
	s.at(7)
	if n := s.number("document.querySelectorAll('.step-list .mark-oom').length"); n != 2 {
		t.Errorf("%v requests fail under a limit of 20 MiB", n)
	}

	// After a step back another way is taken: what followed is dropped.
	for range 5 {
		s.press("\x1b") // leaves the field
		s.press(page.Left)
	}
	s.at(2)
	act("empty")
	s.at(3)
	if n := s.number("document.querySelectorAll('.step-list button').length"); n != 3 {
		t.Errorf("there are %v steps after the second was followed by another", n)
	}

	// The link opens elsewhere with the same state.
	said, reserved := s.sentences(), s.bytes("reserved_bytes")
	act("share")
	s.sees("dialog[open] [data-copy]")
	var link string
	s.value("document.querySelector('dialog[open] [data-copy]').dataset.copy", &link)
	hash, found := strings.CutPrefix(link, "#") // nothing of this machine is in it
	if !found || !strings.Contains(hash, "v=1") {
		t.Fatalf("the link is %q", link)
	}
	same := func(other *scene, how string) {
		t.Helper()
		other.at(3)
		if got := other.sentences(); strings.Join(got, "\n") != strings.Join(said, "\n") || other.bytes("reserved_bytes") != reserved {
			t.Errorf("%s tells %q, not %q", how, got, said)
		}
	}
	same(open(t, "#"+hash), "the link")
	other := open(t, "#//playground")
	other.sees(".lessons")
	other.press("s")
	other.sees("dialog[open] textarea")
	// Whose address it is does not matter.
	other.value("(() => { const e = document.querySelector('textarea'); e.value = "+page.Quote("http://127.0.0.1:1/else/#"+hash)+"; e.dispatchEvent(new Event('input', {bubbles: true})); })()", nil)
	other.click("dialog[open] [data-act=open]")
	other.until("!document.querySelector('dialog[open]')")
	same(other, "the pasted link")
}

// Links come from strangers: what is wrong with one is said.
func TestPlaygroundBadLinks(t *testing.T) {
	for _, x := range []struct{ query, says string }{
		{"v=2&s=empty", "this ashlar plays version 1"},
		{"s=empty", "this ashlar plays version 1"},
		{"v=1&s=" + url.QueryEscape("alloc a 4MiB;dance"), `line 2, "dance": there is no step "dance"`},
		{"v=1&s=" + url.QueryEscape("alloc <img src=x> 4MiB"), "is no name"},
		{"v=1&s=empty&step=7", "there is no step 7"},
		{"lesson=none", "There is no lesson none"},
		{"v=1&s=" + strings.Repeat("empty%3B", 2500), "at most 2,000"},
	} {
		s := open(t, "#//playground?"+x.query)
		s.hints = append(s.hints, "400 (Bad Request)")
		s.until("document.querySelector('.trouble')?.innerText.includes(" + page.Quote(x.says) + ")")
		// And from there on to something that is right.
		s.must(s.page.Pick("select[name=lesson]", "pools"))
		s.at(0)
		s.until("!document.querySelector('.trouble')")
	}
}

// All of it fits a small window, also beside files.
func TestPlaygroundSmallWindow(t *testing.T) {
	s := openAt(t, "#/1/playground?lesson=every-second&step=31", 1280, 720, false, varlen, multi)
	s.at(31)
	var wide []string
	s.value("[...document.querySelectorAll('body, main, header, main > div, .tools, .side, .stage, .strip, .told')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.className || e.tagName)", &wide)
	if len(wide) > 0 {
		t.Errorf("too wide: %v", wide)
	}
	for _, part := range []string{".map", ".step-list", ".told"} {
		if b, err := s.page.Box(part); err != nil || b[3] < 80 || b[1]+b[3] > 720.5 {
			t.Errorf("%s is at %v, %v", part, b, err)
		}
	}
	// Another run keeps the experiment; another screen and back too.
	s.must(s.page.Pick("select[name=run]", "2"))
	s.hash("#/2/playground")
	s.at(31)
	s.press("1")
	s.sees("main .overview")
	s.click("[data-screen=playground]")
	s.at(31)
}

// A file that is dropped on the playground opens on its overview; the
// experiment is still there.
func TestPlaygroundDrop(t *testing.T) {
	s := openAlone(t, "#/1/playground?lesson=pools&step=4", state)
	s.at(4)
	const snapshot = `{"segments":[{"device":0,"address":140000000000000,"total_size":2097152,"stream":0,"segment_type":"small",` +
		`"blocks":[{"address":140000000000000,"size":2097152,"requested_size":2097152,"state":"active_allocated","frames":[]}]}],"device_traces":[[]]}`
	s.value(fmt.Sprintf(dropScript, page.Quote(snapshot), page.Quote("dropped.json")), nil)
	s.hash("#/2/overview")
	s.sees("main .overview")
	s.until("!document.querySelector('dialog[open]')")
	s.click("[data-screen=playground]")
	s.at(4)
}

package playground

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/test/cost"
)

var update = flag.Bool("update", false, "rewrite the golden files with what is said now")

func play(t testing.TB, lines []string, at int) *Answer {
	t.Helper()
	a, err := Play(t.Context(), lines, at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// split are lines written as one text.
func split(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// told are the sentences of a step, each with its rule.
func told(m *Moment) []string {
	out := []string{}
	for _, s := range m.Sentences {
		out = append(out, s.Name+": "+s.Text)
	}
	return out
}

// TestExperiments plays every lesson and compares each sentence with the golden
// files, which are worth reading: they are what a learner reads.
func TestExperiments(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Experiments() {
		t.Run(e.Name, func(t *testing.T) {
			if seen[e.Name] || e.Title == "" || e.Text == "" || !wellNamed.MatchString(e.Name) {
				t.Errorf("the lesson has no name of its own, no title or no text: %+v", e)
			}
			seen[e.Name] = true
			var b strings.Builder
			fmt.Fprintf(&b, "%s\n\n> %s\n", e.Title, play(t, e.Lines, 0).Device.Line)
			steps := play(t, e.Lines, End).Steps
			chapter := ""
			for i := range steps {
				m := &play(t, e.Lines, i+1).Moment
				s := steps[i]
				if s.Chapter != chapter {
					fmt.Fprintf(&b, "\n# %s\n", s.Chapter)
					chapter = s.Chapter
				}
				fmt.Fprintf(&b, "> %s\n", s.Text)
				// Of the rounds of the warm-up the first and the last are enough.
				if !strings.HasPrefix(chapter, "round ") || chapter == "round 1" || chapter == "round 12" {
					for _, line := range told(m) {
						fmt.Fprintln(&b, "  "+line)
					}
				}
				if i+1 == len(steps) || steps[i+1].Chapter != chapter {
					fmt.Fprintf(&b, "reserved %d, allocated %d, free %d in %d, largest %d, stranded %d; hits %d of %d, here %d of %d; driver %d and %d calls; %d failures\n",
						m.ReservedBytes, m.AllocatedBytes, m.FreeBytes, m.FreeBlocks, m.LargestFreeBytes, m.StrandedBytes,
						m.Hits, m.Requests, m.ChapterHits, m.ChapterRequests, m.DriverAllocs, m.DriverFrees, m.OOMs)
				}
			}
			golden(t, e.Name, b.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-golden +now), go test ./playground -update rewrites it:\n%s", file, d)
	}
}

// After every step of every lesson the state adds up, and the marks agree with
// the events, which come from the engine by another way.
func TestStates(t *testing.T) {
	for _, e := range Experiments() {
		steps := play(t, e.Lines, End).Steps
		hits := 0
		for i := range steps {
			if len(steps) > 100 && i%7 > 0 && i < len(steps)-30 {
				if steps[i].Outcome == OutcomeHit {
					hits++
				}
				continue
			}
			a := play(t, e.Lines, i+1)
			m, s := &a.Moment, &a.Steps[i]
			outcome := ""
			if strings.HasPrefix(s.Text, "alloc ") {
				all := strings.Join(m.Events, "\n")
				switch {
				case strings.Contains(all, "oom "):
					outcome = OutcomeOOM
				case strings.Contains(all, "segment_alloc ") || strings.Contains(all, "segment_map "):
					outcome = OutcomeNew
				default:
					outcome = OutcomeHit
					hits++
				}
			}
			if s.Outcome != outcome || m.Hits != hits {
				t.Errorf("%s, %s: outcome %q and %d hits, by the events %q and %d", e.Name, s.Text, s.Outcome, m.Hits, outcome, hits)
			}
			if problem := addsUp(m); problem != "" {
				t.Errorf("%s after %s: %s", e.Name, s.Text, problem)
			}
			if s.ReservedBytes != m.ReservedBytes || s.AllocatedBytes != m.AllocatedBytes || len(m.Sentences) == 0 {
				t.Errorf("%s after %s: %+v, but the moment has %d, %d and says %q", e.Name, s.Text, s, m.ReservedBytes, m.AllocatedBytes, told(m))
			}
		}
	}
}

// addsUp says what does not.
func addsUp(m *Moment) string {
	var mapped, free, inUse, pending uint64
	for _, s := range m.Segments {
		at := int64(0)
		for _, b := range s.Blocks {
			if b[0] != at || b[1] <= 0 {
				return fmt.Sprintf("segment %s has a gap at %d: %v", s.Name, at, s.Blocks)
			}
			at += b[1]
			switch b[2] {
			case stateFree:
				free += uint64(b[1])
			case stateAllocated:
				inUse += uint64(b[1])
			case statePending:
				pending += uint64(b[1])
			}
			if b[2] == stateAllocated || b[2] == statePending {
				if block := m.Blocks[b[3]]; block.Name == "" || block.Segment != s.Name || block.Offset != uint64(b[0]) {
					return fmt.Sprintf("the block at %s+%d is called %+v", s.Name, b[0], block)
				}
			}
		}
		if uint64(at) != s.Span {
			return fmt.Sprintf("segment %s has a span of %d and blocks up to %d", s.Name, s.Span, at)
		}
		mapped += s.Size
	}
	if mapped != m.ReservedBytes || free != m.FreeBytes || inUse != m.AllocatedBytes || pending != m.PendingBytes ||
		free+inUse+pending != mapped || m.ReleasableBytes > free {
		return fmt.Sprintf("segments hold %d: %d free, %d in use, %d pending, but the sums are %+v", mapped, free, inUse, pending, m)
	}
	return ""
}

// The warm-up: from the second round on the cache serves everything.
func TestWarmUp(t *testing.T) {
	e := Experiments()[slices.IndexFunc(Experiments(), func(e Experiment) bool { return e.Name == "warm-up" })]
	end := play(t, e.Lines, End)
	if m := end.Moment; float64(m.Hits) < 0.95*float64(m.Requests) || m.ChapterHits != m.ChapterRequests || m.ChapterRequests != 10 {
		t.Errorf("at the end %d of %d requests are hits, in the last round %d of %d", m.Hits, m.Requests, m.ChapterHits, m.ChapterRequests)
	}
	round := map[string][2]int{}
	for _, s := range end.Steps {
		r := round[s.Chapter]
		switch s.Outcome {
		case OutcomeHit:
			r[0]++
			r[1]++
		case OutcomeNew:
			r[1]++
		}
		round[s.Chapter] = r
	}
	for chapter, r := range round {
		if cold := chapter == "weights" || chapter == "round 1"; cold == (r[0] == r[1]) {
			t.Errorf("%s: %d of %d", chapter, r[0], r[1])
		}
	}
}

// Steps that a person does by hand, and what they are told.
func TestByHand(t *testing.T) {
	for _, test := range []struct {
		name, script string
		want         []string // of the last step
	}{
		{
			"a device that is full", "device total=32MiB\nalloc a 24MiB\nalloc b 12MiB",
			[]string{
				"Rounding: none: 12.00 MiB is a multiple of 512 B.",
				"Pool: 12.00 MiB > 1.00 MiB, so the large pool; in it only free blocks of stream 0 are looked at.",
				"No fit: the large pool of stream 0 has no free block.",
				"Segment size: 12.00 MiB ≥ 10.00 MiB, so a segment of its own, a multiple of 2.00 MiB: 12.00 MiB.",
				"Driver: cudaMalloc of 12.00 MiB is refused: 8.00 MiB of the device's 32.00 MiB are left.",
				"Release: as a last resort all cached memory that can go is given back, and the driver is asked once more.",
				"Driver: cudaMalloc of 12.00 MiB is refused: 8.00 MiB of the device's 32.00 MiB are left.",
				"Out of memory: nothing gives 12.00 MiB in one piece; all that is reserved is in use.",
			},
		},
		{
			"a release waits for streams", "device total=64MiB limit=40MiB events=manual\nalloc a 12MiB\nalloc b 20MiB\nalloc w 2MiB stream=1\nrecord a 3\nfree a\nalloc c 12MiB",
			[]string{
				"Event: the work of stream 3 is not done: a, 12.00 MiB at the start of A, stays pending.",
				"Rounding: none: 12.00 MiB is a multiple of 512 B.",
				"Pool: 12.00 MiB > 1.00 MiB, so the large pool; in it only free blocks of stream 0 are looked at.",
				"No fit: the large pool of stream 0 has no free block.",
				"Segment size: 12.00 MiB ≥ 10.00 MiB, so a segment of its own, a multiple of 2.00 MiB: 12.00 MiB.",
				"Limit: 32.00 MiB are reserved; with 12.00 MiB more it would be 44.00 MiB, above the limit of 40.00 MiB: refused.",
				"Release: as a last resort all cached memory that can go is given back, and the driver is asked once more.",
				"Event: the other streams are past the free: a, 12.00 MiB at the start of A, returns to its pool.",
				"Free: a, 12.00 MiB at the start of A, is free again in the large pool of stream 0. The driver gets nothing back.",
				"Merge: it is the whole of segment A, there is nothing to merge with.",
				"Given back: segment A (12.00 MiB) goes back to the driver (cudaFree).",
				"New segment: the driver gives 12.00 MiB: segment C (cudaMalloc).",
				"No split: the block has just the size that is needed.",
				"Handed out: c is 12.00 MiB at the start of C.",
			},
		},
		{
			"not searched again", "device total=64MiB limit=20MiB events=manual\nalloc a 9MiB\nalloc b 4MiB\nrecord a 3\nfree a\nalloc c 9MiB",
			[]string{
				"Event: the work of stream 3 is not done: a, 9.00 MiB at the start of A, stays pending.",
				"Rounding: none: 9.00 MiB is a multiple of 512 B.",
				"Pool: 9.00 MiB > 1.00 MiB, so the large pool; in it only free blocks of stream 0 are looked at.",
				"No fit: the only free block of the large pool of stream 0 has 7.00 MiB, too small for 9.00 MiB.",
				"Segment size: 9.00 MiB < 10.00 MiB, so a segment of 20.00 MiB, which others can share (large_segment_size_mb).",
				"Limit: 20.00 MiB are reserved; with 20.00 MiB more it would be 40.00 MiB, above the limit of 20.00 MiB: refused.",
				"Release: as a last resort all cached memory that can go is given back, and the driver is asked once more.",
				"Event: the other streams are past the free: a, 9.00 MiB at the start of A, returns to its pool.",
				"Free: a, 9.00 MiB at the start of A, is free again in the large pool of stream 0. The driver gets nothing back.",
				"Merge: none: no neighbour is free, so a hole of 9.00 MiB is left.",
				"Stranded: 2 free blocks, 16.00 MiB in all, stay: blocks in use are in the same segment.",
				"Limit: 20.00 MiB are reserved; with 20.00 MiB more it would be 40.00 MiB, above the limit of 20.00 MiB: refused.",
				"Out of memory: no more memory can be had; 16.00 MiB of the reserved 20.00 MiB are free.",
				"No second search: a block that would fit is free now, but PyTorch does not search again after a release.",
			},
		},
		{
			"what was not allocated", "device limit=10MiB\nalloc a 30MiB\nfree a",
			[]string{"Nothing happens: a was not allocated, so there is nothing to do."},
		},
		{
			"a lower limit", "alloc a 30MiB\nlimit 10MiB",
			[]string{"Limit: from here on at most 10.00 MiB may be reserved; 30.00 MiB are reserved, which stay, but no more is given."},
		},
		{
			"settings that are wrong", "set max_split_size_mb:30,expandable_segments:maybe",
			[]string{`Settings: allocator setting "expandable_segments": "maybe" is not allowed; allowed: True or False. What was read before that holds: max_split_size_mb:30.`},
		},
		{
			"the defaults again", "device conf=expandable_segments:True\nset expandable_segments:False",
			[]string{"Settings: from here on the defaults. What is reserved keeps its shape; only what comes is treated differently."},
		},
		{"nothing to release", "empty", []string{"Release: empty_cache waits for all streams and gives back what is free as a whole: segments, and granules of expandable ones.", "Nothing happens: no memory goes back to the driver."}},
		{
			"bytes where units do not tell them apart", "alloc a 4000000",
			[]string{
				"Rounding: 4,000,000 bytes up to 4,000,256 bytes, the next multiple of 512 B.",
				"Pool: 3.81 MiB > 1.00 MiB, so the large pool; in it only free blocks of stream 0 are looked at.",
				"No fit: the large pool of stream 0 has no free block.",
				"Segment size: 3.81 MiB < 10.00 MiB, so a segment of 20.00 MiB, which others can share (large_segment_size_mb).",
				"New segment: the driver gives 20.00 MiB: segment A (cudaMalloc).",
				"Split: remainder 16.19 MiB > 1.00 MiB, so it is split; the rest stays free.",
				"Handed out: a is 3.81 MiB at the start of A.",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := play(t, split(test.script), End)
			if d := cmp.Diff(test.want, told(&a.Moment)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// Before the first step there is a device and nothing else.
func TestBegin(t *testing.T) {
	a := play(t, split("# nothing yet\nalloc a 1MiB\nalloc b 2MiB"), 0)
	if a.At != 0 || len(a.Steps) != 2 || a.Moment.ReservedBytes != 0 || len(a.Moment.Sentences) != 0 || a.Moment.NextName != "c" {
		t.Errorf("%+v", a)
	}
	if a.Device.Line != DefaultDevice || a.Device.TotalBytes != 512<<20 || a.Device.LimitBytes != nil || a.Device.Settings != "" {
		t.Errorf("the device is %+v", a.Device)
	}
	if _, err := json.Marshal(a); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	long := strings.Repeat("x", MaxLength)
	many := slices.Repeat([]string{"empty"}, MaxLines+1)
	for _, test := range []struct {
		lines []string
		want  string
	}{
		{many, "the experiment has 2,001 lines: at most 2,000 can be played"},
		{[]string{"# " + long}, "line 1, \"# " + long[:58] + "...\": it is longer than 400 bytes"},
		{split("alloc"), `line 1, "alloc": write alloc NAME SIZE [stream=N] [tenant=NAME]`},
		{split("alloc a 0"), `line 1, "alloc a 0": 0 is outside the bounds: 1 byte to 1024.00 GiB`},
		{split("alloc a 2TiB"), `line 1, "alloc a 2TiB": 2TiB is outside the bounds: 1 byte to 1024.00 GiB`},
		{split("alloc a -1"), `line 1, "alloc a -1": size "-1": it is negative; write for example 80GiB, 80GB (powers of ten), 512M, 1.5GiB or a number of bytes`},
		{split("alloc 1a 5"), `line 1, "alloc 1a 5": "1a" is no name: a letter, then up to 23 letters, digits, _ . or -`},
		{split("alloc a 5 stream=64"), `line 1, "alloc a 5 stream=64": "64" is no stream: write a number from 0 to 63`},
		{split("alloc a 5 stream=010"), `line 1, "alloc a 5 stream=010": "010" is no stream: write a number from 0 to 63`},
		{split("alloc a 5 thread=1"), `line 1, "alloc a 5 thread=1": "thread=1" is too much: write alloc NAME SIZE [stream=N] [tenant=NAME]`},
		{split("alloc a 5\nalloc a 6"), `line 2, "alloc a 6": a is allocated already: free it first, or choose another name`},
		{split("# x\nfree a"), `line 2, "free a": a is not allocated at this step`},
		{split("record a 1"), `line 1, "record a 1": a is not allocated at this step`},
		{split("fail malloc 1"), `line 1, "fail malloc 1": there is no step "fail": the steps are alloc, begin, close, complete, empty, end, free, limit, pool, record, set, tenant`},
		{split("empty\ndevice"), `line 2, "device": there is one device, and it comes before all steps`},
		{split("device total=1"), `line 1, "device total=1": the device has 1 B: it can have from 2.00 MiB to 1024.00 GiB`},
		{split("device conf=backend:cudaMallocAsync"), `line 1, "device conf=backend:cudaMallocAsync": the playground has PyTorch's own allocator only, not that of the driver`},
		{split("device colour=red"), `line 1, "device colour=red": "colour=red" is not known: a device has total=SIZE, limit=SIZE, conf=SETTINGS, events=manual`},
		{split("device events=soon"), `line 1, "device events=soon": events=soon is not known: write events=manual, or nothing for work that is done at once`},
		{split("empty; empty"), `line 1, "empty; empty": a semicolon separates lines in a link: leave it out`},
		{[]string{"empty \x01"}, "line 1, \"empty \\x01\": it has characters that are no text"},
	} {
		_, err := Play(t.Context(), test.lines, End)
		if err == nil || err.Error() != test.want {
			t.Errorf("got  %v\nwant %s", err, test.want)
		}
	}
	if _, err := Play(t.Context(), split("empty"), 2); err == nil {
		t.Error("a step that is not there is shown")
	}
}

// The largest experiments are played while somebody waits: the work grows with
// the lines, not with their square.
func TestLargest(t *testing.T) {
	experiment := func(n int) (l lines) {
		l.add("device total=1TiB limit=500GiB conf=garbage_collection_threshold:0.1,max_split_size_mb:30")
		for i := len(l); i < n*2/3; i++ {
			l.add("alloc b%d %dKiB stream=%d", i, 1+i*37%60000, i%4)
		}
		for i := 1; len(l) < n; i++ {
			l.add("free b%d", i)
		}
		return l
	}
	few, all := experiment(MaxLines/4), experiment(MaxLines)
	var a *Answer
	less := cost.Bytes(func() { play(t, few, End) })
	if more := cost.Bytes(func() { a = play(t, all, End) }); more > 8*less {
		t.Errorf("%d lines allocate %d bytes, %d lines %d", len(few), less, len(all), more)
	}
	if problem := addsUp(&a.Moment); problem != "" {
		t.Error(problem)
	}
	if out, err := json.Marshal(a); err != nil || len(out) > 2<<20 {
		t.Errorf("the answer has %d bytes, %v", len(out), err)
	}
}

// FuzzPlay: whatever the lines are, they are played or refused.
func FuzzPlay(f *testing.F) {
	for _, e := range Experiments() {
		if len(e.Lines) < 60 {
			f.Add(strings.Join(e.Lines, "\n"), 5)
		}
	}
	f.Add("alloc a 4MiB\nalloc b 1TiB stream=3\nrecord a 2\nfree a\nset expandable_segments:True\nalloc c 30MiB\ncomplete all\nempty\nlimit 3MiB", 9)
	f.Add("device total=3MiB conf=per_process_memory_fraction:0.1\nalloc a 1\nset \xff", 1)
	f.Add("device total=64MiB conf=large_segment_size_mb:33,expandable_segments:True\nalloc a 5MiB", 1)
	f.Fuzz(func(t *testing.T, text string, at int) {
		a, err := Play(t.Context(), strings.Split(text, "\n"), at)
		if err != nil {
			return
		}
		if problem := addsUp(&a.Moment); problem != "" {
			t.Error(problem)
		}
		if _, err := json.Marshal(a); err != nil {
			t.Error(err)
		}
	})
}

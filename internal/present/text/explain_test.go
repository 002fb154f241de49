package text

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot/message"
)

func ptr[T any](v T) *T { return &v }

func framesOf(n int) ([]timeline.Frame, timeline.Site) {
	inner := timeline.Frame{Name: "forward", Filename: fmt.Sprintf("/venv/lib/python3.12/site-packages/model/layer_with_a_long_name_%d.py", n), Line: 12}
	user := timeline.Frame{Name: "train_one_epoch", Filename: "/home/me/project/training/train_the_model.py", Line: int64(n)}
	return []timeline.Frame{inner, {Name: "_call_impl", Filename: "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", Line: 1790}, user},
		timeline.Site{Inner: inner, User: user, HasUser: true}
}

// large returns a report of which every list is long.
func large() *explain.Report {
	long := strings.Repeat("many words of an explanation that has to be wrapped ", 5)
	r := &explain.Report{
		Cause: explain.Fragmentation, CauseConfidence: explain.Open, CauseText: "No free piece holds the request", Where: "train.py:40 loss",
		Trigger: explain.Fragmentation, Confidence: explain.Open, Capped: true, Summary: "A request failed. " + long,
		Limit:     explain.Limit{Min: ptr(uint64(6 << 30)), Max: ptr(uint64(7 << 30)), Source: "inferred"},
		SelfCheck: &whatif.SelfCheck{Events: 9, Identical: 9, Note: "the model reproduces 9 of 9 recorded events"},
		Failure:   &explain.Failure{Moment: timeline.Moment{Event: ptr(8), Since: ptr(int64(1500000)), Step: ptr(3)}},
		Evidence: explain.Evidence{
			Live: ptr(uint64(5 << 30)), Request: ptr(uint64(1 << 30)), Rounded: ptr(uint64(1<<30 + 512)), Segment: ptr(uint64(1<<30 + 2<<20)),
			Free: ptr(uint64(1 << 29)), LargestFree: ptr(uint64(1 << 28)), FreeUsable: ptr(uint64(1 << 28)), LargestUsable: ptr(uint64(1 << 27)),
			FreePools: ptr(uint64(1 << 20)), Pending: ptr(uint64(1 << 20)), Reserved: ptr(uint64(6 << 30)), Available: ptr(uint64(7 << 30)), External: ptr(uint64(1 << 30)),
		},
	}
	r.Failure.Frames, r.Failure.Site = framesOf(1)
	for i := range 30 {
		b := explain.Block{Bytes: 1 << 20, Count: 3}
		b.Frames, b.Site = framesOf(i)
		var blocks []explain.Block
		for range 5 {
			blocks = append(blocks, b)
		}
		r.Pinners = append(r.Pinners, explain.Segment{Size: 20 << 20, Stuck: 15 << 20, Live: 5 << 20, Count: 15, Blocks: blocks})
		r.Holders = append(r.Holders, explain.Holder{Bytes: 1 << 20, Blocks: 2, Frames: b.Frames, Site: b.Site})
		r.ByLine = append(r.ByLine, explain.LineHolder{Bytes: 1 << 20, Blocks: 2, Line: b.Site.User})
		r.ByKind = append(r.ByKind, explain.CategoryHolder{Bytes: 1 << 20, Category: "optimizer_state", Confidence: "likely"})
		r.Findings = append(r.Findings, explain.Finding{Kind: explain.Leak, Confidence: "likely", Detail: long, Parts: blocks})
		r.Alternatives = append(r.Alternatives, explain.Alternative{Verdict: explain.Capacity, When: "if " + long})
		r.Notes = append(r.Notes, fmt.Sprintf("note %d: %s", i, long))
		r.Fixes = append(r.Fixes, explain.Fix{
			Kind: explain.FixSetting, Export: fmt.Sprintf("export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:%d", i), Detail: "the request is served", SmallestLimit: ptr(uint64(6 << 30)), DriverMS: ptr(12.0),
		})
	}
	r.Fixes = append(r.Fixes, explain.Fix{Kind: explain.FixMemory, Detail: "a higher limit: " + long})
	return r
}

func explained(t *testing.T, r *explain.Report, o ExplainOptions) string {
	t.Helper()
	return explainedOn(t, 0, r, o)
}

// explainedOn is explained on a terminal of so many columns.
func explainedOn(t *testing.T, columns int, r *explain.Report, o ExplainOptions) string {
	t.Helper()
	style := Style{Width: columns}
	var b bytes.Buffer
	if err := Explain(&b, ExplainHead{Name: "file.pickle", About: "device 0; 9 events"}, r, o, style); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(b.String(), "\n") {
		if width(line) > style.columns() && !strings.Contains(line, "export ") && !o.Frames {
			t.Errorf("line %d is %d wide: %s", i+1, width(line), line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends in a blank: %q", i+1, line)
		}
	}
	return b.String()
}

// However long the lists are, an explanation is read at a glance: 25 lines, in a
// fixed order, and it says what it leaves out.
func TestExplainFits(t *testing.T) {
	for _, columns := range []int{0, 80, 120, 200} {
		text := explainedOn(t, columns, large(), ExplainOptions{})
		if n := strings.Count(text, "\n"); n > explainLines || n < 20 {
			t.Errorf("%d lines:\n%s", n, text)
		}
		text = strings.Join(strings.Fields(text), " ")
		order := []string{
			"file.pickle: device 0; 9 events Cause: fragmentation (open), in train.py:40 loss, under a limit No free piece holds the request. ",
			"Try this first: export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:0 the request is served Why at event 8, 1.500 s, step 3 ",
			"5.00 GiB allocated + 1.00 GiB request = 6.00 GiB; 7.00 GiB available: the limit, inferred: 6.00 GiB to 7.00 GiB",
			"What else it could be", "Who holds the memory when it failed optimizer state 1.00 MiB (likely)", "How far to trust it: the model reproduces 9 of 9",
			"Not shown: 29 other causes, ", "--full shows all.",
		}
		at := 0
		for _, want := range order {
			i := strings.Index(text[at:], want)
			if i < 0 {
				t.Fatalf("%d columns: no %q after byte %d in\n%s", columns, want, at, text)
			}
			at += i
		}
		if strings.Contains(text, "module.py") || strings.Contains(text, "/venv") {
			t.Errorf("frames of libraries are not folded:\n%s", text)
		}
	}
}

// Where there is room, the other fixes and what was found besides come last.
func TestExplainOrder(t *testing.T) {
	r := large()
	r.Alternatives, r.ByLine, r.ByKind, r.Findings, r.Fixes = nil, r.ByLine[:1], r.ByKind[:1], r.Findings[:1], r.Fixes[:2]
	r.Findings[0].Detail, r.Limit.Source, r.Evidence.LargestUsable = "20.00 MiB a step", "given", r.Evidence.LargestFree
	r.Fixes = append(r.Fixes, explain.Fix{Kind: explain.FixMemory, Detail: "a higher limit, 8.00 GiB or more"})
	r.Fixes[1] = explain.Fix{Kind: explain.FixDetach, Code: "losses.append(loss.item())   # a number", Detail: "keep numbers"}
	text := explained(t, r, ExplainOptions{})
	want := "\nOr\n  2. losses.append(loss.item())   # a number\n     keep numbers\n  3. a higher limit, 8.00 GiB or more\n\n" +
		"Found besides\n  - leak (likely): 20.00 MiB a step\n      1.00 MiB     3x  layer_with"
	if !strings.Contains(text, want) || strings.Count(text, "\n") > explainLines {
		t.Errorf("no %q in\n%s", want, text)
	}
	// Under the cause a finding of the same kind says nothing new.
	r.Cause = explain.Leak
	if text := explained(t, r, ExplainOptions{}); strings.Contains(text, "Found besides") {
		t.Error(text)
	}
}

// What to type is never broken: it goes on a line of its own, without its
// comment if need be.
func TestExplainCode(t *testing.T) {
	r := large()
	r.Fixes = r.Fixes[:1]
	f := &r.Fixes[0]
	for _, tt := range []struct {
		export, code, want string
		columns            int
	}{
		{"", "x.item()   # a number", "Try this first: x.item()   # a number\n", 80},
		{"", "x.item()   # " + strings.Repeat("long ", 20), "Try this first: x.item()\n", 80},
		{"", strings.Repeat("x", 70) + "   # a number", "Try this first:\n  " + strings.Repeat("x", 70) + "\n", 80},
		{"export PYTORCH_CUDA_ALLOC_CONF=" + strings.Repeat("x", 50), "", "Try this first:\n  export PYTORCH_CUDA_ALLOC_CONF=" + strings.Repeat("x", 50) + "\n", 90},
		{"", "", "Try this first: the request is served\n", 80},
	} {
		f.Export, f.Code = tt.export, tt.code
		if text := explainedOn(t, tt.columns, r, ExplainOptions{}); !strings.Contains(text, tt.want) {
			t.Errorf("no %q in\n%s", tt.want, text)
		}
	}
}

// A replay that parts from the file says so before the cause.
func TestExplainParts(t *testing.T) {
	r := large()
	r.SelfCheck = &whatif.SelfCheck{Events: 9000, Identical: 1234, Note: "they diverge"}
	if text := explained(t, r, ExplainOptions{}); !strings.Contains(text, "events\nTrust this less: the replay parts from the file at event 1,234 of 9,000\nCause: ") {
		t.Error(text)
	}
}

// Settings that are not in force stand right below the first fix, however much
// else there is.
func TestExplainIgnored(t *testing.T) {
	r := large()
	r.Findings = append(r.Findings, explain.Finding{Kind: explain.Ignored, Confidence: "certain", Detail: "max_split_size_mb:128 is not what the file says"})
	text := explained(t, r, ExplainOptions{})
	at := strings.Index(text, "\nSettings that are not in force\n  - max_split_size_mb:128 is not")
	if at < strings.Index(text, "\nTry this first: ") || at > strings.Index(text, "\nWhy at") || strings.Count(text, "\n") > explainLines {
		t.Error(text)
	}
}

// On a narrow terminal the lines are shorter. On a wide one places are longer, and
// sentences only up to where they are read well.
func TestExplainWidth(t *testing.T) {
	r := large()
	for i := range r.ByLine {
		r.ByLine[i].Line.Name = strings.Repeat("x", 120)
	}
	narrow, wide := explainedOn(t, 60, r, ExplainOptions{}), explainedOn(t, 300, r, ExplainOptions{})
	if place := strings.Repeat("x", 120) + "\n"; !strings.Contains(wide, place) || strings.Contains(narrow, place) {
		t.Errorf("%s\n%s", wide, narrow)
	}
	for line := range strings.Lines(wide) {
		if width(line) > longestLine+1 && !strings.Contains(line, "xxx") {
			t.Errorf("%d wide: %s", width(line), line)
		}
	}
	if full := explainedOn(t, 80, r, ExplainOptions{Full: true}); !strings.Contains(full, "\nTrigger: ") {
		t.Error(full)
	}
	if !strings.Contains(narrow, "\nCause: fragmentation (open), in train.py:40 loss, under a\nlimit\n") || strings.Contains(narrow, "\n\n\n") || strings.Contains(narrow, "be\n\n") {
		t.Error(narrow)
	}
}

// What is not reserved is the most it can be where the limit is a range; a need
// is never written too small.
func TestExplainBounds(t *testing.T) {
	r := large()
	r.Evidence.Available, r.Limit.Max = ptr(uint64(7<<30+2<<20-1)), ptr(uint64(7<<30+2<<20-1))
	r.Fixes[0].SmallestLimit = ptr(uint64(6<<30 + 1))
	text := strings.Join(strings.Fields(explained(t, r, ExplainOptions{Full: true})), " ")
	for _, want := range []string{
		"1.00 GiB not reserved yet, if the limit was at the upper end of its range: just too little for a new segment of 1.00 GiB",
		"needs a limit of 6.01 GiB",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// The messages of measured runs are explained on a page, with what to do among the
// first six lines.
func TestExplainMessages(t *testing.T) {
	type died struct{ OOM string }
	n := 0
	for _, run := range jsonl.Must[died](t, "../../../testdata/measured.jsonl") {
		if run.OOM == "" {
			continue
		}
		n++
		all, err := message.Parse(run.OOM)
		if err != nil {
			t.Fatal(err)
		}
		r, err := explain.FromText(explain.Input{Message: all[0]})
		if err != nil {
			t.Fatal(err)
		}
		text := explained(t, r, ExplainOptions{})
		if n := strings.Count(text, "\n"); n > explainLines || !strings.Contains(firstLines(text, 6), "\nTry this first: ") {
			t.Errorf("%d lines:\n%s", n, text)
		}
	}
	if n != 45 {
		t.Errorf("%d messages", n)
	}
}

// --full leaves nothing out, --frames all shows all frames.
func TestExplainFull(t *testing.T) {
	r := large()
	text := explained(t, r, ExplainOptions{Full: true})
	for i := range r.Notes {
		for _, want := range []string{fmt.Sprintf("note %d: ", i), fmt.Sprintf("max_split_size_mb:%d\n", i), fmt.Sprintf("train_the_model.py:%d train", i)} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q", want)
			}
		}
	}
	if !strings.Contains(text, "\nTrigger: fragmentation (open) at event 8, ") {
		t.Error("no trigger")
	}
	if n := len(regexp.MustCompile(`(?m)pinned by`).FindAllString(text, -1)); n != len(r.Pinners) || strings.Contains(text, "Not shown") {
		t.Errorf("%d segments", n)
	}
	text = explained(t, r, ExplainOptions{Frames: true})
	if !strings.Contains(text, "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py:1790 _call_impl\n") || strings.Contains(text, "Not shown") {
		t.Errorf("no frames:\n%s", text)
	}
}

// A report on a text has its arithmetic and the lines to record; one of a
// healthy run its health.
func TestExplainKinds(t *testing.T) {
	r := &explain.Report{
		Cause: explain.Open, CauseConfidence: explain.Open, Trigger: explain.Unknown, Confidence: explain.Open, Summary: "It failed.", Arithmetic: []string{"1.00 GiB a + 1.00 GiB b = 2.00 GiB c"},
		Alternatives: []explain.Alternative{{Verdict: explain.External, When: "if others hold it"}}, Record: []string{"import ashlar"},
	}
	text := explained(t, r, ExplainOptions{})
	want := "file.pickle: device 0; 9 events\nCause: not known\n  It failed.\n\n" +
		"Why\n  1.00 GiB a + 1.00 GiB b = 2.00 GiB c\n\nWhat it could be\n  - outside, if others hold it\n\n" +
		"To know more next time, record a snapshot and explain that\n    import ashlar\n"
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	r = &explain.Report{Cause: explain.None, CauseConfidence: explain.Certain, Trigger: explain.None, Confidence: explain.Certain, Summary: "Nothing failed.", Health: &explain.Health{
		PeakReserved: 2 << 30, PeakAllocated: 1 << 30, Fragmentation: ptr(0.5), Headroom: ptr(uint64(3 << 30)), Retries: 1234, Growth: ptr(int64(-5 << 20)),
		RetriedFor: []explain.Retry{{Count: 1000, Request: 1 << 20, Free: 3 << 20, LargestFree: 1 << 19}},
		EmptyCache: &explain.EmptyCacheCalls{Calls: 12, Steps: 6, PeakReservedWithout: 3 << 30, DriverMSWithout: 5},
		Releasable: ptr(uint64(1 << 20)), DriverMS: ptr(125.0),
	}}
	for i, conf := range []string{"expandable_segments:True", "max_split_size_mb:128", "max_split_size_mb:512"} {
		r.Health.Smaller = append(r.Health.Smaller, explain.Smaller{Settings: conf, Export: "export " + conf, PeakReserved: 1<<30 + uint64(i)<<20, Saved: 1<<30 - uint64(i)<<20})
	}
	text = explained(t, r, ExplainOptions{})
	for _, want := range []string{
		"Cause: none (certain)\n  Nothing failed.\n", "2.00 GiB  peak reserved, for 1.00 GiB peak allocated: fragmentation 50.0 %\n", "3.00 GiB  left under the limit\n",
		"1,234  retries, most for 1.00 MiB: 3.00 MiB was free, in blocks of up to 512.00 KiB\n", "-5.00 MiB  change of allocated",
		"12  empty_cache() calls in steps cost ~120 ms; without: +1.00 GiB peak reserved\n",
		"\nCould be smaller: ", "1.00 GiB  50 % less: export expandable_segments:True\n", "Not shown: 1 number, 2 smaller settings; --full shows all",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text := explained(t, r, ExplainOptions{Full: true}); !strings.Contains(text, "1.00 MiB  would be released by empty_cache()") || !strings.Contains(text, "1.00 GiB  50 % less: export max_split_size_mb:512\n") {
		t.Errorf("not all of it:\n%s", text)
	}
	for _, tt := range []struct {
		calls explain.EmptyCacheCalls
		want  string
	}{
		{explain.EmptyCacheCalls{Calls: 1, Steps: 1, PeakReservedWithout: 2 << 30, DriverMSWithout: 125}, "1  empty_cache() call in steps; without: the same peak reserved\n"},
		{explain.EmptyCacheCalls{Calls: 2, Steps: 1, FailsWithout: true}, "2  empty_cache() calls in steps cost ~125 ms; without: a request fails\n"},
	} {
		r.Health.EmptyCache = &tt.calls
		if text := explained(t, r, ExplainOptions{}); !strings.Contains(text, tt.want) {
			t.Errorf("no %q in\n%s", tt.want, text)
		}
	}
	r.CauseText, r.Where = "Nothing failed yet, but every step leaves 20.00 MiB behind", "train.py:7 <module>"
	if text := explained(t, r, ExplainOptions{}); !strings.Contains(text, "\nCause: none (certain), but a leak, in train.py:7 <module>\n  Nothing failed yet, but ") {
		t.Error(text)
	}
	r.CauseConfidence, r.CauseText = explain.Open, ""
	if _, means := CauseName(r); means != "no failed request is known" {
		t.Error(means)
	}
}

// Every cause has words, and with its line fits on a line.
func TestCauseLine(t *testing.T) {
	for _, cause := range []string{
		explain.Leak, explain.Spike, explain.Capacity, explain.Fragmentation, explain.Stranded, explain.SharedDevice, explain.AbsurdRequest, explain.Open, explain.None,
	} {
		r := &explain.Report{Cause: cause, CauseConfidence: explain.Certain, Capped: true, Where: "train.py:40 loss"}
		line := causeLine(r)
		_, means := CauseName(r)
		if means == "" || width(line) > pageWidth || !strings.Contains(line, ", in train.py:40 loss") || strings.Contains(line, "_") {
			t.Errorf("%s: %s: %s", cause, line, means)
		}
	}
}

// Text of a file cannot drive the terminal.
func TestExplainHostile(t *testing.T) {
	r := large()
	bad := "\x1b[2J\x07bad\u202e"
	r.Summary, r.Notes[0], r.Alternatives[0].When, r.Findings[0].Detail, r.Fixes[0].Export = bad, bad, bad, bad, bad
	r.Cause, r.CauseText, r.Where, r.Fixes[0].Detail, r.Fixes[1].Export, r.Fixes[1].Code = bad, bad, bad, bad, "", bad
	for i := range r.Pinners[0].Blocks {
		r.Pinners[0].Blocks[i].Site.Inner.Name = bad
	}
	r.ByLine[0].Line.Name, r.ByKind[0].Category = bad, bad
	for i := range r.Failure.Frames {
		r.Failure.Frames[i].Filename = bad
	}
	for _, o := range []ExplainOptions{{}, {Full: true, Frames: true}} {
		var b bytes.Buffer
		if err := Explain(&b, ExplainHead{Name: bad, About: bad}, r, o, Style{}); err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc([]rune(b.String()), func(c rune) bool { return c < ' ' && c != '\n' || c == '\u202e' }); i >= 0 {
			t.Errorf("byte %d: %q", i, b.String()[max(0, i-40):i+10])
		}
	}
}

// The cause has the colour of how bad it is.
func TestExplainColour(t *testing.T) {
	for _, tt := range []struct {
		cause, text, sure, want string
	}{
		{explain.Leak, "Every step leaves memory behind", explain.Certain, "\n\x1b[1;31mCause: leak (certain)\x1b[0m\n"},
		{explain.Open, "", explain.Open, "\n\x1b[1;31mCause: not known\x1b[0m\n"},
		{explain.None, "Every step leaves memory behind", explain.Certain, "\n\x1b[1;33mCause: none (certain), but a leak\x1b[0m\n"},
		{explain.None, "", explain.Open, "\n\x1b[1;33mCause: none (open)\x1b[0m\n"},
		{explain.None, "", explain.Certain, "\n\x1b[1;32mCause: none (certain)\x1b[0m\n"},
	} {
		var b strings.Builder
		r := &explain.Report{Cause: tt.cause, CauseText: tt.text, CauseConfidence: tt.sure}
		if err := Explain(&b, ExplainHead{Name: "f"}, r, ExplainOptions{}, Style{Bold: true}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), tt.want) {
			t.Errorf("no %q in %q", tt.want, b.String())
		}
	}
}

package text

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/check"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/snapshot"
)

func whatIfText(t *testing.T, path string, change func(*whatif.Question), confs ...string) string {
	t.Helper()
	f, err := snapshot.Open(t.Context(), path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := run.New(f.Traces[0], nil).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q := whatif.Question{Limit: whatif.LimitOf(c), Memory: whatif.MemoryOf(c)}
	for _, conf := range confs {
		s, err := whatif.ParseSetting(conf)
		if err != nil {
			t.Fatal(err)
		}
		q.Settings = append(q.Settings, s)
	}
	if change != nil {
		change(&q)
	}
	a, err := whatif.Ask(t.Context(), c, q)
	if err != nil {
		t.Fatal(err)
	}
	a.Interrupted, a.NotRun = true, []string{"never:asked"}
	var b strings.Builder
	if err := WhatIf(&b, WhatIfHead{Subject: answer.Subject{File: "file\x1b"}, Events: c.Events()}, a, Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Whatever a file is like, the answer fits on 80 columns.
func TestWhatIfFitsOn80Columns(t *testing.T) {
	few := func(q *whatif.Question) {
		n := uint64(64 << 20)
		q.Limit.Bound, q.SkipOOM = whatif.Bound{Bytes: &n, Source: whatif.Given}, true
	}
	for _, file := range []string{"variety/cppstacks", "variety/ring", "variety/graphs", "snapshots/unet_multires-tight-default", "snapshots/streams_graphs-tight-default"} {
		for _, change := range []func(*whatif.Question){nil, few} {
			text := whatIfText(t, "../../../testdata/"+file+".pickle.gz", change, "expandable_segments:True", "max_split_size_mb:64")
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if width(line) > 80 || strings.TrimRight(line, " ") != line || Clean(line) != line {
					t.Errorf("%s: %d wide: %q", file, width(line), line)
				}
			}
			for _, part := range []string{"the model reproduces", "limit: ", "device memory: ", "recorded: PyTorch's defaults\n", "\nmax_split_size_mb:64\n", "never:asked", "Every line replays"} {
				if !strings.Contains(text, part) {
					t.Errorf("%s: no %q in\n%s", file, part, text)
				}
			}
		}
	}
}

func TestWhatIfWords(t *testing.T) {
	const unet = "../../../testdata/snapshots/unet_multires-tight-default.pickle.gz"
	die := whatIfText(t, unet, nil, "", "expandable_segments:True")
	for _, part := range []string{
		"fails at 7,052, step 12 ", "What fails first\nrecorded: PyTorch's defaults\nPyTorch's defaults\n  event 7,052, step 12: a request for 1.54 GiB; reserved",
		"it also failed in the recording\n  at conv.py:548 _conv_forward < train.py:115 forward\n  this failure may be caught, by a convolution", "--on-oom skip leaves",
		"  passes                   9.77 GiB         -        0      41       0  ~24 ms\n", "Numbers of a run that fails", "The real limit may be lower",
	} {
		if !strings.Contains(die, part) {
			t.Errorf("no %q in\n%s", part, die)
		}
	}
	skip := whatIfText(t, unet, func(q *whatif.Question) { q.SkipOOM = true })
	if !strings.Contains(skip, "1 left out, event 7,052 ") || strings.Contains(skip, "--on-oom skip") {
		t.Error(skip)
	}
	off := whatIfText(t, unet, func(q *whatif.Question) { q.Limit.Bound = whatif.Bound{Source: whatif.None} }, "expandable_segments:True")
	if !strings.Contains(off, "  passes                  9.77 GiB  -3.80 GiB        0") {
		t.Errorf("peaks of runs that pass are not compared:\n%s", off)
	}
	if !strings.Contains(off, "limit: none; the recording had one between 8.80 GiB and 9.98 GiB") || strings.Contains(off, "What fails first") {
		t.Error(off)
	}
}

func TestDriverTime(t *testing.T) {
	for ms, want := range map[float64]string{0: "~0 ms", 0.4: "~0 ms", 12.3: "~12 ms", 999: "~999 ms", 1234: "~1.2 s", 12345: "~12 s"} {
		if got := driverTime(ms); got != want {
			t.Errorf("%v: %q", ms, got)
		}
	}
}

func TestCheckText(t *testing.T) {
	yes, no := true, false
	report := &check.Report{
		Rules: []check.Result{
			{Rule: check.MaxReserved, ValueText: "1.00 GiB", BoundText: "at most 2.00 GiB", Passed: &yes, Detail: "1.00 GiB below"},
			{Rule: check.MaxFragmentation, ValueText: "9.00 %", BoundText: "at most 1.00 %", Passed: &no, Detail: "8.00 points above"},
			{Rule: check.Survives, ValueText: "unknown", BoundText: "under 1.00 GiB", Detail: "it has no events"},
		},
		Notes: []string{"mid-run"},
	}
	text := func() string {
		var b strings.Builder
		if err := Check(&b, &check.File{Name: "f"}, report, Style{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const rules = `f
  ok    max-reserved: 1.00 GiB, at most 2.00 GiB; 1.00 GiB below
  FAIL  max-fragmentation: 9.00 %, at most 1.00 %; 8.00 points above
`
	if got := text(); got != rules+"  ?     survives: unknown, under 1.00 GiB; it has no events\n  note: mid-run\n1 of 3 rules failed, 1 unknown from the file\n" {
		t.Error(got)
	}
	var coloured strings.Builder
	if err := Check(&coloured, &check.File{Name: "f"}, report, Style{Bold: true}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"\n  \x1b[1;32mok  \x1b[0m  max-reserved: ", "\n  \x1b[1;31mFAIL\x1b[0m  max-frag", "\n  \x1b[1;33m?   \x1b[0m  survives", "\x1b[1;31m1 of 3"} {
		if !strings.Contains(coloured.String(), part) {
			t.Errorf("no %q in %q", part, &coloured)
		}
	}
	report.Rules, report.Notes = report.Rules[:2], nil
	if got := text(); got != rules+"1 of 2 rules failed\n" {
		t.Error(got)
	}
	report.Rules, report.Passed = report.Rules[:1], true
	if got := text(); !strings.HasSuffix(got, "\nthe rule holds\n") {
		t.Error(got)
	}
}

package text

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func traceOf(t *testing.T, file string) *trace.Trace {
	t.Helper()
	f, err := snapshot.Open(t.Context(), file, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f.Traces[0]
}

func sideOf(t *testing.T, x *diff.Table, file string, tr *trace.Trace, at diff.At) *diff.Side {
	t.Helper()
	sides, err := x.Sides(t.Context(), diff.Source{File: file, Run: run.New(tr, nil)}, []diff.At{at})
	if err != nil {
		t.Fatal(err)
	}
	return sides[0]
}

func diffText(t *testing.T, d *diff.Diff, o DiffOptions) string {
	t.Helper()
	var b strings.Builder
	if err := Diff(&b, d, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// fits checks that a text can be pasted into a ticket.
func fits(t *testing.T, text string, full bool) {
	t.Helper()
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if width(line) > pageWidth || strings.TrimRight(line, " ") != line {
			t.Errorf("%d wide: %q", width(line), line)
		}
	}
	if !full && n >= 60 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

// Whatever is compared fits into a ticket, and all of it is there if asked for.
func TestDiffFitsATicket(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/variety/*.pickle.gz")
	if err != nil || len(files) < 10 {
		t.Fatalf("%v, %v", files, err)
	}
	x := diff.NewTable()
	first := sideOf(t, x, "../../../testdata/snapshots/moe_train-tight-default.pickle.gz", traceOf(t, "../../../testdata/snapshots/moe_train-tight-default.pickle.gz"), diff.Peak)
	for _, file := range short.Files(t, files, 4) {
		tr := traceOf(t, file)
		at := diff.Peak
		if tr.Events.Len() == 0 {
			at = diff.End
		}
		d := x.Compare(first, sideOf(t, x, file, tr, at))
		short, full := diffText(t, d, DiffOptions{}), diffText(t, d, DiffOptions{Full: true})
		fits(t, short, false)
		fits(t, full, true)
		for _, part := range []string{"\nMemory", "\nBy call stack", "\n  peak allocated", "\n        B - A"} {
			if !strings.Contains(short, part) || !strings.Contains(full, part) {
				t.Errorf("%s: no %q in\n%s", file, part, short)
			}
		}
		if got := strings.Count(full, "\n      "); got < len(d.Stacks) {
			t.Errorf("%s: %d of %d stacks", file, got, len(d.Stacks))
		}
	}
}

// Many notes take room from the stacks, not from the ticket.
func TestDiffWithManyNotes(t *testing.T) {
	x := diff.NewTable()
	tr := traceOf(t, "../../../testdata/snapshots/moe_train-tight-default.pickle.gz")
	d := x.Compare(sideOf(t, x, "a", tr, diff.Event(0)), sideOf(t, x, "b", tr, diff.Peak))
	plain := strings.Count(diffText(t, d, DiffOptions{}), "\n")
	for i := range 9 {
		d.Notes = append(d.Notes, fmt.Sprintf("note %d %s", i, strings.Repeat("word ", 60)))
	}
	text := diffText(t, d, DiffOptions{})
	fits(t, text, false)
	if !strings.Contains(text, "and 6 more: --full lists them") || plain < 40 {
		t.Errorf("%d lines:\n%s", plain, text)
	}
	if !strings.Contains(diffText(t, d, DiffOptions{Full: true}), "note 8") {
		t.Error("notes are missing")
	}
}

func TestDiffOfTheSameMoment(t *testing.T) {
	x := diff.NewTable()
	tr := traceOf(t, "../../../testdata/variety/graphs.pickle.gz")
	s := sideOf(t, x, "a", tr, diff.Peak)
	text := diffText(t, x.Compare(s, s), DiffOptions{})
	if !strings.Contains(text, ": 0 B in all\n") || !strings.Contains(text, " the same\n") || strings.Contains(text, "B - A\n") && strings.Contains(text, "more") {
		t.Errorf("%s", text)
	}
	var empty diff.Diff
	empty.A, empty.B = s, s
	if text := diffText(t, &empty, DiffOptions{}); !strings.Contains(text, "no active blocks on either side") {
		t.Errorf("%s", text)
	}
}

// A file cannot send sequences to the terminal.
func TestDiffIsCleaned(t *testing.T) {
	x := diff.NewTable()
	tr := traceOf(t, "../../../testdata/variety/graphs.pickle.gz")
	tr.Settings.Known, tr.Settings.Conf = true, "\x1b[2J"
	evil := tr.Strings.Add("\x1b]0;owned\x07\n")
	stack := tr.Stacks.Add([]trace.FrameID{tr.Stacks.AddFrame(trace.Frame{Name: evil, File: evil, Line: 1})})
	for i := range tr.Events.Len() {
		tr.Events.Stack.Set(i, stack)
	}
	a := sideOf(t, x, "\x1b[1mfile", tr, diff.Peak)
	b := sideOf(t, x, "b", traceOf(t, "../../../testdata/variety/graphs.pickle.gz"), diff.Event(3))
	text := diffText(t, x.Compare(a, b), DiffOptions{})
	var ranks strings.Builder
	var all []*diff.Rank
	for _, name := range []string{"\x1b[2Ja", "\x1b[2Jb", "\x1b[2Jc"} {
		r, err := x.Rank(t.Context(), diff.Source{File: name, Run: run.New(tr, nil)}, name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	all[2].PeakReserved *= 2
	if err := Ranks(&ranks, "\x1b[2J", x.Ranks(all), DiffOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text+ranks.String(), "\x1b\x07") || !strings.Contains(text, "owned") {
		t.Errorf("%q", text+ranks.String())
	}
}

// ranksOf makes ranks of one file, as many as asked for.
func ranksOf(t *testing.T, n int, change func(i int, r *diff.Rank, tr *trace.Trace)) *diff.Ranks {
	t.Helper()
	x := diff.NewTable()
	var all []*diff.Rank
	for i := range n {
		tr := traceOf(t, "../../../testdata/variety/graphs.pickle.gz")
		change(i, nil, tr)
		r, err := x.Rank(t.Context(), diff.Source{File: fmt.Sprintf("dir/rank%d.pickle", i), Run: run.New(tr, nil)}, fmt.Sprintf("rank%d.pickle", i))
		if err != nil {
			t.Fatal(err)
		}
		change(i, r, nil)
		all = append(all, r)
	}
	return x.Ranks(all)
}

func ranksText(t *testing.T, rs *diff.Ranks, full bool) string {
	t.Helper()
	var b strings.Builder
	if err := Ranks(&b, "dir", rs, DiffOptions{Full: full}); err != nil {
		t.Fatal(err)
	}
	fits(t, b.String(), full)
	return b.String()
}

// Hundreds of ranks, all of them unlike: the ticket stays short and shows the
// odd ones.
func TestManyRanks(t *testing.T) {
	const n = 300
	rs := ranksOf(t, n, func(i int, r *diff.Rank, tr *trace.Trace) {
		if tr != nil {
			tr.Events.Size.Set(1, uint64(1+i)) // the first alloc
		} else if i%10 == 7 {
			r.PeakReserved *= 3
			r.OOMs++
		}
	})
	short, full := ranksText(t, rs, false), ranksText(t, rs, true)
	for _, want := range []string{
		"300 ranks ", "\nrank7 ", "\nrank77 ", " more: --full lists them\nmedian ", "\n  rank7.pickle: peak reserved +",
		"OOMs +1", "and 26 more: --full lists them", "the ranks diverge at the first call:", "and 297 more ways",
		"by call stack: ashlar diff dir/rank0.pickle dir/rank7.pickle",
	} {
		if !strings.Contains(short, want) {
			t.Errorf("no %q in\n%s", want, short)
		}
	}
	rs.Notes = append(rs.Notes, strings.Repeat("word ", 60), strings.Repeat("word ", 60), "c", "d", "e")
	for _, r := range rs.Ranks {
		r.Name = strings.Repeat("long", 10) + r.Name
	}
	ranksText(t, rs, false)
	if strings.Contains(short, "\nrank0 ") || strings.Count(full, "\nrank") != n || strings.Contains(full, "--full") {
		t.Errorf("the wrong ranks are shown:\n%s", short)
	}
}

func TestRanksThatAreAlike(t *testing.T) {
	text := ranksText(t, ranksOf(t, 3, func(int, *diff.Rank, *trace.Trace) {}), false)
	for _, want := range []string{"none: no figure is more than 1 % and 3 standard", "the same in all ranks, as far as each goes: up to 58 calls"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	text = ranksText(t, ranksOf(t, 2, func(int, *diff.Rank, *trace.Trace) {}), false)
	if !strings.Contains(text, "with two ranks neither is odd") {
		t.Errorf("%s", text)
	}
}

func TestRankNames(t *testing.T) {
	for _, test := range []struct{ in, want []string }{
		{[]string{"rank0.pickle.gz", "rank1.pickle.gz"}, []string{"rank0", "rank1"}},
		{[]string{"a.0.pickle", "a.1.pickle"}, []string{"a.0", "a.1"}},
		{[]string{"x.pickle", "x.json"}, []string{"x.pickle", "x.json"}},
		{[]string{".pickle", "b.pickle"}, []string{".pickle", "b.pickle"}},
		{[]string{"snapshot_of_a_long_name_rank_00012", "b"}, []string{"snapshot_...rank_00012", "b"}},
		{[]string{"run.pickle:0", "run.pickle:1"}, []string{"run.pickle:0", "run.pickle:1"}},
	} {
		if got, _ := shortNames(test.in, 22); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("got %v, want %v", got, test.want)
		}
	}
}

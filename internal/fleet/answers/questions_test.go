package answers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

const mib = 1 << 20

// nowhere is a Source without files.
type nowhere struct{}

func (nowhere) Explain(context.Context, string) (*explain.Document, error) {
	return nil, errors.New("it is gone")
}

func (nowhere) Open(context.Context, string) (*input.Input, error) {
	return nil, errors.New("it is gone")
}

// peak is an entry with a peak in MiB; commits are days.
func peak(run string, commit int, rank int64, allocated uint64) answers.Entry {
	return answers.Entry{
		Hash: fmt.Sprintf("%s %d %d", run, commit, rank), File: fmt.Sprintf("%s-%d-%d", run, commit, rank), Run: run, Rank: &rank,
		Commit: fmt.Sprint("c", commit), Source: nowhere{},
		Summary: answers.Summary{
			Kind: input.Snapshot, WrittenUS: pointer(nowUS + int64(commit)*day), Events: 1000, Cause: explain.None, Trigger: explain.None,
			PeakAllocated: pointer(allocated * mib), PeakReserved: pointer(allocated * mib * 11 / 10), PeakRequested: pointer(allocated * mib),
		},
	}
}

func failed(e answers.Entry) answers.Entry {
	e.Summary.Cause, e.Summary.Trigger, e.Summary.OOMs = explain.Capacity, explain.Capacity, 1
	return e
}

// launch is entries of one commit, rank by rank.
func launch(commit int, peaks ...uint64) []answers.Entry {
	var out []answers.Entry
	for rank, p := range peaks {
		out = append(out, peak("r", commit, int64(rank), p))
	}
	return out
}

func grew(t *testing.T, entries []answers.Entry) string {
	t.Helper()
	d, err := answers.Growth(t.Context(), entries, "")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, run := range d.Runs {
		for _, c := range run.Commits {
			if c.Grew {
				out = append(out, fmt.Sprintf("%s by %d", c.Commit, *c.Delta/mib))
				if len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "it is gone") {
					t.Errorf("%s: %q", c.Commit, c.Notes)
				}
			}
		}
	}
	return strings.Join(out, ", ")
}

func TestGrowth(t *testing.T) {
	var single, dense []answers.Entry // one rank, of which each commit scatters by some per cent
	for i := range 20 {
		scattered := uint64(10_000 + 100*((i*7)%5))
		if i >= 12 {
			scattered += 4000
		}
		single = append(single, peak("r", i, 0, scattered))
		dense = append(dense, peak("r", i, 0, uint64(10_000+600*((i+1)/2))))
	}
	for _, test := range []struct {
		name    string
		entries []answers.Entry
		want    string
	}{
		{"by 2 %", slices.Concat(launch(0, 1000, 1000, 1000), launch(1, 1020, 1020, 1020)), "c1 by 20"},
		{"by less than 1 %", slices.Concat(launch(0, 1000, 1000, 1000), launch(1, 1009, 1009, 1009)), ""},
		{"less", slices.Concat(launch(0, 1000, 1000, 1000), launch(1, 800, 800, 800), launch(2, 850, 850, 850)), "c2 by 50"},
		{"a rank that is odd once", slices.Concat(launch(0, 1000, 1000, 1000, 1000), launch(1, 1000, 1300, 1000, 1000), launch(2, 1000, 1000, 1000, 1000)), ""},
		{"a rank that is always odd grows", slices.Concat(launch(0, 1500, 1000, 1000, 1000), launch(1, 1600, 1000, 1000, 1000)), "c1 by 100"},
		{"all grow, one is always odd", slices.Concat(launch(0, 4000, 1000, 1000, 1000), launch(1, 4030, 1030, 1030, 1030)), "c1 by 30"},
		{"stages of a pipeline", slices.Concat(launch(0, 1000, 800, 600, 400), launch(1, 1050, 840, 630, 420)), "c1 by 50"},
		{"ranks that scatter by 5 %", slices.Concat(launch(0, 1000, 1050, 950, 1020, 970), launch(1, 970, 1000, 1050, 1085, 950)), ""},
		{"one rank, scattered commits", single, "c12 by 4200"},
		{"every second commit grows", dense, "c1 by 600, c3 by 600, c5 by 600, c7 by 600, c9 by 600, c11 by 600, c13 by 600, c15 by 600, c17 by 600, c19 by 600"},
		{"what fails early does not count", slices.Concat(launch(0, 1000, 1000, 1000), []answers.Entry{failed(peak("r", 1, 0, 300))}, launch(2, 1000, 1000, 1000)), ""},
		{"a rank that fails beside others", slices.Concat(launch(0, 1000, 1000, 1000), launch(1, 1000, 1000, 1000), []answers.Entry{failed(peak("r", 1, 3, 1500))}), ""},
		{"only what fails, of which the file is gone", slices.Concat(launch(0, 1000, 1000, 1000), []answers.Entry{failed(peak("r", 1, 0, 1500))}), ""},
		{"other ranks", slices.Concat(launch(0, 1000, 1000, 1000), []answers.Entry{peak("r", 1, 7, 1100), peak("r", 1, 8, 1100)}), "c1 by 100"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := grew(t, test.entries); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestNoSuchRun(t *testing.T) {
	entries := launch(0, 1000, 1000)
	refused := answers.Entry{Hash: "x", Run: "bad", Error: "no snapshot"}
	bare := answers.Entry{Hash: "y", Run: "bare", Summary: entries[0].Summary}
	for _, test := range []struct {
		entries []answers.Entry
		run     string
		want    string
	}{
		{entries, "s", `there is no run "s"; there are r`},
		{nil, "s", `there is no run "s": no file of the fleet names its run`},
		{[]answers.Entry{refused}, "bad", `none of the 1 files of run "bad" has numbers to compare`},
		{[]answers.Entry{peak("llama-7b", 0, 0, 1)}, "llama7b", `did you mean "llama-7b"?`},
	} {
		if _, err := answers.Ranks(test.entries, test.run); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
	if _, err := answers.Growth(t.Context(), []answers.Entry{bare}, "bare"); err == nil || !strings.Contains(err.Error(), "names its commit") {
		t.Error(err)
	}
	if d, err := answers.Growth(t.Context(), nil, ""); err != nil || len(d.Runs) != 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

// Launches are compared one by one, and a rank by its worst file.
func TestRanks(t *testing.T) {
	entries := slices.Concat(launch(0, 1000, 1000, 1000, 1200), launch(1, 2000, 2000, 2000, 2000))
	again := peak("r", 1, 2, 100) // an early snapshot of the same rank
	again.Hash = "early"
	cut := peak("r", 1, 9, 50)
	cut.Summary.Partial = true
	d, err := answers.Ranks(append(entries, again, cut, failed(peak("r", 1, 10, 2000))), "r")
	if err != nil {
		t.Fatal(err)
	}
	var odd []string
	for _, o := range d.Odd {
		odd = append(odd, fmt.Sprintf("%s %d %s", *o.Commit, *o.Rank, o.Measure))
	}
	if got, want := strings.Join(odd, ", "), "c0 3 peak_allocated, c0 3 peak_reserved, c0 3 fragmentation, c1 10 oom_events"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(d.Launches) != 2 || len(d.Launches[1].All) != 6 || d.Launches[1].Failed != 1 || d.Launches[1].All[2].PeakReserved != 2200*mib {
		t.Errorf("%+v", d.Launches)
	}
}

// cause is a failure at two lines of a file.
func cause(n int, verdict string, request, holder int64, fixes ...answers.Fix) answers.Entry {
	e := failed(peak("r", n, int64(n), 1000))
	frame := func(line int64) timeline.Frame {
		return timeline.Frame{Name: "forward", Filename: "/home/me/train.py", Line: line}
	}
	e.Summary.Cause, e.Summary.Fixes = verdict, fixes
	e.Summary.RequestSite = &answers.Site{Inner: frame(request), User: pointer(frame(request))}
	e.Summary.HolderSite = &answers.Site{Inner: frame(holder), User: pointer(frame(holder))}
	return e
}

func TestCauses(t *testing.T) {
	pass, fail := answers.Fix{Kind: "setting", Settings: "a:1", Passes: true}, answers.Fix{Kind: "setting", Settings: "a:1"}
	del, memory := answers.Fix{Kind: "del", Passes: true}, answers.Fix{Kind: "memory", Passes: true}
	entries := []answers.Entry{
		cause(1, explain.Leak, 10, 20, pass, memory), cause(2, explain.Leak, 11, 20, fail, del, memory), cause(3, explain.Leak, 12, 20, del, memory),
		cause(4, explain.Capacity, 10, 20, memory),
		peak("r", 5, 0, 1000),
		{Hash: "bad", Error: "refused"},
	}
	d, err := answers.Causes(t.Context(), entries, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range d.Causes {
		got = append(got, fmt.Sprintf("%s %d files %d ranks %s: %s %s %d of %d", c.Verdict, c.Files, c.Ranks, c.Example, c.Fix.Kind, c.Fix.Settings, c.Fix.Passes, c.Fix.Of))
	}
	want := []string{"leak 3 files 3 ranks r-3-3: del  2 of 3", "capacity 1 files 1 ranks r-4-4: memory  1 of 1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if d, err = answers.Causes(t.Context(), entries, nowUS+4*day); err != nil || len(d.Causes) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	unnamed := []answers.Entry{cause(1, explain.Leak, 1, 20), cause(2, explain.Leak, 1, 20)}
	unnamed[0].Rank, unnamed[1].Rank = nil, nil
	if d, err = answers.Causes(t.Context(), unnamed, 0); err != nil || len(d.Causes) != 1 || d.Causes[0].Ranks != 2 {
		t.Errorf("files that do not name their rank are ranks of their own, as in growth: %+v, %v", d, err)
	}
	// Nobody knows whether these lines are one that moved: both explanations are gone.
	if d, err = answers.Causes(t.Context(), []answers.Entry{cause(1, explain.Leak, 1, 20), cause(2, explain.Leak, 1, 24)}, 0); err != nil || len(d.Notes) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// figures are what settings need on ranks.
type figures map[string]map[string]uint64

func (f figures) Tune(_ context.Context, hash string) (*tune.Answer, error) {
	of := f[hash]
	if of == nil {
		return nil, errors.New("it has no events")
	}
	best := "a:1"
	if of["b:1"] < of["a:1"] {
		best = "b:1"
	}
	return &tune.Answer{Goal: tune.SmallestLimit, Current: &tune.Choice{}, Recommended: &tune.Choice{Settings: best}}, nil
}

func (f figures) Measure(_ context.Context, hash string, settings []string) (out []*tune.Choice, err error) {
	for _, s := range settings {
		need := f[hash][s]
		c := &tune.Choice{Settings: s, Need: &need}
		if need == 0 {
			c.Need = nil
		}
		out = append(out, c)
	}
	return out, nil
}

// The worst rank decides; ranks that are alike are tried once, and only those of
// the last launch.
func TestTune(t *testing.T) {
	entries := slices.Concat(launch(0, 1, 2, 3), launch(1, 1000, 1000, 1200, 1300))
	d, err := answers.Tune(t.Context(), entries, "r", figures{
		"r 1 0": {"": 100, "a:1": 50, "b:1": 60}, "r 1 2": {"": 100, "a:1": 95, "b:1": 90},
	})
	if err != nil {
		t.Fatal(err)
	}
	best := d.Recommended
	if best.Settings != "b:1" || *best.Value != 90 || *best.WorstRank != 2 || *d.Current.Value != 100 || len(d.Others) != 1 || *d.Others[0].Value != 95 ||
		len(d.Tried) != 2 || d.Tried[0].Alike != 2 || d.Ranks != 4 || len(d.Notes) != 1 || *d.Commit != "c1" {
		t.Errorf("%+v, recommended %+v", d, best)
	}
	if _, err := answers.Tune(t.Context(), entries, "r", figures{}); err == nil || !strings.Contains(err.Error(), "none of the 4 ranks") {
		t.Error(err)
	}
}

package plan

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Three of the blind runs were recorded whole. Held against them the plan has
// nine tenths of the bytes of step 3 at least, in order; it has nearly all.
func TestCompareSnapshots(t *testing.T) {
	short.Skip(t)
	dir, err := plancompare.Folder()
	if err != nil {
		t.Fatal(err)
	}
	cases, _ := blind(t)
	n := 0
	for i := range cases {
		c := &cases[i]
		if c.Spec["record"] != true || c.Limit > 0 {
			continue
		}
		n++
		f, err := snapshot.Open(t.Context(), filepath.Join(dir, "recordings", c.Name+".pickle.gz"), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := Compare(t.Context(), blindQuestion(t, c.Spec), run.New(f.Traces[0], nil), 60)
		if err != nil {
			t.Fatal(err)
		}
		if a.From != "build" || a.To != "optimizer 3" || len(a.Parts) != 4 || a.Parts[3].Name != "step 3" {
			t.Errorf("%s: %s to %s, %+v", c.Name, a.From, a.To, a.Parts)
			continue
		}
		const least = 0.999 // the bar is 0.9
		for _, p := range a.Parts {
			if p.Covered < least || float64(p.Extra) > (1-least)*float64(p.Matched) {
				t.Errorf("%s: %+v", c.Name, p)
			}
		}
		for _, p := range a.Peaks {
			if off := float64(p.Planned)/float64(*p.Measured) - 1; off > 0.01 || off < -0.01 {
				t.Errorf("%s: %s planned %d, measured %d", c.Name, p.Name, p.Planned, *p.Measured)
			}
		}
	}
	if n != 3 {
		t.Errorf("%d recordings", n)
	}
}

// A recording of more steps than are planned, from the beginning or from the
// middle of a run, is compared with as many planned ones.
func TestCompareManySteps(t *testing.T) {
	q := question(t, "batch", "2", "seq", "600")
	j, _, err := q.Options.Job(q.Model)
	if err != nil {
		t.Fatal(err)
	}
	e, err := q.execute(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if !e.ledger.Repeat() {
			t.Fatal("steps are not alike")
		}
	}
	whole, err := traceOf(t.Context(), e.ledger, replay.Conditions{Settings: settings.Default()}, "", string(j.Optimizer), nil)
	if err != nil {
		t.Fatal(err)
	}
	// Six steps are compared.
	for _, tt := range []struct {
		name         string
		from         func(p ledger.Phase) bool
		begins, ends string
		parts        int
	}{
		{"the whole run", func(ledger.Phase) bool { return true }, "build", "optimizer 6", 7},
		{"from the first step on", func(p ledger.Phase) bool { return p.Step == 1 }, "forward 1", "optimizer 6", 6},
		{"from the third step on", func(p ledger.Phase) bool { return p.Step == 3 }, "forward 3", "optimizer 6", 4},
		{"from the middle of the fifth step on", func(p ledger.Phase) bool { return p.Step == 5 && p.Name == ledger.Backward }, "backward 3", "optimizer 4", 2},
	} {
		tr := *whole
		tr.Events = tail(whole, e.ledger, tt.from)
		a, err := Compare(t.Context(), q, run.New(&tr, nil), 40)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if a.From != tt.begins || a.To != tt.ends || len(a.Parts) != tt.parts || a.Covered != 1 || a.Extra != 0 {
			t.Errorf("%s: from %s to %s, %.4f covered, %d extra, %+v", tt.name, a.From, a.To, a.Covered, a.Extra, a.Parts)
		}
	}
}

// Of a recording of many steps the first are compared.
func TestCompareFirstSteps(t *testing.T) {
	q := question(t, "batch", "2", "seq", "600")
	j, _, err := q.Options.Job(q.Model)
	if err != nil {
		t.Fatal(err)
	}
	e, err := q.execute(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		e.ledger.Repeat()
	}
	tr, err := traceOf(t.Context(), e.ledger, replay.Conditions{Settings: settings.Default()}, "", string(j.Optimizer), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Compare(t.Context(), q, run.New(tr, nil), 40)
	if err != nil {
		t.Fatal(err)
	}
	if a.From != "build" || a.Covered != 1 || a.Extra != 0 || len(a.Parts) < mostSteps || len(a.Parts) > mostSteps+2 || !slices.Contains(a.Notes, "the recording has about 33 steps: the first 6 are compared") {
		t.Errorf("from %s to %s, %.4f covered, %d extra, %d parts, %q", a.From, a.To, a.Covered, a.Extra, len(a.Parts), a.Notes)
	}
}

// tail is the events of a trace from a phase of its ledger on.
func tail(tr *trace.Trace, l *ledger.Ledger, of func(ledger.Phase) bool) trace.Events {
	for _, p := range l.Phases {
		if of(p) {
			at := 0
			for at < tr.Events.Len() && tr.Events.Time.At(at) <= int64(p.First)*tick {
				at++
			}
			events := tr.Events
			return events.Cut(at)
		}
	}
	return trace.Events{}
}

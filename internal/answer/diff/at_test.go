package diff

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/trace"
)

func TestParseAt(t *testing.T) {
	for _, test := range []struct {
		in   string
		want At
	}{
		{"peak", Peak}, {"start", Start}, {"end", End}, {"0", Event(0)}, {"18435", Event(18435)}, {"18,435", Event(18435)}, {"step:1", Step(1)}, {"step:12", Step(12)},
	} {
		got, err := ParseAt(test.in)
		if err != nil || got != test.want {
			t.Errorf("%s: %v, %v", test.in, got, err)
		}
		if again, err := ParseAt(got.String()); again != got || err != nil {
			t.Errorf("%s is written as %s", test.in, got)
		}
	}
	for _, in := range []string{"", "Peak", "-1", "step", "step:", "step:0", "step:-2", "step:x", "1.5", "99999999999999999999", "end:1"} {
		if got, err := ParseAt(in); err == nil {
			t.Errorf("%q is %v", in, got)
		}
	}
}

func TestMoments(t *testing.T) {
	for _, test := range []struct {
		file   string
		change func(*trace.Trace)
		at     At
		event  int    // -1: before the first; -2: none
		err    string // or this
	}{
		{"variety/expand_tight", nil, Peak, 13983, ""},
		{"variety/expand_tight", nil, End, 13985, ""},
		{"variety/expand_tight", nil, Start, -1, ""},
		{"variety/expand_tight", nil, Event(7), 7, ""},
		{"variety/expand_tight", nil, Event(13986), 0, "moment 13986: there is no event 13,986; the last one is 13,985"},
		{"variety/expand_tight", nil, Step(4), 0, "there is no step 4; the last one is 3"},
		{"variety/profiler", nil, Step(1), -2, ""},
		{"variety/stateonly", nil, Peak, 0, "there are no events, so only the end is known; take the moment end"},
		{"variety/stateonly", nil, End, -1, ""},
		{"variety/graphs", nil, Step(1), 0, "there are no steps"},
		{"variety/ring", nil, Step(1), 0, "step 1 ended before the first event; the first one that ends within them is step:6"},
		{"variety/ring", nil, Step(6), -2, ""},
		{"variety/ring", func(t *trace.Trace) {
			t.Annotations = t.Annotations[:2]
		}, Step(1), 0, "ended before the first event; use the number of an event"},
		{"variety/expand_tight", func(t *trace.Trace) {
			for i := range t.Events.Len() {
				t.Events.Time.Set(i, trace.NoTime)
			}
		}, Step(1), 0, "the events have no times"},
	} {
		tr := open(t, test.file)
		if test.change != nil {
			test.change(tr)
		}
		sides, err := NewTable().Sides(t.Context(), Source{File: "f", Run: run.New(tr, nil)}, []At{test.at})
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) || !strings.HasPrefix(err.Error(), "f: moment ") {
				t.Errorf("%s at %s: got %v, want %s", test.file, test.at, err, test.err)
			}
		case err != nil:
			t.Errorf("%s at %s: %v", test.file, test.at, err)
		case test.event == -2:
		case test.event == -1:
			if sides[0].At.Event != nil {
				t.Errorf("%s at %s: event %d", test.file, test.at, *sides[0].At.Event)
			}
		case *sides[0].At.Event != test.event:
			t.Errorf("%s at %s: event %d, want %d", test.file, test.at, *sides[0].At.Event, test.event)
		}
	}
}

// The end of a step is its last event: the next one lies in another step.
func TestStepsEndWhereTheNextBegins(t *testing.T) {
	for _, file := range []string{"snapshots/leak_graph-default", "variety/profiler"} {
		tr := open(t, file)
		h, err := follow(t.Context(), run.New(tr, nil))
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 3; n++ {
			e, err := Step(n).find(h)
			if err != nil {
				t.Fatal(err)
			}
			end := h.program.Steps[n-1].End
			if tr.Events.Time.At(e) > end || tr.Events.Time.At(e+1) <= end {
				t.Errorf("%s: step %d ends at %d, event %d is at %d, the next one at %d", file, n, end, e, tr.Events.Time.At(e), tr.Events.Time.At(e+1))
			}
		}
	}
}

// A file that ends within its events shows the state of a later moment.
func TestEndOfPartialTrace(t *testing.T) {
	tr := open(t, "variety/expand_tight")
	tr.Partial = true
	tr.Events.Cut(tr.Events.Len() / 2)
	x := NewTable()
	sides := x.mustSides(t, tr, End, Peak)
	if s := sides[0]; s.At.Event != nil || len(s.notes) == 0 || !strings.Contains(s.notes[len(s.notes)-1], "the state at the dump") || s.Reserved == sides[1].Reserved {
		t.Errorf("%+v", s)
	}
	for _, s := range sides {
		if *s.PeakReserved < s.Reserved || *s.PeakReserved < sides[0].Reserved || *s.PeakRequested < *sides[0].Requested {
			t.Errorf("the peaks are below what the state shows: %+v", s)
		}
	}
	few := open(t, "variety/expand_tight")
	few.Partial = true
	few.Events.Cut(10)
	if s := NewTable().mustSides(t, few, End)[0]; *s.PeakReserved != s.Reserved {
		t.Errorf("after ten events the peak is %d, the state has %d", *s.PeakReserved, s.Reserved)
	}
	checkDiff(t, x.Compare(sides[0], sides[1]))
}

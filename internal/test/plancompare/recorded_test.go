package plancompare

import (
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// Every recording, run through the engine, gives the peaks that PyTorch
// measured in that run: the recordings are whole, and so is what they are
// compared by. Where the driver puts the segments they do not say; that is what
// the model says.
func TestRecordingsGiveMeasuredPeaks(t *testing.T) {
	for _, run := range all(t) {
		bytes, _ := Peak(run.Ledger, run.Ledger.Scored(), len(run.Ledger.Events))
		if bytes != run.PeakRequested {
			t.Errorf("%s: live bytes reach %d, measured %d", run.Name, bytes, run.PeakRequested)
		}
		got, err := through(run.Ledger, others(t, run))
		if err != nil {
			t.Errorf("%s: %v", run.Name, err)
			continue
		}
		if want := run.Peaks(); got != want {
			t.Errorf("%s: %+v through the engine, measured %+v", run.Name, got, want)
		}
	}
}

// others returns what the run took beside the allocator. Not every recording
// says which op a tensor is of, but the plan of the run does.
func others(t *testing.T, run *Run) ledger.Externals {
	j, err := run.Job()
	if err != nil {
		t.Fatal(run.Name, err)
	}
	planned, err := hf.Run(t.Context(), j)
	if err != nil {
		return nil
	}
	return planned.Ledger.External()
}

// A recording is equal to itself, event by event.
func TestCompareWithItself(t *testing.T) {
	for _, run := range all(t) {
		d := Compare(run.Ledger, run)
		rows := 0
		for _, p := range d.Phases {
			for _, r := range p.Rows {
				if rows++; r.Mark != Equal {
					t.Fatalf("%s: %s has a row %c", run.Name, p.Label, r.Mark)
				}
			}
		}
		if rows != len(run.Ledger.Events) {
			t.Errorf("%s: %d rows for %d events", run.Name, rows, len(run.Ledger.Events))
		}
	}
}

// Every case that was recorded or measured is a job.
func TestJobs(t *testing.T) {
	cases, err := Measured()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 14 {
		t.Errorf("%d measured cases", len(cases))
	}
	for _, run := range all(t) {
		cases = append(cases, run.Case)
	}
	for _, c := range cases {
		if _, err := c.Job(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

func all(t *testing.T) []*Run {
	t.Helper()
	names, err := Names()
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 100 {
		t.Fatalf("%d recordings", len(names))
	}
	var out []*Run
	for _, n := range short.Some(names, 10) {
		r, err := Open(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

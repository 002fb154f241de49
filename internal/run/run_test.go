package run

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func open(t *testing.T, name string) *trace.Trace {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "testdata", name+".pickle.gz"), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f.Traces[0]
}

// However many ask at once, each part is made once, and all get the same.
func TestPartsAreMadeOnce(t *testing.T) {
	r := New(open(t, "variety/graphs"), nil)
	var wg sync.WaitGroup
	checks, indices := make([]*Checked, 4), make([]*Indices, 4)
	for i := range checks {
		wg.Go(func() {
			var err error
			if checks[i], err = r.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if indices[i], err = r.Indices(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := r.Findings(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range checks {
		if checks[i].Program != checks[0].Program || checks[i].Peaks != checks[0].Peaks || indices[i] != indices[0] {
			t.Errorf("asker %d got parts of its own", i)
		}
	}
	if indices[0].Timeline != checks[0].Timeline || indices[0].Timeline.Start != r.Start() || !indices[0].Timeline.Exact {
		t.Error("the indices are not those of the checked run")
	}
	want := Made{Start: 1, Annotations: 1, Verified: 1, History: 1, Lives: 1, Analysis: 1, Findings: 1, Indices: 1}
	if got := r.Made(); got != want {
		t.Errorf("made %+v, want %+v", got, want)
	}
}

// What a cancelled context leaves unfinished is made again for the next.
func TestCancelledPartIsNotKept(t *testing.T) {
	r := New(open(t, "variety/graphs"), nil)
	gone, cancel := context.WithCancelCause(t.Context())
	why := errors.New("nobody waits")
	cancel(why)
	if _, err := r.Check(gone); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if got := r.Made().Verified; got != 0 {
		t.Errorf("a replay that was cancelled is kept, %d times", got)
	}
	c, err := r.Check(t.Context())
	if err != nil || !c.Program.Check.Identical {
		t.Errorf("%+v, %v", c, err)
	}
}

// A failure that is not the context's is kept: asking again does not replay again.
func TestFailureIsKept(t *testing.T) {
	l := newLazy[int]()
	broken := errors.New("broken")
	for range 2 {
		if _, err := l.get(t.Context(), func() (int, error) { return 0, broken }); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	}
	if l.count() != 1 || l.ready() {
		t.Errorf("made %d times, ready %v", l.count(), l.ready())
	}
}

// Where a replay is of no use there is none, and the timeline goes without block
// sizes.
func TestNotReplayed(t *testing.T) {
	host := *open(t, "variety/graphs")
	host.Host = true
	state := *open(t, "variety/graphs")
	state.Events = trace.Events{}
	for name, tr := range map[string]*trace.Trace{"host": &host, "state": &state} {
		r := New(tr, nil)
		h, err := r.History(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v, err := r.Replayed(t.Context()); v != nil || err != nil || r.Made().Verified != 0 {
			t.Errorf("%s is replayed: %v, %v", name, v, err)
		}
		if h.Timeline != r.Outline() || h.Timeline.Exact {
			t.Errorf("%s has another timeline than its outline", name)
		}
	}
}

// A part of a run has the start state that the others have.
func TestStartIsShared(t *testing.T) {
	r := New(open(t, "variety/midrun"), nil)
	v, err := r.Verified(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v.Start != r.Start() || r.Start().Kind != start.Rebuilt || r.Outline().Start != r.Start() {
		t.Errorf("start %s, verified with %s", r.Start().Kind, v.Start.Kind)
	}
}

// Asking for the steps alone keeps no lifetimes, and does not make them again where
// they are kept.
func TestStepsAlone(t *testing.T) {
	trace := open(t, "snapshots/gpt2_fixed-tight-default")
	r := New(trace, nil)
	alone, err := r.Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if made := r.Made(); made.Lives != 0 || made.Analysis != 0 || len(alone.List) == 0 {
		t.Errorf("%d steps, made: %+v", len(alone.List), made)
	}
	a, err := r.Analysis(t.Context())
	if err != nil || !slices.Equal(a.Steps.List, alone.List) {
		t.Errorf("%v: other steps: %v and %v", err, a.Steps.List, alone.List)
	}
	r = New(trace, nil)
	if a, err = r.Analysis(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kept, err := r.Steps(t.Context()); err != nil || kept != a.Steps {
		t.Errorf("%v: the steps were looked for again", err)
	}
}

package timeline

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/trace"
)

// At every moment the holders add up to the totals, and at the end they are
// those that the segments show.
func TestLiveAddsUpToTheTotals(t *testing.T) {
	for _, name := range all(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			tr := open(t, name)
			o := verified(t, tr)
			l := New(tr, Options{Start: o.Start, Sizes: o.Sizes})
			n := tr.Events.Len()
			at := []int{n - 1, -1}
			if n > 0 {
				at = append(at, n/2, n/3, l.Peaks().Allocated.Event, n/2)
			}
			for i, live := range l.LiveAt(at...) {
				if live.Event != at[i] {
					t.Fatalf("asked for event %d, got %d", at[i], live.Event)
				}
				checkSums(t, live)
			}
			end := l.LiveAtEnd()
			checkSums(t, end)
			last := l.LiveAt(n - 1)[0]
			if n > 0 && end.Totals != last.Totals {
				t.Errorf("at the end %+v, after the last event %+v", end.Totals, last.Totals)
			}
			if n > 0 && !slices.Equal(end.Holders, last.Holders) {
				t.Errorf("at the end %+v, after the last event %+v", end.Holders, last.Holders)
			}
			for i, h := range Holders(tr) {
				if got := end.Holders[i]; got.Stack != h.Stack || got.Size != h.Bytes || got.Blocks != h.Blocks {
					t.Errorf("holder %d: %+v, want %+v", i, got, h)
				}
			}
		})
	}
}

func checkSums(t *testing.T, live *Live) {
	t.Helper()
	var got Totals
	for i, h := range live.Holders {
		got.Active += h.Size
		got.Requested += h.Requested
		got.Blocks += h.Blocks
		if i > 0 && h.Size > live.Holders[i-1].Size {
			t.Errorf("holder %d is larger than the one before", i)
		}
	}
	want := Totals{Active: live.Totals.Active, Requested: live.Totals.Requested, Blocks: live.Totals.Blocks}
	if got != want || !live.Sized {
		t.Errorf("event %d: the holders have %+v, the totals %+v, sized %t", live.Event, got, want, live.Sized)
	}
}

// Without a replay there are the requested sizes.
func TestLiveWithoutReplay(t *testing.T) {
	tr := open(t, "variety/midrun.pickle.gz")
	l := New(tr, Options{})
	live := l.LiveAt(tr.Events.Len() / 2)[0]
	sum := uint64(0)
	for _, h := range live.Holders {
		sum += h.Requested
	}
	if live.Sized || sum != live.Totals.Requested || sum == 0 {
		t.Errorf("sized %t, %d requested, want %d", live.Sized, sum, live.Totals.Requested)
	}
	if !l.LiveAtEnd().Sized {
		t.Error("the segments have sizes")
	}
}

// A file that ends within its events: what they free was there before.
func TestLiveOfPartialTraces(t *testing.T) {
	for _, name := range []string{"variety/midrun", "variety/ring", "variety/expand_tight"} {
		tr := *open(t, name+".pickle.gz")
		tr.Partial = true
		l := New(&tr, Options{})
		for _, live := range l.LiveAt(-1, tr.Events.Len()/2, tr.Events.Len()-1) {
			got := Totals{}
			for _, h := range live.Holders {
				got.Requested += h.Requested
				got.Blocks += h.Blocks
			}
			if got.Requested != live.Totals.Requested || got.Blocks != live.Totals.Blocks {
				t.Errorf("%s, event %d: %+v, want %+v", name, live.Event, got, live.Totals)
			}
		}
	}
}

// Where events have no stacks, blocks may: recorded with context="state".
func TestLiveTakesStacksOfBlocks(t *testing.T) {
	tr := open(t, "snapshots/streams_graphs-default.pickle.gz")
	want := New(tr, Options{}).LiveAtEnd().Holders
	var bare trace.Events
	for i := range tr.Events.Len() {
		bare.Copy(&tr.Events, i)
		bare.Stack.Set(i, trace.NoStack)
	}
	tr.Events = bare
	l := New(tr, exact(t, tr))
	if l.Start.Kind != start.Recorded || len(want) < 2 {
		t.Fatalf("start %s, %d holders", l.Start.Kind, len(want))
	}
	if got := l.LiveAt(tr.Events.Len() - 1)[0].Holders; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

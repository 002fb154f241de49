package prognosis_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/generate"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
)

var (
	limits  = flag.Int("limits", 8, "limits tried on each recording")
	wrong   = flag.Bool("wrong", false, "list the wrong answers")
	only    = flag.String("only", "", "recordings whose name has this")
	further = flag.String("further", "", "a glob of further recordings")
)

// whole is a complete recording, the truth.
type whole struct {
	name    string
	run     *run.Run
	program *replay.Program
	steps   *findings.Steps
	peaks   []uint64 // live, of each step
	live    uint64
}

func load(t testing.TB, path string) *whole {
	t.Helper()
	f, err := snapshot.Open(t.Context(), path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, _, err := f.Pick(-1)
	if err != nil {
		t.Fatal(err)
	}
	w := &whole{name: strings.TrimSuffix(filepath.Base(path), ".pickle.gz"), run: run.New(tr, nil)}
	if w.program, err = w.run.Program(t.Context()); err != nil {
		return nil
	}
	a, err := w.run.Analysis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.steps = a.Steps
	if len(w.steps.List) < 2 {
		return nil
	}
	w.peaks = make([]uint64, len(w.steps.List))
	for i := range tr.Events.Len() {
		live := a.LiveBefore(i)
		if s := w.stepOf(i); s >= 0 {
			w.peaks[s] = max(w.peaks[s], live)
		}
		w.live = max(w.live, live)
	}
	return w
}

// stepOf returns the step of an event; what follows a step belongs to it.
func (w *whole) stepOf(event int) int {
	at := -1
	for i, s := range w.steps.List {
		if s.Begin <= event {
			at = i
		}
	}
	return at
}

type tally struct{ asked, answered, right, constant int }

func (y tally) String() string {
	return fmt.Sprintf("%4d deaths, %5.1f %% answered, %5.1f %% of these right; constant yes: %5.1f %%", y.asked,
		100*float64(y.answered)/float64(max(y.asked, 1)), 100*float64(y.right)/float64(max(y.answered, 1)), 100*float64(y.constant)/float64(max(y.asked, 1)))
}

// Deaths that are made by putting a limit on complete recordings: how far a
// setting carries the run is known from the complete one.
func TestDeaths(t *testing.T) {
	var files []string
	for _, glob := range []string{"snapshots/*-default.pickle.gz", "fresh/*-default.pickle.gz"} {
		all, _ := filepath.Glob(filepath.Join("..", "..", "testdata", glob))
		files = append(files, all...)
	}
	if *further != "" {
		all, _ := filepath.Glob(*further)
		files = append(files, all...)
	}
	totals := map[string]*tally{}
	for _, path := range files {
		if strings.Contains(path, "-tight-") || *only != "" && !strings.Contains(path, *only) {
			continue
		}
		w := load(t, path)
		if w == nil {
			t.Logf("%s: no steps", path)
			continue
		}
		mine := map[string]*tally{}
		for _, limit := range w.limits(t, *limits) {
			w.death(t, limit, mine)
		}
		for _, k := range slices.Sorted(maps.Keys(mine)) {
			v := mine[k]
			if totals[k] == nil {
				totals[k] = &tally{}
			}
			totals[k].asked += v.asked
			totals[k].answered += v.answered
			totals[k].right += v.right
			totals[k].constant += v.constant
			if *wrong {
				t.Logf("%-28s %-14s %v", w.name, k, v)
			}
		}
	}
	bars := map[string][2]float64{"first": {0.5, 0.9}, "second": {0.5, 0.9}, "later": {0.85, 0.95}}
	for _, k := range slices.Sorted(maps.Keys(totals)) {
		v := totals[k]
		t.Logf("%-14s %v", k, v)
		_, when, _ := strings.Cut(k, " ")
		bar := bars[when]
		if float64(v.answered) < bar[0]*float64(v.asked) || float64(v.right) < bar[1]*float64(v.answered) {
			t.Errorf("%s: %v; the bars are %.0f %% and %.0f %%", k, v, 100*bar[0], 100*bar[1])
		}
	}
}

// limits returns limits from 0.8 of the live peak to what the run needs.
func (w *whole) limits(t testing.TB, n int) (out []uint64) {
	s := w.program.Settings
	o, err := w.program.Run(t.Context(), replay.Conditions{Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	low, high := w.live*8/10, o.Reserved.Bytes
	for i := range n {
		out = append(out, low+(high-low)*uint64(i)/uint64(n)&^(1<<20-1))
	}
	return out
}

func (w *whole) death(t testing.TB, limit uint64, tallies map[string]*tally) {
	o, err := w.program.Run(t.Context(), replay.Conditions{Settings: w.program.Settings, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	if !o.Fails {
		return
	}
	var buf bytes.Buffer
	if _, err := generate.Write(t.Context(), &buf, w.run.Trace, generate.Options{Limit: limit}); err != nil {
		return // started otherwise, it passes
	}
	f, err := snapshot.Read(context.Background(), "generated", &buf, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cut := run.New(f.Traces[0], nil)
	p, err := cut.Program(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := cut.Analysis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last := f.Traces[0].Events.Len() - 1
	if f.Traces[0].Events.Action.At(last) != alloc.ActionOOM {
		t.Fatal("no failure")
	}
	r := prognosis.Request{Stack: f.Traces[0].Events.Stack.At(last), Event: last, First: a.FirstForward()}
	for r.Cut = p.Len() - 1; p.Call(r.Cut).Kind != replay.CallTry; r.Cut-- {
	}
	r.Call = p.Call(r.Cut)
	x := prognosis.New(p, a.Steps, r)
	at := w.stepOf(w.eventOf(allocations(p, r.Cut)))
	kind := "later"
	switch {
	case at <= 0:
		kind = "first"
	case at == 1:
		kind = "second"
	}
	for _, conf := range []string{"expandable_segments:True", "max_split_size_mb:128"} {
		w.judge(t, x, conf, limit, at, kind, tallies)
	}
}

// allocations counts the allocations before a call.
func allocations(p *replay.Program, call int) (n int) {
	for i := range call {
		if p.Call(i).Kind == replay.CallAlloc {
			n++
		}
	}
	return n
}

// eventOf returns the event of the nth allocation.
func (w *whole) eventOf(n int) int {
	for i := range w.program.Len() {
		if c := w.program.Call(i); c.Kind == replay.CallAlloc {
			if n == 0 {
				return c.Event
			}
			n--
		}
	}
	return w.run.Events()
}

func (w *whole) judge(t testing.TB, x *prognosis.Prognosis, conf string, limit uint64, at int, kind string, tallies map[string]*tally) {
	s, _ := settings.Parse(conf)
	truth, err := w.program.Run(t.Context(), replay.Conditions{Settings: s, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	said, err := x.Under(t.Context(), replay.Conditions{Settings: s, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(conf, "_")
	kind = name + " " + kind
	if tallies[kind] == nil {
		tallies[kind] = &tally{}
	}
	y := tallies[kind]
	y.asked++
	died := len(w.peaks)
	if truth.Fails {
		died = w.stepOf(truth.First.Event)
	}
	seen := uint64(0)
	for _, p := range w.peaks[:max(at, 0)] {
		seen = max(seen, p)
	}
	if died > at {
		y.constant++
	}
	if said.Kind == prognosis.Unknown {
		if *wrong {
			t.Logf("UNKNOWN %s limit %d MiB (live %d), %s: step %d of %d: died %d; need %d, true %d", w.name, limit>>20, w.live>>20, conf, at, len(w.peaks), died, x.Need>>20, w.peaks[max(at, 0)]>>20)
		}
		return
	}
	y.answered++
	right := false
	switch {
	case said.Fails():
		right = died <= at
	case said.Kind == prognosis.Step:
		right = died > at
	case said.Kind == prognosis.Steps:
		n := died - at
		right = n > 0 && (died == len(w.peaks) && *said.Steps >= n || abs(n-*said.Steps) <= 1 || !smaller(w.peaks, died, seen))
	case said.Kind == prognosis.Steady:
		right = died == len(w.peaks) || died > at && !smaller(w.peaks, died, seen)
	}
	if said.Kind == prognosis.Steady && !right {
		t.Errorf("%s under %d MiB with %s: steady, but step %d dies, no larger than those seen", w.name, limit>>20, conf, died)
	}
	if right {
		y.right++
	} else if *wrong {
		n := -1
		if said.Steps != nil {
			n = *said.Steps
		}
		t.Logf("WRONG %s limit %d MiB (live %d), %s: step %d of %d: %s %d, died %d; need %d, true %d, %s kept %d", w.name, limit>>20, w.live>>20, conf, at, len(w.peaks), said.Kind, n, died,
			x.Need>>20, w.peaks[max(at, 0)]>>20, said.RestsOn, x.KeptPerStep)
	}
}

// smaller reports whether a step is no larger than those seen before.
func smaller(peaks []uint64, step int, seen uint64) bool {
	return step >= 0 && step < len(peaks) && peaks[step] <= seen
}

func abs(n int) int { return max(n, -n) }

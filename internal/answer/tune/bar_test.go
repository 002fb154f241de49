package tune

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
)

const testdata = "../../../testdata"

var table = flag.String("table", "", "write what tune does for the twenty whole runs, for every goal, to this file")

// recordings lists the recordings with events, by the names that checked takes.
func recordings(t *testing.T, kinds ...string) (out []string) {
	t.Helper()
	var all []string
	for _, kind := range kinds {
		files, err := filepath.Glob(filepath.Join(testdata, kind, "*.pickle.gz"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", kind, err)
		}
		all = append(all, files...)
	}
	for _, f := range all {
		name, err := filepath.Rel(testdata, strings.TrimSuffix(f, ".pickle.gz"))
		if err != nil {
			t.Fatal(err)
		}
		if name != "variety/stateonly" {
			out = append(out, filepath.ToSlash(name))
		}
	}
	return out
}

// Asked twice, with one worker and with two, tune answers the same. make tune takes
// all recordings, make test a few of every kind.
func TestSameTwice(t *testing.T) {
	files := recordings(t, "snapshots", "fresh", "variety")
	switch {
	case *table != "":
	case !testing.Short():
		few := files[:0]
		for i, f := range files {
			if i%15 == 2 {
				few = append(few, f)
			}
		}
		files = few
	default:
		files = []string{"variety/graphs"}
	}
	for _, file := range files {
		of := checked(t, file)
		limit, memory := whatif.Bounds(of, nil, nil)
		o := Options{Limit: limit.Value(), DeviceMemory: memory.Value(), Work: 5e5, Workers: 1}
		first := quick(t, of, o)
		o.Workers = 2
		if d := same(first, quick(t, checked(t, file), o)); d != "" {
			t.Errorf("%s:\n%s", file, d)
		}
	}
}

// twice lists the workloads that were recorded with two seeds.
func twice(t *testing.T) (out []string) {
	t.Helper()
	fresh := recordings(t, "fresh")
	for _, f := range recordings(t, "snapshots") {
		name := strings.TrimPrefix(f, "snapshots/")
		if slices.Contains(fresh, "fresh/"+name) && !strings.Contains(name, "-tight-") {
			out = append(out, name)
		}
	}
	return out
}

// What tune recommends for one seed is on the other not worse than the better of
// the recorded settings and expandable segments.
func TestOtherSeed(t *testing.T) {
	short.Skip(t)
	all := twice(t)
	if len(all) != 8 {
		t.Fatalf("%d workloads have two seeds: %q", len(all), all)
	}
	for _, name := range all {
		for _, pair := range [][2]string{{"snapshots/", "fresh/"}, {"fresh/", "snapshots/"}} {
			t.Run(pair[0]+name, func(t *testing.T) {
				t.Parallel()
				of, on := checked(t, pair[0]+name), checked(t, pair[1]+name)
				for _, o := range []Options{{}, {Goal: SmallestLimit, Work: 5e6}} {
					r := quick(t, of, o)
					got, keep, expandable := value(t, on, r, r.Recommended.Settings), value(t, on, r, on.Program.Settings), value(t, on, r, expanded(on))
					if least := min(keep, expandable); float64(got) > 1.01*float64(least) {
						t.Errorf("goal %s, the other seed: %q gives %d, recorded %d, expandable %d", r.Goal, r.Recommended.Settings, got, keep, expandable)
					}
				}
			})
		}
	}
}

// expanded returns the recorded settings with nothing but expandable segments.
func expanded(of *run.Checked) settings.Settings {
	s := newSpace(of.Program, false).clean()
	s.ExpandableSegments = true
	return s
}

// value returns the goal's figure of settings on a run.
func value(t *testing.T, of *run.Checked, r *Result, s settings.Settings) uint64 {
	t.Helper()
	lower, _ := of.Program.PeakLive()
	c, err := Measure(t.Context(), of, s, 0, lower)
	if err != nil {
		t.Fatal(err)
	}
	n, passes := r.Goal.of(c)
	if !passes {
		t.Errorf("%q fails", s)
	}
	return n
}

// The table of docs/measured/tune.md: every goal on the twenty whole runs, and
// how often something better is found than the recorded settings and expandable
// segments.
func TestGoalsOnAllRuns(t *testing.T) {
	if *table == "" {
		t.Skip("make tune")
	}
	var b strings.Builder
	files := slices.DeleteFunc(recordings(t, "snapshots", "fresh"), func(f string) bool { return strings.Contains(f, "-tight-") })
	for _, goal := range Goals {
		fmt.Fprintf(&b, "| goal %s | peak allocated | recorded | expandable | recommended | settings |\n|---|---|---|---|---|---|\n", goal)
		better := 0
		for _, file := range files {
			of := checked(t, file)
			r := quick(t, of, Options{Goal: goal})
			keep, expandable, got := value(t, of, r, of.Program.Settings), value(t, of, r, expanded(of)), value(t, of, r, r.Recommended.Settings)
			if got < min(keep, expandable) {
				better++
			}
			lower := r.LowerBound
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | `%s` |\n", strings.TrimSuffix(file, "-default"), LeastReserved.Number(&lower),
				goal.Number(&keep), goal.Number(&expandable), goal.Number(&got), r.Recommended.Settings)
			if goal == LeastReserved && got > keep {
				t.Errorf("%s: %s reserves more than now", file, r.Recommended.Settings)
			}
		}
		fmt.Fprintf(&b, "\nBetter than both on %d of %d.\n\n", better, len(files))
		if goal == FewestCalls && better < 5 {
			t.Errorf("fewer calls than with recorded settings and expandable segments on %d of %d only", better, len(files))
		}
	}
	if err := os.WriteFile(*table, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

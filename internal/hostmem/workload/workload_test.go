package workload

import (
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/run"
	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

func TestChoose(t *testing.T) {
	want := []string{"lesson", "lesson-idle", "burst", "threads", "forked", "growth", "throughput", "contention", "producer"}
	if !slices.Equal(Names(), want) {
		t.Errorf("%v", Names())
	}
	all, err := Choose(nil)
	if err != nil || len(all) != len(want) {
		t.Errorf("%d, %v", len(all), err)
	}
	some, err := Choose([]string{"growth", "lesson"})
	if err != nil || len(some) != 2 || some[0].Name != "growth" || some[1].Name != "lesson" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := Choose([]string{"brust"}); err == nil || !strings.Contains(err.Error(), `"brust": there are lesson, lesson-idle, burst`) {
		t.Errorf("%v", err)
	}
}

func TestNothingToRunWith(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "")
	b := Bench{Scratch: t.TempDir(), Python: "python3"}
	for i, want := range map[int]string{0: "python3 cannot be run", 6: "there is no C compiler (cc)"} {
		if _, err := b.Spec(t.Context(), table[i]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", table[i].Name, err)
		}
	}
}

// compared runs a workload under variants.
func compared(t *testing.T, name, variants string, repeat int, settle time.Duration, args ...string) *run.Comparison {
	t.Helper()
	return comparedOn(t, &Bench{Scratch: t.TempDir(), Python: "python3", Settle: settle}, name, variants, repeat, args...)
}

func comparedOn(t *testing.T, b *Bench, name, variants string, repeat int, args ...string) *run.Comparison {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc to measure by")
	}
	w, err := Choose([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := variant.Choose(variants)
	if err != nil {
		t.Fatal(err)
	}
	ready, missing := variant.Search(t.Context(), chosen, b.Scratch)
	for _, m := range missing {
		if variants != "" {
			t.Skipf("%s needs %s: %s", m.Variant, m.Needs, m.Install)
		}
		t.Logf("left out: %s needs %s: %s", m.Variant, m.Needs, m.Install)
	}
	s, err := b.Spec(t.Context(), w[0])
	if err != nil {
		t.Skip(err)
	}
	s.Command = append(s.Command, args...)
	c, err := run.Compare(t.Context(), s, ready, repeat, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Results {
		if r.Error != nil {
			t.Fatalf("%s: %s", r.Variant, *r.Error)
		}
		if !r.Verified {
			t.Errorf("%s was not verified", r.Variant)
		}
		t.Logf("%-18s CPU %.2f s, final %4d MiB, retained %4d MiB", r.Variant, *r.CPUS, *r.FinalRSS>>20, *r.Retained>>20)
	}
	return c
}

// Nothing holds less than glibc while the lesson's workload works, but for a
// price in CPU time that is higher than what it saves.
func TestLesson(t *testing.T) {
	t.Parallel()
	// A third of its rounds hold as much. The fewer, the less what is done by
	// the clock matters on a busy machine.
	c := compared(t, "lesson", "", 3, 0, "60")
	if c.Recommendation.Variant != variant.Baseline {
		t.Errorf("%s is recommended: %s", c.Recommendation.Variant, c.Recommendation.Reason)
	}
}

// A second after a burst jemalloc has given its memory back, if it has a thread
// to do so.
func TestBurst(t *testing.T) {
	t.Parallel()
	c := compared(t, "burst", "jemalloc-bg", 1, 4*time.Second)
	glibc, jemalloc := *c.Results[0].Retained, *c.Results[1].Retained
	notes := slices.DeleteFunc(c.Notes, func(n string) bool { return strings.Contains(n, "was still falling") }) // on a busy machine
	if 3*jemalloc > glibc || len(notes) > 0 {
		t.Errorf("jemalloc-bg retains %d, glibc %d; %q", jemalloc, glibc, c.Notes)
	}
}

// With many threads glibc has many arenas, jemalloc gives back those of threads
// that have ended.
func TestThreads(t *testing.T) {
	t.Parallel()
	// In one of 25 runs one more arena of jemalloc keeps its memory: medians.
	c := compared(t, "threads", "jemalloc", 5, 500*time.Millisecond)
	glibc, jemalloc := c.Results[0], c.Results[1]
	if 2**jemalloc.FinalRSS > *glibc.FinalRSS || 2**jemalloc.Retained > *glibc.Retained {
		t.Errorf("jemalloc holds %d and retains %d, glibc %d and %d", *jemalloc.FinalRSS, *jemalloc.Retained, *glibc.FinalRSS, *glibc.Retained)
	}
}

// The thread that trims glibc is started anew in workers that were forked; that
// of jemalloc is not, which is noted.
func TestForked(t *testing.T) {
	t.Parallel()
	c := compared(t, "forked", "glibc-trim,jemalloc-bg", 1, 3*time.Second)
	glibc, trim := c.Results[0], c.Results[1]
	if 2**trim.FinalRSS > *glibc.FinalRSS || glibc.Processes != 5 {
		t.Errorf("glibc-trim holds %d, glibc %d in %d processes", *trim.FinalRSS, *glibc.FinalRSS, glibc.Processes)
	}
	if len(c.Notes) != 1 || !strings.HasPrefix(c.Notes[0], "under jemalloc-bg its largest process has no background thread") || *c.Results[2].Ratio < 0.9 {
		t.Errorf("%q, jemalloc-bg holds %.2f of glibc", c.Notes, *c.Results[2].Ratio)
	}
}

// The others are measured the moment they are done, with what is live then.
func TestRun(t *testing.T) {
	b := &Bench{Scratch: t.TempDir(), Python: "python3"}
	for _, name := range []string{"growth", "throughput", "contention", "producer"} {
		t.Run(name, func(t *testing.T) {
			c := comparedOn(t, b, name, variant.Baseline, 1)
			if r := c.Results[0]; *r.Final != run.FinalAtExit || *r.Retained <= 0 || r.ExitCode != nil {
				t.Errorf("%s, retained %d, exit code %v", *r.Final, *r.Retained, r.ExitCode)
			}
		})
	}
}

func TestUnknownMode(t *testing.T) {
	b := &Bench{Scratch: t.TempDir()}
	s, err := b.Spec(t.Context(), table[6])
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command(s.Command[0], "x").CombinedOutput(); err == nil || !strings.Contains(string(out), "unknown mode x") {
		t.Errorf("%s, %v", out, err)
	}
}

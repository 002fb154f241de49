package run

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

// measured is a result of runs with these final sizes, in MiB, and CPU times.
func measured(name string, cpu float64, final ...uint64) Result {
	var runs []*Run
	for _, f := range final {
		runs = append(runs, &Run{
			Variant: name, Verified: true, Settled: true, Peak: f << 20, CPU: time.Duration(cpu * 1e9),
			Points: []Point{{Phase: Driven, RSSBytes: 10 << 20}, {Phase: Settling, RSSBytes: f << 20}},
		})
	}
	return newResult(&Spec{Ready: &Ready{}}, &variant.Ready{Variant: variant.Variant{Name: name}}, runs)
}

// noisy is measured with other CPU times.
func noisy(r Result, cpu ...time.Duration) Result {
	for i, c := range cpu {
		r.runs[i].CPU = c
	}
	r.sumUp(true)
	return r
}

func TestRecommend(t *testing.T) {
	unverified := measured("jemalloc", 1, 10, 10, 10)
	unverified.Verified = false
	crashed := measured("jemalloc", 1, 10, 10)
	crashed.Failed, crashed.Error = 1, new("signal segmentation fault")
	for _, tt := range []struct {
		name    string
		results []Result
		want    string
		reason  string
	}{
		{"better", []Result{measured("glibc", 1, 100, 101, 102), measured("jemalloc", 1.2, 50, 51, 50)}, "jemalloc", "50.00 MiB when it is idle, glibc 101.00 MiB: 51.00 MiB less"},
		{"the cheaper of two that hold less", []Result{
			measured("glibc", 1, 100, 101, 102), measured("jemalloc", 1.5, 50, 51, 50), measured("mimalloc", 1.1, 52, 53, 53),
		}, "mimalloc", ""},
		{"many runs are below", []Result{measured("glibc", 1, 100, 110, 120, 130, 140), measured("jemalloc", 1, 40, 80, 91, 92, 93)}, "jemalloc", "Its runs lie 53.00 MiB apart, those of glibc 40.00 MiB"},
		{"runs overlap", []Result{measured("glibc", 1, 100, 140, 102), measured("jemalloc", 1, 90, 101, 90)}, "glibc", "by more than the spread"},
		{"the gap is within the spread", []Result{measured("glibc", 1, 100, 110, 120), measured("jemalloc", 1, 90, 91, 92)}, "glibc", "(--repeat 5): jemalloc held less in all runs, but runs lie up to 20.00 MiB apart"},
		{"worse", []Result{measured("glibc", 1, 100, 101, 102), measured("jemalloc", 1, 150, 151, 152)}, "glibc", "by more than the spread"},
		{"too dear", []Result{measured("glibc", 1, 100, 101, 102), measured("mimalloc-reset", 9, 50, 51, 50)}, "glibc", "mimalloc-reset holds 0.50 of glibc's memory for 9.00 of its CPU time"},
		{"the gain is within the spread of CPU time", []Result{
			measured("glibc", 1, 1000, 1001, 1002), noisy(measured("jemalloc", 1, 980, 981, 980), 900*time.Millisecond, 950*time.Millisecond, 980*time.Millisecond),
		}, "glibc", "by more than the spread; jemalloc holds 0.98 of glibc's memory for 0.95 of its CPU time"},
		{"one run", []Result{measured("glibc", 1, 100), measured("jemalloc", 1, 10)}, "glibc", "--repeat 3"},
		{"glibc failed", []Result{measured("glibc", 1), measured("jemalloc", 1, 10, 10)}, "glibc", "could not be measured"},
		{"not verified", []Result{measured("glibc", 1, 100, 101, 102), unverified}, "glibc", ""},
		{"crashed once", []Result{measured("glibc", 1, 100, 101, 102), crashed}, "glibc", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			compare(tt.results)
			ready := []variant.Ready{{Variant: variant.Variant{Name: "jemalloc"}, Preload: "/lib/x.so"}}
			r := recommend(tt.results, ready, GoalBoth)
			if r.Variant != tt.want || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("%s: %s", r.Variant, r.Reason)
			}
			if (r.Variant == "jemalloc") != (len(r.Lines.Shell) > 0) {
				t.Errorf("%s: lines %v", r.Variant, r.Lines)
			}
			if (r.Variant == "glibc") != (r.Cost == "") {
				t.Errorf("%s costs %q", r.Variant, r.Cost)
			}
		})
	}
}

// Runs that all failed by themselves give no advice; if one did not, they do.
func TestRecommendFailed(t *testing.T) {
	results := []Result{measured("glibc", 1, 100, 101, 102), measured("jemalloc", 1, 50, 51, 50)}
	for _, r := range results {
		for _, x := range r.all {
			x.Exit = &Exit{Code: 2}
		}
	}
	compare(results)
	if r := recommend(results, nil, GoalBoth); r.Variant != "" || !strings.Contains(r.Reason, "exit code 2") {
		t.Errorf("%q: %s", r.Variant, r.Reason)
	}
	for _, exit := range []*Exit{{}, nil} {
		results[1].all[2].Exit = exit
		if r := recommend(results, nil, GoalBoth); r.Variant != "jemalloc" {
			t.Errorf("%q: %s", r.Variant, r.Reason)
		}
	}
}

// The goal decides which of two that are better is recommended.
func TestGoals(t *testing.T) {
	for _, tt := range []struct {
		goal   Goal
		want   string
		reason string
	}{
		{GoalBoth, "jemalloc", "holds"},
		{GoalMemory, "mimalloc", "holds"},
		{GoalSpeed, "tcmalloc", "takes 0.50 s of CPU time, glibc 1.00 s: 50 % less"},
		{"", "jemalloc", "holds"},
	} {
		results := []Result{measured("glibc", 1, 100, 101, 102), measured("jemalloc", 1, 50, 51, 50), measured("mimalloc", 9, 20, 21, 20), measured("tcmalloc", 0.5, 150, 151, 152)}
		compare(results)
		if r := recommend(results, nil, tt.goal); r.Variant != tt.want || !strings.Contains(r.Reason, tt.reason) || r.Cost == "" {
			t.Errorf("%q: %s: %s; it costs %s", tt.goal, r.Variant, r.Reason, r.Cost)
		}
	}
	same := []Result{measured("glibc", 1, 100, 101, 102), measured("jemalloc", 1, 50, 51, 50)}
	compare(same)
	if r := recommend(same, nil, GoalSpeed); r.Variant != "glibc" || !strings.Contains(r.Reason, "stay on glibc") {
		t.Errorf("nothing is faster: %+v", r)
	}
}

// Two variants that do not differ pass for different less often than once in a
// hundred times; a real difference is seen, and with more runs a smaller one.
func TestOutside(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sample := func(runs int, mean float64) Result {
		var final []uint64
		for range runs {
			final = append(final, uint64(1000*(mean+rng.NormFloat64())))
		}
		return Result{Runs: runs, Spread: &Spread{FinalRSS: span(final)}}
	}
	for _, tt := range []struct {
		runs     int
		less     float64 // in standard deviations
		from, to int     // how often it is seen, of 10,000
	}{
		{3, 0, 0, 100},
		{4, 0, 0, 100},
		{enoughRuns, 0, 0, 100},
		{10, 0, 0, 100},
		{3, 8, 9500, 10000},
		{enoughRuns, 4, 9000, 10000},
	} {
		n := 0
		for range 10000 {
			a, b := sample(tt.runs, 100-tt.less), sample(tt.runs, 100)
			if outside(&a, &b) {
				n++
			}
		}
		if n < tt.from || n > tt.to {
			t.Errorf("with %d runs %g less is seen %d times in 10,000", tt.runs, tt.less, n)
		}
	}
}

func TestResult(t *testing.T) {
	s := &Spec{Ready: &Ready{}}
	v := &variant.Ready{Variant: variant.Variant{Name: "glibc"}}
	points := func(rss ...uint64) []Point {
		all := []Point{{Phase: Starting, RSSBytes: 1}, {Phase: Driven, RSSBytes: 10, PSSBytes: 8}}
		for _, n := range rss {
			all = append(all, Point{Phase: Settling, RSSBytes: n, PSSBytes: n - 1, LazyFreeBytes: 2})
		}
		return all
	}
	r := newResult(s, v, []*Run{
		{Verified: true, Settled: true, Points: points(90, 30, 31), Peak: 90, CPU: 3e9, Wall: 1e9},
		{Verified: true, Settled: true, Points: points(40), Peak: 40, CPU: 1e9, Wall: 2e9},
		{Verified: true, Err: "it broke", Exit: &Exit{Code: 3}},
	})
	if r.Runs != 2 || r.Failed != 1 || *r.Error != "it broke" || *r.ExitCode != 3 {
		t.Errorf("%+v", r)
	}
	// The medians of 31 and 40; ready at 10.
	if *r.FinalRSS != 35 || *r.Retained != 25 || *r.PeakRSS != 65 || *r.CPUS != 2 || *r.FinalPSS != 34 || *r.FinalLazyFree != 2 || *r.Final != FinalSettled {
		t.Errorf("%d %d %d %g %d %s", *r.FinalRSS, *r.Retained, *r.PeakRSS, *r.CPUS, *r.FinalPSS, *r.Final)
	}
	if r.Spread.FinalRSS != (Range[uint64]{31, 40}) || *r.Spread.Retained != (Range[int64]{21, 30}) {
		t.Errorf("%+v", r.Spread)
	}
	// Without a sign of being ready nothing is retained; at its end the last
	// sample counts.
	r = newResult(&Spec{}, v, []*Run{{Verified: true, Points: points(90, 30, 31)}})
	if r.Retained != nil || *r.FinalRSS != 31 || *r.Final != FinalAtExit || r.Spread != nil {
		t.Errorf("%+v", r)
	}
}

// An exit code that only one variant has is its failure.
func TestExitCodes(t *testing.T) {
	with := func(name string, code int) Result {
		r := measured(name, 1, 10, 10)
		r.ExitCode = &code
		return r
	}
	results := []Result{with("glibc", 1), with("jemalloc", 1), with("mimalloc", 134), measured("tcmalloc", 1, 10, 10)}
	compare(results)
	for i, failed := range []bool{false, false, true, false} {
		if (results[i].Error != nil) != failed {
			t.Errorf("%s: %v", results[i].Variant, results[i].Error)
		}
	}
}

func TestMedian(t *testing.T) {
	if m := median([]uint64{5, 1, 3}); m != 3 {
		t.Error(m)
	}
	if m := median([]int64{4, -2, 9, 0}); m != 2 {
		t.Error(m)
	}
	if m := median([]float64(nil)); m != 0 {
		t.Error(m)
	}
}

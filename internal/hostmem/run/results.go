package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

// How the final memory was measured.
const (
	FinalSettled = "settled" // the median while it settled
	FinalAtExit  = "at_exit" // when it was done; the median in the end of one that ended by itself
)

// Result is what the runs of one variant came to: medians over those that
// succeeded.
type Result struct {
	Variant        string             `json:"variant"`
	Library        *string            `json:"library"` // the file; null: none was preloaded
	LibraryVersion *string            `json:"library_version"`
	Env            []variant.Variable `json:"env"`
	Verified       bool               `json:"verified"`
	WallS          *float64           `json:"wall_s"`
	CPUS           *float64           `json:"cpu_s"`
	PeakRSS        *uint64            `json:"peak_rss_bytes"`
	FinalRSS       *uint64            `json:"final_rss_bytes"`
	FinalPSS       *uint64            `json:"final_pss_bytes"`
	FinalLazyFree  *uint64            `json:"final_lazy_free_bytes"`
	Final          *string            `json:"final"`
	Retained       *int64             `json:"retained_bytes"`
	Ratio          *float64           `json:"ratio_to_glibc"`
	// InUse is what the program holds, as malloc says; MallocHeld what malloc has
	// for it. Fragmentation is the part that is not in use of what malloc has, or of
	// FinalRSS if that is less: glibc counts pages that it has given back. They are
	// nil unless asked for, and where malloc does not tell.
	InUse         *uint64  `json:"in_use_bytes"`
	MallocHeld    *uint64  `json:"malloc_held_bytes"`
	Fragmentation *float64 `json:"fragmentation"`
	Faults        *uint64  `json:"faults"`
	Switches      *uint64  `json:"context_switches"`
	Processes     int      `json:"processes"`
	ExitCode      *int     `json:"exit_code"`
	Runs          int      `json:"runs"`   // that succeeded
	Failed        int      `json:"failed"` // that did not
	Error         *string  `json:"error"`  // of the first that did not
	Spread        *Spread  `json:"spread"` // null with fewer than two runs

	runs []*Run // that succeeded
	all  []*Run
}

// Spread is how far the runs lie apart.
type Spread struct {
	WallS    Range[float64] `json:"wall_s"`
	CPUS     Range[float64] `json:"cpu_s"`
	PeakRSS  Range[uint64]  `json:"peak_rss_bytes"`
	FinalRSS Range[uint64]  `json:"final_rss_bytes"`
	Retained *Range[int64]  `json:"retained_bytes"`
}

// Range is from the least to the most.
type Range[T cmp.Ordered] struct {
	Low  T `json:"low"`
	High T `json:"high"`
}

// Typical is the successful run whose final memory is the median; nil if none
// succeeded.
func (r *Result) Typical() *Run {
	if len(r.runs) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(r.runs), func(a, b *Run) int { return cmp.Compare(a.final(), b.final()) })
	return sorted[(len(sorted)-1)/2]
}

// final is the memory in the end.
func (r *Run) final() uint64 {
	points := r.Points
	if !r.Settled {
		points = r.lastPoints()
	}
	var all []uint64
	for _, p := range points {
		if !r.Settled || p.Phase == Settling {
			all = append(all, p.RSSBytes)
		}
	}
	return median(all)
}

// detailed is the last point with details before its processes go; nil if there
// is none.
func (r *Run) detailed() *Point {
	end := r.lastPoints()
	last := end[len(end)-1].At
	for i := len(r.Points) - 1; i >= 0; i-- {
		if p := &r.Points[i]; p.At <= last && p.PSSBytes > 0 {
			return p
		}
	}
	return nil
}

// retained is what it holds in the end and did not when it was ready. Without a
// sign of being ready there is nothing to compare with.
func (r *Run) retained(ready bool) (int64, bool) {
	i := slices.IndexFunc(r.Points, func(p Point) bool { return p.Phase == Driven })
	if !ready || i < 0 {
		return 0, false
	}
	return int64(r.final()) - int64(r.Points[i].RSSBytes), true
}

// newResult sums up the runs of a variant.
func newResult(s *Spec, v *variant.Ready, runs []*Run) Result {
	r := Result{Variant: v.Name, Env: v.Env, Verified: len(runs) > 0, all: runs}
	if r.Env == nil {
		r.Env = []variant.Variable{}
	}
	if v.Preload != "" {
		r.Library = &v.Preload
	}
	for _, run := range runs {
		if run.Found != nil && run.Found.Allocator == v.Allocator && r.LibraryVersion == nil {
			r.LibraryVersion = run.Found.Version
		}
		if run.Exit != nil && (r.ExitCode == nil || run.Exit.Code != 0) {
			r.ExitCode = &run.Exit.Code
		}
		r.Verified = r.Verified && run.Verified
		r.Processes = max(r.Processes, run.processes)
		if run.Err != "" {
			r.Failed++
			if r.Error == nil {
				r.Error = &run.Err
			}
			continue
		}
		r.runs = append(r.runs, run)
	}
	r.Runs = len(r.runs)
	if r.Runs > 0 {
		r.sumUp(s.Ready != nil)
	}
	return r
}

func (r *Result) sumUp(ready bool) {
	wall := over(r.runs, func(x *Run) float64 { return seconds(x.Wall) })
	cpu := over(r.runs, func(x *Run) float64 { return seconds(x.CPU) })
	peak := over(r.runs, func(x *Run) uint64 { return x.Peak })
	final := over(r.runs, (*Run).final)
	r.WallS, r.CPUS, r.PeakRSS, r.FinalRSS = new(median(wall)), new(median(cpu)), new(median(peak)), new(median(final))
	r.Faults = new(median(over(r.runs, func(x *Run) uint64 { return x.Faults })))
	r.Switches = new(median(over(r.runs, func(x *Run) uint64 { return x.Switches })))
	r.Final = new(FinalAtExit)
	if !slices.ContainsFunc(r.runs, func(x *Run) bool { return !x.Settled }) {
		r.Final = new(FinalSettled)
	}
	var pss, lazy []uint64
	var retained []int64
	for _, x := range r.runs {
		if p := x.detailed(); p != nil {
			pss, lazy = append(pss, p.PSSBytes), append(lazy, p.LazyFreeBytes)
		}
		if n, ok := x.retained(ready); ok {
			retained = append(retained, n)
		}
	}
	if len(pss) > 0 {
		r.FinalPSS, r.FinalLazyFree = new(median(pss)), new(median(lazy))
	}
	if len(retained) > 0 {
		r.Retained = new(median(retained))
	}
	r.inside()
	if r.Runs < 2 {
		return
	}
	r.Spread = &Spread{WallS: span(wall), CPUS: span(cpu), PeakRSS: span(peak), FinalRSS: span(final)}
	if len(retained) > 0 {
		r.Spread.Retained = new(span(retained))
	}
}

// inside sums up what malloc said.
func (r *Result) inside() {
	var used, held []uint64
	for _, x := range r.runs {
		if x.Inside != nil {
			used, held = append(used, x.Inside.InUse), append(held, x.Inside.Held)
		}
	}
	if len(used) == 0 {
		return
	}
	r.InUse, r.MallocHeld = new(median(used)), new(median(held))
	if held := min(*r.MallocHeld, *r.FinalRSS); held > 0 {
		r.Fragmentation = new(max(0, 1-float64(*r.InUse)/float64(held)))
	}
}

// compare adds what follows from the baseline: ratios, and exit codes that it
// does not have.
func compare(results []Result) {
	i := slices.IndexFunc(results, func(r Result) bool { return r.Variant == variant.Baseline })
	if i < 0 {
		return
	}
	base := results[i]
	for j := range results {
		r := &results[j]
		if base.FinalRSS != nil && r.FinalRSS != nil && *base.FinalRSS > 0 {
			r.Ratio = new(float64(*r.FinalRSS) / float64(*base.FinalRSS))
		}
		if r.Error == nil && r.ExitCode != nil && *r.ExitCode != 0 && (base.ExitCode == nil || *base.ExitCode != *r.ExitCode) {
			r.Error = new(fmt.Sprintf("exit code %d, which it does not have with %s", *r.ExitCode, variant.Baseline))
		}
	}
}

func over[T any](runs []*Run, value func(*Run) T) []T {
	all := make([]T, len(runs))
	for i, r := range runs {
		all[i] = value(r)
	}
	return all
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// median is the middle value, or the mean of the two in the middle.
func median[T uint64 | int64 | float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	if n%2 == 1 {
		return sorted[n/2]
	}
	a, b := sorted[n/2-1], sorted[n/2]
	return a + (b-a)/2
}

func span[T cmp.Ordered](values []T) Range[T] {
	return Range[T]{slices.Min(values), slices.Max(values)}
}

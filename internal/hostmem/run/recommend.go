package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Goal is what a recommendation is for.
type Goal string

// The goals; the zero value is GoalBoth.
const (
	GoalMemory Goal = "memory" // the least memory, whatever it costs
	GoalSpeed  Goal = "speed"  // the least CPU time, whatever it holds
	GoalBoth   Goal = "both"   // the least memory times CPU time
)

// Recommendation is the variant to use, and why. It is the baseline where
// nothing is better.
type Recommendation struct {
	Variant string        `json:"variant"`
	Reason  string        `json:"reason"`
	Cost    string        `json:"cost"` // in time; empty for the baseline
	Lines   variant.Lines `json:"lines"`
}

// below reports whether all runs of a hold less in the end than any run of b.
func below(a, b *Result) bool {
	return a.Spread != nil && b.Spread != nil && a.Spread.FinalRSS.High < b.Spread.FinalRSS.Low
}

// outside reports whether a holds less in the end than b by more than the spread:
// a is below b, and not by chance. Either the gap between their runs is wider than
// the spread of either, or there are many runs.
//
// With three runs each, two equal variants have such a gap in fewer than one of a
// hundred cases; that one is only below the other happens in five.
func outside(a, b *Result) bool {
	return below(a, b) && apart(a.Spread.FinalRSS, b.Spread.FinalRSS, a.Runs, b.Runs)
}

// apart reports whether all of n runs are below m others, and not by chance.
func apart[T uint64 | float64](x, y Range[T], n, m int) bool {
	return x.High < y.Low && (y.Low-x.High > max(x.High-x.Low, y.High-y.Low) || choices(n+m, n) >= 100)
}

// enoughRuns is how many runs of each suffice to be below.
const enoughRuns = 5

// choices is in how many ways k of n can be the lowest.
func choices(n, k int) float64 {
	ways := 1.0
	for i := range k {
		ways = ways * float64(n-i) / float64(i+1)
	}
	return ways
}

// weight is memory times CPU time: where one is halved and the other doubled,
// nothing is won.
func (r *Result) weight() float64 { return float64(*r.FinalRSS) * *r.CPUS }

// weights is from the least weight of a run to the most.
func (r *Result) weights() Range[float64] {
	return span(over(r.runs, func(x *Run) float64 { return float64(x.final()) * x.CPU.Seconds() }))
}

// eligible reports whether a variant can be recommended: all of its runs
// succeeded and were verified.
func (r *Result) eligible() bool {
	return r.Runs > 0 && r.Failed == 0 && r.Error == nil && r.Verified
}

// recommend chooses, for both, among the variants that hold less than the baseline
// by more than the spread the one whose memory times CPU time is the least, if
// that, too, is less than the baseline's by more than the spread. For memory or
// speed alone only that counts.
func recommend(results []Result, ready []variant.Ready, goal Goal) Recommendation {
	if e := commandFailed(results); e != nil {
		return Recommendation{Reason: "no advice: the command failed under every malloc, with " + e.String(), Lines: (&variant.Ready{}).Lines()}
	}
	stay := Recommendation{Variant: variant.Baseline, Lines: (&variant.Ready{}).Lines()}
	var base *Result
	for i := range results {
		if results[i].Variant == variant.Baseline {
			base = &results[i]
		}
	}
	switch {
	case base == nil || base.Runs == 0:
		stay.Reason = "stay on glibc: it could not be measured, so nothing can be compared with it"
		return stay
	case base.Spread == nil:
		stay.Reason = "stay on glibc: one run each does not show the spread; repeat them (--repeat 3)"
		return stay
	}
	if goal == GoalSpeed {
		return recommendSpeed(results, ready, base, stay)
	}
	var best *Result
	var dear, unsure []*Result
	for i := range results {
		r := &results[i]
		switch {
		case goal == GoalMemory && r != base && r.eligible() && outside(r, base):
			if best == nil || *r.FinalRSS < *best.FinalRSS {
				best = r
			}
		case r == base || !r.eligible() || !below(r, base):
		case !outside(r, base):
			unsure = append(unsure, r)
		case !apart(r.weights(), base.weights(), r.Runs, base.Runs):
			dear = append(dear, r)
		case best == nil || r.weight() < best.weight():
			best = r
		}
	}
	if best == nil {
		stay.Reason = stayReason(base, dear, unsure)
		return stay
	}
	return recommended(best, ready, betterReason(best, base), cost(best, base))
}

func recommended(best *Result, ready []variant.Ready, reason, cost string) Recommendation {
	rec := Recommendation{Variant: best.Variant, Reason: reason, Cost: cost}
	for i := range ready {
		if ready[i].Name == best.Variant {
			rec.Lines = ready[i].Lines()
		}
	}
	return rec
}

// recommendSpeed chooses the variant with the least CPU time, if it is less than the
// baseline's by more than the spread.
func recommendSpeed(results []Result, ready []variant.Ready, base *Result, stay Recommendation) Recommendation {
	var best *Result
	for i := range results {
		r := &results[i]
		if r == base || !r.eligible() || r.Spread == nil || !apart(r.Spread.CPUS, base.Spread.CPUS, r.Runs, base.Runs) {
			continue
		}
		if best == nil || *r.CPUS < *best.CPUS {
			best = r
		}
	}
	if best == nil {
		stay.Reason = fmt.Sprintf("stay on glibc: nothing takes less than its %.2f s of CPU time by more than the spread", *base.CPUS)
		return stay
	}
	reason := fmt.Sprintf("%s takes %.2f s of CPU time, glibc %.2f s: %.0f %% less", best.Variant, *best.CPUS, *base.CPUS, 100*(1 - *best.CPUS / *base.CPUS))
	return recommended(best, ready, reason, fmt.Sprintf("memory %.2f of glibc's (%s, glibc %s)", *best.Ratio, units.Size(*best.FinalRSS), units.Size(*base.FinalRSS)))
}

func betterReason(r, base *Result) string {
	return fmt.Sprintf("%s holds %s %s, glibc %s: %s less. Its runs lie %s apart, those of glibc %s",
		r.Variant, units.Size(*r.FinalRSS), finally(r), units.Size(*base.FinalRSS), units.Size(*base.FinalRSS-*r.FinalRSS),
		units.Size(width(r)), units.Size(width(base)))
}

func width(r *Result) uint64 { return r.Spread.FinalRSS.High - r.Spread.FinalRSS.Low }

func finally(r *Result) string {
	if *r.Final == FinalAtExit {
		return "at its end"
	}
	return "when it is idle"
}

func stayReason(base *Result, dear, unsure []*Result) string {
	if len(unsure) > 0 {
		var names []string
		for _, r := range unsure {
			names = append(names, r.Variant)
		}
		return fmt.Sprintf("stay on glibc, or repeat more often (--repeat %d): %s held less in all runs, but runs lie up to %s apart and could have done so by chance",
			enoughRuns, strings.Join(names, ", "), units.Size(width(slices.MaxFunc(append(unsure, base), func(a, b *Result) int { return cmp.Compare(width(a), width(b)) }))))
	}
	if len(dear) == 0 {
		return fmt.Sprintf("stay on glibc: nothing holds less than its %s %s by more than the spread", units.Size(*base.FinalRSS), finally(base))
	}
	var each []string
	for _, r := range dear {
		each = append(each, fmt.Sprintf("%s holds %.2f of glibc's memory for %.2f of its CPU time", r.Variant, *r.Ratio, *r.CPUS / *base.CPUS))
	}
	return "stay on glibc: nothing has less memory times CPU time by more than the spread; " + strings.Join(each, ", ")
}

// cost says what a variant costs in time.
func cost(r, base *Result) string {
	text := "CPU time " + against(*r.CPUS, *base.CPUS, r.Spread.CPUS, base.Spread.CPUS)
	return text + "; time " + against(*r.WallS, *base.WallS, r.Spread.WallS, base.Spread.WallS)
}

// against words a time beside that of the baseline.
func against(a, b float64, x, y Range[float64]) string {
	if b == 0 {
		return fmt.Sprintf("%.2f s", a)
	}
	text := fmt.Sprintf("%+.0f %% (%.2f s, glibc %.2f s)", 100*(a/b-1), a, b)
	if x.Low <= y.High && y.Low <= x.High {
		text += ", within the spread"
	}
	return text
}

package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// A value is what an experiment gave for one run or size.
type value struct {
	of string
	x  float64
}

// A rule says which values a claim is right about.
type rule struct {
	words string
	ok    func(float64) bool
}

func between(low, high float64, show func(float64) string) rule {
	return rule{"between " + show(low) + " and " + show(high), func(x float64) bool { return x >= low && x <= high }}
}

func exactly(want float64, show func(float64) string) rule {
	return rule{show(want), func(x float64) bool { return x == want }}
}

func atLeast(least float64, show func(float64) string) rule {
	return rule{"at least " + show(least), func(x float64) bool { return x >= least }}
}

func atMost(most float64, show func(float64) string) rule {
	return rule{"at most " + show(most), func(x float64) bool { return x <= most }}
}

func below(bound float64, show func(float64) string) rule {
	return rule{"below " + show(bound), func(x float64) bool { return x < bound }}
}

// The verdicts.
const (
	holds      = "holds"
	holdsWhen  = "holds when"
	holdsNever = "does not hold"
	open       = "open"
)

// verdict judges values by a rule, and counts those that follow it.
func verdict(values []value, r rule) (string, int) {
	n := 0
	for _, v := range values {
		if r.ok(v.x) {
			n++
		}
	}
	switch {
	case len(values) == 0:
		return open, 0
	case n == len(values):
		return holds, n
	case n == 0:
		return holdsNever, n
	}
	return holdsWhen, n
}

// summary says where values lie: all of a few, else their range and median.
func summary(values []value, show func(float64) string) string {
	if len(values) <= 4 {
		var parts []string
		for _, v := range values {
			part := show(v.x)
			if v.of != "" {
				part += " (" + v.of + ")"
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ", ")
	}
	sorted := slices.Clone(values)
	slices.SortStableFunc(sorted, func(a, b value) int { return int(math.Copysign(1, a.x-b.x)) * btoi(a.x != b.x) })
	first, last := sorted[0], sorted[len(sorted)-1]
	middle := (sorted[(len(sorted)-1)/2].x + sorted[len(sorted)/2].x) / 2
	return fmt.Sprintf("median %s, from %s (%s) to %s (%s)", show(middle), show(first.x), first.of, show(last.x), last.of)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// How values are written.

func percent(x float64) string {
	digits := 1
	if math.Abs(x) >= 0.1 {
		digits = 0
	}
	return strconv.FormatFloat(100*x, 'f', digits, 64) + " %"
}

func change(x float64) string {
	if x > 0 {
		return "+" + percent(x)
	}
	return percent(x)
}

func times(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) + " times" }

func plain(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

func size(x float64) string { return units.Size(uint64(x)) }

// duration writes seconds.
func duration(x float64) string {
	switch {
	case x >= 1:
		return strconv.FormatFloat(x, 'g', 3, 64) + " s"
	case x >= 1e-3:
		return strconv.FormatFloat(1e3*x, 'g', 3, 64) + " ms"
	case x >= 1e-6:
		return strconv.FormatFloat(1e6*x, 'g', 3, 64) + " µs"
	}
	return strconv.FormatFloat(1e9*x, 'g', 3, 64) + " ns"
}

func plainPercent(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + " %" }

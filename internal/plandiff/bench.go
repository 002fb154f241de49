package main

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/plan/recorded"
)

// bar is what the errors over all measured cases may be.
type bar struct {
	what        string
	median, max float64
	value       func(recorded.Peaks) int64
}

var bars = []bar{
	{"allocated", 0.001, 0.01, func(p recorded.Peaks) int64 { return p.Allocated }},
	{"reserved", 0.015, 0.06, func(p recorded.Peaks) int64 { return p.Reserved }},
}

var errBars = errors.New("the plan is further off than it may be")

// printBench prints the measured cases beside their plans. Cases whose plan is
// refused count as wholly wrong.
func printBench(out *bufio.Writer, only []string) error {
	cases, err := recorded.Measured()
	if err != nil {
		return err
	}
	if len(only) > 0 {
		cases = slices.DeleteFunc(cases, func(c recorded.Case) bool { return !slices.Contains(only, c.Name) })
	}
	if len(cases) == 0 {
		return errors.New("there is no such measured case")
	}
	fmt.Fprintf(out, "%-14s %12s %12s %9s %12s %12s %9s %8s\n", "case", "allocated", "planned", "error", "reserved", "planned", "error", "ms")
	errs := make([][]float64, len(bars))
	for i := range cases {
		c := &cases[i]
		start := time.Now()
		got, err := planPeaks(c)
		took := time.Since(start)
		want := c.Peaks()
		fmt.Fprintf(out, "%-14s", c.Name)
		for k, b := range bars {
			if err != nil {
				errs[k] = append(errs[k], math.Inf(1))
				continue
			}
			e := recorded.Off(b.value(got), b.value(want))
			errs[k] = append(errs[k], math.Abs(e))
			fmt.Fprintf(out, " %12s %12s %+8.3f%%", units.Size(uint64(b.value(want))), units.Size(uint64(b.value(got))), 100*e)
		}
		if err != nil {
			fmt.Fprintf(out, " %v\n", err)
		} else {
			fmt.Fprintf(out, " %8.1f\n", took.Seconds()*1e3)
		}
		out.Flush()
	}
	failed := false
	for k, b := range bars {
		median, worst, ok := b.holds(errs[k])
		failed = failed || !ok
		verdict := "holds"
		if !ok {
			verdict = "FAILS"
		}
		fmt.Fprintf(out, "%-10s median %.3f%% (bar %.1f%%), max %.3f%% (bar %.1f%%): %s\n", b.what, 100*median, 100*b.median, 100*worst, 100*b.max, verdict)
	}
	if failed {
		return errBars
	}
	return nil
}

func planPeaks(c *recorded.Case) (recorded.Peaks, error) {
	l, err := execute(c)
	if err != nil {
		return recorded.Peaks{}, err
	}
	return recorded.Through(l)
}

// holds gives the median and the largest error and judges them.
func (b *bar) holds(errs []float64) (median, worst float64, ok bool) {
	errs = slices.Sorted(slices.Values(errs))
	n := len(errs)
	median, worst = (errs[(n-1)/2]+errs[n/2])/2, errs[n-1]
	return median, worst, median <= b.median && worst <= b.max
}

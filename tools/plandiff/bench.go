package main

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
)

// bar is what errors over some runs may be.
type bar struct {
	what        string
	median, max float64
}

// The bars of the cases that the planner was begun with, and of those that were
// planned before they were measured.
var (
	knownBars = []bar{{"allocated", 0.001, 0.01}, {"reserved", 0.015, 0.06}}
	blindBars = []bar{{"allocated", 0.005, 0.03}, {"reserved", 0.015, 0.06}}

	expandableBar = bar{"reserved", 0.03, 0.03}
	deviceBar     = bar{"used on the device", 0.02, 0.02}
)

var errBars = errors.New("the plan is further off than it may be")

// bench prints measured runs beside their plans.
type bench struct {
	out    *bufio.Writer
	only   []string
	runs   int
	failed bool
}

// printBench prints the tables of docs/measured/plan.md. Cases whose plan is refused
// count as wholly wrong.
func printBench(out *bufio.Writer, only []string) error {
	b := &bench{out: out, only: only}
	for _, part := range []func() error{b.known, b.blind, b.training} {
		if err := part(); err != nil {
			return err
		}
	}
	switch {
	case b.runs == 0:
		return errors.New("there is no such measured case")
	case b.failed:
		return errBars
	}
	return nil
}

// wanted reports whether to show a case.
func (b *bench) wanted(name string) bool { return len(b.only) == 0 || slices.Contains(b.only, name) }

// known are the cases that the planner was begun with.
func (b *bench) known() error {
	return b.measured("Measured before the planner was begun", plancompare.FirstCases, true)
}

// training are options of training in combinations: too many for a table.
func (b *bench) training() error {
	return b.measured("Options of training", plancompare.TrainingCases, len(b.only) > 0)
}

// measured holds the cases of a file against their bars.
func (b *bench) measured(title, file string, table bool) error {
	cases, err := plancompare.MeasuredIn(file)
	if err != nil {
		return err
	}
	rows, errs, err := b.peaks(cases)
	if err != nil || len(rows) == 0 {
		return err
	}
	b.title(title)
	if table {
		b.table(peakColumns, rows)
	}
	b.verdicts("", knownBars, errs)
	return nil
}

// peaks are the rows of a table of cases, and the errors of allocated and
// reserved memory.
func (b *bench) peaks(cases []plancompare.Case) (rows [][]string, errs [2][]float64, err error) {
	for i := range cases {
		c := &cases[i]
		if !b.wanted(c.Name) {
			continue
		}
		b.runs++
		got, want := plancompare.Peaks{Allocated: math.MaxInt64, Reserved: math.MaxInt64}, c.Peaks()
		l, err := execute(c)
		if err == nil {
			got, err = plancompare.Through(l)
		}
		if err != nil {
			fmt.Fprintf(b.out, "%s: %v\n", c.Name, err)
		}
		said, err := describe(c.Spec, c.Params)
		if err != nil {
			return nil, errs, err
		}
		row := []string{c.Name, said}
		row = append(row, pair(&errs[0], uint64(got.Allocated), uint64(want.Allocated))...)
		row = append(row, pair(&errs[1], uint64(got.Reserved), uint64(want.Reserved))...)
		rows = append(rows, row)
	}
	return rows, errs, nil
}

// verdicts judges errors of allocated and reserved memory.
func (b *bench) verdicts(of string, bars []bar, errs [2][]float64) {
	for i, x := range bars {
		b.verdict(of, x, errs[i])
	}
	fmt.Fprintln(b.out)
}

func (b *bench) verdict(of string, x bar, errs []float64) {
	median, worst, ok := x.holds(errs)
	said := "holds"
	if !ok {
		said, b.failed = "FAILS", true
	}
	fmt.Fprintf(b.out, "%s%s, %d runs: median %.4f %% (bar %g %%), worst %.4f %% (bar %g %%): %s\n",
		of, x.what, len(errs), 100*median, 100*x.median, 100*worst, 100*x.max, said)
}

// holds gives the median and the largest error and judges them.
func (x *bar) holds(errs []float64) (median, worst float64, ok bool) {
	errs = slices.Sorted(slices.Values(errs))
	n := len(errs)
	if n == 0 {
		return 0, 0, true
	}
	median, worst = (errs[(n-1)/2]+errs[n/2])/2, errs[n-1]
	return median, worst, median <= x.median && worst <= x.max
}

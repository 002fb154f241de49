package main

import (
	"bufio"
	"context"
	"fmt"
	"path"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
)

// printAll prints a line for each recording.
func printAll(out *bufio.Writer, patterns []string) error {
	names, err := plancompare.Names()
	if err != nil {
		return err
	}
	var chosen []string
	for _, n := range names {
		ok := len(patterns) == 0
		for _, p := range patterns {
			m, err := path.Match(p, n)
			if err != nil {
				return fmt.Errorf("%q: %w", p, err)
			}
			ok = ok || m
		}
		if ok {
			chosen = append(chosen, n)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no recording is called like that; there are %v", names)
	}
	fmt.Fprintf(out, "%-26s %24s %21s  %25s %10s\n", "", "births covered (bytes)", "of step 3", "error of peak", "")
	fmt.Fprintf(out, "%-26s %11s %12s %10s %10s  %10s %10s %10s %9s  %s\n", "case", ">= 1 MiB", "all", ">= 1 MiB", "all", "requested", "allocated", "reserved", "rows off", "level")
	lines := make([]result, len(chosen))
	if err := parallel.Each(context.Background(), parallel.AllCores, len(chosen), func(i int) error {
		lines[i] = line(chosen[i])
		return nil
	}); err != nil {
		return err
	}
	count := map[plancompare.Level]int{}
	for i, l := range lines {
		fmt.Fprintf(out, "%-26s %s\n", chosen[i], l.text)
		count[l.level]++
	}
	fmt.Fprintf(out, "%d recordings: %d the same in every event, %d more with all peaks exact, %d more within the bars, %d far, %d refused\n",
		len(lines), count[plancompare.Same], count[plancompare.Exact], count[plancompare.Near], count[plancompare.Far], count[""])
	return nil
}

type result struct {
	text  string
	level plancompare.Level // empty if there is no plan
}

func line(name string) result {
	run, err := plancompare.Open(name)
	if err != nil {
		return result{text: err.Error()}
	}
	planned, err := execute(&run.Case)
	if err != nil {
		return result{text: err.Error()}
	}
	f, err := plancompare.Compare(planned, run).Figures()
	if err != nil {
		return result{text: err.Error()}
	}
	return result{level: f.Level(), text: fmt.Sprintf("%10.2f%% %11.2f%% %9.2f%% %9.2f%%  %+9.3f%% %+9.3f%% %+9.3f%% %9d  %s",
		100*f.Large.Share(), 100*f.All.Share(), 100*f.LargeScored.Share(), 100*f.AllScored.Share(),
		100*plancompare.Off(f.Planned.Requested, f.Measured.Requested), 100*plancompare.Off(f.Planned.Allocated, f.Measured.Allocated),
		100*plancompare.Off(f.Planned.Reserved, f.Measured.Reserved), f.Differing, f.Level())}
}

package main

import (
	"bufio"
	"fmt"
	"math"
	"path"
	"runtime"
	"sync"

	"github.com/ashlar-mem/ashlar/plan/ledger"
	"github.com/ashlar-mem/ashlar/plan/recorded"
)

// figures say how close a plan is to a recording.
type figures struct {
	large, all, largeScored, allScored recorded.Cover
	peaks                              recorded.Peaks
}

func figuresOf(planned *ledger.Ledger, run *recorded.Run) (figures, error) {
	rec := run.Ledger
	f := figures{
		large:       recorded.Covered(planned, rec, 0, 0, recorded.Large),
		all:         recorded.Covered(planned, rec, 0, 0, 0),
		largeScored: recorded.Covered(planned, rec, planned.Scored(), rec.Scored(), recorded.Large),
		allScored:   recorded.Covered(planned, rec, planned.Scored(), rec.Scored(), 0),
	}
	var err error
	f.peaks, err = recorded.Through(planned)
	return f, err
}

// off is by which part of the measured value a planned one differs.
func off(planned, measured int64) float64 {
	if measured == 0 {
		return math.Inf(1)
	}
	return float64(planned-measured) / float64(measured)
}

// printAll prints a line for each recording.
func printAll(out *bufio.Writer, patterns []string) error {
	names, err := recorded.Names()
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
	fmt.Fprintf(out, "%-26s %11s %12s %10s %10s  %10s %10s %10s\n", "case", ">= 1 MiB", "all", ">= 1 MiB", "all", "requested", "allocated", "reserved")
	lines := parallel(chosen, line)
	exact, failed := 0, 0
	for i, l := range lines {
		fmt.Fprintf(out, "%-26s %s\n", chosen[i], l.text)
		if l.failed {
			failed++
		}
		if l.exact {
			exact++
		}
	}
	fmt.Fprintf(out, "%d recordings: %d planned, %d of them with all three peaks exact, %d refused\n", len(lines), len(lines)-failed, exact, failed)
	return nil
}

type result struct {
	text          string
	exact, failed bool
}

func line(name string) result {
	run, err := recorded.Open(name)
	if err != nil {
		return result{text: err.Error(), failed: true}
	}
	planned, err := plan(&run.Case)
	if err != nil {
		return result{text: err.Error(), failed: true}
	}
	f, err := figuresOf(planned, run)
	if err != nil {
		return result{text: err.Error(), failed: true}
	}
	want := run.Peaks()
	return result{exact: f.peaks == want, text: fmt.Sprintf("%10.2f%% %11.2f%% %9.2f%% %9.2f%%  %+9.3f%% %+9.3f%% %+9.3f%%",
		100*f.large.Share(), 100*f.all.Share(), 100*f.largeScored.Share(), 100*f.allScored.Share(),
		100*off(f.peaks.Requested, want.Requested), 100*off(f.peaks.Allocated, want.Allocated), 100*off(f.peaks.Reserved, want.Reserved))}
}

// parallel calls f for each name and keeps the order.
func parallel[T any](names []string, f func(string) T) []T {
	out := make([]T, len(names))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				out[i] = f(names[i])
			}
		})
	}
	for i := range names {
		next <- i
	}
	close(next)
	wg.Wait()
	return out
}

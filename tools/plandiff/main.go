package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/units"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := run(out, os.Args[1:])
	out.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "plandiff:", err)
		if errors.Is(err, errBars) {
			os.Exit(1)
		}
		os.Exit(2)
	}
}

type options struct {
	phase   string
	least   int64
	context int
	limit   int
	full    bool
	with    string
}

func run(out *bufio.Writer, args []string) error {
	f := flag.NewFlagSet("plandiff", flag.ContinueOnError)
	var o options
	var least string
	var all, table bool
	var pack, cases string
	f.StringVar(&o.phase, "phase", "", "show only this phase: forward2, or forward for all of them")
	f.StringVar(&least, "min", "0", "show only tensors of at least so many bytes")
	f.IntVar(&o.context, "context", 2, "equal events around a difference")
	f.IntVar(&o.limit, "limit", 200, "differing rows to print at most; 0 is all")
	f.BoolVar(&o.full, "full", false, "print equal events too")
	f.StringVar(&o.with, "with", "", "another recording to put in the place of the plan")
	f.BoolVar(&all, "all", false, "a table of all recordings, or of those whose names match the arguments")
	f.BoolVar(&table, "table", false, "tables of the measured cases, or of those that are named")
	f.StringVar(&pack, "pack", "", "compact the recordings of a folder")
	f.StringVar(&cases, "predict", "", "plan the cases of a file, a JSON line each")
	var names []string
	for {
		if err := f.Parse(args); err != nil {
			return err
		}
		if f.NArg() == 0 {
			break
		}
		names, args = append(names, f.Arg(0)), f.Args()[1:]
	}
	size, err := units.Parse(least)
	if err != nil {
		return err
	}
	o.least = int64(size)
	switch {
	case pack != "":
		return packFolder(out, pack)
	case cases != "":
		return predict(out, cases)
	case table:
		return printBench(out, names)
	case all || len(names) > 1 || len(names) == 1 && strings.ContainsAny(names[0], "*?["):
		return printAll(out, names)
	case len(names) == 1:
		return printCase(out, names[0], o)
	}
	return errors.New("which case? A name, or -all, or -table")
}

// execute runs the planner. A panic of it is one case's error, so that the others
// are still seen.
func execute(c *plancompare.Case) (l *ledger.Ledger, err error) {
	defer func() {
		if p := recover(); p != nil {
			l, err = nil, fmt.Errorf("panic: %v at %s", p, blame(string(debug.Stack())))
		}
	}()
	j, err := c.Job()
	if err != nil {
		return nil, err
	}
	r, err := hf.Run(context.Background(), j)
	if err != nil {
		return nil, err
	}
	return r.Ledger, nil
}

// blame finds the line of the planner in a stack.
func blame(stack string) string {
	_, stack, _ = strings.Cut(stack, "panic(")
	var at []string
	for line := range strings.Lines(stack) {
		if i := strings.Index(line, "/internal/"); i >= 0 && strings.HasPrefix(line, "\t") {
			place, _, _ := strings.Cut(strings.TrimSpace(line[i+1:]), " ")
			if at = append(at, place); len(at) == 3 {
				break
			}
		}
	}
	return strings.Join(at, " < ")
}

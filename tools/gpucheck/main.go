package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/ashlar-mem/ashlar/internal/replay/oracle"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The exit codes.
const (
	exitGood  = 0
	exitBad   = 1 // something is not as it should be, or the device failed
	exitUsage = 2 // no such device, wrong arguments, unreadable file
)

// errUsage marks what is wrong with the arguments.
var errUsage = errors.New("wrong arguments")

// report is what a subcommand found.
type report interface {
	write(w io.Writer)
	good() bool
}

func (r *oracleReport) good() bool { return r.OK }

// arguments are the flags of all subcommands.
type arguments struct {
	driver string
	json   bool
	both   bool
	plan   plan
	soak   soakPlan
	files  []string
}

type command struct {
	about string
	flags func(*flag.FlagSet, *arguments)
	run   func(context.Context, *rig, *arguments, io.Writer) (report, error)
}

var commands = map[string]command{
	"oracle": {"FILE...: perform recordings of PyTorch on the device and compare", oracleFlags, runOracle},
	"memory": {"fill and check every block of random programs", func(f *flag.FlagSet, a *arguments) { programFlags(f, a, fullPlan) }, runMemory},
	"small":  {"the same with few blocks, for compute-sanitizer", func(f *flag.FlagSet, a *arguments) { programFlags(f, a, smallPlan) }, runMemory},
	"soak":   {"many goroutines at once; nothing may grow", soakFlags, runSoak},
}

// run is the program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		return usage(stderr)
	}
	c, ok := commands[args[0]]
	if !ok {
		return usage(stderr)
	}
	var a arguments
	f := flag.NewFlagSet("gpucheck "+args[0], flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&a.driver, "driver", "cuda", "device: cuda, or host for this machine's memory")
	f.BoolVar(&a.json, "json", false, "print one JSON document")
	c.flags(f, &a)
	if err := f.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitGood
		}
		return exitUsage
	}
	a.files = f.Args()
	r, err := openRig(a.driver)
	if err != nil {
		fmt.Fprintln(stderr, "gpucheck:", err)
		return exitUsage
	}
	got, err := c.run(ctx, r, &a, stderr)
	if closing := r.close(); err == nil && closing != nil {
		err = fmt.Errorf("closing the device: %w", closing)
	}
	if err != nil {
		fmt.Fprintln(stderr, "gpucheck:", err)
		var input *oracle.InputError
		if errors.As(err, &input) || errors.Is(err, errUsage) {
			return exitUsage
		}
		return exitBad
	}
	if a.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(got); err != nil {
			fmt.Fprintln(stderr, "gpucheck:", err)
			return exitUsage
		}
	} else {
		got.write(stdout)
	}
	if !got.good() {
		return exitBad
	}
	return exitGood
}

func usage(w io.Writer) int {
	names := make([]string, 0, len(commands))
	for n := range commands {
		names = append(names, n)
	}
	slices.Sort(names)
	fmt.Fprintln(w, "usage: gpucheck COMMAND [flags]")
	for _, n := range names {
		fmt.Fprintf(w, "  %-7s %s\n", n, commands[n].about)
	}
	return exitUsage
}

func oracleFlags(f *flag.FlagSet, a *arguments) {
	f.BoolVar(&a.both, "both", false, "perform every recording with ties broken as recorded too, not only those that parted")
}

func runOracle(ctx context.Context, r *rig, a *arguments, progress io.Writer) (report, error) {
	if len(a.files) == 0 {
		return nil, fmt.Errorf("%w: name the recordings to perform", errUsage)
	}
	c := &checker{dev: r.dev, both: a.both}
	n := 0
	return c.oracle(ctx, a.files, func(x *oracleResult) {
		n++
		fmt.Fprintf(progress, "%d of %d  %s: %s, %.1f s\n", n, len(a.files), x.File, x.layout(), x.Seconds)
	})
}

func programFlags(f *flag.FlagSet, a *arguments, p plan) {
	a.plan = p
	f.Uint64Var(&a.plan.seed, "seed", p.seed, "of the random programs")
	f.IntVar(&a.plan.operations, "operations", p.operations, "of each program")
	f.DurationVar(&a.plan.longest, "for", p.longest, "time after which a program ends early")
}

func runMemory(ctx context.Context, r *rig, a *arguments, progress io.Writer) (report, error) {
	return checkMemory(ctx, r, a.plan, progress)
}

func soakFlags(f *flag.FlagSet, a *arguments) {
	a.soak = fullSoak
	f.DurationVar(&a.soak.time, "for", 30*time.Second, "how long, warming up included")
	f.Uint64Var(&a.soak.seed, "seed", 1, "of the random programs")
	f.IntVar(&a.soak.workers, "goroutines", fullSoak.workers, "that use the allocator at once")
}

func runSoak(ctx context.Context, r *rig, a *arguments, progress io.Writer) (report, error) {
	return soak(ctx, r, a.soak, progress)
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// patience is how long anything may take before it counts as failed.
const patience = 60 * time.Second

// options are the flags.
type options struct {
	ashlar, load string
	jobs         int
	lasts        time.Duration
	shots, store string
}

func main() {
	var o options
	flag.StringVar(&o.ashlar, "ashlar", "../bin/ashlar", "the program")
	flag.StringVar(&o.load, "watchload", "../bin/watchload", "tools/watchload, built")
	flag.IntVar(&o.jobs, "jobs", 200, "how many jobs there are")
	flag.DurationVar(&o.lasts, "lasts", 10*time.Minute, "how long the page is looked at")
	flag.StringVar(&o.shots, "shots", "", "a folder for screenshots")
	flag.StringVar(&o.store, "store", "", "a folder that watchload -fill made; by default one is made")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-live:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	dir, err := os.MkdirTemp("", "ashlar-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, socket := o.store, filepath.Join(dir, "w.sock")
	if store == "" {
		store = filepath.Join(dir, "store")
		if out, err := exec.Command(o.load, "-fill", store, "-jobs", fmt.Sprint(o.jobs)).CombinedOutput(); err != nil {
			return fmt.Errorf("watchload -fill: %w\n%s", err, out)
		}
	}
	b, err := page.LaunchWarm(context.Background())
	if err != nil {
		return err
	}
	defer b.Close()
	s, err := page.Watch(o.ashlar, "--dir", store, "--listen", "unix:"+socket)
	if err != nil {
		return err
	}
	defer s.Close()
	senders := exec.Command(o.load, "-send", socket, "-jobs", fmt.Sprint(o.jobs), "-lasts", (o.lasts + time.Minute).String())
	if err := senders.Start(); err != nil {
		return err
	}
	defer func() {
		senders.Process.Kill()
		senders.Wait() // its error is the signal
	}()
	failed, err := o.measure(b, s)
	if err == nil && failed {
		err = errors.New("a bar fails")
	}
	return err
}

const (
	allShown = "document.querySelectorAll('.live-table tbody tr').length > 1 && " +
		"document.querySelectorAll('.live-table tbody tr').length === document.querySelectorAll('.small-curve path.reserved').length"
	// turns counts how often the table got newer.
	countTurns = `void (() => {
		window.turns = 0;
		let last = '';
		setInterval(() => {
			const now = document.querySelector('[data-now]')?.dataset.now;
			if (now !== last) { last = now; window.turns++; }
		}, 50);
	})()`
)

func (o *options) measure(b *page.Browser, s *page.Server) (failed bool, err error) {
	fmt.Println("| what | measured | bar |\n|---|---:|---:|")
	show := func(what string, got, bar float64, unit string, ok bool) {
		verdict := ""
		if !ok {
			verdict, failed = " FAILS", true
		}
		fmt.Printf("| %s | %.2f %s%s | %.2f %s |\n", what, got, unit, verdict, bar, unit)
	}
	p, err := b.Open(s.Address+"#//live", 1600, 900, false)
	if err != nil {
		return false, err
	}
	defer p.Close()
	if err := p.Until(allShown, patience); err != nil {
		return false, err
	}
	var took float64 // since the address was opened
	if err := p.Value("performance.now() / 1000", &took); err != nil {
		return false, err
	}
	show(fmt.Sprintf("%d jobs with 2 h of history: all shown, with their curves", o.jobs), took, 2, "s", took < 2)
	if o.shots != "" {
		if err := o.shoot(b, s); err != nil {
			return false, err
		}
	}
	if err := p.Value(countTurns, nil); err != nil {
		return false, err
	}
	began := time.Now()
	var heaps []float64 // MB
	for time.Since(began) < o.lasts {
		time.Sleep(o.lasts / 20)
		heap, err := p.Heap()
		if err != nil {
			return false, err
		}
		heaps = append(heaps, float64(heap)/1e6)
	}
	var turns float64
	if err := p.Value("window.turns", &turns); err != nil {
		return false, err
	}
	rate := turns / time.Since(began).Seconds()
	show("changes of the table per second", rate, 0.9, "", rate > 0.9)
	// What comes and goes, such as alarms, moves it by a few MB.
	half := len(heaps) / 2
	before, after := slices.Max(heaps[:half]), slices.Max(heaps[half:])
	show(fmt.Sprintf("most heap in the second half of %v, of that in the first", o.lasts), after/before, 1.1, "", after < 1.1*before)
	show("most heap", max(before, after), 100, "MB", max(before, after) < 100)
	fmt.Printf("\nheap in MB: %.1f\n", heaps)
	if problems := p.Problems(); len(problems) > 0 {
		return failed, fmt.Errorf("the console says: %v", problems)
	}
	return failed, nil
}

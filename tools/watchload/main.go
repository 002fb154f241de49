package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	ashlar := flag.String("ashlar", "bin/ashlar", "the command")
	quick := flag.Bool("quick", false, "a tenth of the time and of the jobs: the bars are not held to it")
	onlyWeek := flag.Bool("week", false, "only the week of history")
	fillDir := flag.String("fill", "", "only make a folder with history of -jobs jobs for -lasts, up to now")
	sendSocket := flag.String("send", "", "only let these jobs go on at a socket, for -lasts")
	jobs := flag.Int("jobs", 200, "how many jobs -fill and -send have")
	lasts := flag.Duration("lasts", 2*time.Hour, "of -fill and -send")
	flag.Parse()
	if *sendSocket != "" {
		sendTo(context.Background(), *sendSocket, *jobs, *lasts)
		return
	}
	if *fillDir != "" {
		if err := fill(context.Background(), *fillDir, *jobs, *lasts); err != nil {
			fmt.Fprintln(os.Stderr, "watchload:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(*ashlar, *quick, *onlyWeek); err != nil {
		fmt.Fprintln(os.Stderr, "watchload:", err)
		os.Exit(1)
	}
}

// bar is a figure that must stay below a bound.
type bar struct {
	what  string
	got   float64
	below float64
	unit  string
}

func run(ashlar string, quick, onlyWeek bool) error {
	ctx := context.Background()
	part := 1
	if quick {
		part = 10
	}
	failed := false
	show := func(bars []bar, err error) error {
		for _, b := range bars {
			verdict := "ok"
			if b.got >= b.below {
				verdict, failed = "FAILS", true
			}
			fmt.Printf("%-46s %9.1f %-4s below %7.0f  %s\n", b.what, b.got, b.unit, b.below, verdict)
		}
		return err
	}
	loads := []load{
		{ashlar: ashlar, senders: 200 / part, lasts: 2 * time.Minute / time.Duration(part), kills: 3, cpu: 10, memory: 120},
		{ashlar: ashlar, senders: 1000 / part, lasts: time.Minute / time.Duration(part), cpu: 25, memory: 250},
	}
	if onlyWeek {
		loads = nil
	}
	for _, l := range loads {
		if err := show(l.run(ctx)); err != nil {
			return err
		}
	}
	if err := show(week(ctx, 10/part)); err != nil {
		return err
	}
	if failed && !quick {
		return errors.New("a bar fails")
	}
	return nil
}

package main

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/term"

	"github.com/ashlar-mem/ashlar/internal/atomicfile"
	"github.com/ashlar-mem/ashlar/internal/input"
)

func main() {
	end := &ending{again: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), endingKey{}, end))
	std := stdio{
		in:       input.Waiting(ctx, os.Stdin),
		out:      os.Stdout,
		err:      os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	var exit sync.Once
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	go end.watch(signals, cancel, func() {
		exit.Do(func() {
			signal.Reset() // a third one ends it, should standard error block
			atomicfile.RemoveUnfinished()
			std.clearLine()
			if end.endless.Load() {
				os.Exit(exitOK)
			}
			std.errorf("%s", interruptedBy(ctx))
			os.Exit(exitInput)
		})
	})
	code := execute(ctx, std, os.Args[1:])
	exit.Do(func() { os.Exit(code) })
}

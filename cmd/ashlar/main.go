package main

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	streams := stdio{
		in:       os.Stdin,
		out:      os.Stdout,
		err:      os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	code := run(ctx, streams, os.Args[1:])
	stop()
	os.Exit(code)
}

package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// untilHurried is as [untilEnded], and closes the channel when this program is
// asked a second time: then it does not wait any more for commands to end.
func untilHurried(ctx context.Context) (_ context.Context, again <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	second, done := make(chan struct{}), make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for _, do := range []func(){cancel, func() { close(second) }} {
			select {
			case <-signals:
				do()
			case <-done:
				return
			}
		}
	}()
	return ctx, second, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(done)
		cancel()
	})
}

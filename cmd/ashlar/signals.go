package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// patience is how long a command may go on when it was asked to end. Some calls
// of the system do not return, and nothing in them sees a context.
const patience = 1500 * time.Millisecond

// ending is how the program ends when it is asked to: the first signal ends the
// context of the command; the second one, or too long a time, the program.
type ending struct {
	patient atomic.Bool // the command may take its time
	hurried atomic.Bool // the second signal is the command's, too
	endless atomic.Bool // the command goes on until it is asked to end
	again   chan struct{}
}

type endingKey struct{}

// interruption is why a command ends that a signal has asked to.
type interruption struct{ signal os.Signal }

func (i interruption) Error() string {
	switch i.signal {
	case syscall.SIGTERM:
		return "interrupted by SIGTERM"
	case syscall.SIGHUP:
		return "interrupted by SIGHUP"
	}
	return "interrupted"
}

func (i interruption) Is(target error) bool { return target == context.Canceled }

// interruptedBy says what has ended a context.
func interruptedBy(ctx context.Context) string {
	var i interruption
	errors.As(context.Cause(ctx), &i)
	return i.Error()
}

// untilEnded is the error of a command that goes on until it is asked to end: that it
// was asked is none, however early.
func untilEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// endingOf returns the ending that a command belongs to; outside of main one
// that never comes.
func endingOf(ctx context.Context) *ending {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		return e
	}
	return &ending{}
}

// endless says that a command goes on until it is asked to end: however it ends then, it was asked to.
func endless(ctx context.Context) { endingOf(ctx).endless.Store(true) }

// takesTime lets a command end what it has begun, however long that takes.
func takesTime(ctx context.Context) { endingOf(ctx).patient.Store(true) }

// untilHurried is as [takesTime], and leaves the second signal to the command:
// then the channel is closed.
func untilHurried(ctx context.Context) <-chan struct{} {
	takesTime(ctx)
	e := endingOf(ctx)
	e.hurried.Store(true)
	return e.again
}

// endSignals returns the signals that ask this program to end. One that nohup
// has ignored stays so.
func endSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// watch waits for signals and has the command or the program end.
func (e *ending) watch(signals <-chan os.Signal, cancel context.CancelCauseFunc, quit func()) {
	cancel(interruption{<-signals})
	late := time.After(patience)
	for {
		select {
		case <-late:
			if e.patient.Load() {
				continue
			}
		case <-signals:
			if e.hurried.Load() {
				close(e.again)
				return
			}
		}
		quit()
		return
	}
}

package run

import (
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Spec says what to run and how to measure it.
type Spec struct {
	Command []string
	Environ []string // environment that variants add to
	Dir     string   // empty: here

	// Of a service. Without any of these the command runs to its end.
	Ready  *Ready        // how to know that it is; nil: it is from the start
	Load   string        // a shell command that drives it, once it is ready
	Done   string        // a text it prints when the load is over
	For    time.Duration // the longest the load takes; 0: until Load or Done
	Settle time.Duration // how long it is left alone afterwards
	Gate   bool          // it waits for the end of its input before it goes on

	ReadyWithin time.Duration // 0: DefaultReadyWithin
	Interval    time.Duration // between samples, at most; 0: DefaultInterval
	Grace       time.Duration // between SIGTERM and SIGKILL; 0: DefaultGrace

	// Inside is the library that has malloc say what the program holds; empty: it
	// is not asked.
	Inside string
	Goal   Goal // what the recommendation is for

	// Kill is closed to kill commands that do not end fast enough; may be nil.
	Kill <-chan struct{}

	unadopted bool // of tests: as where orphans do not come to this program
}

// What a Spec does not say.
const (
	DefaultReadyWithin = time.Minute
	DefaultInterval    = 100 * time.Millisecond
	DefaultGrace       = 10 * time.Second
)

// Service reports whether the command runs until it is stopped.
func (s *Spec) Service() bool {
	return s.Ready != nil || s.Load != "" || s.Done != "" || s.For > 0
}

// check refuses what cannot work and fills in defaults.
func (s *Spec) check() error {
	if len(s.Command) == 0 {
		return errors.New("no command to run")
	}
	if s.Dir == "" {
		if _, err := exec.LookPath(s.Command[0]); err != nil {
			return fmt.Errorf("%s cannot be run: %w", s.Command[0], errors.Unwrap(err))
		}
	}
	if s.ReadyWithin == 0 {
		s.ReadyWithin = DefaultReadyWithin
	}
	if s.Interval == 0 {
		s.Interval = DefaultInterval
	}
	if s.Grace == 0 {
		s.Grace = DefaultGrace
	}
	return nil
}

// AtLeast is the time that a run of a service takes at least.
func (s *Spec) AtLeast() time.Duration {
	d := s.Settle
	if s.Load == "" && s.Done == "" {
		d += s.For
	}
	return d
}

package run

import (
	"context"
	"time"
)

// interruptedGrace is how long all running commands together may take to end
// after an interrupt.
const interruptedGrace = 2 * time.Second

// stopDeadline decides how long to wait for commands that are to end. An
// interrupt shortens the wait, even one that has begun, and kill ends it.
type stopDeadline struct {
	ctx   context.Context
	kill  <-chan struct{} // closed: do not wait; may be nil
	since time.Time       // when the interrupt was noticed; zero: not yet
}

// killNow reports whether to kill running processes at once.
func (s *stopDeadline) killNow() bool {
	select {
	case <-s.kill:
		return true
	default:
		return false
	}
}

// passed reports whether a grace period that started at begin is over.
func (s *stopDeadline) passed(begin time.Time, grace time.Duration) bool {
	now := time.Now()
	if s.since.IsZero() && s.ctx.Err() != nil {
		s.since = now
	}
	return s.killNow() || now.Sub(begin) >= grace || !s.since.IsZero() && now.Sub(s.since) >= interruptedGrace
}

// pause waits for d, or less if kill is closed.
func (s *stopDeadline) pause(d time.Duration) {
	if s.killNow() {
		time.Sleep(min(d, 5*time.Millisecond))
		return
	}
	select {
	case <-s.kill:
	case <-time.After(d):
	}
}

package run

import (
	"context"
	"time"
)

// interruptedGrace is how long commands have to end when the user waits: all that
// run, together.
const interruptedGrace = 2 * time.Second

// patience is how long commands that are to end are waited for. It is less when
// the user interrupts, also in the middle of it, and none when they are to be
// killed.
type patience struct {
	ctx   context.Context
	kill  <-chan struct{} // closed: no more waiting; may be nil
	since time.Time       // when the interrupt was noticed; zero: it was not
}

// none tells that what runs is to be killed at once.
func (p *patience) none() bool {
	select {
	case <-p.kill:
		return true
	default:
		return false
	}
}

// over tells whether a grace that began then is.
func (p *patience) over(begin time.Time, grace time.Duration) bool {
	now := time.Now()
	if p.since.IsZero() && p.ctx.Err() != nil {
		p.since = now
	}
	return p.none() || now.Sub(begin) >= grace || !p.since.IsZero() && now.Sub(p.since) >= interruptedGrace
}

// pause waits a little.
func (p *patience) pause(d time.Duration) {
	if p.none() {
		time.Sleep(min(d, 5*time.Millisecond))
		return
	}
	select {
	case <-p.kill:
	case <-time.After(d):
	}
}

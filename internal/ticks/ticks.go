package ticks

import "time"

// Clock is the first of the two points.
type Clock struct {
	ticks int64
	at    time.Time
}

// NewClock notes the ticks and the time now.
func NewClock() Clock { return Clock{Now(), time.Now()} }

// Reading is a line from ticks to time.
type Reading struct {
	ticks   int64
	unix    int64
	perTick float64 // nanoseconds
}

// Reading notes the second point and returns the line.
func (c Clock) Reading() Reading {
	now, t := Now(), time.Now()
	r := Reading{ticks: c.ticks, unix: c.at.UnixNano(), perTick: 1}
	if d := now - c.ticks; d > 0 {
		r.perTick = float64(t.Sub(c.at)) / float64(d)
	}
	return r
}

// UnixNano gives the time of a tick in nanoseconds since the Unix epoch.
func (r Reading) UnixNano(tick int64) int64 {
	return r.unix + int64(float64(tick-r.ticks)*r.perTick)
}

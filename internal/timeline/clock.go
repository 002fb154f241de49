package timeline

import (
	"sort"

	"github.com/ashlar-mem/ashlar/trace"
)

// Clock finds events by their time. With several threads, times go back a few
// microseconds now and then. Such an event counts at the latest time before it,
// so that times never fall.
type Clock struct {
	// First and Last are the times of the first and the last event;
	// trace.NoTime if the file does not say.
	First, Last int64

	times  *trace.Column[int64]
	raised []int64 // the times that rise; nil if those of the file do
}

// NewClock reads the times of a trace.
func NewClock(t *trace.Trace) *Clock {
	c := &Clock{First: trace.NoTime, Last: trace.NoTime, times: &t.Events.Time}
	rises := true
	for i := range c.times.Len() {
		at := c.times.At(i)
		rises = rises && at != trace.NoTime && at >= c.Last
		if at == trace.NoTime {
			continue
		}
		if c.First == trace.NoTime {
			c.First = at
		}
		c.First, c.Last = min(c.First, at), max(c.Last, at)
	}
	if rises || c.First == trace.NoTime {
		return c
	}
	c.raised = make([]int64, c.times.Len())
	last := c.First
	for i := range c.raised {
		last = max(last, c.times.At(i)) // trace.NoTime is less than any
		c.raised[i] = last
	}
	return c
}

// At returns the time of an event.
func (c *Clock) At(event int) int64 {
	if c.raised != nil {
		return c.raised[event]
	}
	return c.times.At(event)
}

// Before returns how many events are earlier than a time.
func (c *Clock) Before(time int64) int {
	return sort.Search(c.times.Len(), func(i int) bool { return c.At(i) >= time })
}
